"""Parquet: types come from the schema, falsy values are values."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from components.ingest import arrow_values
from core.errors import DataError

pytestmark = pytest.mark.unit


@pytest.fixture
def table(tmp_path: Path):
    """Returns a function: columns and a file name -> path of a Parquet file."""

    def make(columns: dict[str, pa.Array], name: str = "table.parquet") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({"id": pa.array(range(len(next(iter(columns.values()))))), **columns}), path)
        return path

    return make


def one(result, name: str) -> list:
    """Returns a feature by id, None where it is missing."""
    rows = sorted(result.all_rows(), key=lambda row: row["id"])
    return [row.get(name) for row in rows]


def test_falsy_values_are_kept(table, run) -> None:
    """0, 0.0 and false are values; an empty text is missing or kept by policy."""
    path = table(
        {
            "label": pa.array([0, 1] * 20),
            "flag": pa.array([False, True] * 20),
            "amount": pa.array([0.0, 1.5] * 20),
            "text": pa.array(["", "x"] * 20),
        }
    )
    result = run(path, kind="parquet")
    assert one(result, "label") == [0, 1] * 20
    assert one(result, "flag") == [0, 1] * 20
    assert one(result, "amount") == [0.0, 1.5] * 20
    assert one(result, "text") == [None, b"x"] * 20
    assert one(run(path, kind="parquet", empty_string="keep"), "text") == [b"", b"x"] * 20


def test_types_of_all_kinds(table, run) -> None:
    """Small and large numbers, decimals, dictionaries, moments and lists become the three types of tf.Example."""
    day = datetime.date(2024, 5, 3)
    moment = datetime.datetime(2024, 5, 3, 12, 30, tzinfo=datetime.timezone.utc)
    path = table(
        {
            "tiny": pa.array([-1] * 30, pa.int8()),
            "half": pa.array([1.5] * 30, pa.float64()).cast(pa.float32()),
            "price": pa.array([decimal.Decimal("9.50")] * 30),
            "colour": pa.array(["red"] * 30).dictionary_encode(),
            "day": pa.array([day] * 30),
            "moment": pa.array([moment] * 30, pa.timestamp("us", "UTC")),
            "raw": pa.array([b"\xff"] * 30),
            "tags": pa.array([["a", "b"]] * 30),
        }
    )
    result = run(path, kind="parquet", types={"moment": "integer"})
    row = result.all_rows()[0]
    assert (row["tiny"], row["half"], row["price"]) == (-1, 1.5, 9.5)
    assert (row["colour"], row["raw"], row["tags"]) == (b"red", b"\xff", [b"a", b"b"])
    assert (row["day"], row["moment"]) == (b"2024-05-03", int(moment.timestamp()))


def test_moments_are_text_unless_declared(table, run) -> None:
    """A timestamp becomes ISO 8601 text and the report says so."""
    moment = datetime.datetime(2024, 5, 3, 12, 30, tzinfo=datetime.timezone.utc)
    result = run(table({"moment": pa.array([moment] * 30, pa.timestamp("s", "UTC"))}), kind="parquet")
    assert set(one(result, "moment")) == {b"2024-05-03T12:30:00Z"}
    assert "ISO 8601" in result.report.columns[1]["note"]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([{"a": 1}] * 10),
        pa.array([[[1]]] * 10),
        pa.array([datetime.timedelta(1)] * 10),
    ],
    ids=["struct", "list-of-lists", "duration"],
)
def test_unsupported_types_are_named(table, run, values: pa.Array) -> None:
    """A type that tf.Example cannot hold is refused by column and type."""
    with pytest.raises(DataError, match="column 'odd' has type") as caught:
        run(table({"odd": values}), kind="parquet")
    assert "not supported" in caught.value.headline


def test_non_finite_and_too_large_values(table, run) -> None:
    """A nan is missing and counted; an unsigned number beyond 64 bits with sign is set aside with its row."""
    numbers = [1.5] * 200
    numbers[5] = float("nan")
    large = [1] * 200
    large[7] = 2**64 - 1
    path = table({"x": pa.array(numbers), "big": pa.array(large, pa.uint64())})
    result = run(path, kind="parquet")
    assert result.report.columns[1]["non_finite"] == 1
    assert [(reject["line"], "64 bits" in reject["reason"]) for reject in result.quarantine] == [(8, True)]
    assert "18446744073709551615" in result.quarantine[0]["raw"]
    refused = run(path, kind="parquet", non_finite="refuse")
    assert [reject["line"] for reject in refused.quarantine] == [6, 8]


def test_lists_of_numbers(table, run) -> None:
    """Lists keep their values, gaps and empty lists; one that holds a nan is missing as a whole and counted."""
    lists = [[1.5, 2.5], [], None, [0.5, float("nan")]] * 10
    path = table({"x": pa.array(lists), "n": pa.array([[True], [False]] * 20)})
    result = run(path, kind="parquet")
    assert one(result, "x")[:4] == [[1.5, 2.5], [], None, None]
    assert one(result, "n")[:2] == [1, 0]
    x = next(column for column in result.report.columns if column["name"] == "x")
    assert (x["missing"], x["non_finite"]) == (20, 10)


@pytest.mark.parametrize(
    ("type_", "values", "wanted"),
    [
        (pa.list_(pa.int64()), [[1, None, 3], [None], None, [4, 5]], [[1, 3], [], None, [4, 5]]),
        (pa.list_(pa.float64()), [[None, 1.5, 2.5], [], None, [0.5, 1.0]], [[1.5, 2.5], [], None, [0.5, 1.0]]),
        (pa.list_(pa.string()), [["a", None, "b"], [None], None, ["c", "d"]], [[b"a", b"b"], [], None, [b"c", b"d"]]),
        (pa.large_list(pa.int32()), [[1, None, 2], [], None, [3, 4]], [[1, 2], [], None, [3, 4]]),
        (pa.list_(pa.int64(), 3), [[1, 2, 3], [None, 4, 5]], [[1, 2, 3], [4, 5]]),
    ],
    ids=["whole", "float", "text", "large", "fixed-size"],
)
def test_nulls_inside_lists_are_left_out(table, run, type_: pa.DataType, values: list, wanted: list) -> None:
    """Lists of every layout keep their values in order; a null inside one is left out, a null list is missing."""
    result = run(table({"x": pa.array(values * 10, type_)}), kind="parquet")
    assert one(result, "x") == wanted * 10


def test_missing_fixed_size_lists_stay_missing() -> None:
    """A null among fixed-size lists is a missing list, also in a slice, and its slots shift no other row."""
    lists = pa.array([[0, 0], [1, 2], None, [None, 3]], pa.list_(pa.int64(), 2)).slice(1)
    values, bad = arrow_values.convert(lists, "integer")
    assert (values.to_pylist(), bad) == ([[1, 2], None, [3]], {})
    assert values.type == pa.list_(pa.int64())


def test_empty_columns_are_named(table, run) -> None:
    """A column of nulls, of type null or of empty texts has no values."""
    path = table({"a": pa.array([None] * 30), "b": pa.array([None] * 30, pa.int64()), "c": pa.array([""] * 30)})
    assert run(path, kind="parquet").report.excluded == ["a", "b", "c"]


def test_other_schemas_in_a_later_file_are_refused(table, run, tmp_path: Path) -> None:
    """A second file with another type, or without a column, is named."""
    table({"x": pa.array([1] * 10)}, "in/a.parquet")
    table({"x": pa.array(["1"] * 10)}, "in/b.parquet")
    with pytest.raises(DataError, match="column 'x' has type string here and int64") as caught:
        run(tmp_path / "in", kind="parquet")
    assert caught.value.place.endswith("b.parquet")


@pytest.mark.parametrize("content", [b"id,x\n1,2\n", b"PAR1 cut short"], ids=["csv", "damaged"])
def test_files_that_are_no_parquet_are_named(write, run, content: bytes) -> None:
    """A file that is not Parquet, or damaged, is named."""
    path = write(content, "bad.parquet")
    with pytest.raises(DataError, match="cannot be read as Parquet") as caught:
        run(path, kind="parquet")
    assert caught.value.place == str(path)


def test_numbers_may_be_declared_text(table, run) -> None:
    """A numeric identifier can be read as text; a text cannot be declared a number."""
    path = table({"code": pa.array([7] * 30), "name": pa.array(["x"] * 30)})
    assert set(one(run(path, kind="parquet", types={"code": "text"}), "code")) == {b"7"}
    with pytest.raises(DataError, match="cannot become integer"):
        run(path, kind="parquet", types={"name": "integer"})
