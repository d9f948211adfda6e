"""Splits: shares, groups, time, and the check that nothing is shared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from components.ingest import times
from core.errors import ConfigError, DataError

pytestmark = pytest.mark.unit


def people(rows: int, groups: int) -> str:
    """Returns a CSV of visits: several rows for each person."""
    lines = [f"{n},p{n % groups},2024-01-{1 + n % 28:02d},{n}" for n in range(rows)]
    return "\n".join(["id,person,day,tick", *lines, ""])


def test_shares_are_kept(write, run) -> None:
    """About two thirds of many rows fall into a split of two thirds."""
    shares = {"train": 0.6667, "eval": 0.3333}
    result = run(write(people(6000, 10)), split__shares=shares)
    assert abs(result.report.rows_written["train"] / 6000 - 0.6667) < 0.03
    assert sum(result.report.rows_written.values()) == 6000


def test_three_splits(write, run) -> None:
    """Any number of splits can be named."""
    result = run(write(people(3000, 10)), split__shares={"train": 0.5, "eval": 0.25, "test": 0.25})
    assert set(result.report.rows_written) == {"train", "eval", "test"}
    assert min(result.report.rows_written.values()) > 600


def test_equal_rows_stay_together(write, run) -> None:
    """With method hash, identical rows are in one split."""
    text = "\n".join(["a,b", *[f"{n % 50},x" for n in range(500)], ""])
    result = run(write(text))
    train, held_out = ({row["a"] for row in result.rows[name]} for name in ("train", "eval"))
    assert train
    assert held_out
    assert not train & held_out


def test_files_in_another_order_split_alike(write, run, tmp_path: Path) -> None:
    """Which split a row falls into does not depend on the order of the files or rows."""
    rows = [f"{n},x" for n in range(400)]
    write("\n".join(["a,b", *rows[:200], ""]), "one/1.csv")
    write("\n".join(["a,b", *rows[200:], ""]), "one/2.csv")
    write("\n".join(["a,b", *reversed(rows), ""]), "two/1.csv")
    first, second = run(tmp_path / "one"), run(tmp_path / "two")
    assert {row["a"] for row in first.rows["eval"]} == {row["a"] for row in second.rows["eval"]}


def test_seed_changes_the_split(write, run) -> None:
    """Another seed puts other rows into eval; the same seed gives the same files."""
    path = write(people(400, 10))
    one, again, other = run(path), run(path), run(path, split__seed="other")
    shard = "Split-eval/data_tfrecord-00000-of-00001.gz"
    assert (one.folder / shard).read_bytes() == (again.folder / shard).read_bytes()
    assert {row["id"] for row in one.rows["eval"]} != {row["id"] for row in other.rows["eval"]}


def test_groups_are_not_shared(write, run) -> None:
    """With method group no person is in two splits."""
    result = run(write(people(600, 40)), split__method="group", split__column="person")
    train, held_out = ({row["person"] for row in result.rows[name]} for name in ("train", "eval"))
    assert len(train | held_out) == 40
    assert not train & held_out
    assert result.report.split["leakage"]["rows_checked"] == 600


def test_groups_split_alike_as_number_and_text(write, run) -> None:
    """A group key falls into the same split whether its column is read as number or as text."""
    path = write("\n".join(["key,x", *[f"{n % 60},{n}" for n in range(600)], ""]))
    chosen = {"split__method": "group", "split__column": "key"}
    number, text = run(path, **chosen), run(path, types={"key": "text"}, **chosen)
    assert {str(row["key"]).encode() for row in number.rows["eval"]} == {row["key"] for row in text.rows["eval"]}


def test_rows_without_a_group_are_set_aside(write, run) -> None:
    """A row without a group cannot be placed and is counted with its line."""
    lines = people(600, 40).splitlines()
    lines[11] = "10,,2024-01-11,10"
    result = run(write("\n".join(lines)), split__method="group", split__column="person")
    assert [(reject["line"], reject["raw"]) for reject in result.quarantine] == [(12, "10,,2024-01-11,10")]
    assert result.report.balances()


@pytest.mark.parametrize("column", ["day", "tick"], ids=["iso-text", "number"])
def test_newest_rows_are_held_out(write, run, column: str) -> None:
    """With method time every eval row is newer than every train row."""
    result = run(
        write(people(560, 40)),
        split__method="time",
        split__column=column,
        split__shares={"train": 0.75, "eval": 0.25},
    )
    train, held_out = ([row[column] for row in result.rows[name]] for name in ("train", "eval"))
    assert max(train) < min(held_out)
    assert abs(len(held_out) / 560 - 0.25) < 0.05


@pytest.mark.parametrize("method", ["hash", "time"])
def test_the_order_of_the_shares_means_nothing(write, run, method: str) -> None:
    """Listing eval before train changes no row's split: under time, train still has the oldest rows."""
    chosen = {"split__method": method, "split__column": "tick"}
    path = write(people(400, 10))
    one = run(path, split__shares={"train": 0.75, "eval": 0.25}, **chosen)
    two = run(path, split__shares={"eval": 0.25, "train": 0.75}, **chosen)
    assert one.rows["eval"] == two.rows["eval"]
    assert len(one.rows["eval"]) < 200


def test_unordered_time_texts_are_refused(write, run) -> None:
    """Texts that are no ISO 8601 moments cannot be put in order; the first of them is named with its line."""
    days = ["2024-05-31"] * 20 + ["12/31/2024"] * 10
    path = write("\n".join(["id,day", *[f"{n},{day}" for n, day in enumerate(days)], ""]))
    with pytest.raises(DataError, match="'12/31/2024' in the time column 'day' cannot be put in order") as caught:
        run(path, split__method="time", split__column="day")
    assert caught.value.place == f"{path}:22"


def test_an_empty_split_is_refused(write, run) -> None:
    """One group cannot fill two splits: the empty one is named."""
    with pytest.raises(DataError, match=r"split '(train|eval)' got none of 50 rows"):
        run(write(people(50, 1)), split__method="group", split__column="person")


def test_unknown_split_column_is_a_config_error(write, run) -> None:
    """A split column that is not there names the nearest one."""
    with pytest.raises(ConfigError, match="did you mean 'person'"):
        run(write(people(50, 5)), split__method="group", split__column="persno")


def test_shards_share_the_rows(write, run) -> None:
    """Several shards hold each row once, evenly."""
    result = run(write(people(600, 40)), shards=3)
    assert len(list((result.folder / "Split-train").iterdir())) == 3
    assert sorted(row["id"] for row in result.all_rows()) == list(range(600))


def test_time_sample_keeps_its_memory(monkeypatch: pytest.MonkeyPatch, settings) -> None:
    """Above the bound the boundary comes from an even sample and is close to the exact one."""
    monkeypatch.setattr(times, "_MAX_TIMES", 1000)
    sample = times.TimeSample()
    for block in np.array_split(np.arange(20_000), 40):
        sample.add(block)
    boundary = sample.boundaries(settings(split__shares={"train": 0.75, "eval": 0.25}).split)
    assert abs(boundary[0] - 15_000) < 100
