"""Leakage: what the splits share although their rule does not look at it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from components.ingest import examples, leakage, splitting
from components.ingest.leakage import SharedFingerprints
from core.errors import ConfigError, DataError

pytestmark = pytest.mark.unit


def visits(rows: int, persons: int, copies: int) -> str:
    """Returns a CSV of visits; the first `copies` occur once more, under another person and on a later day."""
    lines = [f"v{n},p{n % persons},2024-01-{1 + n % 28:02d}" for n in range(rows)]
    again = [f"v{n},q{n % persons},2025-01-{1 + n % 28:02d}" for n in range(copies)]
    return "\n".join(["visit,person,day", *lines, *again, ""])


def test_groups_in_both_hash_splits_are_refused(write, run) -> None:
    """With method hash and a group column, persons who are in train and eval are counted and the data is refused."""
    with pytest.raises(DataError, match=r"40 of 40 groups of 'person' are in more than one split") as caught:
        run(write(visits(600, 40, 0)), split__column="person")
    assert "data.split.method: group" in caught.value.hint
    assert caught.value.place == "data.split.column"


def test_groups_that_hash_keeps_apart_pass(write, run) -> None:
    """A group column whose groups have one row each shares nothing, and the report says what was looked at."""
    lines = ["visit,person", *[f"v{n},{f'p{n}' if n % 4 else ''}" for n in range(400)], ""]
    found = run(write("\n".join(lines)), split__column="person").report.split["leakage"]
    assert found == {
        "checked": "groups of 'person'",
        "groups_checked": 300,
        "groups_shared": 0,
        "rows_checked": None,
        "duplicate_rows_shared": None,
        "checked_share": 1.0,
    }


def test_hash_alone_claims_no_check(write, run) -> None:
    """Without a column there is nothing that method hash did not decide itself: the report says so, and no number."""
    found = run(write(visits(400, 40, 0))).report.split["leakage"]
    assert found["checked"].startswith("nothing: ")
    assert {value for key, value in found.items() if key != "checked"} == {None}


def test_an_unknown_column_is_refused_with_method_hash_too(write, run) -> None:
    """A misspelt group column is not passed over."""
    with pytest.raises(ConfigError, match="did you mean 'person'"):
        run(write(visits(50, 5, 0)), split__column="persno")


def test_rows_at_two_times_are_counted(write, run) -> None:
    """With method time a row that occurs again later, in eval, is counted without its moment and warned about."""
    lines = visits(400, 40, 0).splitlines()
    again = [line.replace("2024-", "2025-") for line in lines[1:31]]
    new = [f"new{n},p1,2025-02-01" for n in range(370)]
    result = run(write("\n".join([*lines, *again, *new])), split__method="time", split__column="day")
    found = result.report.split["leakage"]
    assert (found["checked"], found["rows_checked"], found["duplicate_rows_shared"]) == ("rows without 'day'", 770, 30)
    assert found["groups_shared"] is None
    assert [line for line in result.report.warnings if "30 of 770 different rows without 'day'" in line]


def test_rows_under_two_groups_are_counted(write, run) -> None:
    """With method group a row that occurs under another group too, in the other split, is counted."""
    lines = [f"v{n},{who}{n}" for n in range(200) for who in "pq"]
    result = run(write("\n".join(["visit,person", *lines, ""])), split__method="group", split__column="person")
    held = {name: {row["visit"] for row in rows} for name, rows in result.rows.items()}
    found = result.report.split["leakage"]
    assert found["rows_checked"] == 200
    assert found["duplicate_rows_shared"] == len(held["train"] & held["eval"]) > 0


def test_no_shared_row_is_no_warning(write, run) -> None:
    """Splits that share nothing are reported as such."""
    result = run(write(visits(400, 40, 0)), split__method="group", split__column="person")
    assert result.report.split["leakage"]["duplicate_rows_shared"] == 0
    assert result.report.warnings == []


def test_rows_of_the_split_column_alone_hold_nothing_to_compare(write, run) -> None:
    """A table that has only the split column has no duplicates but for it."""
    result = run(write("\n".join(["tick", *map(str, range(50))])), split__method="time", split__column="tick")
    assert result.report.split["leakage"]["rows_checked"] == 0


def test_content_leaves_out_one_column() -> None:
    """The content beside the examples is equal when nothing but the column left out differs; examples are as ever."""
    batch = pa.RecordBatch.from_pydict({"a": [1, 1, 2], "b": [b"x", b"y", b"x"], "c": pa.array([None, None, [1.0]])})
    encoded, content = examples.encode_without(batch, "b")
    assert encoded.equals(examples.encode(batch))
    one, two, three = content.to_pylist()
    assert one == two != three


def test_shared_fingerprints_are_counted_once() -> None:
    """A fingerprint in two or three splits counts as one that is shared."""
    check = SharedFingerprints(["train", "eval", "test"])
    check.add("train", np.array([1, 2, 3, 3], np.uint64))
    check.add("eval", np.array([3, 4], np.uint64))
    check.add("test", np.array([3, 4], np.uint64))
    assert check.counts() == (4, 2)
    assert check.checked_share == 1.0


def test_the_check_keeps_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the bound only a part of the fingerprints is looked at, the same in both splits, and it says so."""
    monkeypatch.setattr(leakage, "_MAX_KEPT", 100)
    monkeypatch.setattr(leakage, "_MAX_WAITING", 150)
    check = SharedFingerprints(["train", "eval"])
    for block in np.array_split(splitting.mix(np.arange(1000, dtype=np.uint64), np.uint64(7)), 10):
        check.add("train", block)
        check.add("eval", block)
    looked_at, shared = check.counts()
    assert check.checked_share <= 1 / 8
    assert 0 < looked_at <= 100
    assert shared == looked_at
