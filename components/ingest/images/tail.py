"""Broken downloads that decoders do not notice: files of full length whose end was never filled in.

Zeros are valid entropy codes of a JPEG and of a WebP, so a decoder paints the rest of the picture with something.
"""

from __future__ import annotations

# An end of so many zero bytes was not written by an encoder: the codes of a JPEG hold single ones.
_JPEG_ZEROS = 16
# The share of zeros at the end of a WebP of one colour is a twentieth, the most of any whole picture.
_WEBP_SHARE = 0.25
_JPEG_SCAN, _JPEG_END = 0xDA, b"\xff\xd9"
# RIFF, the size, WEBP.
_RIFF_HEAD_BYTES = 8


def is_missing(data: bytes, kind: str) -> bool:
    """Returns True when the end of a photo is nothing but zeros where there should be more of the picture.

    Zeros after the end of a picture are none of it, and mean nothing. In BMP and uncompressed TIFF zeros are black.

    Args:
        data: The file.
        kind: What `sniff.photo_format` says; other kinds than jpeg and webp notice it themselves.
    """
    if kind == "jpeg":
        filled = _filled(data)
        return len(data) - filled >= _JPEG_ZEROS and data.find(_JPEG_END, _first_scan(data), filled) < 0
    if kind == "webp":
        data = data[: _RIFF_HEAD_BYTES + int.from_bytes(data[4:8], "little")]
        return len(data) - _filled(data) > _WEBP_SHARE * len(data)
    return False


def _filled(data: bytes) -> int:
    """Returns the number of bytes up to the last that is not zero."""
    return len(data.rstrip(b"\0"))


def _first_scan(data: bytes) -> int:
    """Returns where the coded picture of a JPEG begins, past a thumbnail in its metadata; its length without one."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        if data[at + 1] == _JPEG_SCAN:
            return at
        # A marker may be preceded by any number of fill bytes.
        at += 1 if data[at + 1] == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return len(data)
