"""Damage that a decoder gets over, or never sees: half a picture must not pass for a whole one."""

from __future__ import annotations

import io
import zlib

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageStat

from components.ingest.images.decode import Photo, Rejection, Rules, decode

pytestmark = pytest.mark.unit

RULES = Rules(max_side_px=512, jpeg_quality=95, max_pixels=1_000_000)
BROKEN = "its end is nothing but zero bytes, as a broken download leaves it"


def grainy(picture) -> Image.Image:
    """Returns a picture with so much grain that every kind needs many bytes for it."""
    grain = np.random.default_rng(0).integers(-8, 9, (400, 600, 3))
    return Image.fromarray((np.asarray(picture(1, (600, 400)), np.int64) + grain).clip(0, 255).astype(np.uint8))


def with_flipped_bytes(data: bytes, share: float) -> bytes:
    """Returns a file with forty bytes flipped in the middle of its pixels."""
    damaged, at = bytearray(data), int(len(data) * share)
    damaged[at : at + 40] = bytes(byte ^ 0x5A for byte in damaged[at : at + 40])
    return bytes(damaged)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("PNG", {}, id="png"),
        pytest.param("GIF", {}, id="gif"),
        pytest.param("TIFF", {"compression": "tiff_lzw"}, id="tiff-lzw"),
    ],
)
@pytest.mark.parametrize("share", [0.25, 0.6])
def test_damaged_pixels_are_rejected(picture, encoded, kind: str, options: dict[str, str], share: float) -> None:
    """A photo whose compressed pixels were damaged is rejected, and not stored with the rest of it black."""
    result = decode(with_flipped_bytes(encoded(grainy(picture), kind, **options), share), RULES)
    assert isinstance(result, Rejection), result
    assert result.reason.startswith(f"damaged {kind.lower()}")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("BMP", {}, id="bmp"),
        pytest.param("TIFF", {}, id="tiff"),
        pytest.param("JPEG", {}, id="jpeg"),
        pytest.param("WEBP", {}, id="webp"),
        pytest.param("WEBP", {"lossless": True}, id="webp-lossless"),
    ],
)
def test_damage_that_a_format_cannot_notice(picture, encoded, kind: str, options: dict[str, bool]) -> None:
    """Without a checksum other bytes are another picture, as the documentation says: it is whole, only not the same."""
    result = decode(with_flipped_bytes(encoded(grainy(picture), kind, **options), 0.6), RULES)
    assert isinstance(result, Photo), result


def test_orientation_in_xmp_behind_the_pixels_turns_nothing(picture, encoded) -> None:
    """XMP may follow the pixels of a PNG: it is passed over there too, as it is in front of them."""
    xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    upright = encoded(picture(3), "PNG")
    body = b"iTXt" + b"XML:com.adobe.xmp\0\0\0\0\0" + xmp.encode()
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    end = upright.rindex(b"IEND") - 4
    told = decode(upright[:end] + chunk + upright[end:], RULES)
    assert told == decode(upright, RULES)


def filled_up(data: bytes, share: float) -> bytes:
    """Returns a file of the same length of which only a share arrived."""
    arrived = int(len(data) * share)
    return data[:arrived] + bytes(len(data) - arrived)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("JPEG", {}, id="baseline"),
        pytest.param("JPEG", {"progressive": True}, id="progressive"),
        pytest.param("WEBP", {}, id="lossy"),
        pytest.param("WEBP", {"lossless": True}, id="lossless"),
    ],
)
@pytest.mark.parametrize("grain", [True, False], ids=["grainy", "smooth"])
def test_broken_downloads_are_rejected(picture, encoded, kind: str, options: dict[str, bool], grain: bool) -> None:
    """A file of full length whose last three quarters are zeros is rejected, although decoders fill it up."""
    image = grainy(picture) if grain else picture(1, (600, 400))
    exif = Image.Exif()
    exif[0x010F] = "a thumbnail's end \xff\xd9 in front of the picture"
    data = encoded(image, kind, exif=exif, **options)
    assert isinstance(decode(data, RULES), Photo)
    result = decode(filled_up(data, 0.25), RULES)
    assert isinstance(result, Rejection), result
    assert result.reason == f"damaged {kind.lower()}: {BROKEN}"


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_zeros_behind_a_photo_mean_nothing(picture, encoded, kind: str) -> None:
    """A whole photo in a file that is padded with zeros is as good as without them."""
    data = encoded(picture(2), kind)
    assert decode(data + bytes(10 * len(data)), RULES) == decode(data, RULES)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
@pytest.mark.parametrize("colour", ["black", "grey", "white"])
def test_plain_pictures_are_no_broken_downloads(encoded, kind: str, colour: str) -> None:
    """The codes of a picture of one colour end with few zeros: it is kept."""
    image = Image.new("RGB", (990, 990), colour)
    result = decode(encoded(image, kind), RULES)
    assert isinstance(result, Photo), result
    stored = Image.open(io.BytesIO(result.jpeg))
    assert max(ImageStat.Stat(ImageChops.difference(stored, image.resize(stored.size))).mean) < 2
