"""TFRecord framing: round trips, and damage that is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from components.ingest import tfrecord
from core.errors import DataError

pytestmark = pytest.mark.unit

PAYLOADS = [b"", b"a", b"b" * 300, b"\0" * 5]


def framed() -> bytes:
    """Returns the TFRecord bytes of PAYLOADS."""
    values = pa.array(PAYLOADS, pa.large_binary())
    return tfrecord.frame(values, tfrecord.checksums(values))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_was_written_is_read(tmp_path: Path, pack) -> None:
    """Records come back in order with their numbers, gzip or not, whatever the name."""
    path = tmp_path / "records"
    path.write_bytes(pack(framed()))
    assert list(tfrecord.read(str(path))) == list(enumerate(PAYLOADS, start=1))


def test_known_bytes(tmp_path: Path) -> None:
    """The framing is that of the format: a one-byte record, checked against bytes that TensorFlow wrote."""
    values = pa.array([b"a"], pa.large_binary())
    expected = bytes.fromhex("0100000000000000 0175de41 61 786ee428")
    assert tfrecord.frame(values, tfrecord.checksums(values)) == expected


@pytest.mark.parametrize(
    ("position", "what"),
    [(30, "checksum"), (12 + 4 + 3, "damaged length")],
    ids=["data", "length"],
)
def test_damage_is_named_by_record(tmp_path: Path, position: int, what: str) -> None:
    """A flipped byte names file, record and offset."""
    content = bytearray(framed())
    content[position] ^= 0xFF
    path = tmp_path / "records"
    path.write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        list(tfrecord.read(str(path)))
    assert caught.value.place.startswith(str(path))
    assert "record 2 at byte 16" in caught.value.headline


@pytest.mark.parametrize("keep", [-2, 16 + 6, 16 + 13], ids=["footer", "header", "data"])
def test_cut_files_are_named(tmp_path: Path, keep: int) -> None:
    """A file that ends within a record says where."""
    path = tmp_path / "records"
    path.write_bytes(framed()[:keep])
    with pytest.raises(DataError, match="cut short"):
        list(tfrecord.read(str(path)))


def test_other_files_are_no_tfrecord(tmp_path: Path) -> None:
    """A text file is not a TFRecord file, and says so by name."""
    path = tmp_path / "notes.txt"
    path.write_text("not a record at all")
    with pytest.raises(DataError, match="not a TFRecord file") as caught:
        list(tfrecord.read(str(path)))
    assert caught.value.place == str(path)
