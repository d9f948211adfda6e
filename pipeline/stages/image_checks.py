"""What can be known to fail before a training on photos: features, blocks or weights that are not there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ConfigError, DataError
from core.settings.images import BACKBONE_BLOCKS

if TYPE_CHECKING:
    from core.settings import Settings

# What the recipe reads of an example.
_READ = ("image", "label", "parent")


def check(settings: Settings, curated: Any) -> None:
    """Refuses settings of a recipe for photos that cannot work here.

    Args:
        settings: Of a recipe for photos.
        curated: The curated schema (tensorflow_metadata Schema).

    Raises:
        ConfigError: The schema lacks a feature of photos, or does not say that `image` holds photos; or more blocks are
            to be trained than there are.
        EnvironmentProblem: The ImageNet weights are not installed.
    """
    features = {feature.name: feature for feature in curated.feature}
    place = settings.schema_.path
    for name in _READ:
        if name not in features:
            hint = "A schema for photos: data/schemas/clothing.pbtxt; it fits any classes."
            raise ConfigError(f"the schema has no feature {name!r}", place=place, hint=hint)
    if features["image"].WhichOneof("domain_info") != "image_domain":
        hint = "Add image_domain {} to it; without it, statistics are made of the photos' bytes as if they were text."
        raise ConfigError("the schema does not say that 'image' holds photos", place=place, hint=hint)
    _check_blocks(settings)
    if settings.classifier.weights == "imagenet":
        from pipeline.models.image import weights

        weights.find()


def _check_blocks(settings: Settings) -> None:
    classifier = settings.classifier
    blocks = BACKBONE_BLOCKS.get(classifier.backbone)
    if blocks is not None and classifier.fine_tune_blocks > blocks:
        raise ConfigError(
            f"{classifier.backbone} has {blocks} blocks, not {classifier.fine_tune_blocks}",
            place="classifier.fine_tune_blocks",
            hint=f"Give a number from 0 to {blocks}.",
        )


def check_folder(path: str) -> None:
    """Refuses a plain path to nothing: a newcomer's first try, who has no photos where the recipe looks for them.

    Raises:
        DataError: The folder of photos is not there.
    """
    is_plain = not set(path) & set("*?[{:")
    if is_plain and not Path(path).expanduser().exists():
        hint = "Name yours: --set data.path=FOLDER. Or get a public set: forebay data fetch clothing."
        raise DataError("there is no such folder of photos", place=f"data.path {path}", hint=hint)
