"""Transformed examples as a tf.data pipeline that does not starve the training loop.

Small splits, which is nearly all tabular data, are parsed once into tensors; a training batch is then a gather by
row numbers, whose order is a function of (seed, position): see `order`. Larger splits are streamed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import tensorflow as tf

from core.errors import DataError
from pipeline.training import order

# A split up to this size, once parsed, is kept in memory.
MEMORY_LIMIT_BYTES = 256 << 20
# Records parsed by one call of the vectorized parser; large enough to amortize the call.
_PARSE_BATCH = 4096
# Records that a streamed split is shuffled over.
_SHUFFLE_RECORDS = 50_000
_STREAM_READERS = 4

FeatureSpec = Mapping[str, tf.io.FixedLenFeature]


@dataclasses.dataclass(frozen=True)
class Split:
    """One split of the transformed examples.

    Attributes:
        files: The TFRecord files, sorted.
        spec: Transformed features, the label among them; each of shape [].
        label: Name of the label.
        count: Number of examples.
        columns: All examples as {name: [count]}, when they fit in memory; else None.
    """

    files: tuple[str, ...]
    spec: FeatureSpec
    label: str
    count: int
    columns: Mapping[str, tf.Tensor] | None


def read_split(patterns: Sequence[str], spec: FeatureSpec, label: str, name: str) -> Split:
    """Returns a split, read into memory when it is small, counted in any case.

    Args:
        patterns: Files or globs of serialized tf.Example; gzip when the name ends in .gz.
        spec: The transformed feature spec, with the label.
        label: Name of the label in `spec`.
        name: Name of the split, for error messages.

    Raises:
        DataError: There is no file or no example, or an example has no usable label (0 or 1).
    """
    files = tuple(sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern)))
    if not files:
        raise DataError(f"the {name} split has no file", place=", ".join(patterns))
    limit = MEMORY_LIMIT_BYTES // sum(feature.dtype.size for feature in spec.values())
    batches: list[dict[str, tf.Tensor]] | None = []
    count = unlabelled = 0
    for batch in _serialized(files).batch(_PARSE_BATCH).map(parser(spec), tf.data.AUTOTUNE).prefetch(2):
        target = batch[label]
        count += int(tf.size(target))
        unlabelled += int(tf.reduce_sum(tf.cast((target != 0) & (target != 1), tf.int64)))
        if batches is not None:
            batches.append(batch)
            batches = batches if count <= limit else None
    if count == 0:
        raise DataError(f"the {name} split has no example", place=files[0])
    if unlabelled:
        raise DataError(
            f"{unlabelled} of {count} {name} examples have no usable label",
            place=f"label {label!r}",
            hint="the label's column has to hold a value in every row (0 or 1, unless a share is compared)",
        )
    columns = None
    if batches is not None:
        columns = {key: tf.concat([batch[key] for batch in batches], axis=0) for key in spec}
    return Split(files=files, spec=spec, label=label, count=count, columns=columns)


def training_batches(split: Split, batch_size: int, seed: int) -> tf.data.Dataset:
    """Returns an endless, shuffled data set of ({name: [batch_size]}, label float32[batch_size]).

    Args:
        split: The train split.
        batch_size: Examples in every batch; a batch at the end of a pass is filled from the next one.
        seed: Seed of the order.
    """
    if split.columns is not None:
        seen = tf.data.Dataset.range(0, tf.int64.max, batch_size)
        gather = _gather(split.columns, split.label, split.count, batch_size, seed)
        return seen.map(gather, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    files = tf.data.Dataset.from_tensor_slices(list(split.files)).shuffle(len(split.files), seed=seed)
    records = files.interleave(
        reader, cycle_length=_STREAM_READERS, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
    batches = records.shuffle(_SHUFFLE_RECORDS, seed=seed).repeat().batch(batch_size, drop_remainder=True)
    return batches.map(_labelled(split), tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)


def evaluation_batches(split: Split, batch_size: int) -> tf.data.Dataset:
    """Returns every example once, in file order, as ({name: [batch]}, label float32[batch]).

    The last batch may be smaller than `batch_size`.
    """
    if split.columns is not None:
        features = {name: column for name, column in split.columns.items() if name != split.label}
        labels = tf.cast(split.columns[split.label], tf.float32)
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(batch_size).prefetch(tf.data.AUTOTUNE)
    return _serialized(split.files).batch(batch_size).map(_labelled(split), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


@tf.autograph.experimental.do_not_convert
def reader(file: tf.Tensor) -> tf.data.TFRecordDataset:
    """Returns the records of one file, decompressed when its name says so."""
    compression = tf.where(tf.strings.regex_full_match(file, r".*\.gz"), "GZIP", "")
    return tf.data.TFRecordDataset(file, compression_type=compression)


def _serialized(files: Sequence[str]) -> tf.data.Dataset:
    """Returns the records of all files, in order."""
    return tf.data.Dataset.from_tensor_slices(list(files)).flat_map(reader)


def parser(spec: FeatureSpec):
    """Returns a function from string[batch] to {name: [batch]}."""

    @tf.autograph.experimental.do_not_convert
    def parse(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        return dict(tf.io.parse_example(serialized, dict(spec)))

    return parse


def _labelled(split: Split):
    """Returns a function from string[batch] to (features, label)."""

    @tf.autograph.experimental.do_not_convert
    def parse(serialized: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        features = dict(tf.io.parse_example(serialized, dict(split.spec)))
        return features, tf.cast(features.pop(split.label), tf.float32)

    return parse


def _gather(columns: Mapping[str, tf.Tensor], label: str, count: int, batch_size: int, seed: int):
    """Returns a function from the number of examples already seen to the next batch, (features, label)."""

    @tf.autograph.experimental.do_not_convert
    def take(seen: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        rows = order.pick_rows(seen + tf.range(batch_size, dtype=tf.int64), count, seed)
        batch = {name: tf.gather(column, rows) for name, column in columns.items()}
        return batch, tf.cast(batch.pop(label), tf.float32)

    return take
