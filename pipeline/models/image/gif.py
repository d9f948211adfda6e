"""The first frame of a GIF, cut out inside a TensorFlow graph.

TensorFlow unpacks every frame before it keeps the first, so that a small animation can take any amount of memory, and
it paints transparent pixels black.
"""

from __future__ import annotations

import tensorflow as tf

from pipeline.models.image import octets

_HEAD_BYTES = 13
_EXTENSION, _CONTROL, _IMAGE, _TRAILER = 0x21, 0xF9, 0x2C, b";"
# Blocks, of up to 255 bytes each, that are looked at: a first frame may have 16 MB.
_MAX_BLOCKS = 1 << 16
# Photos have a handful of extensions before the first frame, and little in them.
_MAX_EXTENSIONS, _MAX_EXTENSION_BLOCKS = 64, 1024


def first_frame(encoded: tf.Tensor) -> tf.Tensor:
    """Returns the first frame as a GIF of its own, in which transparent pixels are white.

    Args:
        encoded: string[], a GIF.

    Returns:
        string[]; no GIF, which no decoder accepts, when the first frame does not end.
    """
    start = _HEAD_BYTES + _table_bytes(octets.read(encoded, 10, 1)[0])
    image, control, _ = tf.while_loop(
        lambda position, control, steps: (
            (octets.read(encoded, position, 1)[0] == _EXTENSION) & (steps < _MAX_EXTENSIONS)
        ),
        lambda position, control, steps: (
            _after_data(encoded, position + 2, _MAX_EXTENSION_BLOCKS),
            tf.where(octets.read(encoded, position + 1, 1)[0] == _CONTROL, position, control),
            steps + 1,
        ),
        (start, tf.zeros_like(start), 0),
    )
    block = octets.read(encoded, image, 10)
    # An image's own colours and one byte of its coding stand before its data.
    end = _after_data(encoded, image + 11 + _table_bytes(block[9]), _MAX_BLOCKS)
    frame = tf.strings.join([octets.piece(encoded, 0, end), _TRAILER])
    whole = (block[0] == _IMAGE) & (end <= octets.length(encoded))
    return tf.where(whole, _opaque(frame, image, control), b"")


def _after_data(encoded: tf.Tensor, position: tf.Tensor, most: int) -> tf.Tensor:
    """Returns int64[], the position behind a chain of data blocks; behind the end of the file if the chain has no end.

    Each block begins with the number of its bytes; a block of none ends the chain. `most` blocks are looked at.
    """
    end, last, _ = tf.while_loop(
        lambda position, size, steps: (size > 0) & (steps < most),
        lambda position, size, steps: (
            position + 1 + size,
            octets.read(encoded, position + 1 + size, 1)[0],
            steps + 1,
        ),
        (position, octets.read(encoded, position, 1)[0], 0),
    )
    return tf.where(last == 0, end + 1, octets.length(encoded) + 1)


def _opaque(frame: tf.Tensor, image: tf.Tensor, control: tf.Tensor) -> tf.Tensor:
    """Returns a GIF whose transparent colour has become white, and whose pixels of that colour are painted.

    Args:
        frame: string[], a GIF of one frame.
        image: int64[], position of the image.
        control: int64[], position of the graphic control extension; 0 when there is none.
    """
    rule = octets.read(frame, control + 3, 4) * tf.cast(control > 0, tf.int64)
    own = octets.read(frame, image + 9, 1)[0]
    shared = octets.read(frame, 10, 1)[0]
    table = tf.where(own >= 128, image + 10, tf.constant(_HEAD_BYTES, tf.int64))
    colours = tf.where(own >= 128, _table_bytes(own), _table_bytes(shared)) // 3
    entry = table + 3 * rule[3]
    return tf.cond(
        (rule[0] % 2 == 1) & (rule[3] < colours),
        lambda: _spliced(_spliced(frame, entry, b"\xff\xff\xff"), control + 3, b"\x00"),
        lambda: frame,
    )


def _spliced(text: tf.Tensor, position: tf.Tensor, replacement: bytes) -> tf.Tensor:
    """Returns a string in which some bytes at a position have been replaced."""
    after = octets.piece(text, position + len(replacement), octets.length(text))
    return tf.strings.join([octets.piece(text, 0, position), replacement, after])


def _table_bytes(flags: tf.Tensor) -> tf.Tensor:
    """Returns int64[], the size of the colour table that a byte of flags announces; 0 when there is none."""
    entries = tf.bitwise.left_shift(tf.constant(2, tf.int64), flags % 8)
    return tf.where(flags >= 128, 3 * entries, tf.zeros_like(entries))
