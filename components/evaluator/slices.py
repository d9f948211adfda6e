"""Which slices an example belongs to: the whole split, and one for each value of each slicing column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2

# More values than this are not groups of examples that a person compares; each also costs 160 KB of totals.
MOST_VALUES = 1000

Indices: TypeAlias = "npt.NDArray[np.int64]"


class Slicer:
    """Numbers slices as they appear; slice 0 is the whole split.

    Attributes:
        keys: (column, value) by slice number; (None, None) for the whole split.
    """

    def __init__(self, columns: Sequence[str], schema: schema_pb2.Schema) -> None:
        """Prepares the slices, those first that the schema's domains list: a value without any example is seen too.

        Args:
            columns: Slicing columns.
            schema: Types and domains of the raw features.

        Raises:
            ConfigError: A column is not in the schema, or holds structures.
        """
        features = {feature.name: feature for feature in schema.feature}
        unknown = [column for column in columns if column not in features]
        if unknown:
            hint = f"The schema has {', '.join(sorted(features))}."
            raise ConfigError(f"slicing column {unknown[0]!r} is not in the schema", place="evaluate.slices", hint=hint)
        nested = [column for column in columns if features[column].type not in (1, 2, 3)]
        if nested:
            raise ConfigError(f"slicing column {nested[0]!r} holds neither text nor numbers", place="evaluate.slices")
        self._features = {column: features[column] for column in columns}
        self.keys: list[tuple[str | None, Any]] = [(None, None)]
        self._numbers: dict[tuple[str | None, Any], int] = {(None, None): 0}
        for column in columns:
            for value in domain_values(features[column], schema):
                self._number(column, value)

    def pairs(self, serialized: Any, size: int) -> tuple[Indices, Indices]:
        """Returns (slice, row) pairs of a batch.

        Args:
            serialized: string[size] tensor of tf.Examples.
            size: Number of examples.

        Raises:
            ConfigError: A column has more than MOST_VALUES values.
        """
        import tensorflow as tf

        slices, rows = [np.zeros(size, np.int64)], [np.arange(size, dtype=np.int64)]
        if not self._features:
            return slices[0], rows[0]
        dtypes = {1: tf.string, 2: tf.int64, 3: tf.float32}
        wanted = {column: tf.io.RaggedFeature(dtypes[feature.type]) for column, feature in self._features.items()}
        for column, ragged in tf.io.parse_example(serialized, wanted).items():
            values, inverse = np.unique(ragged.flat_values.numpy(), return_inverse=True)
            numbers = np.array([self._number(column, _plain(value)) for value in values], np.int64)
            pairs = np.stack([numbers[inverse], ragged.value_rowids().numpy()]) if len(values) else np.zeros((2, 0))
            pairs = np.unique(pairs.astype(np.int64), axis=1)
            slices.append(pairs[0])
            rows.append(pairs[1])
        return np.concatenate(slices), np.concatenate(rows)

    def _number(self, column: str, value: Any) -> int:
        key = (column, value)
        if key not in self._numbers:
            if sum(name == column for name, _ in self.keys) >= MOST_VALUES:
                raise ConfigError(
                    f"column {column!r} has more than {MOST_VALUES} values: too many for slices",
                    place="evaluate.slices",
                    hint="Slice by a column of few values.",
                )
            self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return self._numbers[key]


def domain_values(feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> list[Any]:
    """Returns the values that the schema lists for a feature; empty when it lists none or too many."""
    kind = feature.WhichOneof("domain_info")
    if kind == "domain":
        return next((list(domain.value) for domain in schema.string_domain if domain.name == feature.domain), [])
    if kind == "string_domain":
        return list(feature.string_domain.value)
    if kind == "int_domain" and feature.int_domain.is_categorical:
        domain = feature.int_domain
        if domain.HasField("min") and domain.HasField("max") and domain.max - domain.min < MOST_VALUES:
            return list(range(domain.min, domain.max + 1))
    return []


def _plain(value: Any) -> Any:
    """Returns a NumPy scalar or bytes as the Python value that names a slice."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    return value.item() if hasattr(value, "item") else value
