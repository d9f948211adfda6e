"""The eval examples as they lie on disk, in batches of serialized tf.Examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def batches(files: Sequence[str], size: int) -> Iterator[Any]:
    """Yields string[batch] tensors of at most `size` serialized tf.Examples, in the order of the files.

    Args:
        files: TFRecord files; names that end in .gz are gzip-compressed.
        size: Most examples in a batch.
    """
    import tensorflow as tf

    for path in files:
        records = tf.data.TFRecordDataset(path, compression_type="GZIP" if path.endswith(".gz") else "")
        yield from records.batch(size).prefetch(1)
