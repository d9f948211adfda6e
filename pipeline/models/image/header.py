"""What the first bytes of a photo say, read inside a TensorFlow graph before anything is decoded."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from pipeline.models.image import formats, octets

# Kinds of photos that TensorFlow decodes; the number is a branch of the decoder.
REFUSED, JPEG, PNG, GIF, BMP = range(5)
# Photos with more pixels are refused unseen: a file of some kilobytes can announce gigabytes.
MAX_PIXELS = 100_000_000


class Header(NamedTuple):
    """A photo's header and what follows from it.

    Attributes:
        kind: int32[], one of REFUSED, JPEG, PNG, GIF and BMP.
        problem: string[], what is wrong with the photo, to be read after its name; empty when nothing is.
        facts: What the header says.
    """

    kind: tf.Tensor
    problem: tf.Tensor
    facts: formats.Facts


def read(encoded: tf.Tensor) -> Header:
    """Returns the header of one encoded photo, string[]; whatever the bytes are, this does not fail."""
    magic = octets.piece(encoded, 0, 12)
    signatures = {
        JPEG: octets.begins(magic, b"\xff\xd8\xff"),
        PNG: octets.begins(magic, b"\x89PNG\r\n\x1a\n"),
        GIF: octets.begins(magic, b"GIF87a") | octets.begins(magic, b"GIF89a"),
        BMP: octets.begins(magic, b"BM"),
    }
    found = tf.add_n([tf.cast(present, tf.int32) * kind for kind, present in signatures.items()])
    readers = {
        REFUSED: formats.nothing,
        JPEG: formats.jpeg,
        PNG: formats.png,
        GIF: formats.gif,
        BMP: formats.bmp,
    }
    facts = tf.switch_case(found, {kind: functools.partial(reader, encoded) for kind, reader in readers.items()})
    height, width = facts.height, facts.width
    problem = _first_true(
        [
            (octets.length(encoded) == 0, "is empty"),
            (octets.begins(magic, b"RIFF") & octets.begins(octets.piece(encoded, 8, 4), b"WEBP"), "is a WebP photo"),
            (found == REFUSED, "is no photo"),
            (~facts.supported, "is a BMP of a kind that cannot be read here (save it as JPEG or PNG)"),
            ((height <= 0) | (width <= 0), "has a damaged header"),
            # Each side by itself too: a product of two sides can be more than an int64 holds.
            (tf.maximum(tf.maximum(height, width), height * width) > MAX_PIXELS, "has too many pixels"),
        ]
    )
    return Header(tf.where(problem == "", found, REFUSED), problem, facts)


def _first_true(texts: Sequence[tuple[tf.Tensor, str]]) -> tf.Tensor:
    """Returns string[], the text of the first condition that is true; empty when none is."""
    said = tf.constant("")
    for condition, text in reversed(texts):
        said = tf.where(condition, text, said)
    return said
