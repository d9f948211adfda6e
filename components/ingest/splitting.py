"""Decides which split a row belongs to.

The decision depends on nothing but the row, so files may come in any order. Splits by time: `times.py`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from components.ingest.rows import Reject, Rows
from components.ingest.tfrecord import Checksums
from core.errors import ConfigError
from core.settings.data import SplitSettings

Fingerprints = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Assignment:
    """The splits of a block's rows.

    Attributes:
        codes: int64[rows], index into the split names; -1 for a row that cannot be placed.
        unplaced: Why rows with code -1 have no place; empty when there are none.
    """

    codes: Codes
    unplaced: str = ""


class Splitter(Protocol):
    """Places the rows of a block."""

    def assign(self, rows: Rows, crcs: Checksums) -> Assignment:
        """Returns the split of each row.

        Args:
            rows: The block.
            crcs: uint32[rows], CRC-32C of each row's serialized example: a hash of its content.
        """


class HashSplitter:
    """Splits by the whole row or by one column: equal rows, or equal groups, stay together.

    Args:
        settings: The split settings; `column` is used for method group.
    """

    def __init__(self, settings: SplitSettings) -> None:
        self._column = settings.column if settings.method == "group" else None
        self._seed = _seed(settings.seed)
        self._bounds = upper_bounds(settings)

    def assign(self, rows: Rows, crcs: Checksums) -> Assignment:
        """Returns the split of each row; see `Splitter.assign`."""
        if self._column is None:
            return Assignment(self._codes(mix(crcs.astype(np.uint64), self._seed)))
        keys, missing = group_hashes(rows, self._column)
        codes = np.where(missing, -1, self._codes(mix(keys, self._seed)))
        return Assignment(codes, f"no value in the group column {self._column!r}" if missing.any() else "")

    def _codes(self, hashes: Fingerprints) -> Codes:
        shares = (hashes >> np.uint64(11)).astype(np.float64) / float(1 << 53)
        return np.searchsorted(self._bounds[:-1], shares, side="right").astype(np.int64)


def place_rejects(rows: Rows, assignment: Assignment) -> list[Reject]:
    """Returns the rows of a block that have no split, as rejects."""
    lost = np.flatnonzero(assignment.codes < 0).tolist()
    return [Reject(rows.file, int(rows.lines[row]), assignment.unplaced, rows.raw(row)) for row in lost]


def upper_bounds(settings: SplitSettings) -> npt.NDArray[np.float64]:
    """Returns where each split ends on the scale from 0 to 1, float64[splits]."""
    return np.cumsum([settings.shares[name] for name in split_names(settings)])


def split_names(settings: SplitSettings) -> list[str]:
    """Returns the names of the splits in their order on that scale: train first, eval last, others by name.

    The order in which a file or a flag lists them means nothing.
    """
    return sorted(settings.shares, key=lambda name: ({"train": 0, "eval": 2}.get(name, 1), name))


def _seed(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "little"))


def mix(keys: Fingerprints, seed: np.uint64) -> Fingerprints:
    """Returns well-spread 64-bit hashes of keys: the finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        state = keys + seed + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def split_column(rows: Rows, name: str) -> Any:
    """Returns the pyarrow array of the column that rows are split by.

    Raises:
        ConfigError: It holds lists.
    """
    from pyarrow import types

    column = rows.column(name)
    if types.is_nested(column.type):
        raise ConfigError(
            f"column {name!r} holds lists of values", place="data.split.column", hint="name one with one value a row"
        )
    return column


def group_hashes(rows: Rows, name: str) -> tuple[Fingerprints, npt.NDArray[np.bool_]]:
    """Returns a hash of each value's text, so that 42 and "42" are one group, and which rows have no value.

    Raises:
        ConfigError: The column holds lists.
    """
    column = split_column(rows, name)
    coded = column.dictionary_encode()
    hashes = np.fromiter(map(_text_hash, coded.dictionary.to_pylist()), np.uint64, len(coded.dictionary))
    codes = coded.indices.fill_null(len(hashes)).to_numpy()
    return np.append(hashes, np.uint64(0))[codes], codes == len(hashes)


def _text_hash(value: Any) -> int:
    text = value if isinstance(value, bytes) else str(value).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
