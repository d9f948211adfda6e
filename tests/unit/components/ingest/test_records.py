"""Cutting text into records: the same whatever the block boundaries and whichever way it is cut."""

from __future__ import annotations

import random

import numpy as np
import pytest

from components.ingest import records
from components.ingest.records import Cut, Cutter

pytestmark = pytest.mark.unit


def cut_in_pieces(text: bytes, size: int, cutter: Cutter) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
    """Returns (line, text) of all records and of all malformed lines, fed `size` bytes at a time."""
    found: list[tuple[int, bytes]] = []
    odd: list[tuple[int, bytes]] = []
    rest, line = b"", 0

    def take(buffer: bytes, cut: Cut) -> None:
        found.extend((line + int(n), buffer[s:e]) for s, e, n in zip(cut.starts, cut.ends, cut.lines, strict=True))
        odd.extend((line + n, buffer[s:e]) for s, e, n, _ in cut.malformed)

    for start in range(0, len(text), size):
        buffer = rest + text[start : start + size]
        cut = cutter.cut(buffer, final=False)
        take(buffer, cut)
        line += cut.consumed_lines
        rest = buffer[cut.consumed :]
    if rest:
        take(rest, cutter.cut(rest, final=True))
    return found, odd


@pytest.mark.parametrize("seed", range(5))
def test_block_boundaries_do_not_matter(seed: int) -> None:
    """Random text with quotes and line ends of all kinds gives the same records in blocks of any size."""
    noise = random.Random(seed)
    pieces = ['"', '""', ",", "a", "b c", "\n", "\n", "\r\n", "\r", '"x\ny"', '"p,q"', ',"z"', '15"']
    for _ in range(25):
        text = "".join(noise.choices(pieces, k=noise.randint(1, 25))).encode()
        whole = cut_in_pieces(text, len(text), Cutter(b",", b'"'))
        for size in (1, 4):
            assert cut_in_pieces(text, size, Cutter(b",", b'"')) == whole, text


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_of_cutting_agree(seed: int) -> None:
    """Where the fast count of quotes accepts a text, the walk along its lines finds the same records."""
    noise = random.Random(1000 + seed)
    cells = ["", "a", '"x"', '"p,q"', '"r\ns"', '"t""u"', '""', '"\r\n"']
    cutter = Cutter(b",", b'"')
    for _ in range(50):
        rows = [",".join(noise.choices(cells, k=3)) for _ in range(noise.randint(1, 12))]
        text = noise.choice(["\n", "\r\n"]).join(rows).encode()
        lines = records._physical_lines(text, final=True)
        quotes = np.flatnonzero(np.frombuffer(text, np.uint8) == ord('"'))
        fast = cutter._by_parity(text, lines, quotes, final=True)
        slow = cutter._walk(text, lines, quotes, final=True)
        assert fast is not None, text
        assert fast.starts.tolist() == slow.starts.tolist()
        assert fast.ends.tolist() == slow.ends.tolist()
        assert fast.lines.tolist() == slow.lines.tolist()
        assert len(slow.malformed) == 0
        assert fast.consumed_lines == slow.consumed_lines


def test_every_line_is_accounted_for() -> None:
    """Records, their line breaks, malformed lines and blank lines add up to the lines of the text."""
    text = b'a,b\n\n"x\ny",1\n"bad"z,2\nlast,"open\n'
    cut = Cutter(b",", b'"').cut(text, final=True)
    assert [text[s:e] for s, e in zip(cut.starts, cut.ends, strict=True)] == [b"a,b", b'"x\ny",1']
    assert cut.lines.tolist() == [0, 2]
    assert [(line, reason) for _, _, line, reason in cut.malformed] == [
        (4, records.TEXT_AFTER_QUOTE),
        (5, records.NEVER_CLOSED),
    ]
    assert cut.consumed_lines == 6


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the largest record the opening line is given up and the lines after it are records again."""
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 1000)
    text = b'"open,1\n' + b"row,2\n" * 500
    cut = Cutter(b",", b'"').cut(text, final=False)
    assert [line for _, _, line, _ in cut.malformed] == [0]
    assert len(cut.starts) == 500
    assert cut.consumed == len(text)


def test_without_quotes_each_line_is_a_record() -> None:
    """With quoting off a quote opens nothing."""
    cut = Cutter(b",", None).cut(b'"a\nb"\n', final=True)
    assert len(cut.starts) == 2
