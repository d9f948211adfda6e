"""Pixels of any kind as 8-bit sRGB, by stated rules.

- 16-bit grey is divided by 257 and rounded, so that 65535 becomes 255. Colour of 16 bits a channel comes from Pillow
  as its high bytes, at most one level apart from that. Whole numbers beyond 16 bits and floats are refused: nothing
  says which value is white.
- Transparency (alpha, a transparent palette entry, a transparent colour) is laid over white, as the decoder in the
  served graph does it.
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

_SIXTEEN = ("I;16", "I;16B", "I;16L", "I;16N")
# Colour spaces of a profile, as the ICC writes them, and the pixels each fits.
_PROFILE_MODES = {"RGB ": "RGB", "CMYK": "CMYK", "GRAY": "L"}
_PLAIN_MODES = ("RGB", "CMYK", "L")


class UnsupportedPixels(ValueError):
    """The pixels have no agreed meaning as colours."""


def to_srgb(image: Image.Image) -> tuple[Image.Image, list[str]]:
    """Returns a loaded picture as mode RGB, and which conversions that took.

    Args:
        image: Any mode, loaded; `info` as its decoder left it.

    Raises:
        UnsupportedPixels: Floats, or whole numbers of more than 16 bits.
    """
    applied = []
    profile = image.info.get("icc_profile")
    if image.mode in ("P", "PA"):
        applied.append("palette")
    if image.mode in _SIXTEEN or image.mode == "I":
        applied.append("16bit")
        image = _from_sixteen(image)
    if image.mode == "CMYK":
        applied.append("cmyk")
        if image.format in ("JPEG", "MPO") and "adobe" not in image.info:
            image = _with_less_black(image)
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
        rgb = Image.composite(rgb, Image.new("RGB", rgb.size, _BACKGROUND), alpha)
    return rgb, applied


def _from_sixteen(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise UnsupportedPixels("whole numbers of more than 16 bits a pixel: nothing says which value is white")
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))


def _with_less_black(image: Image.Image) -> Image.Image:
    return ImageChops.invert(image) if ImageStat.Stat(image.getchannel("K")).mean[0] > 127.5 else image


def _split_alpha(image: Image.Image) -> tuple[Image.Image, Union[Image.Image, None]]:
    """Returns a picture as L, RGB or CMYK, and its opacity (mode L); None when it has none."""
    if image.mode == "F":
        raise UnsupportedPixels("floats: nothing says which value is white")
    if image.mode in ("La", "RGBa"):
        image = image.convert("LA" if image.mode == "La" else "RGBA")
    transparent = "transparency" in image.info and image.mode in ("1", "L", "P", "RGB")
    if image.mode in ("LA", "PA", "RGBA") or transparent:
        with_alpha = image.convert("RGBA")
        return with_alpha.convert("RGB"), with_alpha.getchannel("A")
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
