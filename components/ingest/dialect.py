"""The header of a CSV file, and whether the file is written the way the settings say."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from core.errors import ConfigError, DataError
from core.settings.data import CsvSettings

_CANDIDATES = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_SAMPLE_ROWS = 20
_MOST_ROWS = 0.8


def check_marks(settings: CsvSettings) -> None:
    """Refuses delimiters and quotes that the parser cannot take.

    Raises:
        ConfigError: Not an ASCII character, or a line end.
    """
    for key, mark in (("delimiter", settings.delimiter), ("quote", settings.quote)):
        if mark is not None and (not mark.isascii() or mark in "\r\n\0"):
            raise ConfigError(
                f"{mark!r} cannot separate or quote cells", place=f"data.csv.{key}", hint="use one ASCII character"
            )


def header_names(cells: Sequence[str], path: str, line: int, quoted_marks: str) -> list[str]:
    """Returns the column names of a header, without the blanks around them.

    Args:
        cells: The header's cells.
        path: File, for errors.
        line: 1-based line of the header.
        quoted_marks: How the delimiter is shown in hints.

    Raises:
        DataError: A name is empty or occurs twice, or the header looks like a row of data.
    """
    names = [cell.strip() for cell in cells]
    place = f"{path}:{line}"
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"column {position} of the header has no name", place=place, hint="name every column")
        if name in first:
            raise DataError(
                f"column name {name!r} occurs twice, at positions {first[name]} and {position}",
                place=place,
                hint="rename one of them",
            )
        first[name] = position
    if all(_NUMBER.fullmatch(name) for name in names):
        raise DataError(
            f"the first row holds only numbers ({quoted_marks.join(names[:4])}): the header is missing",
            place=place,
            hint="put a line with the column names first",
        )
    return names


def other_delimiter(rows: Sequence[str], settings: CsvSettings) -> str | None:
    """Returns the delimiter that a file's first rows are evidently written with, if it is not the configured one.

    The evidence: under the configured delimiter the header is a single cell or the rows do not agree with it,
    and under the other one every row has the same number of cells, two or more. When the header is a single cell,
    four rows of five are enough: a ragged row must not turn a table into one column of text.

    Args:
        rows: Text of the header and of the rows after it.
        settings: The configured way of writing.
    """
    sample = rows[: _SAMPLE_ROWS + 1]
    if not sample:
        return None
    counts = _widths(sample, settings.delimiter, settings.quote)
    if counts[0] > 1 and all(count == counts[0] for count in counts):
        return None
    needed = 1.0 if counts[0] > 1 else _MOST_ROWS
    agreeing: dict[str, float] = {}
    for candidate in _CANDIDATES:
        widths = _widths(sample, candidate, settings.quote)
        share = widths.count(widths[0]) / len(widths)
        if candidate != settings.delimiter and widths[0] > 1 and share >= needed:
            agreeing[candidate] = share
    return max(agreeing, key=lambda mark: agreeing[mark], default=None)


def refuse_delimiter(found: str, settings: CsvSettings, path: str) -> DataError:
    """Returns the error for a file that is written with another delimiter."""
    decimal = ' and, for decimal commas, data.csv.decimal: ","' if found == ";" else ""
    return DataError(
        f"looks like {found!r} separates the cells, not {settings.delimiter!r}",
        place=path,
        hint=f"set data.csv.delimiter: {found!r}{decimal}",
    )


def split_cells(text: str, settings: CsvSettings) -> list[str]:
    """Returns the cells of one record."""
    return _parse(text, settings.delimiter, settings.quote)


def _widths(rows: Sequence[str], delimiter: str, quote: str | None) -> list[int]:
    return [len(_parse(row, delimiter, quote)) for row in rows]


def _parse(text: str, delimiter: str, quote: str | None) -> list[str]:
    lines = io.StringIO(text, newline="")
    if quote is None:
        return next(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE), [])
    return next(csv.reader(lines, delimiter=delimiter, quotechar=quote), [])
