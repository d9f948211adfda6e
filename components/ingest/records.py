"""Cuts text into CSV records and knows the line that each one begins on.

A quote opens a quoted cell only where a cell begins, and must be closed right before a delimiter or a line end;
elsewhere it is ordinary text (`15" monitor`). A record that breaks this is set aside by its first line alone and
reading goes on with the next line: a stray quote never glues two lines together.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import numpy.typing as npt

# A longer quoted record is taken for a quote that nobody closed: memory stays bounded.
MAX_RECORD_BYTES = 16 << 20

NEVER_CLOSED = "a quote is opened and never closed"
TEXT_AFTER_QUOTE = "text after a closing quote"

_LF, _CR = 10, 13
Positions = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Cut:
    """The complete records at the front of a buffer.

    Attributes:
        starts: int64[records], offset of each record's first byte.
        ends: int64[records], offset after its last byte, before the line end.
        lines: int64[records], 0-based line that it begins on, counted from the buffer's first line.
        malformed: (start, end, line, reason) of single lines that are no record.
        consumed: Bytes that need not be seen again.
        consumed_lines: Lines in them.
    """

    starts: Positions
    ends: Positions
    lines: Positions
    malformed: tuple[tuple[int, int, int, str], ...]
    consumed: int
    consumed_lines: int


@dataclasses.dataclass(frozen=True)
class _Lines:
    """Physical lines: [start, end) is the text of each, `nexts` the start of the one after it."""

    starts: Positions
    ends: Positions
    nexts: Positions


class Cutter:
    """Finds records for one delimiter and one quote character.

    Args:
        delimiter: One character, UTF-8.
        quote: One character, UTF-8; None when quotes are ordinary text.
    """

    def __init__(self, delimiter: bytes, quote: bytes | None) -> None:
        self._delimiter = delimiter
        self._quote = quote
        if quote is not None:
            q, d = re.escape(quote), re.escape(delimiter)
            # The closing quote is not the first of a doubled pair: nothing may be given back once it was matched.
            cell = rb"(?:%b[^%b]*(?:%b%b[^%b]*)*%b(?!%b)|[^%b%b\r\n][^%b\r\n]*|)" % (q, q, q, q, q, q, q, q, d, d)
            self._record = re.compile(rb"%b(?:%b%b)*" % (cell, d, cell))

    def cut(self, buffer: bytes, *, final: bool) -> Cut:
        """Returns the records that are complete in `buffer`.

        Args:
            buffer: Text that begins where a record begins.
            final: Nothing follows: the last line is complete even without a line end.
        """
        lines = _physical_lines(buffer, final=final)
        if self._quote is None or self._quote not in buffer:
            return _whole_lines(lines)
        quotes = np.flatnonzero(np.frombuffer(buffer, np.uint8) == self._quote[0])
        return self._by_parity(buffer, lines, quotes, final=final) or self._walk(buffer, lines, quotes, final=final)

    def _by_parity(self, buffer: bytes, lines: _Lines, quotes: Positions, *, final: bool) -> Cut | None:
        """Cuts a buffer whose quotes are all in their place; None when one is not.

        A line end belongs to a cell when an odd number of quotes stands before it. That holds only if every
        odd-numbered quote opens a cell (or is the second of a doubled pair) and every other one closes it.
        """
        complete = np.flatnonzero(np.searchsorted(quotes, lines.ends) % 2 == 0)
        consumed = int(lines.nexts[complete[-1]]) if len(complete) else 0
        if final and consumed < len(buffer):
            return None
        if len(buffer) - consumed > MAX_RECORD_BYTES:
            return None
        inside = quotes[: np.searchsorted(quotes, consumed)]
        padded = np.frombuffer(b"\n" + buffer + b"\n", np.uint8)
        edges = np.array([self._delimiter[0], _LF, _CR], np.uint8)
        opening, closing = inside[0::2], inside[1::2]
        doubled = opening[1:] == closing[: len(opening) - 1] + 1
        opens = np.isin(padded[opening], edges)
        closes = np.isin(padded[closing + 2], edges)
        opens[1:] |= doubled
        closes[: len(doubled)] |= doubled
        if not (opens.all() and closes.all()):
            return None
        # A record begins after each line end that is outside quotes.
        begins = np.concatenate(([0], complete[:-1] + 1)) if len(complete) else complete
        return _without_blanks(
            lines.starts[begins], lines.ends[complete], begins, (), consumed, _count_to(lines, consumed)
        )

    def _walk(self, buffer: bytes, lines: _Lines, quotes: Positions, *, final: bool) -> Cut:
        """Cuts a buffer with stray quotes: looks at each line that holds one, in order."""
        owner = np.unique(np.searchsorted(lines.nexts, quotes, side="right"))
        is_start = np.ones(len(lines.starts), bool)
        ends = lines.ends.copy()
        malformed: list[tuple[int, int, int, str]] = []
        stop = len(lines.starts)
        following = 0
        for line in owner.tolist():
            if line < following:
                continue
            if line >= len(lines.starts):
                break
            start = int(lines.starts[line])
            match = self._record.match(buffer, start)
            end = match.end() if match else start
            # A CR at the very end may be half of a CR LF: what follows decides.
            at_end = end == len(buffer) or (end == len(buffer) - 1 and buffer[end] == _CR)
            if final if at_end else buffer[end] in (_LF, _CR):
                last = int(np.searchsorted(lines.ends, end))
                is_start[line + 1 : last + 1] = False
                ends[line] = lines.ends[last]
                following = last + 1
                continue
            unclosed = at_end or self._opens_cell(buffer, start, end)
            if unclosed and not final and len(buffer) - start <= MAX_RECORD_BYTES:
                stop = line
                break
            reason = NEVER_CLOSED if unclosed else TEXT_AFTER_QUOTE
            malformed.append((start, int(lines.ends[line]), line, reason))
            is_start[line] = False
            following = line + 1
        is_start[stop:] = False
        begins = np.flatnonzero(is_start)
        consumed = int(lines.starts[stop]) if stop < len(lines.starts) else int(lines.nexts[-1]) if stop else 0
        return _without_blanks(lines.starts[begins], ends[begins], begins, tuple(malformed), consumed, stop)

    def _opens_cell(self, buffer: bytes, start: int, position: int) -> bool:
        """Returns True when the byte at `position` is a quote where a cell begins."""
        if buffer[position : position + 1] != self._quote:
            return False
        return position == start or buffer[position - 1 : position] == self._delimiter


def _physical_lines(buffer: bytes, *, final: bool) -> _Lines:
    """Returns the lines of a buffer; LF, CR LF and a lone CR end one."""
    array = np.frombuffer(buffer, np.uint8)
    feeds = np.flatnonzero(array == _LF)
    if b"\r" in buffer:
        returns = np.flatnonzero(array == _CR)
        following = array[np.minimum(returns + 1, len(array) - 1)]
        lone = returns[(following != _LF) & ((returns + 1 < len(array)) | final)]
        paired = array[np.maximum(feeds - 1, 0)] == _CR
        paired &= feeds > 0
        ends = np.concatenate((feeds - paired, lone))
        nexts = np.concatenate((feeds + 1, lone + 1))
        order = np.argsort(nexts, kind="stable")
        ends, nexts = ends[order], nexts[order]
    else:
        ends, nexts = feeds, feeds + 1
    covered = int(nexts[-1]) if len(nexts) else 0
    if final and covered < len(buffer):
        ends, nexts = np.append(ends, len(buffer)), np.append(nexts, len(buffer))
    starts = np.concatenate(([0], nexts[:-1])) if len(nexts) else nexts
    return _Lines(starts.astype(np.int64), ends.astype(np.int64), nexts.astype(np.int64))


def _whole_lines(lines: _Lines) -> Cut:
    count = len(lines.starts)
    consumed = int(lines.nexts[-1]) if count else 0
    return _without_blanks(lines.starts, lines.ends, np.arange(count), (), consumed, count)


def _without_blanks(
    starts: Positions,
    ends: Positions,
    lines: Positions,
    malformed: tuple[tuple[int, int, int, str], ...],
    consumed: int,
    consumed_lines: int,
) -> Cut:
    filled = ends > starts
    if not filled.all():
        starts, ends, lines = starts[filled], ends[filled], lines[filled]
    return Cut(starts, ends, lines, malformed, consumed, consumed_lines)


def _count_to(lines: _Lines, consumed: int) -> int:
    return int(np.searchsorted(lines.nexts, consumed, side="right"))
