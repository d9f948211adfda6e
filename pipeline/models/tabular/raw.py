"""Raw columns as dense tensors of shape [batch], with one marker for "no value" a type.

The marker is the same wherever a row comes from (a sparse column without an entry, a JSON client that has to send
something): a number that is not finite, an integer at or below `features.MISSING_INTEGER`, an empty text.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from core.errors import ConfigError
from pipeline.models.tabular.features import MISSING_INTEGER

MARKERS = {tf.float32: float("nan"), tf.int64: MISSING_INTEGER, tf.string: ""}


def number(inputs: Mapping[str, Any], column: str, dtype: tf.DType) -> tf.Tensor:
    """Returns a float or integer column as `dtype`[batch], NaN where there is no finite value.

    Raises:
        ConfigError: The column is not in the schema, or holds text.
    """
    dense = _dense(inputs, column, "a number", (tf.float32, tf.int64))
    present = tf.math.is_finite(dense) if dense.dtype == tf.float32 else dense > MISSING_INTEGER
    return tf.where(present, tf.cast(dense, dtype), tf.constant(float("nan"), dtype))


def integer(inputs: Mapping[str, Any], column: str) -> tf.Tensor:
    """Returns an integer column as int64[batch], `features.MISSING_INTEGER` or less where there is no value.

    Raises:
        ConfigError: The column is not in the schema, or does not hold integers.
    """
    return _dense(inputs, column, "an integer", (tf.int64,))


def text(inputs: Mapping[str, Any], column: str) -> tf.Tensor:
    """Returns a text or integer column as string[batch], empty where there is no value.

    Raises:
        ConfigError: The column is not in the schema, or holds floating-point numbers.
    """
    dense = _dense(inputs, column, "a text or an integer", (tf.string, tf.int64))
    if dense.dtype == tf.string:
        return dense
    return tf.where(dense > MISSING_INTEGER, tf.strings.as_string(dense), tf.constant(""))


def _dense(inputs: Mapping[str, Any], column: str, wanted: str, dtypes: tuple[tf.DType, ...]) -> tf.Tensor:
    """Returns a column of one of `dtypes` as a tensor of shape [batch], its marker where there is no value."""
    if column not in inputs:
        near = difflib.get_close_matches(column, inputs, n=1)
        raise ConfigError(
            f"column {column!r} is not in the schema",
            place="features or label",
            hint=f"did you mean {near[0]!r}?" if near else f"the schema has {', '.join(sorted(inputs))}",
        )
    tensor = inputs[column]
    if tensor.dtype not in dtypes:
        found = _SCHEMA_TYPES.get(tensor.dtype, str(tensor.dtype))
        raise ConfigError(
            f"column {column!r} is used as {wanted}, but the schema says {found}",
            place="features or label",
            hint=f"use it in another way, or set data.types.{column} and accept the new schema",
        )
    if isinstance(tensor, tf.SparseTensor):
        one_each = tf.SparseTensor(tensor.indices, tensor.values, [tensor.dense_shape[0], 1])
        return tf.reshape(tf.sparse.to_dense(one_each, default_value=MARKERS[tensor.dtype]), [-1])
    if not isinstance(tensor, tf.Tensor) or tensor.shape.rank not in (1, 2) or tensor.shape[1:].num_elements() != 1:
        raise ConfigError(
            f"column {column!r} has several values a row",
            place="features or label",
            hint="this recipe reads one value a row; take the column out of features, or flatten it in the data",
        )
    return tf.reshape(tensor, [-1])


_SCHEMA_TYPES = {tf.float32: "FLOAT", tf.int64: "INT", tf.string: "BYTES (text)"}
