"""Properties of types and values: neither depends on the order of the rows nor on the way they are parsed."""

from __future__ import annotations

import copy
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.ingest import kinds
from components.ingest.column_profile import ColumnProfile
from components.ingest.convert import Converter
from components.ingest.kinds import Kind
from core.errors import DataError
from core.settings.data import CsvSettings

pytestmark = pytest.mark.unit

_BASE = yaml.safe_load((Path(__file__).parents[4] / "configs" / "base.yaml").read_text(encoding="utf-8"))["data"]["csv"]
_ODD = [
    *("0x1F", "0X1f", "-0x1", "+0x1", "0x1p3", "0x", "1_000", " 12", "12 ", "\t12", "12\n", "\x1c12", "\u00a012"),
    *(
        "1e3",
        "1E3",
        "1e+3",
        "1.5e",
        "1e-400",
        "1e999",
        "1e39",
        "3.4028235e38",
        "3.4028236e38",
        "1.0",
        "1.",
        ".5",
        "-.5",
    ),
    *(
        "+12",
        "+1.5",
        "++1",
        "--1",
        "-",
        "+",
        ".",
        "",
        "007",
        "-007",
        "01.5",
        "01,5",
        "1,5",
        "1.234,5",
        "1 000",
        "1'000",
    ),
    *("Infinity", "-infinity", "inf", "+inf", "nan", "NaN", "-nan", "nan(1)", "١٢", "1\uff12", "²", "1f", "1d5"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "12345678901234567890", "123456789"),
    *("-0", "+0", "true", "False", "x", "NA", " NA "),
]
_PLAIN = st.one_of(
    st.integers(-(1 << 64), 1 << 64).map(str), st.floats().map(repr), st.decimals(-999, 999, places=2).map(str)
)
_SOUP = st.text(alphabet="0123456789+-.,eExX_ anif", max_size=6)
CELLS = st.lists(st.one_of(st.none(), st.sampled_from(_ODD), _PLAIN, _SOUP, st.integers(0, 99).map(str)), max_size=12)
SHUFFLED = CELLS.flatmap(lambda cells: st.tuples(st.just(cells), st.permutations(cells)))
DECIMAL = st.sampled_from([".", ","])
TYPE = st.sampled_from(["integer", "float", "boolean"])
# Text for every parser, so that a block with it is read cell by cell.
_POISON = "poison"


def csv_settings(decimal: str) -> CsvSettings:
    """Returns the settings of a file with this decimal mark."""
    return CsvSettings.model_validate({**copy.deepcopy(_BASE), "decimal": decimal, "delimiter": ";"})


def converted(cells: list[str | None], type_: Any, decimal: str) -> list[tuple[str, Any]]:
    """Returns what becomes of each cell: its value (by its bits), or why it has none."""
    result = Converter(csv_settings(decimal), "missing").convert("x", pa.array(cells, pa.string()), type_)
    values = result.values.to_pylist()
    return [
        ("bad", result.bad[row]) if row in result.bad else ("value", repr(values[row])) for row in range(len(cells))
    ]


def verdict(blocks: list[list[str | None]], decimal: str) -> tuple[str, bool]:
    """Returns the type that a column's cells lead to (or how it is refused) and whether it has a note."""
    profile = ColumnProfile("x", csv_settings(decimal))
    for block in blocks:
        profile.observe(pa.array(block, pa.string()), np.arange(len(block)) + 2, "f.csv")
    try:
        column = profile.decide()
    except DataError as error:
        return re.sub(r"(; the first is|, as ').*?( in \d|$)", "", error.headline), False
    return (column.type, bool(column.note)) if column else ("nothing", False)


@settings(max_examples=120, deadline=None, derandomize=True)
@example((["12", "0x1F", "13"], ["0x1F", "12", "13"]), ".")
@example((["1.5", "123456789"], ["123456789", "1.5"]), ".")
@given(SHUFFLED, DECIMAL)
def test_the_type_does_not_depend_on_the_order_of_the_rows(shuffled: tuple[list, list], decimal: str) -> None:
    """Any order of the cells, in one block or cell by cell, leads to the same type or the same refusal."""
    cells, permuted = shuffled
    wanted = verdict([cells], decimal)
    assert verdict([permuted], decimal) == wanted
    assert verdict([[cell] for cell in permuted], decimal) == wanted


@settings(max_examples=120, deadline=None, derandomize=True)
@example(["12", "0x1F", "13"], ".")
@given(CELLS, DECIMAL)
def test_cells_are_counted_by_the_patterns_alone(cells: list[str | None], decimal: str) -> None:
    """The shortcut by a cast counts as the patterns do; it only may take whole numbers for fractions."""
    chosen = csv_settings(decimal)
    profile = ColumnProfile("x", chosen)
    profile.observe(pa.array(cells, pa.string()), np.arange(len(cells)) + 2, "f.csv")
    wanted: Counter[Kind] = Counter()
    for cell in cells:
        if cell is not None:
            text = cell.strip()
            found = (kind for kind, pattern in kinds.patterns(chosen) if re.search(pattern, text))
            wanted[Kind.BLANK if text in chosen.null_tokens else next(found, Kind.TEXT)] += 1
    numbers = (Kind.INTEGER, Kind.FLOAT)
    assert sum(profile.counts[kind] for kind in numbers) == sum(wanted[kind] for kind in numbers)
    assert bool(profile.counts[Kind.FLOAT]) == bool(wanted[Kind.FLOAT])
    assert all(profile.counts[kind] == wanted[kind] for kind in Kind if kind not in numbers)


@settings(max_examples=120, deadline=None, derandomize=True)
@example(["12", "0x1F", "13"], "integer", ".")
@given(CELLS, TYPE, DECIMAL)
def test_fast_and_slow_parsing_give_the_same_values(cells: list[str | None], type_: str, decimal: str) -> None:
    """A cell becomes the same value, or the same reject, alone, among others, and beside one that spoils the cast."""
    slow = converted([*cells, _POISON], type_, decimal)[:-1]
    assert converted(cells, type_, decimal) == slow
    assert [converted([cell], type_, decimal)[0] for cell in cells] == slow


@pytest.mark.parametrize("cell", ["0x1F", "0X1f", "1_000", "0x1p3", "1\uff12", "nan(1)", "1,5", "01,5"], ids=ascii)
@pytest.mark.parametrize("type_", ["integer", "float"])
def test_spellings_that_are_no_decimal_number_have_no_value(cell: str, type_: str) -> None:
    """Hexadecimal, underscores, digits of other scripts and the other decimal mark are set aside, alone or not."""
    for cells in ([cell], ["12", cell], ["12", cell, _POISON]):
        assert converted(cells, type_, ".")[cells.index(cell)][0] == "bad"


def test_the_first_odd_cell_is_the_first_by_its_line() -> None:
    """Of a text and a later identifier among numbers, the text is named: it stands first."""
    profile = ColumnProfile("x", csv_settings("."))
    cells = [*map(str, range(20)), "$5", "12345678901234567890"]
    profile.observe(pa.array(cells), np.arange(len(cells)) + 2, "f.csv")
    with pytest.raises(DataError, match="is text: ") as caught:
        profile.decide()
    assert caught.value.place == "f.csv:22"


@pytest.mark.parametrize(("fractions", "noted"), [(["12E45"], True), (["1.5e3"] * 3, True), (["1.5e3"] * 9, False)])
def test_rare_fractions_are_counted_through_blocks_of_one_cast(fractions: list[str], noted: bool) -> None:
    """Whole numbers of a later block, which one cast takes as floats, do not pass for fractions."""
    profile = ColumnProfile("x", csv_settings("."))
    for block in (["7", "1e1"], [*fractions, *map(str, range(500))], [str(number) for number in range(100)]):
        profile.observe(pa.array(block, pa.string()), np.arange(len(block)) + 2, "a.csv")
    column = profile.decide()
    assert column is not None
    assert ("a.csv:3 holds '1e1'" in column.note) == noted
    assert column.note == "" or f"{len(fractions) + 1} of {602 + len(fractions)} numbers" in column.note
