"""What the headers of JPEG, PNG, GIF and BMP files say, read inside a TensorFlow graph. Hostile bytes are no danger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from pipeline.models.image import exif, octets
from pipeline.models.image.gif import first_image

# Segments of a JPEG that are looked at. Photos have some dozens; a longer list is made to keep us busy.
_MAX_SEGMENTS = 4096
# Chunks of a PNG: the usual 8 KB of each make 256 MB of pixels.
_MAX_CHUNKS = 1 << 15

_START_OF_SCAN, _END_OF_IMAGE, _APP1, _APP14 = 0xDA, 0xD9, 0xE1, 0xEE
# Markers without a length: stuffing, TEM, and the restarts.
_BARE = (0x00, 0x01, *range(0xD0, 0xD9))
# Start of frame, of every coding; C4, C8 and CC are something else.
_FRAMES = tuple(marker for marker in range(0xC0, 0xD0) if marker not in (0xC4, 0xC8, 0xCC))
# Colour types whose samples have an alpha channel.
_PNG_ALPHA = (4, 6)
_BMP_UNCOMPRESSED, _BMP_MASKS = 0, 3


class Facts(NamedTuple):
    """What a header says. Every field is a scalar tensor.

    Attributes:
        height: int64, pixels, as stored; 0 when it cannot be read.
        width: int64, pixels, as stored; 0 when it cannot be read.
        orientation: int64, EXIF's, 1 to 8.
        depth: int64, bits: of a sample for PNG, of a pixel for BMP; else 8.
        transparent: bool, true for a PNG that may have pixels that are not opaque.
        unmarked_inks: bool, true for a JPEG of four inks that does not say how they are stored.
        supported: bool, false for a BMP of a sort that TensorFlow does not decode.
    """

    height: tf.Tensor
    width: tf.Tensor
    orientation: tf.Tensor
    depth: tf.Tensor
    transparent: tf.Tensor
    unmarked_inks: tf.Tensor
    supported: tf.Tensor


def _facts(
    height: tf.Tensor,
    width: tf.Tensor,
    *,
    orientation: tf.Tensor | int = exif.UPRIGHT,
    depth: tf.Tensor | int = 8,
    transparent: tf.Tensor | bool = False,
    unmarked_inks: tf.Tensor | bool = False,
    supported: tf.Tensor | bool = True,
) -> Facts:
    """Returns facts as tensors of the types that every kind of photo agrees on."""
    numbers = [tf.cast(value, tf.int64) for value in (height, width, orientation, depth)]
    return Facts(*numbers, *(tf.cast(value, tf.bool) for value in (transparent, unmarked_inks, supported)))


def _zeros(count: int) -> list[tf.Tensor]:
    """Returns `count` zeros, int64[]."""
    return [tf.constant(0, tf.int64)] * count


def _walk(encoded: tf.Tensor, advance: Callable[[tf.Tensor, Any], Any], start: Any, most: int) -> Any:
    """Returns the state after the last part that is looked at, in a bounded number of steps.

    Args:
        encoded: string[].
        advance: From the bytes and the state to the state after the part at `position`.
        start: A named tuple of int64 scalars with the fields `position`, `more` and `steps`.
        most: How many steps are taken.
    """
    size = octets.length(encoded)
    (end,) = tf.while_loop(
        lambda seen: (seen.more == 1) & (seen.position < size) & (seen.steps < most),
        lambda seen: (advance(encoded, seen),),
        (start._replace(more=tf.constant(1, tf.int64)),),
    )
    return end


def nothing(encoded: tf.Tensor) -> Facts:
    """Returns the facts of what is no photo."""
    del encoded
    return _facts(0, 0)


def gif(encoded: tf.Tensor) -> Facts:
    """Returns the facts of a GIF: the size of its canvas, enlarged where its first frame reaches over it."""
    canvas = first_image(encoded).canvas
    return _facts(canvas[0], canvas[1])


def bmp(encoded: tf.Tensor) -> Facts:
    """Returns the facts of a BMP. A negative height means that the rows go from top to bottom."""
    info = octets.read(encoded, 14, 20)
    height, compression = octets.number(info[8:12], True), octets.number(info[16:20], True)
    depth = octets.number(info[14:16], True)
    plain = (compression == _BMP_UNCOMPRESSED) | ((compression == _BMP_MASKS) & (depth == 32))
    known = (depth == 8) | (depth == 24) | (depth == 32)
    return _facts(
        tf.where(height >= 2**31, 2**32 - height, height),
        octets.number(info[4:8], True),
        depth=depth,
        supported=plain & known & (octets.number(info[:4], True) >= 40),
    )


class _Chunks(NamedTuple):
    """How far the chunks of a PNG have been read, as int64 scalars; 0 stands for "not seen".

    Attributes:
        position: Of the next chunk.
        exif: Position of an eXIf chunk, before the pixels or behind them.
        transparency: Position of a tRNS chunk before the pixels, where alone it counts.
        pixels: Position of the first IDAT chunk.
        more: 1 until the end.
        steps: How many chunks were passed.
    """

    position: tf.Tensor
    exif: tf.Tensor
    transparency: tf.Tensor
    pixels: tf.Tensor
    more: tf.Tensor
    steps: tf.Tensor


def png(encoded: tf.Tensor) -> Facts:
    """Returns the facts of a PNG; all of its chunks are passed, because EXIF may stand behind the pixels."""
    start = _Chunks(*_zeros(6))._replace(position=tf.constant(8, tf.int64))
    end = _walk(encoded, _next_chunk, start, _MAX_CHUNKS)
    head = octets.read(encoded, 16, 10)
    size = octets.number(octets.read(encoded, end.exif, 4), False) * tf.cast(end.exif > 0, tf.int64)
    return _facts(
        octets.number(head[4:8], False),
        octets.number(head[:4], False),
        orientation=exif.orientation(octets.piece(encoded, end.exif + 8, size)),
        depth=head[8],
        transparent=tf.reduce_any(head[9] == _PNG_ALPHA) | (end.transparency > 0),
    )


def _next_chunk(encoded: tf.Tensor, seen: _Chunks) -> _Chunks:
    """Returns the state after one more chunk."""
    here = seen.position
    name = octets.piece(encoded, here + 4, 4)
    return _Chunks(
        position=here + 12 + octets.number(octets.read(encoded, here, 4), False),
        exif=tf.where(name == b"eXIf", here, seen.exif),
        transparency=tf.where((name == b"tRNS") & (seen.pixels == 0), here, seen.transparency),
        pixels=tf.where((name == b"IDAT") & (seen.pixels == 0), here, seen.pixels),
        more=tf.cast(name != b"IEND", tf.int64),
        steps=seen.steps + 1,
    )


class _Segments(NamedTuple):
    """How far the segments of a JPEG have been read, as int64 scalars; 0 stands for "not seen yet".

    Attributes:
        position: Of the next segment.
        frame: Position of the first start of frame.
        exif: Position of the first EXIF segment.
        adobe: Position of the first Adobe segment.
        more: 1 until the pixels or the end.
        steps: How many bytes or segments were passed.
    """

    position: tf.Tensor
    frame: tf.Tensor
    exif: tf.Tensor
    adobe: tf.Tensor
    more: tf.Tensor
    steps: tf.Tensor


def jpeg(encoded: tf.Tensor) -> Facts:
    """Returns the facts of a JPEG; its segments are read up to the pixels."""
    start = _Segments(*_zeros(6))._replace(position=tf.constant(2, tf.int64))
    end = _walk(encoded, _next_segment, start, _MAX_SEGMENTS)
    frame = octets.read(encoded, end.frame, 10) * tf.cast(end.frame > 0, tf.int64)
    block = octets.number(octets.read(encoded, end.exif + 2, 2), False) - 8
    block = tf.maximum(block, 0) * tf.cast(end.exif > 0, tf.int64)
    return _facts(
        octets.number(frame[5:7], False),
        octets.number(frame[7:9], False),
        orientation=exif.orientation(octets.piece(encoded, end.exif + 10, block)),
        unmarked_inks=(frame[9] == 4) & (end.adobe == 0),
    )


def _next_segment(encoded: tf.Tensor, seen: _Segments) -> _Segments:
    """Returns the state after one more segment, or after one byte that belongs to none."""
    here = seen.position
    head = octets.read(encoded, here, 4)
    marker = head[1]
    # Any number of fill bytes FF may stand before a marker, and decoders skip what is no marker.
    begins = (head[0] == 0xFF) & (marker != 0xFF)
    bare = tf.reduce_any(marker == _BARE)
    after = 2 + tf.where(bare, tf.zeros_like(here), tf.maximum(octets.number(head[2:], False), 2))
    step = tf.where(begins, after, tf.ones_like(here))
    name = octets.piece(encoded, here + 4, 6)

    def first(position: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        return tf.where((position == 0) & begins & wanted, here, position)

    return _Segments(
        position=here + step,
        frame=first(seen.frame, tf.reduce_any(marker == _FRAMES)),
        exif=first(seen.exif, (marker == _APP1) & (name == b"Exif\0\0")),
        adobe=first(seen.adobe, (marker == _APP14) & octets.begins(name, b"Adobe")),
        more=tf.cast(~(begins & ((marker == _START_OF_SCAN) | (marker == _END_OF_IMAGE))), tf.int64),
        steps=seen.steps + 1,
    )
