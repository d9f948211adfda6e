"""What every reader yields: typed rows with the place that each came from, and the rows that were set aside."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.settings.data import ColumnType

Lines = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Reject:
    """A row that was set aside.

    Attributes:
        file: Path of its file.
        line: 1-based line that it begins on (CSV) or record number (Parquet, TFRecord); 0 for a whole file.
        reason: Why, one sentence without a final full stop.
        raw: Its text as read, possibly shortened.
    """

    file: str
    line: int
    reason: str
    raw: str


@dataclasses.dataclass(frozen=True)
class Column:
    """A column that becomes a feature.

    Attributes:
        name: Feature name.
        type: integer and boolean become int64, float float32, text bytes.
        declared: True when the settings name its type.
        note: What decided the type when that was not plain; empty otherwise.
    """

    name: str
    type: ColumnType
    declared: bool = False
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a first look over all files found out.

    Attributes:
        rows: Usable rows seen; a few more may turn out bad when they are converted.
        columns: The columns that become features, in file order.
        excluded: Names of columns without any value.
        warnings: What the user should know, one sentence each.
        skipped: (file, reason) of files without rows.
    """

    rows: int
    columns: tuple[Column, ...]
    excluded: tuple[str, ...]
    warnings: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Rows:
    """A block of rows of one file.

    Attributes:
        file: Its path.
        batch: pyarrow.RecordBatch; each column is int64, float32 or binary, or a list of them; null is missing.
        lines: int64[rows], 1-based line or record number of each row of `batch`.
        raw: Returns the text of row i of `batch` as read.
        rejects: Rows of the block that were set aside, and are not in `batch`.
        non_finite: Count of nan and inf cells made missing, by column.
    """

    file: str
    batch: Any
    lines: Lines
    raw: Callable[[int], str]
    rejects: Sequence[Reject]
    non_finite: Mapping[str, int]

    def column(self, name: str) -> Any:
        """Returns the pyarrow array of one column."""
        return self.batch.column(self.batch.schema.get_field_index(name))


class Reader(Protocol):
    """Reads one kind of file twice: once to plan, then to deliver."""

    def plan(self) -> Plan:
        """Returns the columns and their types after a look at every row."""

    def rows(self, plan: Plan) -> Iterator[Rows]:
        """Yields every row, file by file, in order."""


def shorten(text: str, limit: int = 500) -> str:
    """Returns a text cut to `limit` characters, marked when it was cut."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def without_bad(
    path: str, typed: Any, before: int, bad: Mapping[int, str], original: Any, non_finite: Mapping[str, int]
) -> Rows:
    """Returns a block without its bad rows, which become rejects.

    Args:
        path: The file.
        typed: pyarrow.RecordBatch of all rows.
        before: Rows of the file before this block.
        bad: Reason by row.
        original: pyarrow.RecordBatch of all rows as read, for the text of rejects.
        non_finite: Cells made missing, by column.
    """
    import pyarrow

    keep = np.ones(typed.num_rows, bool)
    keep[list(bad)] = False
    kept = np.flatnonzero(keep)

    def raw(row: int) -> str:
        return shorten(str(original.slice(row, 1).to_pylist()[0]))

    rejects = [Reject(path, before + row + 1, bad[row], raw(row)) for row in sorted(bad)]
    rows = Rows(path, typed, kept + before + 1, lambda row: raw(int(kept[row])), rejects, non_finite)
    return rows if not bad else dataclasses.replace(rows, batch=typed.filter(pyarrow.array(keep)))
