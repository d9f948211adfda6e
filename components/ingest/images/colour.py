"""Pixels of any kind as 8-bit sRGB, by stated rules.

- 16-bit grey is divided by 257 and rounded, so that 65535 becomes 255. Colour of 16 bits a channel comes from Pillow
  as its high bytes, at most one level apart from that. Whole numbers beyond 16 bits and floats are refused: nothing
  says which value is white.
- Transparency (alpha, a transparent palette entry, a transparent colour) is laid over white, as the decoder in the
  served graph does it. A transparent 16-bit colour is compared by its high bytes, a transparent 16-bit grey exactly.
- An embedded colour profile that fits the pixels is applied; one that does not fit, or is damaged, is passed over.
- CMYK without a profile becomes (1 - ink)(1 - black).
- JPEGs of four channels hold inverted ink values, as Adobe writes them. Where the Adobe marker is absent both
  conventions are in use: values that would make a picture mostly of black ink are then the other way round.
"""

from __future__ import annotations

import functools
import io
from typing import Union

import numpy as np
from PIL import Image, ImageChops, ImageCms, ImageStat

_BACKGROUND = "white"
# Values that 16-bit grey is divided in at a time: the arithmetic needs twice the room of what it divides.
_BAND_VALUES = 1 << 20
# By Pillow's name of how grey of few bits is read: what its values are multiplied by on the way to 8 bits. Pillow
# leaves a transparent value as it was.
_GREY_SCALES = {"L;2": 85, "L;4": 17}
_SIXTEEN = ("I;16", "I;16B", "I;16L", "I;16N")
# Colour spaces of a profile, as the ICC writes them, and the pixels each fits.
_PROFILE_MODES = {"RGB ": "RGB", "CMYK": "CMYK", "GRAY": "L"}
_PLAIN_MODES = ("RGB", "CMYK", "L")


class UnsupportedPixels(ValueError):
    """The pixels have no agreed meaning as colours."""


def to_srgb(image: Image.Image, raw_mode: str = "") -> tuple[Image.Image, list[str]]:
    """Returns a loaded picture as mode RGB, and which conversions that took.

    Args:
        image: Any mode, loaded; `info` as its decoder left it.
        raw_mode: How Pillow read the pixels, such as RGB;16B or L;4; empty where that is not known.

    Raises:
        UnsupportedPixels: Floats, or whole numbers of more than 16 bits.
    """
    applied = []
    alpha: Union[Image.Image, None] = None
    profile = image.info.get("icc_profile")
    if image.mode in ("P", "PA"):
        applied.append("palette")
    if image.mode in _SIXTEEN or image.mode == "I":
        applied.append("16bit")
        image, alpha = _from_sixteen(image)
    if image.mode == "CMYK":
        applied.append("cmyk")
        if image.format in ("JPEG", "MPO") and "adobe" not in image.info:
            image = _with_less_black(image)
    if alpha is None:
        _scale_transparent(image, raw_mode)
        image, alpha = _split_alpha(image)
    if alpha is not None:
        applied.append("alpha")
    converted = _through_profile(image, profile)
    if converted is not None:
        applied.append("profile")
    rgb = image if converted is None else converted
    if rgb.mode != "RGB":
        rgb = rgb.convert("RGB")
    if alpha is not None:
        # The picture was converted, so it is no longer the caller's: white is painted right into it.
        rgb.paste(_BACKGROUND, mask=ImageChops.invert(alpha))
    return rgb, applied


def _from_sixteen(image: Image.Image) -> tuple[Image.Image, Union[Image.Image, None]]:
    """Returns 16-bit grey as mode L, and its opacity (mode L) when one of its values is declared transparent."""
    values = np.asarray(image)
    if values.dtype.itemsize > 2 and (values.min() < 0 or values.max() > 65535):
        raise UnsupportedPixels("whole numbers of more than 16 bits a pixel: nothing says which value is white")
    grey = np.empty(values.shape, np.uint8)
    rows = max(1, _BAND_VALUES // values.shape[1])
    for top in range(0, len(values), rows):
        band = values[top : top + rows].astype(np.uint32)
        band += 128
        band //= 257
        grey[top : top + rows] = band
    key = image.info.get("transparency")
    alpha = Image.fromarray((values != key).view(np.uint8) * np.uint8(255)) if isinstance(key, int) else None
    return Image.fromarray(grey), alpha


def _scale_transparent(image: Image.Image, raw_mode: str) -> None:
    """Brings a PNG's transparent colour to the 8 bits that the pixels were brought to."""
    key = image.info.get("transparency")
    if isinstance(key, tuple) and raw_mode == "RGB;16B":
        image.info["transparency"] = tuple(value >> 8 for value in key)
    elif isinstance(key, int) and raw_mode in _GREY_SCALES:
        image.info["transparency"] = key * _GREY_SCALES[raw_mode]


def _with_less_black(image: Image.Image) -> Image.Image:
    return ImageChops.invert(image) if ImageStat.Stat(image.getchannel("K")).mean[0] > 127.5 else image


def _split_alpha(image: Image.Image) -> tuple[Image.Image, Union[Image.Image, None]]:
    """Returns a picture as L, RGB or CMYK, and its opacity (mode L); None when it has none."""
    if image.mode == "F":
        raise UnsupportedPixels("floats: nothing says which value is white")
    if image.mode in ("La", "RGBa"):
        image = image.convert("LA" if image.mode == "La" else "RGBA")
    transparent = "transparency" in image.info and image.mode in ("1", "L", "P", "RGB")
    if image.mode == "PA" or transparent:
        image = image.convert("RGBA")
    if image.mode in ("LA", "RGBA"):
        return image.convert("L" if image.mode == "LA" else "RGB"), image.getchannel("A")
    if image.mode in _PLAIN_MODES:
        return image, None
    return image.convert("L" if image.mode == "1" else "RGB"), None


def _through_profile(image: Image.Image, profile: Union[bytes, None]) -> Union[Image.Image, None]:
    """Returns the picture in sRGB by its own profile; None when there is none to apply."""
    transform = _transform(profile, image.mode) if profile else None
    return transform.apply(image) if transform is not None else None


@functools.lru_cache(maxsize=16)
def _transform(profile: bytes, mode: str) -> Union[ImageCms.ImageCmsTransform, None]:
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if _PROFILE_MODES.get(source.profile.xcolor_space) != mode:
            return None
        if mode == "RGB" and "srgb" in (source.profile.profile_description or "").lower():
            return None
        return ImageCms.buildTransform(source, ImageCms.createProfile("sRGB"), mode, "RGB")
    except (OSError, ImageCms.PyCMSError, ValueError, TypeError):
        return None
