"""The transformation from raw columns to features, run by TFX Transform and embedded in every exported model.

Transform traces `preprocessing_fn` up to ten times, and Beam pays for every stage, however few rows pass through it.
So analyses are shared: one for the mean and variance of all numeric columns, one for the quantiles of all columns cut
into equally many buckets. Vocabularies are counted by a mergeable sketch, because Beam packs it into the same pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from core.settings.tabular import Categorical, FeatureSettings, LabelSettings
from pipeline.models.tabular import features as names
from pipeline.models.tabular import raw

# A sketch is exact while a column has at most this many different values, and this many times top_k. Beyond, a
# count is too low by at most (rows / width).
_SKETCH_MIN_WIDTH = 10_000
_SKETCH_WIDTH_PER_TOP_K = 10
_SKETCH_MAX_WIDTH = 200_000
# Share of the rows by which a bucket's border may be off.
_QUANTILE_ERROR = 0.001
UNLABELLED = -1


def preprocessing_fn(inputs: Mapping[str, Any], custom_config: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns the transformed features and the label, each of shape [batch].

    Args:
        inputs: Raw columns by name, dense ([batch] or [batch, 1]) or sparse, of dtype float32, int64 or string.
        custom_config: The node's configuration; see `features.read_columns`.

    Returns:
        float32 z-scores, int64 slots and the int64 label by their transformed names (`features` lists them).

    Raises:
        ConfigError: A column is not in the schema, or its type does not fit its use.
    """
    features, label = names.read_columns(custom_config)
    outputs = _scaled(inputs, features.numeric)
    slots = _bucketized(inputs, features.bucketized)
    for column, kind in features.categorical.items():
        slots[column] = _known_integer(inputs, column, kind) if kind.integers else _vocabulary(inputs, column, kind)
    for column, slot in slots.items():
        bucketized = column in features.bucketized
        outputs[names.bucket_name(column) if bucketized else names.slot_name(column)] = slot
    outputs.update(_crossed(features, slots))
    outputs[label.name] = _label(inputs, label)
    return outputs


def _scaled(inputs: Mapping[str, Any], columns: list[str]) -> dict[str, tf.Tensor]:
    """Returns the float32[batch] z-score of each column, 0 where there is no value."""
    if not columns:
        return {}
    # float64: large integers, such as timestamps, would lose their differences in float32.
    matrix = tf.stack([raw.number(inputs, column, tf.float64) for column in columns], axis=1)
    score = tft.scale_to_z_score(matrix, elementwise=True)
    finite = tf.where(tf.math.is_finite(score), score, tf.zeros_like(score))
    scores = tf.unstack(tf.cast(finite, tf.float32), axis=1)
    return {names.scaled_name(column): score for column, score in zip(columns, scores, strict=True)}


def _bucketized(inputs: Mapping[str, Any], bucketized: Mapping[str, int]) -> dict[str, tf.Tensor]:
    """Returns the int64[batch] slot of each column, by raw name."""
    slots: dict[str, tf.Tensor] = {}
    for buckets in sorted(set(bucketized.values())):
        columns = [column for column in bucketized if bucketized[column] == buckets]
        matrix = tf.stack([raw.number(inputs, column, tf.float32) for column in columns], axis=1)
        borders = tft.quantiles(matrix, buckets, _QUANTILE_ERROR, reduce_instance_dims=False)
        borders = tf.reshape(borders, [1, len(columns), buckets - 1])
        bucket = tf.reduce_sum(tf.cast(matrix[:, :, tf.newaxis] >= borders, tf.int64), axis=2)
        slot = tf.where(tf.math.is_finite(matrix), bucket + 1, tf.zeros_like(bucket) + names.MISSING_SLOT)
        slots.update(zip(columns, tf.unstack(slot, axis=1), strict=True))
    # In the order of the settings, not of the bucket counts.
    return {column: slots[column] for column in bucketized}


def _vocabulary(inputs: Mapping[str, Any], column: str, kind: Categorical) -> tf.Tensor:
    """Returns the int64[batch] slot of a column whose frequent values Transform learns."""
    top_k = kind.top_k or 0
    text = raw.text(inputs, column)
    width = min(max(_SKETCH_MIN_WIDTH, _SKETCH_WIDTH_PER_TOP_K * top_k), _SKETCH_MAX_WIDTH)
    # The empty text, which stands for "no value", never enters a vocabulary.
    vocabulary = tft.experimental.approximate_vocabulary(
        text, max(width, top_k), vocab_filename=names.vocabulary_name(column)
    )
    rank = tft.apply_vocabulary(text, vocabulary, default_value=-1)
    known = tf.logical_and(rank >= 0, rank < top_k)
    unknown = tf.strings.to_hash_bucket_fast(text, kind.oov_buckets)
    return _slot(tf.not_equal(text, ""), known, rank, unknown, kind.oov_buckets)


def _known_integer(inputs: Mapping[str, Any], column: str, kind: Categorical) -> tf.Tensor:
    """Returns the int64[batch] slot of a column of integers from 0 to `kind.integers` - 1."""
    value = raw.integer(inputs, column)
    known = tf.logical_and(value >= 0, value < kind.integers)
    unknown = tf.math.floormod(value, tf.constant(kind.oov_buckets, tf.int64))
    return _slot(value > names.MISSING_INTEGER, known, value, unknown, kind.oov_buckets)


def _slot(present: tf.Tensor, known: tf.Tensor, rank: tf.Tensor, unknown: tf.Tensor, oov_buckets: int) -> tf.Tensor:
    """Lays out slots: no value, then the unknown values, then the known ones."""
    slot = tf.where(known, 1 + oov_buckets + rank, 1 + unknown)
    return tf.where(present, slot, tf.zeros_like(slot) + names.MISSING_SLOT)


def _crossed(features: FeatureSettings, slots: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the int64[batch] hash bucket of each cross."""
    crossed = {}
    for cross in features.crossed:
        parts = [slots[column][:, tf.newaxis] for column in cross.columns]
        hashed = tf.sparse.cross_hashed(parts, num_buckets=cross.hash_buckets)
        # Every row has exactly one value in each part, so it has exactly one in the cross.
        crossed[names.cross_name(cross)] = tf.reshape(hashed.values, [-1])
    return crossed


def _label(inputs: Mapping[str, Any], label: LabelSettings) -> tf.Tensor:
    """Returns the int64[batch] label: 0, 1, or UNLABELLED where the row does not say.

    Without a usable reference (`above_share_of`) nothing can be above a share of it: such rows are 0.
    """
    if label.positive is not None:
        text = raw.text(inputs, label.column)
        said = tf.cast(tf.equal(text, label.positive), tf.int64)
        return tf.where(tf.equal(text, ""), tf.constant(UNLABELLED, tf.int64), said)
    value = raw.number(inputs, label.column, tf.float32)
    if label.above_share_of is None:
        positive, usable = tf.equal(value, 1.0), tf.logical_or(tf.equal(value, 0.0), tf.equal(value, 1.0))
    else:
        reference = raw.number(inputs, label.above_share_of, tf.float32)
        # NaN compares as false.
        positive, usable = value > label.share * reference, tf.math.is_finite(value)
    return tf.where(usable, tf.cast(positive, tf.int64), tf.constant(UNLABELLED, tf.int64))
