"""Transparent colours of every depth are white, and pixels of many bits cost little room while they are converted."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from PIL import Image

from components.ingest.images.colour import to_srgb
from components.ingest.images.decode import Photo, Rules, decode

pytestmark = pytest.mark.unit

RULES = Rules(max_side_px=512, jpeg_quality=95, max_pixels=1_000_000)
GREY, COLOUR = 0, 2
SIDE = 32


def png(bits: int, kind: int, left: bytes, right: bytes, transparent: bytes) -> bytes:
    """Returns a square PNG of two halves, given by the bytes of a row, and the colour that is transparent in it."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, bits, kind, 0, 0, 0)) + chunk(b"tRNS", transparent)
    pixels = chunk(b"IDAT", zlib.compress((b"\0" + left + right) * SIDE))
    return b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")


HALF = SIDE // 2
CASES = [
    pytest.param(png(16, GREY, bytes(2) * HALF, b"\x80\x80" * HALF, bytes(2)), 128, id="grey-16"),
    pytest.param(png(16, GREY, bytes(2) * HALF, b"\0\1" * HALF, bytes(2)), 0, id="grey-16-next-to-it"),
    pytest.param(png(4, GREY, b"\x55" * (HALF // 2), b"\xaa" * (HALF // 2), b"\0\5"), 170, id="grey-4"),
    pytest.param(png(2, GREY, b"\x55" * (HALF // 4), b"\xaa" * (HALF // 4), b"\0\1"), 170, id="grey-2"),
    pytest.param(png(1, GREY, b"\xff" * (HALF // 8), b"\0" * (HALF // 8), b"\0\1"), 0, id="grey-1"),
    pytest.param(png(16, COLOUR, b"\1\x2c" * 3 * HALF, b"\x80\x80" * 3 * HALF, b"\1\x2c" * 3), 128, id="colour-16"),
    pytest.param(png(16, COLOUR, bytes(6) * HALF, b"\x80\x80" * 3 * HALF, bytes(6)), 128, id="colour-16-black"),
]


@pytest.mark.parametrize(("data", "opaque"), CASES)
def test_a_transparent_colour_is_white_at_every_depth(data: bytes, opaque: int) -> None:
    """I05: a PNG's transparent colour is told in the file's own depth, and is white after the conversion to 8 bits."""
    photo = decode(data, RULES)
    assert isinstance(photo, Photo), photo
    stored = Image.open(io.BytesIO(photo.jpeg))
    assert stored.getpixel((4, 16)) == pytest.approx((255, 255, 255), abs=3)
    assert stored.getpixel((SIDE - 4, 16)) == pytest.approx((opaque,) * 3, abs=3)
    assert photo.converted.count("alpha") == 1


@pytest.mark.parametrize("mode", ["RGBA", "LA", "RGBa"])
@pytest.mark.parametrize("opacity", [0, 100, 255])
def test_half_transparent_is_mixed_with_white(mode: str, opacity: int) -> None:
    """Each mode with opacity is laid over white in proportion."""
    image = Image.new("LA", (4, 4), (50, opacity))
    rgb, applied = to_srgb(image.convert("RGBA").convert(mode) if mode != "LA" else image)
    wanted = (50 * opacity + 255 * (255 - opacity)) / 255
    assert rgb.getpixel((1, 1)) == pytest.approx((wanted,) * 3, abs=2)
    assert "alpha" in applied


def test_sixteen_bit_grey_needs_little_more_than_its_pixels() -> None:
    """NumPy's share of converting sixteen million values stays below five bytes for each of them."""
    values = np.arange(4096, dtype=np.uint16)[None, :].repeat(4096, axis=0) * np.uint16(16)
    image = Image.fromarray(values)
    tracemalloc.start()
    try:
        rgb, _ = to_srgb(image)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 5 * values.size
    assert [rgb.getpixel((x, 4000))[0] for x in (0, 2056, 4095)] == [0, 128, 255]
