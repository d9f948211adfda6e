"""CSV files as blocks of text cells with the line of every record; broken records are set aside, never guessed at."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from components.ingest import bytestream, columns, dialect, records
from components.ingest.rows import Lines, Reject, shorten
from core.errors import DataError
from core.settings.data import CsvSettings

# Large enough that the cost per block vanishes, small enough that a few blocks in flight stay far below 1 GiB.
BLOCK_BYTES = 4 << 20
_NUL_REASON = "it holds a NUL character"
_NUL_HINT = "write the file again, or set data.csv.encoding if it is UTF-16 or UTF-32"


@dataclasses.dataclass(frozen=True)
class Block:
    """Some records of one file.

    Attributes:
        file: Its path.
        cells: pyarrow.RecordBatch of string columns in the order of the first file's header; null is missing.
        lines: int64[rows], 1-based line that each row begins on.
        rejects: Records of the block that are not in `cells`.
    """

    file: str
    cells: Any
    lines: Lines
    rejects: Sequence[Reject]
    _text: bytes
    _spans: npt.NDArray[np.int64]

    def raw(self, row: int) -> str:
        """Returns the text of one record as it stands in the file, possibly shortened."""
        start, end = self._spans[row]
        return shorten(self._text[start:end].decode("utf-8"))


class CsvBlocks:
    """Reads the blocks of several files that share their columns.

    Args:
        settings: How the files are written.
        files: Paths, in order.
    """

    def __init__(self, settings: CsvSettings, files: Sequence[str], *, block_bytes: int = BLOCK_BYTES) -> None:
        dialect.check_marks(settings)
        self._settings = settings
        self._files = files
        self._block_bytes = block_bytes
        quote = settings.quote.encode() if settings.quote else None
        self._cutter = records.Cutter(settings.delimiter.encode(), quote)
        self._names: list[str] = []
        self._first_file = ""

    def names(self) -> list[str]:
        """Returns the column names; known once the first block was read."""
        return list(self._names)

    def blocks(self) -> Iterator[Block]:
        """Yields the blocks of every file; a file with only a header yields none.

        Raises:
            DataError: A header is unusable or differs between files, the delimiter is another one, or the bytes
                are not text in the declared encoding.
        """
        for path in self._files:
            yield from self._file_blocks(path)

    def _file_blocks(self, path: str) -> Iterator[Block]:
        order: list[str] | None = None
        line = 1
        for text, cut in self._cuts(path):
            rows = cut
            if order is None and (len(cut.starts) or cut.malformed):
                order, rows = self._read_header(path, text, cut, line)
            if order is not None and (len(rows.starts) or rows.malformed):
                yield self._parse(path, text, rows, line, order)
            line += cut.consumed_lines

    def _cuts(self, path: str) -> Iterator[tuple[bytes, records.Cut]]:
        """Yields pieces of text together with their complete records."""
        rest = b""
        for block in bytestream.text_blocks(path, encoding=self._settings.encoding, block_bytes=self._block_bytes):
            buffer = rest + block
            cut = self._cutter.cut(buffer, final=False)
            rest = buffer[cut.consumed :]
            if cut.consumed:
                yield buffer, cut
        if rest:
            yield rest, self._cutter.cut(rest, final=True)

    def _read_header(self, path: str, text: bytes, cut: records.Cut, line: int) -> tuple[list[str], records.Cut]:
        """Checks a file's header; returns its names and the cut without it."""
        if cut.malformed and (not len(cut.starts) or cut.malformed[0][0] < cut.starts[0]):
            raise DataError(f"the header cannot be read: {cut.malformed[0][3]}", place=f"{path}:{line}")
        place_line = line + int(cut.lines[0])
        sample = [text[s:e].decode("utf-8") for s, e in zip(cut.starts[:21], cut.ends[:21], strict=True)]
        if "\0" in sample[0]:
            raise DataError(f"the header cannot be read: {_NUL_REASON}", place=f"{path}:{place_line}", hint=_NUL_HINT)
        # A row with a NUL is set aside later; the sample's parser would refuse the whole file for it.
        readable = [row for row in sample if len(row) < 100_000 and "\0" not in row]
        try:
            cells = dialect.split_cells(sample[0], self._settings)
            other = dialect.other_delimiter(readable, self._settings)
        except csv.Error as error:
            raise DataError(f"the first rows cannot be read: {error}", place=f"{path}:{place_line}") from error
        if other:
            raise dialect.refuse_delimiter(other, self._settings, path)
        names = dialect.header_names(cells, path, place_line, self._settings.delimiter)
        if not self._names:
            self._names, self._first_file = names, path
        columns.same_columns(names, self._names, path, self._first_file)
        rest = dataclasses.replace(cut, starts=cut.starts[1:], ends=cut.ends[1:], lines=cut.lines[1:])
        return names, rest

    def _parse(self, path: str, text: bytes, cut: records.Cut, line: int, order: Sequence[str]) -> Block:
        """Returns the cells of the records of a cut."""
        rejects = [
            Reject(path, line + number, reason, shorten(text[start:end].decode("utf-8")))
            for start, end, number, reason in cut.malformed
        ]
        spans = np.stack((cut.starts, cut.ends), axis=1)
        lines = cut.lines + line
        keep = np.ones(len(lines), bool)
        if b"\0" in text:
            for row in _rows_with_nul(text, spans):
                keep[row] = False
                rejects.append(_reject(path, text, spans[row], int(lines[row]), _NUL_REASON))
            spans, lines = spans[keep], lines[keep]
        whole = keep.all() and not cut.malformed and len(spans)
        region = text[spans[0, 0] : spans[-1, 1]] if whole else b"\n".join(text[s:e] for s, e in spans)
        cells, bad = _read_cells(region, order, self._settings)
        keep = np.ones(len(lines), bool)
        for row, found in bad:
            keep[row] = False
            reason = f"{found} cells where the header has {len(order)}"
            rejects.append(_reject(path, text, spans[row], int(lines[row]), reason))
        if list(order) != self._names:
            cells = _in_order(cells, self._names)
        rejects.sort(key=lambda reject: reject.line)
        return Block(path, cells, lines[keep], rejects, text, spans[keep])


def _reject(path: str, text: bytes, span: npt.NDArray[np.int64], line: int, reason: str) -> Reject:
    return Reject(path, line, reason, shorten(text[span[0] : span[1]].decode("utf-8")))


def _rows_with_nul(text: bytes, spans: npt.NDArray[np.int64]) -> list[int]:
    zeros = np.flatnonzero(np.frombuffer(text, np.uint8) == 0)
    rows = np.searchsorted(spans[:, 0], zeros, side="right") - 1
    inside = (rows >= 0) & (zeros < spans[np.maximum(rows, 0), 1]) if len(spans) else np.zeros(len(zeros), bool)
    return [int(row) for row in np.unique(rows[inside])]


def _read_cells(region: bytes, names: Sequence[str], settings: CsvSettings) -> tuple[Any, list[tuple[int, int]]]:
    """Returns the cells of a piece of text and (row, cells found) of the rows with too few or too many.

    Everything is read as text: types are decided over all files and never by the parser's first block.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    string = pyarrow.string()
    if not region:
        empty = pyarrow.schema([(name, string) for name in names]).empty_table()
        return _single_batch(empty), []
    bad: list[tuple[int, int]] = []

    def set_aside(row: Any) -> str:
        bad.append((row.number - 1, row.actual_columns))
        return "skip"

    table = arrow_csv.read_csv(
        pyarrow.BufferReader(region),
        # One block and one thread: the handler then knows the number of each row that it is given.
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(region) + 1, column_names=list(names)),
        parse_options=arrow_csv.ParseOptions(
            delimiter=settings.delimiter,
            quote_char=settings.quote or False,
            newlines_in_values=True,
            invalid_row_handler=set_aside,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, string),
            check_utf8=False,
            null_values=[*settings.null_tokens, ""],
            strings_can_be_null=True,
        ),
    )
    return _single_batch(table), bad


def _single_batch(table: Any) -> Any:
    import pyarrow

    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pyarrow.RecordBatch.from_pylist([], schema=table.schema)


def _in_order(cells: Any, names: Sequence[str]) -> Any:
    import pyarrow

    arrays = [cells.column(cells.schema.get_field_index(name)) for name in names]
    return pyarrow.RecordBatch.from_arrays(arrays, list(names))
