"""What a frozen network makes of photos: computed once, in half precision, and read by every later pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from core.settings.images import AugmentSettings
from pipeline.training import augment, scratch
from pipeline.training.frozen import Frozen
from pipeline.training.photos import Decoder, PhotoSplit, decoded

_SECONDS_BETWEEN_LINES = 10.0

Halves = npt.NDArray[np.float16]

_log = logging.getLogger("forebay.training")


def of_photos(
    network: Frozen,
    split: PhotoSplit,
    decode: Decoder,
    side_px: int,
    *,
    views: int = 1,
    changes: AugmentSettings,
    seed: int,
) -> Halves:
    """Returns the activations of every view of every photo, float16[photos, views, ...], in the order of the labels.

    Args:
        network: From float32[batch, side, side, 3], 0 to 255.
        split: The photos.
        decode: Makes a square of one encoded photo.
        side_px: Side of the square.
        views: Versions of each photo; see `augment.view`.
        changes: How far the random ones are changed.
        seed: Seed of the changes.

    Raises:
        EnvironmentProblem: Neither memory nor the temporary directory has room for the result.
    """

    def graph_of(number: int) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
        def run(pixels: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
            return augment.view(tf.cast(pixels, tf.float32), number, changes, seeds)

        # For any batch: the last one is smaller.
        spec = [tf.TensorSpec([None, side_px, side_px, 3], tf.uint8), tf.TensorSpec([2], tf.int64)]
        return tf.function(run, spec, autograph=False)

    graphs = [graph_of(number) for number in range(views)]
    result: Halves | None = None
    done, started = 0, time.monotonic()
    spoke = started
    for batch in decoded(split, decode, side_px, network.batch_size):
        for number, graph in enumerate(graphs):
            seeds = tf.constant([seed, done * views + number], tf.int64)
            part = _half(network(graph(batch, seeds).numpy()))
            if result is None:
                result = scratch.empty([split.count, views, *part.shape[1:]], np.float16)
            result[done : done + len(part), number] = part
        done += len(batch)
        if time.monotonic() - spoke > _SECONDS_BETWEEN_LINES or done == split.count:
            spoke = time.monotonic()
            speed = done / (spoke - started)
            _log.info("frozen layers: %d of %d photos (%.0f %%), %.1f photos/s", done, split.count,
                      100.0 * done / split.count, speed)  # fmt: skip
    assert result is not None, "a split that could be read has at least one photo"
    return result


def of_activations(network: Frozen, activations: Halves) -> Halves:
    """Returns what another frozen part makes of activations, float16[photos, views, ...].

    Args:
        network: That part, from float32[batch, ...].
        activations: float16[photos, views, ...].
    """
    photos, views = activations.shape[:2]
    result: Halves | None = None
    size = network.batch_size
    for start in range(0, photos, size):
        for number in range(views):
            part = _half(network(activations[start : start + size, number].astype(np.float32)))
            if result is None:
                result = scratch.empty([photos, views, *part.shape[1:]], np.float16)
            result[start : start + len(part), number] = part
    assert result is not None, "there is at least one row"
    return result


def _half(values: npt.NDArray[np.float32]) -> Halves:
    """Returns float16 values; what is beyond its range becomes its largest number, not infinity."""
    largest = float(np.finfo(np.float16).max)
    return np.clip(values, -largest, largest).astype(np.float16)
