"""Serialization: what other coders read back, and one result for equal rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from components.ingest import examples

pytestmark = pytest.mark.unit

BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array([0, None, -1, 127, 128, 2**63 - 1, -(2**63)], pa.int64()),
        pa.array([0.0, -0.0, None, 1.5, 3.4e38, 1e-40, 2.0], pa.float32()),
        pa.array([b"", b"x", None, "é".encode(), b"y" * 200, b"\0", b"x"], pa.binary()),
        pa.array([[1, 2], [], None, [300], [-5, 0], [7], [8]], pa.list_(pa.int64())),
        pa.array([[b"a", b""], [], None, [b"b" * 130], [b"c"], [b"d"], [b"e"]], pa.list_(pa.binary())),
        pa.array([[1.0], [], None, [2.0, 3.0], [4.0], [5.0], [6.0]], pa.list_(pa.float32())),
    ],
    ["whole", "float", "text", "wholes", "texts", "floats"],
)


def decoded(batch: pa.RecordBatch) -> list[dict[str, object]]:
    """Returns {feature: list} of each row after tfx_bsl's C++ decoder; missing features are left out."""
    from tfx_bsl.coders import example_coder

    back = example_coder.ExamplesToRecordBatchDecoder().DecodeBatch(examples.encode(batch).to_pylist())
    return [{name: value for name, value in row.items() if value is not None} for row in back.to_pylist()]


def test_other_coders_read_the_same_values() -> None:
    """tfx_bsl decodes every value, sign, empty text and empty list as it went in; null is an absent feature."""
    expected = [
        {name: value if isinstance(value, list) else [value] for name, value in row.items() if value is not None}
        for row in BATCH.to_pylist()
    ]
    assert decoded(BATCH) == expected


def test_sliced_batches_encode_their_own_rows() -> None:
    """A slice encodes as those rows of the whole: offsets into shared buffers are honoured."""
    assert examples.encode(BATCH.slice(2, 3)).to_pylist() == examples.encode(BATCH).to_pylist()[2:5]


def test_column_order_does_not_change_the_bytes() -> None:
    """The same row with its columns in another order gives the same bytes."""
    names = list(reversed(BATCH.schema.names))
    columns = [BATCH.column(BATCH.schema.get_field_index(name)) for name in names]
    assert examples.encode(pa.RecordBatch.from_arrays(columns, names)).equals(examples.encode(BATCH))


def test_rows_without_any_value_are_empty_examples() -> None:
    """A row in which everything is missing is an example of zero bytes."""
    batch = pa.RecordBatch.from_arrays([pa.array([None, 1], pa.int64())], ["a"])
    assert examples.encode(batch).to_pylist()[0] == b""


def test_no_rows() -> None:
    """An empty batch gives no examples."""
    assert len(examples.encode(BATCH.slice(0, 0))) == 0


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, -1, (1 << 63) - 1, -(1 << 63)])
def test_one_row_alone_is_written_like_a_column(number: int) -> None:
    """A single record has the bytes that the same row has in a batch."""
    row = {"zeta": number, "image": b"\xff\xd8" * 200, "alpha": 0.25, "é": b"", "empty": b"x"}
    types = {"zeta": pa.int64(), "alpha": pa.float32()}
    columns = {name: pa.array([value], types.get(name, pa.binary())) for name, value in row.items()}
    assert examples.encode_one(row) == examples.encode(pa.RecordBatch.from_pydict(columns))[0].as_py()
    assert examples.encode_one({}) == b""
