"""Numbers in encoded photos, read inside a TensorFlow graph. Behind the end all is zero: nothing can crash."""

from __future__ import annotations

import tensorflow as tf


def read(encoded: tf.Tensor, position: tf.Tensor | int, count: int) -> tf.Tensor:
    """Returns a few bytes of a string, without copying the string.

    Args:
        encoded: string[].
        position: int64[], 0 or more; may lie behind the end.
        count: How many bytes.

    Returns:
        int64[count], each 0 to 255; 0 behind the end.
    """
    return tf.cast(tf.io.decode_raw(piece(encoded, position, count), tf.uint8, fixed_length=count), tf.int64)


def piece(encoded: tf.Tensor, position: tf.Tensor | int, count: tf.Tensor | int) -> tf.Tensor:
    """Returns string[], the part of a string that begins at `position`; shorter than `count` bytes at the end.

    Args:
        encoded: string[].
        position: int64[], 0 or more; may lie behind the end.
        count: int64[], how many bytes at most, 0 or more.
    """
    start = tf.minimum(tf.cast(position, tf.int64), length(encoded))
    return tf.strings.substr(encoded, start, tf.cast(count, tf.int64))


def begins(text: tf.Tensor, prefix: bytes) -> tf.Tensor:
    """Returns bool[], whether a string, string[], begins with some bytes."""
    return piece(text, 0, len(prefix)) == prefix


def length(encoded: tf.Tensor) -> tf.Tensor:
    """Returns int64[], the number of bytes of a string."""
    return tf.cast(tf.strings.length(encoded), tf.int64)


def number(octets: tf.Tensor, little_endian: tf.Tensor | bool) -> tf.Tensor:
    """Returns the unsigned number that the bytes of the last axis spell.

    Args:
        octets: int64[..., bytes], of at most 4 bytes.
        little_endian: bool[]; whether the first byte weighs least.

    Returns:
        int64[...].
    """
    weights = tf.constant([256**place for place in range(octets.shape[-1])], tf.int64)
    return tf.reduce_sum(octets * tf.where(little_endian, weights, weights[::-1]), axis=-1)
