"""One photo: the bytes of a file in, an upright sRGB JPEG and the facts about it out."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import threading
import warnings
from types import TracebackType
from typing import Union

import imagehash
import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from components.ingest.images import sniff, tail
from components.ingest.images.colour import to_srgb
from core.settings.images import ImageIngestSettings

# A JPEG decoder can scale down while it decodes. What it gives is kept at least this many times larger than the target,
# so that the last step is the same careful resampling as for every other photo.
_DRAFT_FACTOR = 2
# Luma levels of a picture whose perceptual hash would be made of noise: it has no structure to compare.
_PLAIN_DEVIATION = 4.0
_LEVELS = np.arange(256, dtype=np.float64)
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")


@dataclasses.dataclass(frozen=True)
class Rules:
    """How photos are read and stored.

    Attributes:
        max_side_px: Longest side that is kept.
        jpeg_quality: Quality of the stored JPEG, 50 to 100.
        max_pixels: Photos with more are rejected by their header.
    """

    max_side_px: int
    jpeg_quality: int
    max_pixels: int

    @classmethod
    def of(cls, settings: ImageIngestSettings) -> Rules:
        """Returns the rules that the settings state."""
        return cls(settings.max_side_px, settings.jpeg_quality, settings.max_pixels)


@dataclasses.dataclass(frozen=True)
class Photo:
    """A decoded photo as it is stored.

    Attributes:
        jpeg: Baseline JPEG, sRGB, upright, without metadata.
        width_px: Width of the original, upright.
        height_px: Height of the original, upright.
        format: What the original was: jpeg, png, gif, webp, bmp or tiff.
        brightness: Mean luma of the stored photo, 0 to 1.
        phash: 64-bit perceptual hash of the stored photo; None when it is too plain to have one.
        converted: What was done: cmyk, 16bit, palette, alpha, profile, oriented, animated, resized.
    """

    jpeg: bytes
    width_px: int
    height_px: int
    format: str
    brightness: float
    phash: Union[int, None]
    converted: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Rejection:
    """Why a file is no photo that can be used: one sentence without a final full stop, the same on every machine."""

    reason: str


def decode(data: bytes, rules: Rules) -> Union[Photo, Rejection]:
    """Returns the photo that a file holds, or why there is none. Never raises, whatever the bytes are.

    The kind is told by the first bytes, the number of pixels is checked before any is decoded, and a file that is cut
    short is rejected: half a photo is no photo. Of an animation or a multi-page file the first picture is taken.
    """
    head = data[: sniff.HEAD_BYTES]
    kind = sniff.photo_format(head)
    if kind is None:
        return Rejection(sniff.why_no_photo(head))
    if tail.is_missing(data, kind):
        return Rejection(f"damaged {kind}: its end is nothing but zero bytes, as a broken download leaves it")
    try:
        with _PILLOW, Image.open(io.BytesIO(data), formats=[kind]) as image:
            return _photo(image, kind, rules)
    except UnidentifiedImageError:
        return Rejection(f"damaged {kind}: its header cannot be read")
    except MemoryError:
        return Rejection(f"{kind} that does not fit into memory")
    except Exception as error:  # Pillow raises whatever its parsers stumble over
        return Rejection(f"damaged {kind}: {_said(error)}")


def _photo(image: Image.Image, kind: str, rules: Rules) -> Union[Photo, Rejection]:
    width, height = image.size
    if width * height > rules.max_pixels:
        return Rejection(f"{width} x {height} pixels are more than data.images.max_pixels ({rules.max_pixels:,})")
    raw_mode = _raw_mode(image)
    converted = ["16bit"] if ";16" in raw_mode else []
    if kind == "png":
        # To look for EXIF, Pillow loads a PNG itself. An error of the pixels would be lost among those of metadata
        # that are forgiven, and what follows the pixels (XMP) would be read too late.
        image.load()
    orientation = _orientation(image)
    sideways = orientation >= 5
    if kind == "jpeg":
        scale = _DRAFT_FACTOR * rules.max_side_px / max(width, height)
        image.draft(None, (max(1, int(width * scale)), max(1, int(height * scale))))
    image.load()
    rgb, changes = to_srgb(image, raw_mode)
    converted += [change for change in changes if change not in converted]
    if orientation > 1:
        converted.append("oriented")
    if kind == "tiff":
        # Pillow itself turns TIFFs upright while loading, and gives the size of the upright picture.
        sideways = False
    elif orientation > 1:
        rgb = rgb.transpose(_UPRIGHT[orientation])
    if kind != "jpeg" and _is_animated(image):
        converted.append("animated")
    if sideways:
        width, height = height, width
    if max(width, height) > rules.max_side_px:
        converted.append("resized")
        rgb = rgb.resize(_fitting(width, height, rules.max_side_px), Image.Resampling.LANCZOS)
    luma = rgb.convert("L")
    mean, deviation = _mean_and_deviation(luma)
    phash = _phash(luma) if deviation > _PLAIN_DEVIATION else None
    return Photo(_encoded(rgb, rules.jpeg_quality), width, height, kind, mean / 255, phash, tuple(converted))


def _raw_mode(image: Image.Image) -> str:
    """Returns how Pillow's raw decoder will be told to read the pixels, such as RGB;16B; known only before loading."""
    return next((str(piece.args) for piece in getattr(image, "tile", ())), "")


def _orientation(image: Image.Image) -> int:
    """Returns the EXIF orientation, 1 to 8; 1 when there is none, or none that can be read.

    Pillow would fall back on one in XMP. Neither browsers nor the decoder in the served graph look there.
    """
    for key in ("xmp", "XML:com.adobe.xmp"):
        image.info.pop(key, None)
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # damaged metadata do not make a bad photo
        return 1
    return value if value in _UPRIGHT else 1


def _is_animated(image: Image.Image) -> bool:
    try:
        return bool(getattr(image, "is_animated", False))
    except Exception:  # only the first picture has to be whole
        return True


def _fitting(width: int, height: int, side: int) -> tuple[int, int]:
    longest = max(width, height)
    return max(1, round(width * side / longest)), max(1, round(height * side / longest))


def _mean_and_deviation(luma: Image.Image) -> tuple[float, float]:
    counts = np.array(luma.histogram(), np.float64)
    mean = float(counts @ _LEVELS / counts.sum())
    return mean, float(counts @ (_LEVELS - mean) ** 2 / counts.sum()) ** 0.5


def _phash(luma: Image.Image) -> int:
    bits = imagehash.phash(luma).hash
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def _encoded(rgb: Image.Image, quality: int) -> bytes:
    # Whatever the original said of its camera, place or colours stays behind.
    rgb.info.clear()
    # A file in memory and not a BytesIO: only into a file descriptor does Pillow encode without holding Python's lock,
    # and two threads then encode two photos at once.
    with os.fdopen(os.memfd_create("photo"), "w+b") as stream:
        rgb.save(stream, "JPEG", quality=quality, subsampling="4:2:0")
        stream.seek(0)
        return stream.read()


def _said(error: Exception) -> str:
    """Returns an error's message on one line, without memory addresses."""
    text = " ".join(_ADDRESS.sub("its data", str(error)).split())
    return text[:200] or type(error).__name__


class _Pillow:
    """Holds Pillow's own opinion on sizes and metadata back while any thread decodes.

    `Rules.max_pixels` is the limit; Pillow's would warn below it or raise above its own. Its warnings on damaged
    metadata would go to whoever's screen, or become errors, by a filter that this module does not own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters = warnings.catch_warnings()
        self._limit: Union[int, None] = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
                self._limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                Image.MAX_IMAGE_PIXELS = self._limit
                self._filters.__exit__(None, None, None)


_PILLOW = _Pillow()
