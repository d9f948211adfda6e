"""Every kind of photo gives the pixels that Pillow, and so the ingestion, makes of it; what is none gives one line."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageChops

pytestmark = pytest.mark.integration

SIDE_PX = 32
# Of photos that keep every pixel in a square of this width.
WIDTH, HEIGHT = 256, 171


@pytest.fixture(scope="module")
def decode(photos: Any, graph_of: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """The decoder of one photo, WIDTH pixels wide or less high than that: every pixel of it, as int64."""
    from pipeline.models.image import decoder

    square = graph_of(decoder.decode_square, WIDTH)
    return lambda encoded, height=HEIGHT: photos.covered(square(encoded).numpy(), WIDTH, height)


@pytest.fixture(scope="module")
def batch(graph_of: Callable[..., Any]) -> Any:
    """The decoder of a batch, which serving uses."""
    from pipeline.models.image import decoder

    return graph_of(decoder.decode_batch, SIDE_PX, batch=True)


def over_white(encoded: bytes) -> np.ndarray:
    """Returns int64[height, width, 3], the photo as Pillow lays it over white."""
    image = Image.open(io.BytesIO(encoded)).convert("RGBA")
    background = Image.new("RGBA", image.size, "white")
    background.alpha_composite(image)
    return np.asarray(background.convert("RGB")).astype(int)


def with_alpha(image: Image.Image) -> Image.Image:
    """Returns a photo that fades from opaque to transparent."""
    alpha = np.tile(np.linspace(0, 255, image.width).astype(np.uint8), (image.height, 1))
    image = image.copy()
    image.putalpha(Image.fromarray(alpha))
    return image


def without_adobe(jpeg: bytes) -> bytes:
    """Returns a JPEG without its Adobe segment."""
    start = jpeg.index(b"\xff\xee")
    return jpeg[:start] + jpeg[start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big") :]


def palette(colours: int) -> Callable[[Image.Image], Image.Image]:
    """Returns a function that reduces a photo to a palette."""
    return lambda image: image.quantize(colours)


@pytest.mark.parametrize(
    ("kind", "change", "options"),
    [
        pytest.param("JPEG", None, {}, id="JPEG"),
        pytest.param("JPEG", None, {"progressive": True}, id="JPEG, progressive"),
        pytest.param("JPEG", lambda image: image.convert("L"), {}, id="JPEG, grey"),
        pytest.param("JPEG", lambda image: image.convert("CMYK"), {}, id="JPEG, CMYK"),
        pytest.param("PNG", None, {}, id="PNG"),
        pytest.param("PNG", lambda image: image.convert("L"), {}, id="PNG, grey"),
        pytest.param("PNG", lambda image: image.convert("1"), {}, id="PNG, 1 bit"),
        pytest.param("PNG", with_alpha, {}, id="PNG, transparent"),
        pytest.param("PNG", lambda image: with_alpha(image).convert("LA"), {}, id="PNG, grey, transparent"),
        pytest.param("PNG", palette(200), {}, id="PNG, palette of 8 bits"),
        pytest.param("PNG", palette(12), {}, id="PNG, palette of 4 bits"),
        pytest.param("PNG", palette(12), {"transparency": 3}, id="PNG, palette with a transparent colour"),
        pytest.param("PNG", palette(4), {"transparency": bytes([0, 90, 180, 255])}, id="PNG, palette with alphas"),
        pytest.param("PNG", None, {"transparency": (240, 240, 240)}, id="PNG, a transparent colour"),
        pytest.param("GIF", palette(64), {}, id="GIF"),
        pytest.param("GIF", palette(64), {"transparency": 3}, id="GIF, transparent"),
        pytest.param("GIF", palette(64), {"transparency": 3, "interlace": 0}, id="GIF, transparent, not interlaced"),
        pytest.param("BMP", None, {}, id="BMP"),
        pytest.param("BMP", lambda image: image.convert("L"), {}, id="BMP, grey"),
        pytest.param("BMP", palette(50), {}, id="BMP, palette"),
        pytest.param("BMP", lambda image: image.convert("RGBA"), {}, id="BMP, 32 bits"),
    ],
)
def test_the_pixels_are_those_of_pillow(
    photos: Any,
    decode: Callable[..., np.ndarray],
    kind: str,
    change: Callable[..., Image.Image] | None,
    options: dict[str, Any],
) -> None:
    """Every colour mode becomes RGB, transparent pixels lie on white: at most 1 of 255 away from Pillow."""
    image = photos.draw(WIDTH, HEIGHT)
    encoded = photos.encode(change(image) if change else image, kind, **options)
    assert np.abs(decode(encoded) - over_white(encoded)).max() <= 1


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(lambda photos, inks: photos.encode(inks), id="Adobe's marker"),
        pytest.param(lambda photos, inks: without_adobe(photos.encode(inks)), id="inverted, no marker"),
        pytest.param(lambda photos, inks: without_adobe(photos.encode(ImageChops.invert(inks))), id="plain, no marker"),
    ],
)
def test_four_inks_look_like_the_photo_they_were_made_of(
    photos: Any, decode: Callable[..., np.ndarray], stored: Callable[[Any, Image.Image], bytes]
) -> None:
    """I04: a CMYK JPEG, with or without Adobe's marker, has the mean colour of its RGB original, within 3 of 255."""
    image = photos.draw(WIDTH, HEIGHT)
    pixels = decode(stored(photos, image.convert("CMYK")))
    assert np.abs(pixels.mean((0, 1)) - np.asarray(image).mean((0, 1))).max() < 3


def test_a_sample_of_16_bits_is_divided_by_257_and_rounded(photos: Any, decode: Callable[..., np.ndarray]) -> None:
    """I05: all 65,536 greys become round(v / 257): 128 is 0, 129 is 1, 65,535 is 255."""
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    pixels = decode(photos.encode(Image.fromarray(values), "PNG"), 256)
    np.testing.assert_array_equal(pixels, np.repeat(np.round(values / 257).astype(int)[..., None], 3, axis=2))


def test_16_bits_a_sample_take_little_more_memory_than_they_are(photos: Any, batch: Any) -> None:
    """A small file of 6 megapixels, 16 bits and transparency raises the peak by less than 20 bytes a pixel."""
    width, height = 3000, 2000
    lines = zlib.compress(bytes((8 * width + 1) * height), 1)
    encoded = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 6, 0, 0, 0))
        + chunk(b"IDAT", lines)
        + chunk(b"IEND", b"")
    )
    batch([photos.encode(photos.draw())])
    before = memory_bytes("VmRSS")
    # Makes the peak what the process has now.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    assert (batch([encoded]).numpy()[0, SIDE_PX // 2] == 255).all()
    assert memory_bytes("VmHWM") - before < 20 * width * height


def memory_bytes(name: str) -> int:
    """Returns an amount of memory of this process as Linux counts it."""
    (line,) = [line for line in Path("/proc/self/status").read_text("ascii").splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024


def test_the_first_frame_of_an_animation_counts(photos: Any, decode: Callable[..., np.ndarray]) -> None:
    """An animated GIF is its first frame, whatever follows; what follows need not even be readable."""
    frames = [photos.draw(WIDTH, HEIGHT, seed).quantize(32) for seed in range(4)]
    still = photos.encode(frames[0], "GIF")
    moving = photos.encode(frames[0], "GIF", save_all=True, append_images=frames[1:], loop=0)
    np.testing.assert_array_equal(decode(moving), decode(still))
    np.testing.assert_array_equal(decode(moving[: len(still) + 60]), decode(still))


def with_canvas(gif: bytes, canvas: tuple[int, int], left: int, top: int) -> bytes:
    """Returns a GIF of one frame with the frame at a place on another canvas."""
    frame = gif.index(b"\x2c" + bytes(4) + gif[6:10])
    placed = gif[:frame] + struct.pack("<BHH", 0x2C, left, top) + gif[frame + 5 :]
    return placed[:6] + struct.pack("<HH", *canvas) + placed[10:]


@pytest.mark.parametrize("options", [{}, {"transparency": 3}], ids=["opaque", "transparent"])
@pytest.mark.parametrize("canvas", [(WIDTH, HEIGHT), (100, 80)], ids=["smaller than its canvas", "beyond its canvas"])
def test_a_first_frame_lies_where_pillow_lays_it(
    photos: Any, decode: Callable[..., np.ndarray], canvas: tuple[int, int], options: dict[str, Any]
) -> None:
    """What the frame leaves uncovered has the colour that the ingestion gives it, and a canvas grows to its frame."""
    gif = photos.encode(photos.draw(100, 80).quantize(64), "GIF", **options)
    encoded = with_canvas(gif, canvas, WIDTH - 100, 30)
    expected = over_white(encoded)
    assert np.abs(decode(encoded, len(expected)) - expected).max() <= 1


def test_a_batch_mixes_kinds_and_sizes_and_keeps_its_order(
    photos: Any, batch: Any, graph_of: Callable[..., Any]
) -> None:
    """Each row of a batch is what its photo gives alone, bit by bit; a batch of none gives none."""
    from pipeline.models.image import decoder

    alone = graph_of(decoder.decode_square, SIDE_PX)
    kinds = ["JPEG", "PNG", "GIF", "BMP", "JPEG", "JPEG", "PNG"]
    encoded = [
        photos.encode(photos.draw(20 + 90 * row, 300 - 40 * row, seed=row), kind) for row, kind in enumerate(kinds)
    ]
    found = batch(encoded).numpy()
    for row, photo in enumerate(encoded):
        np.testing.assert_array_equal(found[row], alone(photo))
    assert batch(np.array([], dtype=object).astype(bytes)).shape == (0, SIDE_PX, SIDE_PX, 3)


def chunk(name: bytes, content: bytes) -> bytes:
    """Returns a chunk of a PNG."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png_that_announces(width: int, height: int) -> bytes:
    """Returns the beginning of a PNG whose header announces a size, and a few bytes of pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
    )


def jpeg_that_announces(photos: Any, width: int, height: int) -> bytes:
    """Returns a JPEG whose header announces another size than it has."""
    encoded = photos.encode(photos.draw(16, 16))
    frame = encoded.index(b"\xff\xc0") + 5
    return encoded[:frame] + struct.pack(">HH", height, width) + encoded[frame + 4 :]


def with_bits(bmp: bytes, bits: int) -> bytes:
    """Returns a BMP whose header announces another number of bits a pixel."""
    return bmp[:28] + struct.pack("<H", bits) + bmp[30:]


BMP_SAID = "is a BMP of a kind that cannot be read here (save it as JPEG or PNG)"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda photos: b"", "is empty", id="no bytes"),
        pytest.param(lambda photos: b"<!DOCTYPE html><title>404</title>", "is no photo", id="an error page"),
        pytest.param(lambda photos: photos.encode(photos.draw(), "WEBP"), "is a WebP photo", id="WebP"),
        pytest.param(lambda photos: photos.encode(photos.draw(), "TIFF"), "is no photo", id="TIFF"),
        pytest.param(lambda photos: photos.encode(photos.draw())[:4000], "is damaged", id="half a JPEG"),
        pytest.param(lambda photos: photos.encode(photos.draw(), "PNG")[:4000], "is damaged", id="half a PNG"),
        pytest.param(lambda photos: photos.encode(photos.draw(), "GIF")[:4000], "is damaged", id="half a GIF"),
        pytest.param(lambda photos: photos.encode(photos.draw(), "BMP")[:4000], "is damaged", id="half a BMP"),
        pytest.param(lambda photos: b"\xff\xd8\xff\xe0", "has a damaged header", id="four bytes of a JPEG"),
        pytest.param(lambda photos: photos.encode(photos.draw().convert("1"), "BMP"), BMP_SAID, id="1-bit BMP"),
        pytest.param(
            lambda photos: with_bits(photos.encode(photos.draw(), "BMP"), 16), BMP_SAID, id="BMP of 16 bits a pixel"
        ),
        pytest.param(lambda photos: png_that_announces(40_000, 40_000), "has too many pixels", id="PNG bomb"),
        pytest.param(lambda photos: png_that_announces(2**31, 2**31), "has too many pixels", id="PNG of 2^62 pixels"),
        pytest.param(lambda photos: jpeg_that_announces(photos, 65_000, 65_000), "has too many pixels", id="JPEG bomb"),
        pytest.param(lambda photos: png_that_announces(0, 10), "has a damaged header", id="PNG without width"),
        pytest.param(
            lambda photos: b"GIF89a" + struct.pack("<HH", 60_000, 60_000) + bytes(50),
            "has too many pixels",
            id="GIF bomb",
        ),
        pytest.param(
            lambda photos: b"GIF89a" + struct.pack("<HHBBBBHHHHB", 9, 9, 0, 0, 0, 0x2C, 0, 0, 60_000, 60_000, 0),
            "has too many pixels",
            id="GIF with a bomb on a small canvas",
        ),
    ],
)
def test_what_cannot_be_decoded_is_told_by_its_row_and_with_the_way_out(
    photos: Any, batch: Any, make: Callable[[Any], bytes], said: str
) -> None:
    """The first bad row of a batch is named, what is wrong with it, and what to send, all in one line."""
    import tensorflow as tf

    good = photos.encode(photos.draw(30, 20))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        batch([good, good, make(photos), good, b""])
    (line,) = [line for line in str(caught.value).splitlines() if "row" in line]
    assert f"row 2 of the batch {said}" in line
    assert "send a JPEG, PNG, GIF or BMP photo of at most 100 megapixels" in line


def test_one_photo_alone_is_told_the_same(photos: Any, decode: Callable[..., np.ndarray]) -> None:
    """Where there is no batch the error speaks of the photo."""
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match="the photo is a WebP photo: send a JPEG"):
        decode(photos.encode(photos.draw(), "WEBP"))


@pytest.mark.parametrize("size", [(1600, 1200), (900, 1700), (500, 333)], ids=str)
def test_an_original_and_its_ingested_copy_look_alike(photos: Any, batch: Any, size: tuple[int, int]) -> None:
    """What training sees of a photo, scaled to 512 and stored again, is what serving sees of the original."""
    image = photos.draw(*size)
    copy = image.copy()
    copy.thumbnail((512, 512), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    copy.save(stream, "JPEG", quality=92)
    original, ingested = batch([photos.encode(image), stream.getvalue()]).numpy().astype(int)
    assert np.abs(original - ingested).mean() < 2
    assert np.abs(original - ingested).max() < 40


def test_a_large_photo_decoded_at_a_part_of_its_size_looks_the_same(photos: Any, graph_of: Callable[..., Any]) -> None:
    """The short cut for large JPEGs, at a half to an eighth of the size, is at most 1 of 255 off in the mean."""
    import tensorflow as tf

    from pipeline.models.image import decoder

    square = graph_of(decoder.decode_square, SIDE_PX)
    for width in (140, 299, 700, 1401):
        encoded = photos.encode(photos.draw(width, width))
        whole = np.asarray(Image.open(io.BytesIO(encoded)), np.float32)
        exact = tf.image.resize(whole, [SIDE_PX, SIDE_PX], antialias=True)
        assert np.abs(square(encoded).numpy() - exact.numpy()).mean() < 1.0


@pytest.mark.parametrize(
    ("size", "rows", "columns"),
    [
        pytest.param((200, 100), slice(8, 24), slice(0, 32), id="wide"),
        pytest.param((100, 200), slice(0, 32), slice(8, 24), id="tall"),
        pytest.param((200, 119), slice(6, 25), slice(0, 32), id="an odd number of rows"),
        pytest.param((900, 2), slice(15, 16), slice(0, 32), id="a line"),
        pytest.param((7, 7), slice(0, 32), slice(0, 32), id="tiny"),
    ],
)
def test_a_photo_lies_whole_in_the_middle_of_white(
    photos: Any, batch: Any, size: tuple[int, int], rows: slice, columns: slice
) -> None:
    """The longer side fills the square, the shape is kept, and the rest is white."""
    found = batch([photos.encode(Image.new("RGB", size, (10, 20, 200)), "PNG")]).numpy()[0]
    expected = np.full((SIDE_PX, SIDE_PX, 3), 255, np.uint8)
    expected[rows, columns] = (10, 20, 200)
    np.testing.assert_array_equal(found, expected)
