"""One photo of each kind: what is kept of it, and why others are rejected."""

from __future__ import annotations

import io
import random
import struct
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageCms, ImageStat

from components.ingest.images.decode import Photo, Rejection, Rules, decode

pytestmark = pytest.mark.unit

RULES = Rules(max_side_px=512, jpeg_quality=95, max_pixels=1_000_000)
ORIENTATION = 0x0112
# How far two encodings of one picture may be apart, in levels of 255; a GIF has 256 colours.
NEAR = 6


def kept(data: bytes, rules: Rules = RULES) -> Photo:
    """Returns the decoded photo."""
    result = decode(data, rules)
    assert isinstance(result, Photo), result
    return result


def pixels(photo: Photo) -> Image.Image:
    """Returns the stored picture."""
    return Image.open(io.BytesIO(photo.jpeg))


def distance(left: Image.Image, right: Image.Image) -> float:
    """Returns the mean difference of two pictures in levels of 255."""
    assert left.size == right.size
    return float(np.mean(ImageStat.Stat(ImageChops.difference(left.convert("RGB"), right.convert("RGB"))).mean))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"])
def test_every_kind_becomes_the_same_picture(picture, encoded, kind: str) -> None:
    """I01: the kind is told by the bytes, and each decodes to the picture that it holds."""
    photo = kept(encoded(picture(1), kind))
    assert photo.format == kind.lower()
    assert (photo.width_px, photo.height_px) == (96, 64)
    assert distance(pixels(photo), picture(1)) < NEAR


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "empty (0 bytes)", id="I02-empty"),
        pytest.param(b"\n <!DOCTYPE html><html>404", "not a photo: an HTML page", id="I01-html"),
        pytest.param(b'<?xml version="1.0"?>\n<svg xmlns="x">', "not a photo: an SVG drawing", id="svg"),
        pytest.param(b"%PDF-1.7\n", "not a photo: a PDF document", id="pdf"),
        pytest.param(b"\0\0\0\x18ftypheic\0\0\0\0", "not a photo: an HEIC photo: export it as JPEG", id="heic"),
        pytest.param(b"\0\0\0\x18ftypisom\0\0\0\0", "not a photo: a video", id="video"),
        pytest.param(b"\0" * 4096, "not a photo: nothing but zero bytes", id="zeros"),
        pytest.param(b"hello, world\n", "not a photo: text", id="text"),
        pytest.param(b"BMW is a car, and so are a few others", "not a photo: text", id="begins-like-bmp"),
        pytest.param(b"\x01\x02\x03\x04", "not a photo: no kind of file that is known here", id="unknown"),
        pytest.param(b"\xff\xd8\xff\xe0\0\x10JFIF", "damaged jpeg", id="only-a-head"),
    ],
)
def test_what_is_no_photo_is_named(data: bytes, reason: str) -> None:
    """A file that is no photo is rejected with what it looks like."""
    result = decode(data, RULES)
    assert isinstance(result, Rejection)
    assert result.reason.startswith(reason)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_half_a_photo_is_no_photo(encoded, kind: str, share: float) -> None:
    """A file that is cut short is rejected and not filled up with grey, whatever its kind."""
    noise = np.random.default_rng(3).integers(0, 256, (64, 96, 3)).astype(np.uint8)
    data = encoded(Image.fromarray(noise), kind)
    result = decode(data[: int(len(data) * share)], RULES)
    assert isinstance(result, Rejection)
    assert result.reason.startswith(f"damaged {kind.lower()}")
    assert "0x" not in result.reason


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied(picture, encoded, kind: str, orientation: int) -> None:
    """I03: a picture stored turned or mirrored, with the tag that says so, comes out as its upright twin."""
    stored = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    upright = picture(7)
    turned = upright.transpose(stored[orientation]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    photo = kept(encoded(turned, kind, exif=exif))
    assert (photo.width_px, photo.height_px) == upright.size
    assert distance(pixels(photo), upright) < NEAR
    assert ("oriented" in photo.converted) == (orientation > 1)
    assert ORIENTATION not in pixels(photo).getexif()


def test_metadata_stay_behind(picture, encoded) -> None:
    """Place, camera, comment and profile of the original are not in the stored photo."""
    exif = Image.Exif()
    exif[0x010F] = "Camera maker"
    exif.get_ifd(0x8825)[1] = "N"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = encoded(picture(2), exif=exif, comment=b"taken at home", icc_profile=profile)
    stored = kept(data).jpeg
    assert b"Camera maker" not in stored
    assert b"taken at home" not in stored
    assert b"Exif" not in stored
    assert b"ICC_PROFILE" not in stored


def without_adobe(data: bytes) -> bytes:
    """Returns a JPEG without its Adobe marker."""
    at = data.index(b"\xff\xee")
    (length,) = struct.unpack(">H", data[at + 2 : at + 4])
    assert data[at + 4 : at + 9] == b"Adobe"
    return data[:at] + data[at + 2 + length :]


@pytest.mark.parametrize(
    ("marker", "inverted"),
    [
        pytest.param(True, True, id="adobe"),
        pytest.param(False, True, id="no-marker"),
        pytest.param(False, False, id="no-marker-plain-values"),
    ],
)
def test_cmyk(picture, encoded, marker: bool, inverted: bool) -> None:
    """I04: CMYK JPEGs keep their colours, also without the marker that says how ink is written."""
    ink = picture(4).convert("CMYK")
    # Pillow inverts on writing, so this undoes it.
    data = encoded(ink if inverted else ImageChops.invert(ink), quality=95)
    photo = kept(data if marker else without_adobe(data))
    assert "cmyk" in photo.converted
    for got, wanted in zip(ImageStat.Stat(pixels(photo)).mean, ImageStat.Stat(picture(4)).mean, strict=True):
        assert got == pytest.approx(wanted, abs=NEAR)


def test_cmyk_tiff_is_not_inverted(picture, encoded) -> None:
    """A CMYK TIFF has no such convention: its ink is what it says, however dark."""
    dark = picture(4).point(lambda level: level // 8)
    photo = kept(encoded(dark.convert("CMYK"), "TIFF"))
    assert distance(pixels(photo), dark) < NEAR


def profile_with_swapped_primaries() -> bytes:
    """Returns an ICC profile of version 2 that is sRGB's, but for red and green, which change places."""

    def fixed(*numbers: float) -> bytes:
        return struct.pack(f">{len(numbers)}i", *(round(number * 65536) for number in numbers))

    red, green, blue = (0.4361, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141)
    gamma = b"curv" + struct.pack(">IIHH", 0, 1, round(2.2 * 256), 0)
    text = b"swapped\0"
    tags = {
        b"desc": b"desc" + struct.pack(">II", 0, len(text)) + text + bytes(78),
        b"cprt": b"text" + bytes(4) + text,
        b"wtpt": b"XYZ " + bytes(4) + fixed(0.9642, 1.0, 0.8249),
        b"rXYZ": b"XYZ " + bytes(4) + fixed(*green),
        b"gXYZ": b"XYZ " + bytes(4) + fixed(*red),
        b"bXYZ": b"XYZ " + bytes(4) + fixed(*blue),
        b"rTRC": gamma,
        b"gTRC": gamma,
        b"bTRC": gamma,
    }
    table, body = struct.pack(">I", len(tags)), b""
    for name, content in tags.items():
        padded = content + bytes(-len(content) % 4)
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(body), len(content))
        body += padded
    head = struct.pack(">I4sI4s4s4s", 132 + 12 * len(tags) + len(body), b"lcms", 0x02100000, b"mntr", b"RGB ", b"XYZ ")
    head += bytes(12) + b"acsp" + bytes(28) + fixed(0.9642, 1.0, 0.8249)
    return head + bytes(128 - len(head)) + table + body


def test_colour_profile_is_applied(encoded) -> None:
    """Under a profile whose red is green, the numbers of a red photo are stored as green; transparency stays."""
    red = Image.new("RGB", (32, 32), (220, 40, 40))
    photo = kept(encoded(red, icc_profile=profile_with_swapped_primaries(), quality=95))
    assert photo.converted == ("profile",)
    assert pixels(photo).getpixel((16, 16)) == pytest.approx((40, 220, 40), abs=8)
    clear = red.convert("RGBA")
    clear.putalpha(0)
    photo = kept(encoded(clear, "PNG", icc_profile=profile_with_swapped_primaries()))
    assert pixels(photo).getpixel((16, 16)) == pytest.approx((255, 255, 255), abs=2)


@pytest.mark.parametrize("profile", ["sRGB", "LAB", "damaged"])
def test_profiles_that_change_nothing(encoded, profile: str) -> None:
    """The profile of sRGB itself, one for another kind of pixels and a damaged one leave the colours alone."""
    name = "sRGB" if profile == "damaged" else profile
    icc = ImageCms.ImageCmsProfile(ImageCms.createProfile(name)).tobytes()
    plain = Image.new("RGB", (32, 32), (200, 60, 60))
    photo = kept(encoded(plain, icc_profile=icc[:100] + bytes(300) if profile == "damaged" else icc))
    assert photo.converted == ()
    assert distance(pixels(photo), plain) < NEAR


@pytest.mark.parametrize("mode", ["I;16", "I;16B", "I"])
def test_sixteen_bit_grey(encoded, mode: str) -> None:
    """I05: 16-bit grey is divided by 257: black, middle and white stay what they are."""
    values = np.repeat(np.array([[0, 32896, 65535]], np.uint16), 16, axis=1).repeat(16, axis=0)
    kinds = {"I;16": (values, "PNG"), "I;16B": (values.astype(">u2"), "TIFF"), "I": (values.astype(np.int32), "TIFF")}
    array, kind = kinds[mode]
    photo = kept(encoded(Image.fromarray(array), kind))
    assert "16bit" in photo.converted
    stored = np.asarray(pixels(photo).convert("L"))
    assert stored[8, [4, 24, 44]].tolist() == pytest.approx([0, 128, 255], abs=2)


def test_numbers_without_a_white_are_rejected(encoded) -> None:
    """Floats and whole numbers beyond 16 bits are rejected: nothing says what is white."""
    floats = decode(encoded(Image.fromarray(np.ones((8, 8), np.float32)), "TIFF"), RULES)
    assert isinstance(floats, Rejection)
    assert "floats" in floats.reason
    large = decode(encoded(Image.fromarray(np.full((8, 8), 1 << 20, np.int32)), "TIFF"), RULES)
    assert isinstance(large, Rejection)
    assert "more than 16 bits" in large.reason


def test_sixteen_bit_colour() -> None:
    """I05: a PNG with 16 bits a channel keeps its colours and is counted."""
    import zlib

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    row = b"\0" + struct.pack(">3H", 65535, 32896, 0) * 16
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 16, 2, 0, 0, 0))
    photo = kept(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(row * 16)) + chunk(b"IEND", b""))
    assert photo.converted == ("16bit",)
    assert ImageStat.Stat(pixels(photo)).mean == pytest.approx([255, 128, 0], abs=3)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB-tRNS"])
def test_what_is_transparent_becomes_white(encoded, mode: str) -> None:
    """I05: what is transparent is white, as in the served graph, what is opaque has its own colour."""
    image = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    image.paste((200, 200, 200, 255), (0, 0, 64, 32))
    options = {}
    if mode == "LA":
        image = image.convert("LA")
    elif mode == "P":
        image = image.convert("RGB").quantize(2)
        options["transparency"] = image.getpixel((0, 63))
    elif mode == "RGB-tRNS":
        image, options["transparency"] = image.convert("RGB"), (0, 0, 0)
    photo = kept(encoded(image, "PNG", **options), RULES)
    assert "alpha" in photo.converted
    assert ("palette" in photo.converted) == (mode == "P")
    assert pixels(photo).getpixel((32, 8)) == pytest.approx((200, 200, 200), abs=3)
    assert pixels(photo).getpixel((32, 56)) == pytest.approx((255, 255, 255), abs=3)


def test_orientation_in_xmp_alone_turns_nothing(picture, encoded) -> None:
    """Browsers and the served graph do not look there, so the stored photo must not be turned either."""
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    image = picture(3)
    upright = kept(encoded(image, "JPEG", quality=95))
    told = kept(encoded(image, "JPEG", quality=95, xmp=xmp))
    assert (told.jpeg, told.converted) == (upright.jpeg, ())


@pytest.mark.parametrize("mode", ["1", "L"])
def test_grey_becomes_colour(encoded, mode: str) -> None:
    """Grey and black-and-white pictures are stored with three channels."""
    photo = kept(encoded(Image.new("L", (32, 32), 255).convert(mode), "PNG"))
    assert pixels(photo).mode == "RGB"
    assert photo.brightness == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_first_picture_of_several_is_taken(picture, encoded, kind: str) -> None:
    """Of an animation and of a file with several pages the first picture is taken, and it is counted."""
    data = encoded(picture(1), kind, save_all=True, append_images=[picture(2), picture(3)])
    photo = kept(data)
    assert "animated" in photo.converted
    assert distance(pixels(photo), picture(1)) < NEAR


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [(1600, 400), (400, 1600), (513, 513), (700, 1)])
def test_large_photos_are_scaled_down(picture, encoded, kind: str, size: tuple[int, int]) -> None:
    """The longest side is at most max_side_px and the proportions stay; the original size is kept as a fact."""
    photo = kept(encoded(picture(1, size), kind))
    assert (photo.width_px, photo.height_px) == size
    assert max(pixels(photo).size) == 512
    assert pixels(photo).width / pixels(photo).height == pytest.approx(size[0] / size[1], rel=0.3)
    assert "resized" in photo.converted
    assert distance(pixels(photo), picture(1, size).resize(pixels(photo).size)) < NEAR


def test_small_photos_stay_as_they_are(picture, encoded) -> None:
    """A photo within the limit is not scaled up."""
    photo = kept(encoded(picture(1)))
    assert photo.converted == ()
    assert pixels(photo).size == (96, 64)


def test_pixel_limit_is_checked_before_decoding(encoded) -> None:
    """A file that claims more pixels than allowed is rejected by its header, without decoding and without a warning."""
    claims = bytearray(encoded(Image.new("RGB", (8, 8)), "BMP"))
    claims[18:26] = struct.pack("<ii", 100_000, 100_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = decode(bytes(claims), RULES)
    assert isinstance(result, Rejection)
    assert "100000 x 100000 pixels" in result.reason
    assert not caught


def test_own_limit_replaces_pillows(encoded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A photo within max_pixels is accepted although Pillow's own limit is lower, and that limit is back afterwards."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    kept(encoded(Image.new("RGB", (64, 64), (9, 9, 9)), "PNG"))
    assert Image.MAX_IMAGE_PIXELS == 10


def test_filters_of_warnings_survive_many_threads(encoded, picture) -> None:
    """The filters of warnings are the same after many threads decoded at once."""
    data, before = encoded(picture(1)), list(warnings.filters)
    threads = [threading.Thread(target=lambda: [decode(data, RULES) for _ in range(5)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


def test_damaged_metadata_do_not_make_a_bad_photo(picture, encoded) -> None:
    """A photo whose EXIF block is garbage is kept, upright as it is."""
    data = encoded(picture(5), exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff garbage that is no directory")
    assert distance(pixels(kept(data)), picture(5)) < NEAR


def test_plain_photos_have_no_hash(picture, encoded) -> None:
    """A flat surface has no perceptual hash: it would look like every other one."""
    assert kept(encoded(Image.new("RGB", (64, 64), (250, 250, 250)))).phash is None
    assert kept(encoded(picture(1))).phash is not None


def test_hash_survives_another_encoding(picture, encoded) -> None:
    """The same picture as a small JPEG and as a PNG has hashes a few bits apart; another picture has not."""
    first = kept(encoded(picture(1, (400, 300)), "PNG")).phash
    again = kept(encoded(picture(1, (400, 300)).resize((200, 150)), quality=60)).phash
    other = kept(encoded(picture(2, (400, 300)))).phash
    assert (first ^ again).bit_count() <= 4
    assert (first ^ other).bit_count() > 10


def _samples() -> list[bytes]:
    generator = np.random.default_rng(5)
    image = Image.fromarray(generator.integers(0, 256, (24, 24, 3)).astype(np.uint8))
    samples = []
    for kind in ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"):
        stream = io.BytesIO()
        image.save(stream, kind)
        samples.append(stream.getvalue())
    return samples


SAMPLES = _samples()


@limits(max_examples=250, deadline=None)
@given(st.sampled_from(SAMPLES), st.integers(0, 1 << 30), st.integers(0, 12), st.floats(0.0, 1.0))
def test_hostile_bytes_never_raise(sample: bytes, seed: int, flips: int, share: float) -> None:
    """Whatever is cut off or flipped, a file becomes a photo or a rejection."""
    chance = random.Random(seed)
    data = bytearray(sample if flips else sample[: int(len(sample) * share)])
    for _ in range(flips):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    result = decode(bytes(data), RULES)
    assert isinstance(result, (Photo, Rejection))
    if isinstance(result, Rejection):
        assert result.reason
        assert "\n" not in result.reason


@limits(max_examples=150, deadline=None)
@given(
    st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"II*\0", b"MM\0*"]),
    st.binary(max_size=200),
)
def test_random_bytes_never_raise(magic: bytes, tail: bytes) -> None:
    """Random bytes behind any magic number become a rejection."""
    assert isinstance(decode(magic + tail, RULES), Rejection)
