"""Exact counts of offending examples, read from the example files in constant memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_BATCH = 4096


class RowCounter:
    """Counts examples whose value is outside a range; a callable of the type `finding.CountOutside`."""

    def __init__(self, files: Mapping[str, Sequence[str]], integers: frozenset[str]) -> None:
        """Remembers where the examples are.

        Args:
            files: TFRecord files of tf.Examples by split; a file whose name ends in .gz is gzip-compressed.
            integers: Features that hold int64 lists; every other counted feature holds float lists.
        """
        self._files = files
        self._integers = integers

    def __call__(self, split: str, feature: str, low: float, high: float) -> int | None:
        """Returns the number of examples with a NaN, an infinity or a value outside [low, high].

        None when the split's examples are not at hand.
        """
        import tensorflow as tf

        files = list(self._files.get(split, ()))
        if not files:
            return None
        dtype = tf.int64 if feature in self._integers else tf.float32
        specification = {feature: tf.io.RaggedFeature(dtype)}
        total = 0
        for path in files:
            compression = "GZIP" if path.endswith(".gz") else ""
            for batch in tf.data.TFRecordDataset(path, compression_type=compression).batch(_BATCH):
                values = tf.io.parse_example(batch, specification)[feature]
                total += int(tf.reduce_sum(tf.cast(_any_outside(values, low, high), tf.int64)))
        return total


def _any_outside(values: Any, low: float, high: float) -> Any:
    """Returns bool[batch]: whether any value of a ragged row is outside the range or not finite."""
    import tensorflow as tf

    flat = tf.cast(values.flat_values, tf.float64)
    outside = (flat < low) | (flat > high) | ~tf.math.is_finite(flat)
    return tf.reduce_any(values.with_flat_values(outside), axis=1)
