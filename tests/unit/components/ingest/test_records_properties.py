"""Properties of cutting text into records, on tables and byte soups that nobody thought of."""

from __future__ import annotations

import csv
import io
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.ingest.records import Cutter

pytestmark = pytest.mark.unit

CELL = st.text(alphabet=st.sampled_from("ab,;\"'\n\r é15"), max_size=6)
TABLE = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1))
SOUP = st.binary(max_size=80).map(lambda raw: bytes(b'a",;\n\r x1'[byte % 9] for byte in raw))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TABLE)
def test_what_pythons_csv_writes_is_cut_at_the_same_places(table: list[list[str]]) -> None:
    """Cells with quotes, delimiters and line breaks: as many records as were written, each the text of its own row."""
    parts = []
    for row in table:
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(row)
        parts.append(out.getvalue().encode("utf-8"))
    text = b"".join(parts)
    cut = Cutter(b",", b'"').cut(text, final=True)
    assert not cut.malformed
    assert [text[start:end] for start, end in zip(cut.starts, cut.ends, strict=True)] == [part[:-1] for part in parts]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(SOUP)
def test_no_byte_of_a_soup_is_lost_or_counted_twice(soup: bytes) -> None:
    """Whatever the bytes are, records and refused lines are disjoint, in order, and cover every text byte."""
    cut = Cutter(b",", b'"').cut(soup, final=True)
    pieces = [
        *zip(cut.starts.tolist(), cut.ends.tolist(), strict=True),
        *((start, end) for start, end, *_ in cut.malformed),
    ]
    pieces.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(pieces))
    covered = sum(end - start for start, end in pieces)
    between = len(soup) - covered
    outside = soup
    for start, end in reversed(pieces):
        outside = outside[:start] + outside[end:]
    assert len(outside) == between
    assert not outside.strip(b"\r\n")
    assert cut.consumed == len(soup)
