"""The first frame of a GIF, cut out inside a TensorFlow graph.

TensorFlow unpacks every frame before it keeps the first, so that a small animation can take any amount of memory, and
it paints transparent pixels, and what a frame leaves uncovered, black.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from pipeline.models.image import octets

_CANVAS_AT, _HEAD_BYTES = 6, 13
# A frame's offset: none.
_ORIGIN = bytes(4)
_EXTENSION, _CONTROL, _IMAGE, _TRAILER = 0x21, 0xF9, 0x2C, b";"
# Blocks, of up to 255 bytes each, that are looked at: a first frame may have 16 MB.
_MAX_BLOCKS = 1 << 16
# Photos have a handful of extensions before the first frame, and little in them.
_MAX_EXTENSIONS, _MAX_EXTENSION_BLOCKS = 64, 1024


class Place(NamedTuple):
    """Where the first frame of a GIF stands, in the file and in the picture.

    Attributes:
        image: int64[], position of the image's block; behind the end when there is none.
        control: int64[], position of the graphic control extension before it; 0 when there is none.
        offset: int64[2], rows and columns of the canvas before the frame.
        size: int64[2], height and width of the frame, pixels; 0 when there is none.
        canvas: int64[2], height and width, pixels; as large as the frame needs, whatever the header announces.
    """

    image: tf.Tensor
    control: tf.Tensor
    offset: tf.Tensor
    size: tf.Tensor
    canvas: tf.Tensor


def first_image(encoded: tf.Tensor) -> Place:
    """Returns the place of the first frame of a GIF, string[]; whatever the bytes are, this does not fail."""
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
    block = octets.read(encoded, image, 9)
    # Left, top, width and height.
    sides = octets.number(tf.reshape(block[1:], [4, 2]), True) * tf.cast(block[0] == _IMAGE, tf.int64)
    offset, size = sides[1::-1], sides[:1:-1]
    canvas = octets.number(tf.reshape(octets.read(encoded, 6, 4), [2, 2]), True)[::-1]
    return Place(image, control, offset, size, tf.maximum(canvas, offset + size))


def first_frame(encoded: tf.Tensor, place: Place) -> tf.Tensor:
    """Returns the first frame as a GIF of its own and of its own size, in which transparent pixels are white.

    Args:
        encoded: string[], a GIF.
        place: Of its first frame.

    Returns:
        string[]; no GIF, which no decoder accepts, when the first frame does not end.
    """
    block = octets.read(encoded, place.image, 10)
    # An image's own colours and one byte of its coding stand before its data.
    end = _after_data(encoded, place.image + 11 + _table_bytes(block[9]), _MAX_BLOCKS)
    size = octets.piece(encoded, place.image + 5, 4)
    frame = tf.strings.join([octets.piece(encoded, 0, end), _TRAILER])
    # TensorFlow would paint what a frame does not cover black.
    frame = _spliced(_spliced(frame, place.image + 1, tf.strings.join([_ORIGIN, size])), _CANVAS_AT, size)
    whole = (block[0] == _IMAGE) & (end <= octets.length(encoded))
    return tf.where(whole, _opaque(frame, place), b"")


def background(encoded: tf.Tensor, place: Place) -> tf.Tensor:
    """Returns the colour of a canvas around its first frame, uint8[3]: as Pillow has it, and so the ingestion.

    That is white under a frame that can be transparent, else the first colour of the frame's table.
    """
    first = octets.read(encoded, _table(encoded, place.image)[0], 3)
    return tf.cast(tf.where(_rule(encoded, place.control)[0] % 2 == 1, tf.constant(255, tf.int64), first), tf.uint8)


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


def _opaque(frame: tf.Tensor, place: Place) -> tf.Tensor:
    """Returns a GIF, string[], whose transparent colour has become white, and whose pixels of that colour are painted.

    Args:
        frame: string[], a GIF of one frame.
        place: Of the frame.
    """
    rule = _rule(frame, place.control)
    table, colours = _table(frame, place.image)
    return tf.cond(
        (rule[0] % 2 == 1) & (rule[3] < colours),
        lambda: _spliced(_spliced(frame, table + 3 * rule[3], b"\xff\xff\xff"), place.control + 3, b"\x00"),
        lambda: frame,
    )


def _rule(encoded: tf.Tensor, control: tf.Tensor) -> tf.Tensor:
    """Returns int64[4], what a graphic control extension says: flags, a time of two bytes, the transparent colour."""
    return octets.read(encoded, control + 3, 4) * tf.cast(control > 0, tf.int64)


def _table(encoded: tf.Tensor, image: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the position of the colour table that an image uses and the number of its colours, each int64[]."""
    own = octets.read(encoded, image + 9, 1)[0]
    shared = octets.read(encoded, 10, 1)[0]
    table = tf.where(own >= 128, image + 10, tf.constant(_HEAD_BYTES, tf.int64))
    return table, tf.where(own >= 128, _table_bytes(own), _table_bytes(shared)) // 3


def _spliced(text: tf.Tensor, position: tf.Tensor | int, replacement: tf.Tensor | bytes) -> tf.Tensor:
    """Returns a string in which some bytes at a position have been replaced."""
    after = octets.piece(text, position + octets.length(replacement), octets.length(text))
    return tf.strings.join([octets.piece(text, 0, position), replacement, after])


def _table_bytes(flags: tf.Tensor) -> tf.Tensor:
    """Returns int64[], the size of the colour table that a byte of flags announces; 0 when there is none."""
    entries = tf.bitwise.left_shift(tf.constant(2, tf.int64), flags % 8)
    return tf.where(flags >= 128, 3 * entries, tf.zeros_like(entries))
