"""What the settings make of raw columns: the names, kinds and sizes of the transformed features. No TensorFlow.

Each raw column becomes one transformed feature for each use that the settings make of it:

    numeric      <column>_scaled       float32  z-score over the values that are present; 0 where there is none
    bucketized   <column>_bucket       int64    a slot
    categorical  <column>_slot         int64    a slot
    crossed      <a>_x_<b>_cross       int64    a slot

A slot is a row number of an embedding table. Slot 0 of a column means "no value", so that the model can learn what
an absence says. The slots of unknown values come next, then the known ones: their number is learned by Transform,
and nothing has to be laid out behind it. A cross has hash buckets only.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import ConfigError
from core.settings.schema import NetworkSettings, TrainingSettings
from core.settings.tabular import Cross, FeatureSettings, LabelSettings

# Slot of "no value" in bucketized and categorical features.
MISSING_SLOT = 0
# An integer at or below this is "no value". It is the lowest integer that a JSON client can send without rounding:
# JavaScript and other readers of JSON numbers as doubles are exact down to -2**53.
MISSING_INTEGER = -(2**53)


@dataclasses.dataclass(frozen=True)
class TabularSettings:
    """The sections of the settings that the recipe reads.

    Attributes:
        features: Which columns the model reads, and as what.
        label: What it predicts.
        network: Layer sizes.
        training: Steps, batch size, seed.
    """

    features: FeatureSettings
    label: LabelSettings
    network: NetworkSettings
    training: TrainingSettings


def read_settings(custom_config: Mapping[str, Any] | None) -> TabularSettings:
    """Returns the settings that the Trainer was given.

    Args:
        custom_config: The node's custom_config: `settings` holds a JSON object with at least the sections features,
            label, network and training, as `Settings.model_dump(mode="json", by_alias=True)` writes them.

    Raises:
        ConfigError: The JSON or one of the sections is missing.
        pydantic.ValidationError: A section does not fit its type.
    """
    features, label = read_columns(custom_config)
    sections = _sections(custom_config, ("network", "training"))
    return TabularSettings(
        features=features,
        label=label,
        network=NetworkSettings.model_validate(sections["network"]),
        training=TrainingSettings.model_validate(sections["training"]),
    )


def read_columns(custom_config: Mapping[str, Any] | None) -> tuple[FeatureSettings, LabelSettings]:
    """Returns the settings that Transform was given: the sections features and label.

    It gets no others, so that a new learning rate does not transform the data again. Arguments and errors are as
    for `read_settings`.
    """
    sections = _sections(custom_config, ("features", "label"))
    features = FeatureSettings.model_validate(sections["features"])
    label = LabelSettings.model_validate(sections["label"])
    transformed = [
        *(scaled_name(column) for column in features.numeric),
        *(bucket_name(column) for column in features.bucketized),
        *(slot_name(column) for column in features.categorical),
        *(cross_name(cross) for cross in features.crossed),
    ]
    _refuse_equal_names([*transformed, label.name])
    _refuse_equal_names(features.columns())
    return features, label


def _sections(custom_config: Mapping[str, Any] | None, needed: Sequence[str]) -> dict[str, Any]:
    """Returns the sections of a node's configuration, of which `needed` have to be there."""
    text = (custom_config or {}).get("settings")
    if not isinstance(text, str):
        raise ConfigError(
            "the node got no settings", place="custom_config.settings", hint="Pass the settings as a JSON string."
        )
    sections: dict[str, Any] = json.loads(text)
    missing = [name for name in needed if name not in sections]
    if missing:
        raise ConfigError(f"the node's settings lack {missing}", place="custom_config.settings")
    return sections


def scaled_name(column: str) -> str:
    """Returns the name of a numeric column's z-score."""
    return f"{column}_scaled"


def bucket_name(column: str) -> str:
    """Returns the name of a bucketized column's slot."""
    return f"{column}_bucket"


def slot_name(column: str) -> str:
    """Returns the name of a categorical column's slot."""
    return f"{column}_slot"


def cross_name(cross: Cross) -> str:
    """Returns the name of a cross' slot."""
    return "_x_".join(cross.columns) + "_cross"


def input_name(feature: str) -> str:
    """Returns the name of a raw or transformed feature as an input of a signature.

    TensorFlow allows letters, digits and underscores there; every other character becomes an underscore.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", feature)
    return name if re.match(r"[A-Za-z]", name) else f"column_{name}"


def _refuse_equal_names(features: Sequence[str]) -> None:
    """Raises ConfigError when two features would have one name in a signature."""
    owners: dict[str, str] = {}
    for feature in features:
        name = input_name(feature)
        if name in owners:
            raise ConfigError(
                f"{owners[name]!r} and {feature!r} would both be called {name!r}",
                place="features or label",
                hint="Rename a column, or the label, so that the names differ in letters or digits.",
            )
        owners[name] = feature


def vocabulary_name(column: str) -> str:
    """Returns the name of the asset file that holds a column's vocabulary, the most frequent value first."""
    return f"{column}_vocabulary"


@dataclasses.dataclass(frozen=True)
class ModelInputs:
    """The transformed features that the network reads, in the order of its columns.

    Attributes:
        numeric: Names of float32[batch] features.
        slots: Name of each int64[batch] feature that has both a weight and an embedding: number of its slots.
        crosses: Name of each int64[batch] feature that has a weight only: number of its slots.
    """

    numeric: tuple[str, ...]
    slots: Mapping[str, int]
    crosses: Mapping[str, int]

    def names(self) -> list[str]:
        """Returns the name of every feature, each once, in a stable order."""
        return [*self.numeric, *self.slots, *self.crosses]


def model_inputs(features: FeatureSettings, vocabulary_sizes: Mapping[str, int]) -> ModelInputs:
    """Returns what the network reads.

    Args:
        features: The feature settings.
        vocabulary_sizes: Number of values in the vocabulary of each column that has `top_k`, as Transform learned it.
    """
    slots = {bucket_name(column): 1 + buckets for column, buckets in features.bucketized.items()}
    for column, kind in features.categorical.items():
        known = kind.integers if kind.integers is not None else min(vocabulary_sizes[column], kind.top_k or 0)
        slots[slot_name(column)] = 1 + kind.oov_buckets + known
    return ModelInputs(
        numeric=tuple(scaled_name(column) for column in features.numeric),
        slots=slots,
        crosses={cross_name(cross): cross.hash_buckets for cross in features.crossed},
    )
