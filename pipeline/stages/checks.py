"""What can be known to fail before anything runs: files, columns and code that the settings name."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ConfigError
from pipeline.stages.stage import dump

if TYPE_CHECKING:
    from core.settings import Settings

# What the recipes that come with Forebay read. Of other user code nothing is known before it runs.
_TABULAR, _IMAGE = "pipeline.models.tabular", "pipeline.models.image"


def check(settings: Settings) -> None:
    """Refuses settings that name what is not there.

    Raises:
        ConfigError: The schema file does not exist or is no schema, a column or the user code does not exist (names the
            nearest that does), the user code reads another kind of data, or the serving root is of a kind that cannot
            be pushed to.
        DataError: There is no input data.
        EnvironmentProblem: Pretrained weights are asked for and not installed.
    """
    from components.data_gate import policy
    from components.ingest import sources
    from core import schema
    from pipeline.stages import image_checks
    from serving.target import is_s3, split_s3

    if is_s3(settings.serving.root):
        split_s3(settings.serving.root)
    _check_user_code(settings.user_code)
    _check_kind(settings)
    curated = schema.read(Path(settings.schema_.path))
    _check_columns(settings, [feature.name for feature in curated.feature])
    if settings.is_images:
        image_checks.check(settings, curated)
        image_checks.check_folder(settings.data.path)
    else:
        _check_types(settings, curated)
    policy.check_names(dump(settings.data_gate), [feature.name for feature in curated.feature])
    sources.resolve(
        settings.data.path,
        kind=settings.data.kind,
        run_date=settings.run.date,
        manifest=settings.data.images.manifest,
    )


def _check_user_code(package: str) -> None:
    for module in ("preprocessing", "trainer"):
        name = f"{package}.{module}"
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            hint = "It must hold preprocessing.py and trainer.py and be importable from the current folder."
            raise ConfigError(f"there is no module {name}", place=f"user_code {package}", hint=hint)


def _check_kind(settings: Settings) -> None:
    """Refuses a recipe of columns for photos and the other way round, which Transform would only trip over."""
    wrong, right = (_TABULAR, _IMAGE) if settings.is_images else (_IMAGE, _TABULAR)
    if settings.user_code == wrong:
        reads = "columns, not photos" if settings.is_images else "photos, not columns"
        raise ConfigError(
            f"{wrong} reads {reads}, and data.kind is {settings.data.kind}",
            place="user_code",
            hint=f"Set user_code: {right}, or another data.kind.",
        )


def _check_columns(settings: Settings, known: list[str]) -> None:
    wanted = [] if settings.is_images else _used_columns(settings)
    wanted += [(f"evaluate.slices: {name}", name) for name in settings.evaluate.slices]
    for place, name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"Its columns: {', '.join(known[:12])}."
            raise ConfigError(f"the schema {settings.schema_.path} has no column {name!r}", place=place, hint=hint)


def _used_columns(settings: Settings) -> list[tuple[str, str]]:
    """Returns (place in the settings, column) of each column that the tabular recipe reads."""
    label = settings.label
    used = [(f"features: {name}", name) for name in settings.features.columns()]
    used.append(("label.column", label.column))
    if label.above_share_of is not None:
        used.append(("label.above_share_of", label.above_share_of))
    return used


def _check_types(settings: Settings, curated: Any) -> None:
    """Refuses a use that a column's type does not allow, half an hour before Transform would."""
    from tensorflow_metadata.proto.v0 import schema_pb2

    kinds = {feature.name: schema_pb2.FeatureType.Name(feature.type) for feature in curated.feature}
    features, label = settings.features, settings.label
    numbers = [("features.numeric", name) for name in features.numeric]
    numbers += [("features.bucketized", name) for name in features.bucketized]
    for place, name in numbers:
        if kinds[name] == "BYTES":
            hint = "Use it under features.categorical, or declare its type in data.types and in the schema."
            raise ConfigError(f"{name!r} is text in the schema, and a number is needed", place=place, hint=hint)
    for name, kind in features.categorical.items():
        if kind.integers is not None and kinds[name] != "INT":
            hint = "Give it top_k instead of integers."
            place = f"features.categorical.{name}"
            raise ConfigError(f"{name!r} does not hold integers in the schema", place=place, hint=hint)
    if label.positive is None and kinds[label.column] == "BYTES":
        hint = 'Say which value counts as 1: label.positive: "Yes".'
        raise ConfigError(f"{label.column!r} is text in the schema", place="label.column", hint=hint)
