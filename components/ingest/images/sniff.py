"""What a file is by its first bytes, whatever its name says."""

from __future__ import annotations

import re

# Bytes that the functions here need of a file.
HEAD_BYTES = 512

_PHOTOS = (
    (re.compile(rb"\xff\xd8\xff"), "jpeg"),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "webp"),
    # Two letters would be too little to go by: the size of the second header belongs to the mark.
    (re.compile(rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\x00\x00\x00", re.DOTALL), "bmp"),
    (re.compile(rb"II[*+]\x00|MM\x00[*+]"), "tiff"),
)
_OTHERS = (
    (re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html|head|body)", re.IGNORECASE), "an HTML page"),
    (re.compile(rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?<svg", re.DOTALL), "an SVG drawing"),
    (re.compile(rb"(\xef\xbb\xbf)?\s*<\?xml"), "an XML document"),
    (re.compile(rb"version https://git-lfs"), "a Git LFS pointer: the photo itself was not fetched"),
    (re.compile(rb".{4}ftyp(heic|heix|hevc|mif1|msf1)", re.DOTALL), "an HEIC photo: export it as JPEG"),
    (re.compile(rb".{4}ftypavi[fs]", re.DOTALL), "an AVIF photo: export it as JPEG"),
    (re.compile(rb".{4}ftyp", re.DOTALL), "a video"),
    (re.compile(rb"\x1aE\xdf\xa3|RIFF.{4}AVI ", re.DOTALL), "a video"),
    (re.compile(rb"\x00\x00\x00\x0cjP  |\xff\x4f\xff\x51"), "a JPEG 2000 photo: export it as JPEG"),
    (re.compile(rb"\xff\x0a|\x00\x00\x00\x0cJXL "), "a JPEG XL photo: export it as JPEG"),
    (re.compile(rb"8BPS"), "a Photoshop document: export it as JPEG"),
    (re.compile(rb"\x00\x00[\x01\x02]\x00"), "an icon or cursor"),
    (re.compile(rb"%PDF-"), "a PDF document"),
    (re.compile(rb"PK\x03\x04"), "a ZIP archive"),
    (re.compile(rb"\x1f\x8b"), "a gzip archive"),
    (re.compile(rb"\x00+$"), "nothing but zero bytes"),
)
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")


def photo_format(head: bytes) -> str | None:
    """Returns jpeg, png, gif, webp, bmp or tiff by a file's first bytes; None for anything else."""
    return next((name for mark, name in _PHOTOS if mark.match(head)), None)


def why_no_photo(head: bytes) -> str:
    """Returns why a file that `photo_format` does not know is no photo, for the quarantine."""
    what = looks_like(head)
    return f"not a photo: {what}" if head else what


def looks_like(head: bytes) -> str:
    """Returns what a file that is no photo seems to be, for a person."""
    if not head:
        return "empty (0 bytes)"
    named = next((name for mark, name in _OTHERS if mark.match(head)), None)
    if named is not None:
        return named
    return "text" if _TEXT.fullmatch(head) else "no kind of file that is known here"
