"""Photos as a tf.data pipeline that does not starve the training loop.

A photo is read and decoded once. What the training then reads again and again, pixels or what a frozen network made
of them, stands in one array (`scratch`), and a batch is a gather by row numbers (`order`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from core.errors import DataError
from pipeline.training import order, records, scratch

# Keys of a batch's features: what the network reads, and the number of examples seen before each one.
VALUES = "values"
POSITIONS = "positions"

# Values up to this size are copied into TensorFlow.
_TENSOR_LIMIT_BYTES = 256 << 20
# What photos lack whose class is not in the label map, which is made of the train split, and what to do.
_UNKNOWN = {
    "train": ("have no class", "every train example needs a label, of which Transform makes the label map"),
    "eval": (
        "are of a class that the train split does not have",
        "give each class of ingest_report.json photos of several products, or leave it out",
    ),
}
_READERS = 4
_COUNT_BATCH = 256
_DECODE_BATCH = 32

# (encoded: string[], side in pixels) -> uint8[side, side, 3].
Decoder = Callable[[tf.Tensor, int], tf.Tensor]
# (rows, views: int64[batch]) -> [batch, ...].
Pick = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class PhotoSplit:
    """One split of the transformed photos, still encoded and on disk.

    Attributes:
        files: The TFRecord files, sorted.
        image: Name of the feature that holds the encoded photo.
        labels: int64[photos], the class of each photo in the order in which `decoded` yields them.
    """

    files: tuple[str, ...]
    image: str
    labels: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of photos."""
        return len(self.labels)

    def first(self, photos: int) -> PhotoSplit:
        """Returns the first photos of the split as a split of its own."""
        return dataclasses.replace(self, labels=self.labels[:photos])


def read_split(patterns: Sequence[str], image: str, label: str, name: Literal["train", "eval"]) -> PhotoSplit:
    """Returns a split with its labels.

    Args:
        patterns: Files or globs of serialized tf.Example; gzip when the name ends in .gz.
        image: Name of the feature that holds the encoded photo.
        label: Name of the int64 feature that holds the class; negative means unknown.
        name: Name of the split, for error messages.

    Raises:
        DataError: There is no file or no example, or a class is unknown.
    """
    files = tuple(sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern)))
    if not files:
        raise DataError(f"the {name} split has no file", place=", ".join(patterns))
    spec = {label: tf.io.FixedLenFeature([], tf.int64)}
    batches = _serialized(files).batch(_COUNT_BATCH).map(records.parser(spec), tf.data.AUTOTUNE).prefetch(2)
    parts = [batch[label].numpy() for batch in batches]
    if not parts:
        raise DataError(f"the {name} split has no example", place=files[0])
    labels = np.concatenate(parts)
    unknown = int(np.count_nonzero(labels < 0))
    if unknown:
        lack, hint = _UNKNOWN[name]
        raise DataError(f"{unknown} of {len(labels)} {name} photos {lack}", place=f"feature {label!r}", hint=hint)
    return PhotoSplit(files, image, labels)


def encoded(split: PhotoSplit) -> tf.data.Dataset:
    """Returns the photos as they are stored, string[], each once, always in the same order."""
    spec = {split.image: tf.io.FixedLenFeature([], tf.string)}

    @tf.autograph.experimental.do_not_convert
    def parse(serialized: tf.Tensor) -> tf.Tensor:
        return tf.io.parse_single_example(serialized, spec)[split.image]

    return _serialized(split.files).take(split.count).map(parse, tf.data.AUTOTUNE, deterministic=True)


def decoded(split: PhotoSplit, decode: Decoder, side_px: int, batch_size: int = _DECODE_BATCH) -> tf.data.Dataset:
    """Returns the photos as uint8[batch, side, side, 3], each once, decoded in parallel, always in the same order.

    Args:
        split: The split.
        decode: Makes a square of one encoded photo.
        side_px: Side of the square.
        batch_size: Photos in a batch; the last one may be smaller.
    """

    @tf.autograph.experimental.do_not_convert
    def square(photo: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(decode(photo, side_px), [side_px, side_px, 3])

    photos = encoded(split).map(square, tf.data.AUTOTUNE, deterministic=True)
    return photos.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def pixels(split: PhotoSplit, decode: Decoder, side_px: int) -> npt.NDArray[np.uint8]:
    """Returns all photos decoded, uint8[photos, 1, side, side, 3]: one version of each, in the order of the labels.

    Raises:
        EnvironmentProblem: Neither memory nor the temporary directory has room for them.
    """
    array = scratch.empty([split.count, 1, side_px, side_px, 3], np.uint8)
    done = 0
    for batch in decoded(split, decode, side_px):
        array[done : done + len(batch), 0] = batch.numpy()
        done += len(batch)
    return array


def training_batches(
    values: npt.NDArray[Any], labels: npt.NDArray[np.int64], batch_size: int, seed: int
) -> tf.data.Dataset:
    """Returns an endless, shuffled data set of ({VALUES: [batch, ...], POSITIONS: int64[batch]}, labels int64[batch]).

    Args:
        values: [examples, views, ...]; each pass shows one view of each example.
        labels: int64[examples].
        batch_size: Examples in every batch; a batch at the end of a pass is filled from the next one.
        seed: Seed of the order and of the views.
    """
    count, views = values.shape[:2]

    @tf.autograph.experimental.do_not_convert
    def pick(seen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        positions = seen + tf.range(batch_size, dtype=tf.int64)
        rows = order.pick_rows(positions, count, seed)
        return rows, order.pick_views(rows, positions, count, views, seed), positions

    picks = tf.data.Dataset.range(0, tf.int64.max, batch_size).map(pick)
    gathered = picks.map(_gather(values, labels, batch_size), tf.data.AUTOTUNE, deterministic=True)
    return gathered.prefetch(tf.data.AUTOTUNE)


def evaluation_batches(values: npt.NDArray[Any], labels: npt.NDArray[np.int64], batch_size: int) -> tf.data.Dataset:
    """Returns the first view of every example once, in order, in the form of `training_batches`.

    The last batch may be smaller than `batch_size`.
    """

    @tf.autograph.experimental.do_not_convert
    def pick(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return rows, tf.zeros_like(rows), rows

    picks = tf.data.Dataset.range(len(values)).batch(batch_size).map(pick)
    return picks.map(_gather(values, labels, None), tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)


@tf.autograph.experimental.do_not_convert
def _serialized(files: Sequence[str]) -> tf.data.Dataset:
    """Returns the records of all files, read side by side, in an order that never changes."""
    return tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        records.reader, cycle_length=_READERS, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )


def _gather(values: npt.NDArray[Any], labels: npt.NDArray[np.int64], batch_size: int | None):
    """Returns a function from (rows, views, positions), each int64[batch], to (features, labels)."""
    pick = _in_tensor(values) if values.nbytes <= _TENSOR_LIMIT_BYTES else _in_array(values)

    @tf.autograph.experimental.do_not_convert
    def take(rows: tf.Tensor, views: tf.Tensor, positions: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        batch = tf.ensure_shape(pick(rows, views), [batch_size, *values.shape[2:]])
        return {VALUES: batch, POSITIONS: positions}, tf.gather(tf.constant(labels), rows)

    return take


def _in_tensor(values: npt.NDArray[Any]) -> Pick:
    """Returns a gather from a copy that TensorFlow holds: a step on small values would wait for Python."""
    held = tf.constant(values)
    return lambda rows, views: tf.gather_nd(held, tf.stack([rows, views], axis=1))


def _in_array(values: npt.NDArray[Any]) -> Pick:
    """Returns a gather through NumPy: the array may be a mapped file, which TensorFlow would read into memory whole."""

    def fetch(rows: npt.NDArray[np.int64], views: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return values[rows, views]

    return lambda rows, views: tf.numpy_function(fetch, [rows, views], tf.as_dtype(values.dtype), stateful=False)
