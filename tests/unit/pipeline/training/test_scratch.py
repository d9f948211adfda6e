"""Where large arrays of a training live, and what is left of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from core.errors import EnvironmentProblem
from pipeline.training import scratch

pytestmark = pytest.mark.unit


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of our own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("limit_bytes", "mapped"), [pytest.param(48, False, id="fits"), pytest.param(47, True, id="one byte too large")]
)
def test_the_limit_decides_between_memory_and_a_file(temporary: Path, limit_bytes: int, mapped: bool) -> None:
    """Both kinds hold what is written into them, and neither leaves a name in the temporary directory."""
    array = scratch.empty([3, 4], np.float32, limit_bytes)
    assert isinstance(array, np.memmap) is mapped
    array[:] = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(array[[2, 0], [1, 3]], [9.0, 3.0])
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(3, [0, 1, 2], id="as many"),
        pytest.param(8, [0, 1, 2, 0, 1, 2, 0, 1], id="more"),
    ],
)
def test_rows_are_repeated_where_that_many_are_kept(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, count: int, expected: list[int]
) -> None:
    """A few rows stand for many: in order, and in a file when the many do not fit into memory."""
    monkeypatch.setattr(scratch, "MEMORY_LIMIT_BYTES", 3 * 2 * 2)
    values = np.repeat(np.arange(3, dtype=np.float16)[:, np.newaxis], 2, axis=1)
    rows = scratch.repeated(values, count)
    np.testing.assert_array_equal(rows[:, 1], expected)
    assert isinstance(rows, np.memmap) is (count > 3)


def test_a_disk_without_room_is_named_before_anything_is_written(temporary: Path) -> None:
    """A cache of a million terabytes is refused in one sentence, with the directory and a way out."""
    with pytest.raises(EnvironmentProblem, match="no room for a cache") as caught:
        scratch.empty([1 << 60], np.uint8)
    assert caught.value.place == str(temporary)
    assert "TMPDIR" in caught.value.hint
