"""Names of what the image recipe reads and makes, and the settings it is given. No TensorFlow."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from core.errors import ConfigError
from core.settings.images import ClassifierSettings
from core.settings.schema import TrainingSettings

# Raw and transformed: an encoded photo.
IMAGE = "image"
# Raw: the full class path, such as "tops > shirt".
LABEL = "label"
# Transformed: the class' position in the label map, int64.
LABEL_INDEX = "label_index"
# What LABEL_INDEX holds for a class that the label map does not know.
UNKNOWN_LABEL = -1
# The asset of the Transform graph that lists the classes, one a line, the most frequent first.
VOCABULARY = "labels"


@dataclasses.dataclass(frozen=True)
class ImageSettings:
    """The sections of the settings that the recipe reads.

    Attributes:
        classifier: The network and how it is trained.
        training: Batch size, seed, devices.
    """

    classifier: ClassifierSettings
    training: TrainingSettings


def read_settings(custom_config: Mapping[str, Any] | None) -> ImageSettings:
    """Returns the settings that the Trainer was given.

    Args:
        custom_config: The node's custom_config: `settings` holds a JSON object with at least the sections classifier
            and training, as `Settings.model_dump(mode="json", by_alias=True)` writes them.

    Raises:
        ConfigError: The JSON or one of the sections is missing.
        pydantic.ValidationError: A section does not fit its type.
    """
    text = (custom_config or {}).get("settings")
    sections = json.loads(text) if isinstance(text, str) else {}
    missing = [name for name in ("classifier", "training") if name not in sections]
    if missing:
        raise ConfigError(
            f"the Trainer's settings lack {' and '.join(missing)}",
            place="custom_config.settings",
            hint="pass the settings as the text of a JSON object",
        )
    return ImageSettings(
        classifier=ClassifierSettings.model_validate(sections["classifier"]),
        training=TrainingSettings.model_validate(sections["training"]),
    )
