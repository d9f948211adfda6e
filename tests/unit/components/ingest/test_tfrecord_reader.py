"""TFRecord input: one type for each feature, damage named by file and record."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from components.ingest import examples, tfrecord
from core.errors import ConfigError, DataError

pytestmark = pytest.mark.unit


def records(**columns: pa.Array) -> bytes:
    """Returns TFRecord bytes of one example a row."""
    encoded = examples.encode(pa.RecordBatch.from_arrays(list(columns.values()), list(columns)))
    return tfrecord.frame(encoded, tfrecord.checksums(encoded))


def ids(first: int, count: int = 40) -> pa.Array:
    """Returns consecutive whole numbers."""
    return pa.array(range(first, first + count))


def test_gzip_and_plain_side_by_side(write, write_gzip, run, tmp_path: Path) -> None:
    """Compression is told file by file, and _SUCCESS is not data."""
    write(records(id=ids(0)), "in/part-0")
    write_gzip(records(id=ids(40)), "in/part-1")
    write("", "in/_SUCCESS")
    result = run(tmp_path / "in", kind="tfrecord")
    assert sorted(row["id"] for row in result.all_rows()) == list(range(80))


def test_bad_file_is_named(write, run, tmp_path: Path) -> None:
    """A file that is no TFRecord is named, not the folder."""
    write(records(id=ids(0)), "in/part-0")
    bad = write("id,name\n1,x\n", "in/part-1")
    with pytest.raises(DataError, match="not a TFRecord") as caught:
        run(tmp_path / "in", kind="tfrecord")
    assert caught.value.place == str(bad)


def test_type_change_within_a_file_names_both_records(write, run) -> None:
    """A price that is INT in record 1 and FLOAT in record 2 is refused with both."""
    path = write(records(price=pa.array([1])) + records(price=pa.array([1.5], pa.float32())))
    with pytest.raises(DataError, match="'price' is INT in record 1, FLOAT in record 2") as caught:
        run(path, kind="tfrecord")
    assert caught.value.place == f"{path}:2"


def test_type_change_between_files_names_both_files(write, run, tmp_path: Path) -> None:
    """The same between two files names the first file as well."""
    first = write(records(price=pa.array([1])), "in/a")
    write(records(price=pa.array([b"1"])), "in/b")
    with pytest.raises(DataError, match=r"INT in record 1 of .*, BYTES in record 1") as caught:
        run(tmp_path / "in", kind="tfrecord")
    assert str(first) in caught.value.headline


def test_records_that_are_no_examples_are_named(write, run) -> None:
    """Framed bytes that are no tf.Example name their record."""
    values = pa.array([b"\xff\xff\xff"], pa.large_binary())
    path = write(records(id=ids(0, 2)) + tfrecord.frame(values, tfrecord.checksums(values)))
    with pytest.raises(DataError, match=r"record 3 is not a tf\.Example"):
        run(path, kind="tfrecord")


def test_missing_features_and_lists(write, run) -> None:
    """Features that some records lack stay missing; lists stay lists; nan is missing and counted."""
    numbers = [1.5] * 40
    numbers[3] = float("nan")
    content = records(id=ids(0), tags=pa.array([[b"a", b"b"]] * 40), x=pa.array(numbers, pa.float32())) + records(
        id=ids(40)
    )
    result = run(write(content), kind="tfrecord")
    rows = sorted(result.all_rows(), key=lambda row: row["id"])
    assert rows[0]["tags"] == [b"a", b"b"]
    assert "tags" not in rows[50]
    assert "x" not in rows[3]
    x = next(column for column in result.report.columns if column["name"] == "x")
    assert (x["non_finite"], x["missing"]) == (1, 41)


def test_groups_from_records(write, run) -> None:
    """A feature with one value a record can be the group key."""
    content = records(id=ids(0, 400), key=pa.array([n % 30 for n in range(400)]))
    result = run(write(content), kind="tfrecord", split__method="group", split__column="key")
    train, held_out = ({row["key"] for row in result.rows[name]} for name in ("train", "eval"))
    assert len(train | held_out) == 30
    assert not train & held_out


@pytest.mark.parametrize("method", ["hash", "group", "time"])
def test_a_split_column_of_lists_is_refused(write, run, method: str) -> None:
    """A feature with several values a record is no group and no moment."""
    content = records(id=ids(0), tags=pa.array([[b"a", b"b"]] * 40))
    with pytest.raises(ConfigError, match="'tags' holds lists"):
        run(write(content), kind="tfrecord", split__method=method, split__column="tags")


def test_contradicting_declaration(write, run) -> None:
    """Records carry their types; a declaration that contradicts them is a config error."""
    with pytest.raises(ConfigError, match="declared text but the records hold INT"):
        run(write(records(id=ids(0))), kind="tfrecord", types={"id": "text"})


def test_output_can_be_input(write, run) -> None:
    """What the ingestion wrote reads back to the same rows."""
    first = run(write(records(id=ids(0), x=pa.array([0.5] * 40, pa.float32()))), kind="tfrecord")
    again = run(first.folder / "Split-*" / "*.gz", kind="tfrecord")
    assert sorted(row["id"] for row in again.all_rows()) == list(range(40))
