"""TFRecord framing without TensorFlow: bulk writing, and reading that names the record that is broken.

A record is: length (uint64, little-endian), masked CRC-32C of the length, the data, masked CRC-32C of the data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from components.ingest import bytestream
from core.errors import DataError

_MASK_DELTA = 0xA282EAD8
_HEADER_BYTES, _FOOTER_BYTES = 12, 4
# Nobody writes a single example of this size; a damaged length would otherwise ask for it.
_MAX_RECORD_BYTES = 1 << 30

Checksums = npt.NDArray[np.uint32]


def checksums(examples: Any) -> Checksums:
    """Returns the CRC-32C of each value of a pyarrow large_binary array, uint32[values]."""
    _, offsets, data = examples.buffers()
    bounds = np.frombuffer(offsets, np.int64)[examples.offset : examples.offset + len(examples) + 1].tolist()
    payload = data.to_pybytes() if data is not None else b""
    pieces = map(payload.__getitem__, map(slice, bounds, bounds[1:]))
    return np.fromiter(map(google_crc32c.value, pieces), np.uint32, len(examples))


def frame(examples: Any, crcs: Checksums) -> bytes:
    """Returns TFRecord bytes of serialized examples.

    Args:
        examples: pyarrow large_binary array without nulls.
        crcs: uint32[examples], what `checksums` gives for them.
    """
    import pyarrow
    from pyarrow import compute

    count = len(examples)
    if not count:
        return b""
    lengths, codes = np.unique(compute.binary_length(examples).to_numpy(), return_inverse=True)
    headers = pyarrow.array([_header(int(length)) for length in lengths], pyarrow.large_binary())
    masked = _mask(crcs)
    offsets = np.arange(count + 1, dtype=np.int64) * _FOOTER_BYTES
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(masked.astype("<u4").tobytes())]
    footers = pyarrow.Array.from_buffers(pyarrow.large_binary(), count, buffers)
    nothing = pyarrow.scalar(b"", pyarrow.large_binary())
    joined = compute.binary_join_element_wise(headers.take(pyarrow.array(codes)), examples, footers, nothing)
    bounds = np.frombuffer(joined.buffers()[1], np.int64)
    framed: bytes = joined.buffers()[2][int(bounds[0]) : int(bounds[count])].to_pybytes()
    return framed


def read(path: str) -> Iterator[tuple[int, bytes]]:
    """Yields (record number from 1, data) of a TFRecord file; gzip is told by the first bytes.

    Raises:
        DataError: The file is no TFRecord, is cut short, or a checksum does not match; names record and offset.
    """
    with bytestream.open_plain(path) as stream:
        number, offset = 1, 0
        while header := bytestream.read_exactly(stream, path, _HEADER_BYTES):
            length = _length(header, path, number, offset)
            body = bytestream.read_exactly(stream, path, length + _FOOTER_BYTES)
            if len(body) < length + _FOOTER_BYTES:
                raise _broken("is cut short", path, number, offset)
            data = body[:length]
            if int(_mask(np.array([google_crc32c.value(data)], np.uint32))[0]) != struct.unpack("<I", body[length:])[0]:
                raise _broken("has content that does not match its checksum", path, number, offset)
            yield number, data
            offset += _HEADER_BYTES + length + _FOOTER_BYTES
            number += 1


def _length(header: bytes, path: str, number: int, offset: int) -> int:
    if len(header) == _HEADER_BYTES and header == _header(length := struct.unpack("<Q", header[:8])[0]):
        if length <= _MAX_RECORD_BYTES:
            return int(length)
        raise _broken(f"claims {length} bytes", path, number, offset)
    if number == 1:
        raise DataError("this is not a TFRecord file", place=path, hint="check data.kind, or move the file away")
    what = "is cut short" if len(header) < _HEADER_BYTES else "has a damaged length"
    raise _broken(what, path, number, offset)


def _broken(what: str, path: str, number: int, offset: int) -> DataError:
    return DataError(
        f"record {number} at byte {offset} {what}", place=f"{path}:{number}", hint="fetch or write the file again"
    )


def _header(length: int) -> bytes:
    packed = struct.pack("<Q", length)
    crc = np.array([google_crc32c.value(packed)], np.uint32)
    return packed + struct.pack("<I", int(_mask(crc)[0]))


def _mask(crcs: Checksums) -> Checksums:
    """Returns checksums in the rotated form that TFRecord stores, uint32 arithmetic wraps on purpose."""
    rotated = (crcs >> np.uint32(15)) | (crcs << np.uint32(17))
    return rotated + np.uint32(_MASK_DELTA)
