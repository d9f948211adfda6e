"""Text files as blocks of valid UTF-8, whatever their compression and encoding; never a replaced byte."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from core.errors import ConfigError, DataError

GZIP_MAGIC = b"\x1f\x8b"
# What a file is when it begins so, and the setting that reads it (none when nothing here does).
_FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "export it as CSV"),
    (b"PAR1", "a Parquet file", "set data.kind: parquet"),
    (b"BZh", "compressed with bzip2", "decompress it, or use gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it, or use gzip"),
    (b"\xfd7zXZ\x00", "compressed with xz", "decompress it, or use gzip"),
    (b"\xd0\xcf\x11\xe0", "an old Office document", "export it as CSV"),
    (b"Obj\x01", "an Avro file", "export it as CSV or Parquet"),
)
# UTF-32 first: its little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD_BYTES = 512


def open_plain(path: str) -> BinaryIO:
    """Returns a stream of a file's decompressed bytes; gzip is told by its first bytes, not by its name."""
    with open(path, "rb") as stream:
        packed = stream.read(2) == GZIP_MAGIC
    return gzip.open(path, "rb") if packed else open(path, "rb")  # type: ignore[return-value]


def read_exactly(stream: BinaryIO, path: str, size: int) -> bytes:
    """Returns up to `size` bytes; fewer only at the end of the stream.

    Raises:
        DataError: The gzip stream is cut short or damaged.
    """
    try:
        return stream.read(size)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"the gzip stream is cut short or damaged ({error})", place=path, hint="fetch or compress the file again"
        ) from error


def text_blocks(path: str, *, encoding: str, block_bytes: int) -> Iterator[bytes]:
    """Yields a text file as blocks of valid UTF-8 without its byte order mark; cuts fall between characters.

    Args:
        path: Plain or gzip file.
        encoding: Python codec name of its text.
        block_bytes: Bytes to read at a time.

    Raises:
        ConfigError: There is no such codec.
        DataError: A byte is not text in that encoding (file, line, offset and a suggestion), the file is of
            another kind, or its gzip stream is damaged.
    """
    decoder = _Decoder(path, encoding)
    with open_plain(path) as stream:
        first = True
        while True:
            raw = read_exactly(stream, path, block_bytes)
            if first:
                _check_head(raw[:_HEAD_BYTES], path, decoder.codec)
                first = False
            block = decoder.decode(raw, final=not raw)
            if block:
                yield block
            if not raw:
                return


def count_lines(text: bytes) -> int:
    """Returns the number of line ends (LF, CR LF or a lone CR) in a piece of text."""
    return text.count(b"\n") + (text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0)


class _Decoder:
    """Turns raw blocks into UTF-8 blocks and says exactly where that fails."""

    def __init__(self, path: str, encoding: str) -> None:
        try:
            "".encode(encoding)  # refuses codecs such as base64 that are not about text
            name = codecs.lookup(encoding).name
            # The plain codec keeps the mark as a character; the -sig one drops it.
            self.codec = "utf-8-sig" if name == "utf-8" else name
            self._decoder = codecs.getincrementaldecoder(self.codec)(errors="strict")
        except (LookupError, TypeError) as error:
            raise ConfigError(
                f"there is no text encoding {encoding!r}", place="data.csv.encoding", hint="for example utf-8 or cp1252"
            ) from error
        self._path = path
        self._encoding = encoding
        self._bytes_before = 0
        self._lines_before = 0
        self._ended_with_cr = False
        self._at_start = True

    def decode(self, raw: bytes, *, final: bool) -> bytes:
        """Returns the UTF-8 of the characters that `raw` completes.

        Raises:
            DataError: A byte that is no text in this encoding.
        """
        held_bytes = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(raw, final)
        except UnicodeDecodeError as error:
            raise self._refusal(error, held_bytes) from error
        if self._at_start and text.startswith("\ufeff"):
            # Codecs with a fixed byte order, such as utf-16-le, keep the mark.
            text = text[1:]
        self._at_start = self._at_start and not text
        block = text.encode("utf-8")
        self._bytes_before += len(raw)
        self._count(block)
        return block

    def _count(self, block: bytes) -> None:
        if not block:
            return
        lines = count_lines(block)
        # A CR LF that a block boundary cuts in two is one line end, not two.
        split_pair = self._ended_with_cr and block.startswith(b"\n")
        self._lines_before += lines - split_pair
        self._ended_with_cr = block.endswith(b"\r")

    def _refusal(self, error: UnicodeDecodeError, held_bytes: int) -> DataError:
        offset = self._bytes_before - held_bytes + error.start
        before = error.object[: error.start].decode(self.codec, errors="replace").encode("utf-8")
        split_pair = self._ended_with_cr and before.startswith(b"\n")
        line = self._lines_before + count_lines(before) - split_pair + 1
        shown = " ".join(f"{byte:02X}" for byte in error.object[error.start : error.end][:4])
        return DataError(
            f"byte {shown} at offset {offset} is not {self._encoding} text",
            place=f"{self._path}:{line}",
            hint=_suggest(error.object[max(0, error.start - 2000) : error.end + 2000], self.codec),
        )


def _check_head(head: bytes, path: str, codec: str) -> None:
    for magic, what, fix in _FOREIGN:
        if head.startswith(magic):
            raise DataError(f"this is {what}, not a text file", place=path, hint=fix)
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise DataError("this is a web page or XML, not a table", place=path, hint="fetch the file itself")
    if not codec.startswith("utf-8"):
        return
    for mark, name in _MARKS:
        if head.startswith(mark):
            raise DataError(f"the file begins with a {name.upper()} mark", place=path, hint=_use(name))
    if head.count(0) * 4 > len(head):
        order = "le" if len(head) > 1 and head[1] == 0 else "be"
        raise DataError("every other byte is zero: this looks like UTF-16", place=path, hint=_use(f"utf-16-{order}"))


def _suggest(sample: bytes, codec: str) -> str:
    """Returns the setting that would read these bytes, judged by codecs that can fail."""
    for candidate in ("utf-8", "cp1252", "latin-1"):
        if candidate == codec.removesuffix("-sig"):
            continue
        try:
            # The sample may begin or end inside a character of a multi-byte encoding.
            codecs.getincrementaldecoder(candidate)().decode(sample.lstrip(bytes(range(0x80, 0xC0))))
        except UnicodeDecodeError:
            continue
        return _use(candidate)
    return "set data.csv.encoding to the file's own encoding"


def _use(encoding: str) -> str:
    return f"set data.csv.encoding: {encoding}"
