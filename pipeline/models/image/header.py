"""What the first bytes of a photo say, read inside a TensorFlow graph before anything is decoded."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from pipeline.models.image import exif, octets

# Kinds of photos that TensorFlow decodes; the number is a branch of the decoder.
REFUSED, JPEG, PNG, GIF, BMP = range(5)
# Photos with more pixels are refused unseen: a file of some kilobytes can announce gigabytes.
MAX_PIXELS = 100_000_000
# Segments or chunks that are looked at. Photos have some dozens; a longer list is made to keep us busy.
_MAX_STEPS = 4096

_START_OF_SCAN, _END_OF_IMAGE, _APP1, _APP14 = 0xDA, 0xD9, 0xE1, 0xEE
# Markers without a length: stuffing, TEM, and the restarts.
_BARE = (0x00, 0x01, *range(0xD0, 0xD9))
# Start of frame, of every coding; C4, C8 and CC are something else.
_FRAMES = tuple(marker for marker in range(0xC0, 0xD0) if marker not in (0xC4, 0xC8, 0xCC))
_PNG_PALETTE = 3
_BMP_UNCOMPRESSED, _BMP_MASKS = 0, 3


class Facts(NamedTuple):
    """What a header says. Every field is a scalar tensor.

    Attributes:
        height: int64, pixels, as stored; 0 when it cannot be read.
        width: int64, pixels, as stored; 0 when it cannot be read.
        orientation: int64, EXIF's, 1 to 8.
        depth: int64, bits: of a sample for PNG, of a pixel for BMP; else 8.
        unmarked_inks: bool, true for a JPEG of four inks that does not say how they are stored.
        supported: bool, false for a BMP of a sort that TensorFlow does not decode.
    """

    height: tf.Tensor
    width: tf.Tensor
    orientation: tf.Tensor
    depth: tf.Tensor
    unmarked_inks: tf.Tensor
    supported: tf.Tensor


class Header(NamedTuple):
    """A photo's header and what follows from it.

    Attributes:
        kind: int32[], one of REFUSED, JPEG, PNG, GIF and BMP.
        problem: string[], what is wrong with the photo, to be read after its name; empty when nothing is.
        facts: What the header says.
    """

    kind: tf.Tensor
    problem: tf.Tensor
    facts: Facts


def read(encoded: tf.Tensor) -> Header:
    """Returns the header of one encoded photo, string[]; whatever the bytes are, this does not fail."""
    magic = octets.piece(encoded, 0, 12)
    signatures = {
        JPEG: _starts(magic, b"\xff\xd8\xff"),
        PNG: _starts(magic, b"\x89PNG\r\n\x1a\n"),
        GIF: _starts(magic, b"GIF87a") | _starts(magic, b"GIF89a"),
        BMP: _starts(magic, b"BM"),
    }
    found = tf.add_n([tf.cast(present, tf.int32) * kind for kind, present in signatures.items()])
    readers = {REFUSED: _nothing, JPEG: _jpeg, PNG: _png, GIF: _gif, BMP: _bmp}
    facts = tf.switch_case(found, {kind: functools.partial(reader, encoded) for kind, reader in readers.items()})
    height, width = facts.height, facts.width
    problem = _first_true(
        [
            (octets.length(encoded) == 0, "is empty"),
            (_starts(magic, b"RIFF") & _starts(octets.piece(encoded, 8, 4), b"WEBP"), "is a WebP photo"),
            (found == REFUSED, "is no photo"),
            (~facts.supported, "is a BMP of fewer than 8 bits a pixel, or a compressed one"),
            ((height <= 0) | (width <= 0), "has a damaged header"),
            # Each side by itself too: a product of two sides can be more than an int64 holds.
            (tf.maximum(tf.maximum(height, width), height * width) > MAX_PIXELS, "has too many pixels"),
        ]
    )
    return Header(tf.where(problem == "", found, REFUSED), problem, facts)


def _starts(text: tf.Tensor, prefix: bytes) -> tf.Tensor:
    """Returns bool[], whether a string begins with some bytes."""
    return octets.piece(text, 0, len(prefix)) == prefix


def _first_true(texts: Sequence[tuple[tf.Tensor, str]]) -> tf.Tensor:
    """Returns string[], the text of the first condition that is true; empty when none is."""
    said = tf.constant("")
    for condition, text in reversed(texts):
        said = tf.where(condition, text, said)
    return said


def _facts(
    height: tf.Tensor,
    width: tf.Tensor,
    *,
    orientation: tf.Tensor | int = exif.UPRIGHT,
    depth: tf.Tensor | int = 8,
    unmarked_inks: tf.Tensor | bool = False,
    supported: tf.Tensor | bool = True,
) -> Facts:
    """Returns facts as tensors of the types that every kind of photo agrees on."""
    numbers = [tf.cast(value, tf.int64) for value in (height, width, orientation, depth)]
    return Facts(*numbers, *(tf.cast(value, tf.bool) for value in (unmarked_inks, supported)))


def _nothing(encoded: tf.Tensor) -> Facts:
    """Returns the facts of what is no photo."""
    del encoded
    return _facts(0, 0)


def _gif(encoded: tf.Tensor) -> Facts:
    """Returns the facts of a GIF: the size of its canvas."""
    size = octets.read(encoded, 6, 4)
    return _facts(octets.number(size[2:], True), octets.number(size[:2], True))


def _bmp(encoded: tf.Tensor) -> Facts:
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


def _png(encoded: tf.Tensor) -> Facts:
    """Returns the facts of a PNG; EXIF is looked for in the chunks before the pixels."""
    head = octets.read(encoded, 16, 10)

    def advance(position: tf.Tensor, kind: tf.Tensor, steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        del kind
        position += 12 + octets.number(octets.read(encoded, position, 4), False)
        return position, octets.piece(encoded, position + 4, 4), steps + 1

    position, kind, _ = tf.while_loop(
        lambda position, kind, steps: (kind != b"eXIf") & (kind != b"IDAT") & (kind != b"") & (steps < _MAX_STEPS),
        advance,
        (tf.constant(8, tf.int64), tf.constant(b"IHDR"), 0),
    )
    size = octets.number(octets.read(encoded, position, 4), False)
    block = octets.piece(encoded, position + 8, size * tf.cast(kind == b"eXIf", tf.int64))
    return _facts(
        octets.number(head[4:8], False),
        octets.number(head[:4], False),
        orientation=exif.orientation(block),
        # The entries of a palette have 8 bits, however few their indices have.
        depth=tf.where(head[9] == _PNG_PALETTE, tf.constant(8, tf.int64), head[8]),
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


def _jpeg(encoded: tf.Tensor) -> Facts:
    """Returns the facts of a JPEG; its segments are read up to the pixels."""
    size = octets.length(encoded)
    start = _Segments(*(tf.constant(value, tf.int64) for value in (2, 0, 0, 0, 1, 0)))
    (end,) = tf.while_loop(
        lambda seen: (seen.more == 1) & (seen.position < size) & (seen.steps < _MAX_STEPS),
        lambda seen: (_next_segment(encoded, seen),),
        (start,),
    )
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
        adobe=first(seen.adobe, (marker == _APP14) & _starts(name, b"Adobe")),
        more=tf.where(
            begins & ((marker == _START_OF_SCAN) | (marker == _END_OF_IMAGE)), tf.zeros_like(here), seen.more
        ),
        steps=seen.steps + 1,
    )
