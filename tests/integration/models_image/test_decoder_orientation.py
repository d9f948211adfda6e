"""I03: a photo that was stored on its side is the same photo, whatever else its file holds."""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

pytestmark = pytest.mark.integration

# Of upright photos, and the side of the square that shows them whole.
WIDTH, HEIGHT = 96, 64


@pytest.fixture(scope="module")
def decode(graph_of: Callable[..., Any]) -> Any:
    """The decoder of one photo into a square in which photos of WIDTH by HEIGHT keep every pixel."""
    from pipeline.models.image import decoder

    return graph_of(decoder.decode_square, WIDTH)


@pytest.fixture(scope="module")
def orientation(graph_of: Callable[..., Any]) -> Any:
    """The orientation in a header."""
    from pipeline.models.image import header

    return graph_of(lambda encoded: header.read(encoded).facts.orientation)


def segment(marker: int, payload: bytes) -> bytes:
    """Returns a JPEG segment."""
    return bytes([0xFF, marker]) + (len(payload) + 2).to_bytes(2, "big") + payload


def exif_block(value: int, order: str = "little", kind: int = 3, before: int = 0, first: int = 8) -> bytes:
    """Returns EXIF data whose IFD0 begins at `first` and has `before` other entries before the orientation."""

    def number(content: int, size: int) -> bytes:
        return content.to_bytes(size, order)  # type: ignore[arg-type]

    def entry(tag: int, content: bytes) -> bytes:
        return number(tag, 2) + number(kind, 2) + number(1, 4) + content.ljust(4, b"\0")

    head = (b"II" if order == "little" else b"MM") + number(42, 2) + number(first, 4)
    entries = [entry(0x0200 + index, number(7, 2)) for index in range(before)]
    entries.append(entry(0x0112, number(value, 2 if kind == 3 else 4)))
    return head.ljust(first, b"\0") + number(len(entries), 2) + b"".join(entries) + number(0, 4)


def with_segments(jpeg: bytes, *segments: bytes) -> bytes:
    """Returns a JPEG with segments right behind its start."""
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("stored", range(1, 9))
@pytest.mark.parametrize("scale", [1, 3], ids=["every pixel", "scaled down"])
def test_a_photo_on_its_side_is_its_upright_twin(photos: Any, decode: Any, kind: str, stored: int, scale: int) -> None:
    """For each orientation, at its size and scaled down, the turned photo decodes to what the upright one is."""
    upright = photos.draw(scale * WIDTH, scale * HEIGHT)
    turned = decode(photos.on_its_side(upright, stored, kind)).numpy().astype(int)
    twin = decode(photos.encode(upright, kind)).numpy().astype(int)
    # A JPEG's own losses differ between the two, a PNG has none.
    tolerance = 1.5 if kind == "JPEG" else 0
    # Sums are added up in another order, so that here and there a half is rounded the other way.
    assert np.abs(turned - twin).mean() <= tolerance + 0.001
    if scale == 1:
        assert np.abs(photos.covered(turned, WIDTH, HEIGHT) - np.asarray(upright)).mean() <= tolerance


EXIF = b"Exif\0\0"
JFIF = segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")
XMP = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta tiff:Orientation='3'/>")


@pytest.mark.parametrize(
    ("inserted", "found"),
    [
        pytest.param([segment(0xE1, EXIF + exif_block(6))], 6, id="little endian"),
        pytest.param([segment(0xE1, EXIF + exif_block(8, "big"))], 8, id="big endian"),
        pytest.param([segment(0xE1, EXIF + exif_block(5, before=40))], 5, id="the 41st entry"),
        pytest.param([segment(0xE1, EXIF + exif_block(7, first=600))], 7, id="a directory far from the start"),
        pytest.param([segment(0xE1, EXIF + exif_block(3, kind=4))], 3, id="a long number"),
        pytest.param([segment(0xE1, EXIF + exif_block(3, "big", kind=4))], 3, id="a long number, big endian"),
        pytest.param([JFIF, XMP, segment(0xE1, EXIF + exif_block(6))], 6, id="behind JFIF and XMP"),
        pytest.param([segment(0xFE, b"x" * 65533)] * 3 + [segment(0xE1, EXIF + exif_block(6))], 6, id="far behind"),
        pytest.param([b"\xff" * 9, segment(0xE1, EXIF + exif_block(6))], 6, id="fill bytes"),
        pytest.param([segment(0xE1, EXIF + exif_block(n)) for n in (6, 3)], 6, id="the first of two"),
        pytest.param([XMP], 1, id="XMP alone"),
        pytest.param([segment(0xE1, EXIF + exif_block(0))], 1, id="zero"),
        pytest.param([segment(0xE1, EXIF + exif_block(9))], 1, id="nine"),
        pytest.param([segment(0xE1, EXIF + exif_block(6, kind=2))], 1, id="text instead of a number"),
        pytest.param([segment(0xE1, EXIF + exif_block(6)[:15])], 1, id="cut in an entry"),
        pytest.param([segment(0xE1, EXIF)], 1, id="nothing behind the name"),
        pytest.param([segment(0xE1, EXIF + b"II*\0\xff\xff\xff\xff")], 1, id="a directory behind the end"),
        pytest.param([segment(0xE1, EXIF + b"II*\0\x08\0\0\0\xff\xff")], 1, id="65,535 entries announced, none there"),
        pytest.param([segment(0xE1, EXIF + b"XX" + exif_block(6)[2:])], 1, id="an unknown byte order"),
        pytest.param([segment(0xE2, EXIF + exif_block(6))], 1, id="another segment"),
    ],
)
def test_the_orientation_is_found_wherever_it_stands(
    photos: Any, orientation: Any, decode: Any, inserted: list[bytes], found: int
) -> None:
    """Both byte orders, any place before the pixels; what is cut or lies counts as upright, and still decodes."""
    jpeg = with_segments(photos.encode(photos.draw(WIDTH, HEIGHT)), *inserted)
    assert orientation(jpeg).numpy() == found
    # White is above and below a photo that lies, and beside one that stands.
    assert bool((decode(jpeg)[0].numpy() == 255).all()) is (found < 5)


def with_chunk(png: bytes, before: bytes, name: bytes, content: bytes) -> bytes:
    """Returns a PNG with a chunk in front of the first one of a name."""
    at = png.index(before) - 4
    return png[:at] + chunk(name, content) + png[at:]


def chunk(name: bytes, content: bytes) -> bytes:
    """Returns a chunk of a PNG."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def in_many_pieces(png: bytes) -> bytes:
    """Returns a PNG whose pixels are preceded by 5,000 empty pieces of pixels."""
    start = png.index(b"IDAT") - 4
    return png[:start] + 5000 * chunk(b"IDAT", b"") + png[start:]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        pytest.param(
            "JPEG",
            lambda jpeg: with_segments(jpeg, XMP, segment(0xE1, EXIF + exif_block(6, "big", before=3))),
            id="JPEG, XMP before EXIF",
        ),
        pytest.param("PNG", lambda png: with_chunk(png, b"IDAT", b"eXIf", exif_block(6)), id="PNG, before the pixels"),
        pytest.param("PNG", lambda png: with_chunk(png, b"IEND", b"eXIf", exif_block(6)), id="PNG, behind the pixels"),
        pytest.param(
            "PNG",
            lambda png: with_chunk(in_many_pieces(png), b"IEND", b"eXIf", exif_block(6)),
            id="PNG, behind thousands of pieces of pixels",
        ),
        pytest.param("PNG", lambda png: with_chunk(png, b"IEND", b"tEXt", b"eXIf\0no"), id="PNG, a word in a text"),
    ],
)
def test_pillow_agrees_on_where_the_orientation_stands(
    photos: Any, decode: Any, kind: str, change: Callable[[bytes], bytes]
) -> None:
    """The ingestion, which uses Pillow, turns a photo the same way wherever its EXIF stands."""
    encoded = change(photos.encode(photos.draw(WIDTH, HEIGHT), kind))
    turned = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(encoded))))
    np.testing.assert_array_equal(photos.covered(decode(encoded).numpy(), turned.shape[1], turned.shape[0]), turned)


@pytest.fixture(scope="module")
def batch(graph_of: Callable[..., Any]) -> Any:
    """The decoder of a batch, which serving uses."""
    from pipeline.models.image import decoder

    return graph_of(decoder.decode_batch, 16, batch=True)


def outcome(batch: Any, encoded: bytes) -> str:
    """Returns what became of a batch of one photo: "a square", or the text of the error."""
    import tensorflow as tf

    try:
        assert batch([encoded]).shape == (1, 16, 16, 3)
    except tf.errors.InvalidArgumentError as error:
        return str(error)
    return "a square"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_hostile_bytes_give_pixels_or_the_one_clear_error(photos: Any, batch: Any, data: st.DataObject) -> None:
    """Random EXIF, changed bytes and cuts anywhere, in every kind of photo, end in a square or an error for row 0."""
    kind = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "BMP"]))
    encoded = photos.encode(photos.draw(24, 16), kind)
    if kind == "JPEG":
        block = exif_block(data.draw(st.integers(0, 65535)), data.draw(st.sampled_from(["little", "big"])))
        at = data.draw(st.integers(0, len(block)))
        block = block[:at] + data.draw(st.binary(max_size=40)) + block[at + data.draw(st.integers(0, 20)) :]
        encoded = with_segments(encoded, segment(0xE1, EXIF + block))
    changed = bytearray(encoded)
    places = st.tuples(st.integers(0, len(encoded) - 1), st.integers(0, 255))
    for place, value in data.draw(st.lists(places, max_size=4)):
        changed[place] = value
    cut = data.draw(st.integers(0, len(changed)) | st.just(len(changed)))
    said = outcome(batch, bytes(changed[:cut]))
    assert said == "a square" or re.search(r"row 0 of the batch .*: send a JPEG, PNG, GIF or BMP", said)
