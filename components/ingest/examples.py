"""Serializes rows as tf.Example, column by column, in C++ kernels and with one fixed result.

The bytes are those of protobuf's deterministic serialization: features sorted by name, a missing value is an absent
feature. Coders that go through a protobuf map write the features of each record in a random order; the bytes of a
split would then differ from run to run, no content hash could be taken of them and gzip would find less to share.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = b"\x0a", b"\x12", b"\x1a"
_FIRST_FIELD = b"\x0a"
_VALUE_FIELD = b"\x12"
_MAX_VARINT_BYTES = 10
# Negative numbers are written as their two's complement.
_UINT64_MAX = (1 << 64) - 1

Offsets = npt.NDArray[np.int64]


def encode(batch: Any) -> Any:
    """Returns a pyarrow large_binary array with one serialized tf.Example a row.

    Args:
        batch: pyarrow.RecordBatch whose columns are int64, float32 or binary, or lists of these; null is missing.
    """
    return encode_without(batch, None)[0]


def encode_without(batch: Any, left_out: str | None) -> tuple[Any, Any]:
    """Returns what `encode` does, and the features alone of each row but for one column; None when that is None.

    Args:
        batch: As for `encode`.
        left_out: The column to leave out of the second.
    """
    import pyarrow
    from pyarrow import compute

    binary = pyarrow.large_binary()
    names = sorted(batch.schema.names, key=lambda name: name.encode("utf-8"))
    entries = {name: _entries(name.encode("utf-8"), batch.column(batch.schema.get_field_index(name))) for name in names}
    rest = [entry for name, entry in entries.items() if name != left_out]
    without = _joined(rest, batch.num_rows) if left_out is not None else None
    features = _joined(list(entries.values()), batch.num_rows)
    if not len(features):
        return features, without
    lengths, codes = np.unique(compute.binary_length(features).to_numpy(), return_inverse=True)
    # Example.features is a message field: its tag and length come first. Without any feature it is absent.
    heads = [_FIRST_FIELD + _varint(int(length)) if length else b"" for length in lengths]
    outer = pyarrow.array(heads, binary).take(pyarrow.array(codes))
    return compute.binary_join_element_wise(outer, features, pyarrow.scalar(b"", binary)), without


def encode_one(features: Mapping[str, bytes | int | float]) -> bytes:
    """Returns one serialized tf.Example, byte for byte what `encode` makes of such a row.

    For records of which one value is nearly all: a photo is copied once here, and once a step in a column of them.

    Args:
        features: One value each, as bytes, int64 or float32.
    """
    entries = []
    for name, value in sorted((name.encode("utf-8"), value) for name, value in features.items()):
        if isinstance(value, bytes):
            tag, packed, payload = _BYTES_LIST, False, _FIRST_FIELD + _varint(len(value)) + value
        elif isinstance(value, int):
            tag, packed, payload = _INT64_LIST, True, _varint(value & _UINT64_MAX)
        else:
            tag, packed, payload = _FLOAT_LIST, True, struct.pack("<f", value)
        entries += [_head(name, tag, len(payload), packed=packed), payload]
    body = b"".join(entries)
    return _FIRST_FIELD + _varint(len(body)) + body if body else b""


def _joined(entries: list[Any], rows: int) -> Any:
    """Returns the map entries of each row, one behind the other, large_binary[rows]."""
    import pyarrow
    from pyarrow import compute

    if not entries or not rows:
        return pyarrow.array([b""] * rows, pyarrow.large_binary())
    nothing = pyarrow.scalar(b"", pyarrow.large_binary())
    return compute.binary_join_element_wise(*entries, nothing, null_handling="replace", null_replacement="")


def _entries(name: bytes, column: Any) -> Any:
    """Returns a column's map entries, large_binary[rows]; null where the feature is missing."""
    import pyarrow
    from pyarrow import types

    if types.is_list(column.type) or types.is_large_list(column.type):
        return _list_entries(name, column)
    if types.is_floating(column.type):
        # By their bits: -0.0 and 0.0 are different bytes.
        coded = column.view(pyarrow.int32()).dictionary_encode()
        distinct = coded.dictionary.view(pyarrow.float32())
    else:
        coded = column.dictionary_encode()
        distinct = coded.dictionary
    every = np.arange(len(distinct) + 1, dtype=np.int64)
    return _wrap(name, distinct, every).take(coded.indices)


def _list_entries(name: bytes, column: Any) -> Any:
    import pyarrow

    values = column.flatten()
    lengths = column.value_lengths().fill_null(0).to_numpy()
    bounds = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    entries = _wrap(name, values, bounds)
    present = column.is_valid()
    return pyarrow.compute.if_else(present, entries, pyarrow.scalar(None, entries.type))


def _wrap(name: bytes, values: Any, bounds: Offsets) -> Any:
    """Returns map entries that hold `values[bounds[i]:bounds[i + 1]]`, large_binary[len(bounds) - 1]."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_integer(values.type):
        tag, packed, (data, offsets) = _INT64_LIST, True, _varints(values)
    elif types.is_floating(values.type):
        tag, packed = _FLOAT_LIST, True
        raw = values.to_numpy().astype("<f4").tobytes()
        data, offsets = pyarrow.py_buffer(raw), np.arange(len(values) + 1, dtype=np.int64) * 4
    else:
        tag, packed, (data, offsets) = _BYTES_LIST, False, _length_prefixed(values)
    rows = pyarrow.py_buffer(np.ascontiguousarray(offsets[bounds]))
    payload = pyarrow.Array.from_buffers(pyarrow.large_binary(), len(bounds) - 1, [None, rows, data])
    lengths, codes = np.unique(np.diff(offsets[bounds]), return_inverse=True)
    heads = [_head(name, tag, int(length), packed=packed) for length in lengths]
    prefixes = pyarrow.array(heads, pyarrow.large_binary()).take(pyarrow.array(codes))
    return compute.binary_join_element_wise(prefixes, payload, pyarrow.scalar(b"", pyarrow.large_binary()))


def _head(name: bytes, tag: bytes, length: int, *, packed: bool) -> bytes:
    """Returns what stands before the values of a map entry: key, Feature and list headers.

    Args:
        name: Feature name, UTF-8.
        tag: Field of Feature that holds the list.
        length: Bytes of the encoded values.
        packed: Numbers are one packed field; byte strings carry their own tags.
    """
    packing = _FIRST_FIELD + _varint(length) if packed and length else b""
    feature = tag + _varint(len(packing) + length) + packing
    entry = _FIRST_FIELD + _varint(len(name)) + name + _VALUE_FIELD + _varint(len(feature) + length) + feature
    return _FIRST_FIELD + _varint(len(entry) + length) + entry


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varints(values: Any) -> tuple[Any, Offsets]:
    """Returns int64 values as protobuf varints: a buffer and int64[values + 1] offsets."""
    import pyarrow

    # Negative numbers are written as their two's complement, ten bytes long.
    numbers = values.to_numpy().astype(np.int64).view(np.uint64)
    shifts = np.arange(_MAX_VARINT_BYTES, dtype=np.uint64) * np.uint64(7)
    groups = numbers[:, None] >> shifts
    sizes = np.maximum((groups != 0).sum(axis=1), 1)
    position = np.arange(_MAX_VARINT_BYTES)
    digits = (groups & np.uint64(0x7F)).astype(np.uint8)
    digits |= np.where(position < sizes[:, None] - 1, np.uint8(0x80), np.uint8(0))
    data = digits[position < sizes[:, None]]
    return pyarrow.py_buffer(data), np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _length_prefixed(values: Any) -> tuple[Any, Offsets]:
    """Returns byte strings, each behind its field tag and length: a buffer and int64[values + 1] offsets."""
    import pyarrow
    from pyarrow import compute

    binary = pyarrow.large_binary()
    wide = values.cast(binary)
    if not len(wide):
        return pyarrow.py_buffer(b""), np.zeros(1, np.int64)
    lengths, codes = np.unique(compute.binary_length(wide).to_numpy(), return_inverse=True)
    heads = pyarrow.array([_FIRST_FIELD + _varint(int(length)) for length in lengths], binary)
    joined = compute.binary_join_element_wise(heads.take(pyarrow.array(codes)), wide, pyarrow.scalar(b"", binary))
    return joined.buffers()[2], np.frombuffer(joined.buffers()[1], np.int64)[: len(wide) + 1]
