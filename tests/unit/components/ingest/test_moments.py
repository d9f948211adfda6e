"""Splits by time: moments with and without a time zone, from text and from Parquet."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from core.errors import DataError

pytestmark = pytest.mark.unit

BY_TIME = {"split__method": "time", "split__column": "at", "split__shares": {"train": 0.5, "eval": 0.5}}
START = datetime.datetime(2024, 5, 31, 12, tzinfo=datetime.timezone.utc)


def table(moments: list[str]) -> str:
    """Returns a CSV of moments, numbered."""
    return "\n".join(["id,at", *[f"{n},{moment}" for n, moment in enumerate(moments)], ""])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None], ids=str)
def test_parquet_timestamps_are_ordered(run, tmp_path: Path, unit: str, zone: str | None) -> None:
    """A timestamp column of any unit, with a zone or without, splits by time: its newer half is eval."""
    moments = [START.replace(tzinfo=None) + datetime.timedelta(minutes=7 * n) for n in range(40)]
    column = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit))
    column = column.cast(pa.timestamp(unit, zone)) if zone else column
    parquet.write_table(pa.table({"id": pa.array(range(40)), "at": column}), tmp_path / "t.parquet")
    result = run(tmp_path / "t.parquet", kind="parquet", **BY_TIME)
    assert [row["id"] for row in result.rows["eval"]] == list(range(20, 40))


def test_fractions_finer_than_microseconds_are_cut(run, tmp_path: Path) -> None:
    """Nanoseconds are no reason to refuse a column."""
    column = pa.array([1717156800000000123 + n * 1_000_000_001 for n in range(40)], pa.timestamp("ns", "UTC"))
    parquet.write_table(pa.table({"id": pa.array(range(40)), "at": column}), tmp_path / "t.parquet", version="2.6")
    result = run(tmp_path / "t.parquet", kind="parquet", **BY_TIME)
    assert [row["id"] for row in result.rows["eval"]] == list(range(20, 40))


def test_offsets_are_compared_in_utc(write, run) -> None:
    """Texts with Z and with offsets are ordered by the moment, not by the hour that they show."""
    zones = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (-11, 0, 14)]
    shown = [(START + datetime.timedelta(minutes=7 * n)).astimezone(zones[n % 3]).isoformat() for n in range(40)]
    shown = [text.replace("+00:00", "Z") for text in shown]
    result = run(write(table(shown)), **BY_TIME)
    assert [row["id"] for row in result.rows["eval"]] == list(range(20, 40))
    assert result.rows["eval"] != sorted(result.rows["eval"], key=lambda row: row["at"])


@pytest.mark.parametrize(
    ("usual", "odd", "here"),
    [
        ("2024-05-31T23:59:00Z", "2024-05-31T23:59:00", "has no time zone"),
        ("2024-05-31T23:59:00Z", "2024-05-31", "has no time zone"),
        ("2024-05-31 23:59:00.5", "2024-05-31 23:59:00.5+0200", "has a time zone"),
        ("2024-05-31", "2024-05-31T23:59-02", "has a time zone"),
    ],
    ids=["naive-among-zoned", "date-among-zoned", "zoned-among-naive", "zoned-among-dates"],
)
def test_a_mix_is_refused_with_its_line(write, run, usual: str, odd: str, here: str) -> None:
    """A moment with a zone among those without, or the other way round, is named with both lines."""
    path = write(table([usual] * 12 + [odd] + [usual] * 7))
    with pytest.raises(DataError, match=here) as caught:
        run(path, **BY_TIME)
    assert caught.value.place == f"{path}:14"
    assert f"{path}:2" in caught.value.headline


def test_a_mix_over_files_is_refused(write, run, tmp_path: Path) -> None:
    """A second file that writes moments in the other form is named."""
    write(table(["2024-05-31T23:59:00Z"] * 20), "in/a.csv")
    second = write(table(["2024-05-31T23:59:00"] * 20), "in/b.csv")
    with pytest.raises(DataError, match="has no time zone") as caught:
        run(tmp_path / "in", **BY_TIME)
    assert caught.value.place == f"{second}:2"
