"""Which way up a photo is: the EXIF orientation tag, read and applied inside a TensorFlow graph.

TensorFlow's decoders ignore EXIF, so a photo that a phone stored on its side would reach the network on its side.
"""

from __future__ import annotations

import tensorflow as tf

from pipeline.models.image import octets

UPRIGHT = 1
_ORIENTATION_TAG = 0x0112
_ENTRY_BYTES = 12
# Types of an entry's value.
_SHORT, _LONG = 3, 4


def orientation(tiff: tf.Tensor) -> tf.Tensor:
    r"""Returns the orientation in a block of EXIF data.

    Args:
        tiff: string[], what follows "Exif\0\0" in a JPEG segment, or the content of a PNG's eXIf chunk.

    Returns:
        int64[], 1 to 8; 1 (upright) where the block is cut, is no EXIF, or does not say.
    """
    head = octets.read(tiff, 0, 8)
    little = tf.reduce_all(head[:4] == [0x49, 0x49, 0x2A, 0])
    readable = little | tf.reduce_all(head[:4] == [0x4D, 0x4D, 0, 0x2A])
    first = octets.number(head[4:], little)
    announced = octets.number(octets.read(tiff, first, 2), little)
    # A cut or lying block holds fewer entries than it announces.
    held = tf.maximum((octets.length(tiff) - first - 2) // _ENTRY_BYTES, 0)
    count = tf.where(readable, tf.minimum(announced, held), 0)
    content = octets.piece(tiff, first + 2, count * _ENTRY_BYTES)
    entries = tf.reshape(tf.cast(tf.io.decode_raw(content, tf.uint8), tf.int64), [-1, _ENTRY_BYTES])
    kind = octets.number(entries[:, 2:4], little)
    value = tf.where(
        kind == _SHORT,
        octets.number(entries[:, 8:10], little),
        tf.where(kind == _LONG, octets.number(entries[:, 8:12], little), UPRIGHT),
    )
    said = tf.boolean_mask(value, octets.number(entries[:, :2], little) == _ORIENTATION_TAG)
    found = tf.concat([said, [UPRIGHT]], axis=0)[0]
    return tf.where((found >= 1) & (found <= 8), found, UPRIGHT)


def upright(pixels: tf.Tensor, stored: tf.Tensor) -> tf.Tensor:
    """Returns a photo as its photographer saw it.

    Args:
        pixels: [height, width, channels], as stored.
        stored: int64[], the EXIF orientation, 1 to 8.

    Returns:
        [height, width, channels]; height and width change places for the orientations 5 to 8.
    """

    def applied(when: list[int], change: tf.types.experimental.GenericFunction, image: tf.Tensor) -> tf.Tensor:
        return tf.cond(tf.reduce_any(stored == when), lambda: change(image), lambda: image)

    pixels = applied([5, 6, 7, 8], lambda image: tf.transpose(image, [1, 0, 2]), pixels)
    pixels = applied([2, 3, 6, 7], lambda image: tf.reverse(image, [1]), pixels)
    return applied([3, 4, 7, 8], lambda image: tf.reverse(image, [0]), pixels)
