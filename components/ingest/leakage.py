"""Looks for what the splits share although the rule that made them did not look at it.

A rule keeps together what it goes by: equal rows (hash), equal groups, equal moments. That needs no check, so the check
asks something else. With method hash and a split column, it is the groups of that column. With method group and time,
it is the content of the rows but for the split column: the same row under another group or at another moment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from components.ingest.rows import Rows
from components.ingest.splitting import Codes, Fingerprints, group_hashes, split_names
from core.settings.data import SplitSettings

# Fingerprints kept: 8 bytes each, so 16 MiB a split at the most.
_MAX_KEPT = 1 << 21
# Fingerprints that wait to be sorted in among the kept ones.
_MAX_WAITING = 1 << 18


class LeakageCheck:
    """Counts the groups or rows that turn up in more than one split.

    Args:
        settings: The split settings.

    Attributes:
        left_out: The column that row content is compared without; None when rows are not compared.
    """

    def __init__(self, settings: SplitSettings) -> None:
        by_hash = settings.method == "hash"
        self.left_out = None if by_hash else settings.column
        self._group_column = settings.column if by_hash else None
        self._names = split_names(settings)
        self._shared = SharedFingerprints(self._names)

    def add(self, rows: Rows, content: Any, codes: Codes) -> None:
        """Takes a block of rows.

        Args:
            rows: The block.
            content: pyarrow large_binary[rows], their content without the column `left_out`; None without one.
            codes: int64[rows], index of each row's split; -1 for a row that has none.
        """
        if self._group_column is not None:
            prints, missing = group_hashes(rows, self._group_column)
        elif content is not None:
            prints, missing = _digests(content)
        else:
            return
        for code, name in enumerate(self._names):
            self._shared.add(name, prints[(codes == code) & ~missing])

    def result(self) -> dict[str, Any]:
        """Returns what was checked and found, JSON-serializable; None stands for what was not looked at."""
        counted, shared = self._shared.counts()
        of_groups, of_rows = self._group_column is not None, self.left_out is not None
        what = "nothing: method hash keeps equal rows together, and no split.column names groups"
        if of_groups:
            what = f"groups of {self._group_column!r}"
        elif of_rows:
            what = f"rows without {self.left_out!r}"
        return {
            "checked": what,
            "groups_checked": counted if of_groups else None,
            "groups_shared": shared if of_groups else None,
            "rows_checked": counted if of_rows else None,
            "duplicate_rows_shared": shared if of_rows else None,
            "checked_share": self._shared.checked_share if of_groups or of_rows else None,
        }


class SharedFingerprints:
    """Counts the fingerprints that turn up in more than one split, in bounded memory.

    When a split has more than can be kept, only those in a smaller and smaller part of the fingerprints' range are
    looked at: the same part in every split.

    Args:
        splits: Names of the splits.
    """

    def __init__(self, splits: Sequence[str]) -> None:
        self._seen: dict[str, Fingerprints] = {name: np.zeros(0, np.uint64) for name in splits}
        self._waiting: dict[str, list[Fingerprints]] = {name: [] for name in splits}
        self._halvings = 0

    def add(self, split: str, prints: Fingerprints) -> None:
        """Takes well-spread fingerprints, uint64[rows], of rows that were written to a split."""
        self._waiting[split].append(self._kept(prints))
        if sum(map(len, self._waiting[split])) > _MAX_WAITING:
            self._settle(split)

    def counts(self) -> tuple[int, int]:
        """Returns how many different fingerprints were looked at and how many of them are in more than one split."""
        for name in self._seen:
            self._settle(name)
        # Every split had its own share of halvings when it was settled; the last one holds for all.
        _, times = np.unique(np.concatenate([self._kept(seen) for seen in self._seen.values()]), return_counts=True)
        return len(times), int((times > 1).sum())

    @property
    def checked_share(self) -> float:
        """The part of the fingerprints' range that is looked at, above 0 to 1."""
        return 1.0 / (1 << self._halvings)

    def _settle(self, split: str) -> None:
        seen = np.unique(np.concatenate([self._seen[split], *self._waiting[split]]))
        self._waiting[split] = []
        seen = self._kept(seen)
        while len(seen) > _MAX_KEPT:
            self._halvings += 1
            seen = self._kept(seen)
        self._seen[split] = seen

    def _kept(self, prints: Fingerprints) -> Fingerprints:
        if not self._halvings:
            return prints
        return prints[prints & np.uint64((1 << self._halvings) - 1) == 0]


def _digests(content: Any) -> tuple[Fingerprints, Any]:
    """Returns a 64-bit digest of each value, and which are empty: rows that hold nothing to compare."""
    from pyarrow import compute

    pieces = content.to_pylist()
    joined = b"".join([hashlib.blake2b(piece, digest_size=8).digest() for piece in pieces])
    return np.frombuffer(joined, "<u8").astype(np.uint64), compute.binary_length(content).to_numpy() == 0
