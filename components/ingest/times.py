"""Splits by time: the oldest rows are for training, the newest are held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from components.ingest.rows import Column, Rows
from components.ingest.splitting import Assignment, split_column, upper_bounds
from components.ingest.tfrecord import Checksums
from core.errors import DataError
from core.settings.data import SplitSettings

# Time values kept to find the boundaries: exact up to this many rows, an even sample above.
_MAX_TIMES = 1 << 21


class TimeSplitter:
    """Splits by a column in ascending order: train gets the oldest rows, eval the newest.

    Rows of one moment stay together, so every row of a split is strictly newer than all of the split before.

    Args:
        boundaries: Ascending values; split i ends below boundaries[i].
        column: The column.
    """

    def __init__(self, boundaries: Sequence[Union[int, float]], column: TimeColumn) -> None:
        self._boundaries = np.array(boundaries)
        self._column = column

    def assign(self, rows: Rows, crcs: Checksums) -> Assignment:
        """Returns the splits of a block; see `Splitter.assign`."""
        del crcs
        times, missing = self._column.values(rows)
        codes = np.searchsorted(self._boundaries, times, side="right").astype(np.int64)
        codes[missing] = -1
        return Assignment(codes, f"no moment in the time column {self._column.name!r}" if missing.any() else "")


class TimeSample:
    """Collects time values in bounded memory and cuts them into shares."""

    def __init__(self) -> None:
        self._values: list[npt.NDArray[Any]] = []
        self._seen = 0
        self._stride = 1

    def add(self, times: npt.NDArray[Any]) -> None:
        """Takes the values of a block; above the bound every second value is dropped, again and again."""
        first = -self._seen % self._stride
        self._values.append(times[first :: self._stride])
        self._seen += len(times)
        if sum(map(len, self._values)) > _MAX_TIMES:
            self._values = [np.concatenate(self._values)[::2]]
            self._stride *= 2

    def boundaries(self, settings: SplitSettings) -> list[Union[int, float]]:
        """Returns the first value of each split but the first.

        Raises:
            DataError: There is no value.
        """
        values = np.sort(np.concatenate(self._values)) if self._values else np.array([])
        if not len(values):
            raise DataError("no row has a moment in the time column", place=f"data.split.column={settings.column}")
        places = (upper_bounds(settings)[:-1] * len(values)).round().astype(int)
        return [values[min(place, len(values) - 1)].item() for place in places]


class TimeColumn:
    """Reads a column as sortable numbers: ISO 8601 text becomes microseconds, numbers stay what they are.

    Moments with a time zone are compared in UTC. Those without one have no place among them, so a column holds one
    form or the other.

    Args:
        column: The column.
    """

    def __init__(self, column: Column) -> None:
        self.name = column.name
        self._is_text = column.type == "text"
        # Whether moments have a zone, and the place of the first one.
        self._form: tuple[bool, str] | None = None

    def values(self, rows: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Returns a sortable value for each row, and which rows have none.

        Raises:
            DataError: A text is no ISO 8601 date or time, or has a zone where others have none; names its line.
            ConfigError: The column holds lists.
        """
        import pyarrow

        column = split_column(rows, self.name)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        if not self._is_text:
            wide = pyarrow.float64() if pyarrow.types.is_floating(column.type) else pyarrow.int64()
            return column.cast(wide).fill_null(0).to_numpy(), missing
        try:
            text = column.cast(pyarrow.string())
            self._check_form(rows, text)
            moments = _moments(text)
        except pyarrow.ArrowInvalid as error:
            raise self._unordered(rows, column) from error
        return moments.fill_null(0).to_numpy(), missing

    def _check_form(self, rows: Rows, text: Any) -> None:
        zoned = _zoned(text)
        if zoned.null_count == len(zoned):
            return
        if self._form is None:
            row = zoned.is_valid().index(True).as_py()
            self._form = (zoned[row].as_py(), f"{rows.file}:{rows.lines[row]}")
        wanted, first = self._form
        odd = zoned.index(not wanted).as_py()
        if odd >= 0:
            here, there = ("no", "one") if wanted else ("a", "none")
            raise DataError(
                f"the moment {text[odd].as_py()!r} in column {self.name!r} has {here} time zone, but that in {first} "
                f"has {there}",
                place=f"{rows.file}:{rows.lines[odd]}",
                hint="write all of them with a zone (2024-05-31T23:59:00Z) or all without",
            )

    def _unordered(self, rows: Rows, column: Any) -> DataError:
        row = next(row for row in range(len(column)) if not _is_moment(column.slice(row, 1)))
        text = column[row].as_py().decode("utf-8", "backslashreplace")
        return DataError(
            f"{text[:80]!r} in the time column {self.name!r} cannot be put in order",
            place=f"{rows.file}:{rows.lines[row]}",
            hint="write moments as 2024-05-31 or 2024-05-31T23:59:00Z, all in one form, or use a number",
        )


def _zoned(text: Any) -> Any:
    """Returns which moments end with Z or an offset, pyarrow boolean[values]; null stays null."""
    from pyarrow import compute

    return compute.match_substring_regex(text, r"[T ][0-9:.]+(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")


def _moments(text: Any) -> Any:
    """Returns microseconds since 1970 (finer parts are cut off), int64[values], of moments that are of one form.

    Raises:
        pyarrow.ArrowInvalid: A text is no moment.
    """
    import pyarrow
    from pyarrow import compute

    zone = "UTC" if compute.any(_zoned(text)).as_py() else None
    cut = compute.replace_substring_regex(text, r"([.][0-9]{6})[0-9]+", r"\1")
    return compute.cast(cut, pyarrow.timestamp("us", zone)).cast(pyarrow.int64())


def _is_moment(cell: Any) -> bool:
    import pyarrow

    try:
        _moments(cell.cast(pyarrow.string()))
    except pyarrow.ArrowInvalid:
        return False
    return True
