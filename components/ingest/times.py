"""Splits by time: the oldest rows are for training, the newest are held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from components.ingest.rows import Column, Rows
from components.ingest.splitting import Assignment, mix, upper_bounds
from components.ingest.tfrecord import Checksums
from core.errors import DataError
from core.settings.data import SplitSettings

# Time values kept to find the boundaries: exact up to this many rows, an even sample above.
_MAX_TIMES = 1 << 21


class TimeSplitter:
    """Splits by a column in ascending order: train gets the oldest rows, eval the newest.

    Rows of one moment stay together, so every row of a split is strictly newer than all of the split before.

    Args:
        settings: The split settings.
        boundaries: Ascending values; split i ends below boundaries[i].
    """

    def __init__(self, settings: SplitSettings, boundaries: Sequence[Union[int, float]], kind: str) -> None:
        self._column = str(settings.column)
        self._boundaries = np.array(boundaries)
        self._kind = kind

    def assign(self, rows: Rows, crcs: Checksums) -> Assignment:
        """Returns the splits of a block; see `Splitter.assign`."""
        del crcs
        times, missing = time_values(rows.column(self._column), self._kind)
        codes = np.searchsorted(self._boundaries, times, side="right").astype(np.int64)
        codes[missing] = -1
        groups = mix(times.view(np.uint64), np.uint64(0))
        return Assignment(codes, groups, f"no moment in the time column {self._column!r}" if missing.any() else "")


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


def time_kind(column: Column) -> str:
    """Returns how a time column is ordered: "moment" for ISO 8601 text, "number" otherwise."""
    return "moment" if column.type == "text" else "number"


def time_values(column: Any, kind: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Returns sortable values of a time column and which rows have none.

    Args:
        column: pyarrow array: int64, float32 or binary.
        kind: What `time_kind` gave.

    Raises:
        DataError: A text is not an ISO 8601 date or time.
    """
    import pyarrow
    from pyarrow import compute

    missing = column.is_null().to_numpy(zero_copy_only=False)
    if kind == "number":
        wide = pyarrow.float64() if pyarrow.types.is_floating(column.type) else pyarrow.int64()
        return column.cast(wide).fill_null(0).to_numpy(), missing
    try:
        moments = compute.cast(column.cast(pyarrow.string()), pyarrow.timestamp("us"))
    except pyarrow.ArrowInvalid as error:
        raise DataError(
            f"a text in the time column cannot be put in order ({error})",
            place="data.split.column",
            hint="write moments as 2024-05-31 or 2024-05-31 23:59:00, all in one form, or use a number",
        ) from error
    return moments.cast(pyarrow.int64()).fill_null(0).to_numpy(), missing
