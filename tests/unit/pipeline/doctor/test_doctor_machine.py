"""Disk, memory, cores, GPU and TensorRT, as findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.accelerators import Gpu, Graphics, TensorRt
from pipeline.doctor import machine
from pipeline.doctor.finding import Level

pytestmark = pytest.mark.unit


def test_a_root_that_does_not_exist_yet_is_measured_at_its_parent(tmp_path: Path) -> None:
    """A first run makes its folders, so the disk below the nearest existing one counts."""
    finding = machine.check_disk("run.root", str(tmp_path / "a" / "b"), 0.0, 0.0)
    assert finding.level is Level.OK
    assert finding.found.endswith(f"GiB free in {tmp_path}")


@pytest.mark.parametrize(
    ("block", "warn", "level"),
    [(1e9, 1e9, Level.BLOCKER), (0.0, 1e9, Level.WARNING), (0.0, 0.0, Level.OK)],
    ids=["full", "nearly full", "room"],
)
def test_free_space_decides_the_level(tmp_path: Path, block: float, warn: float, level: Level) -> None:
    """Each bound has its own level, and only OK needs no fix."""
    finding = machine.check_disk("run.root", str(tmp_path), block, warn)
    assert finding.level is level
    assert bool(finding.fix) == (level is not Level.OK)


def test_a_root_below_a_file_is_a_blocker(tmp_path: Path) -> None:
    """No folder can be made inside a file."""
    (tmp_path / "file").touch()
    finding = machine.check_disk("serving.root", str(tmp_path / "file" / "models"))
    assert (finding.level, finding.found) == (Level.BLOCKER, f"{tmp_path / 'file'} is a file")


def test_an_object_store_is_not_measured() -> None:
    """A URI is never taken for a folder."""
    assert machine.check_disk("serving.root", "s3://bucket/models").level is Level.OK


def test_little_memory_and_one_core_are_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small machines work; the finding says what to expect."""
    monkeypatch.setattr(machine, "memory_bytes", lambda: 1 << 30)
    monkeypatch.setattr(machine, "usable_cores", lambda: 0.5)
    assert (machine.check_memory().level, machine.check_memory().found) == (Level.WARNING, "1.0 GiB")
    assert machine.check_cores().level is Level.WARNING


@pytest.mark.parametrize(
    ("graphics", "tensorrt", "levels"),
    [
        pytest.param(
            Graphics(reason="no NVIDIA driver"), TensorRt(reason="gone"), (Level.NOTE, Level.NOTE), id="cpu machine"
        ),
        pytest.param(
            Graphics(reason="nvidia-smi hangs"),
            TensorRt(reason="gone"),
            (Level.WARNING, Level.NOTE),
            id="broken driver",
        ),
        pytest.param(Graphics((Gpu("T4"),), "535"), TensorRt(reason="gone"), (Level.OK, Level.WARNING), id="gpu alone"),
        pytest.param(Graphics((Gpu("T4"),), "535"), TensorRt("8.6.1"), (Level.OK, Level.OK), id="gpu and tensorrt"),
    ],
)
def test_absent_accelerators_never_stop_a_run(
    graphics: Graphics, tensorrt: TensorRt, levels: tuple[Level, Level]
) -> None:
    """A CPU machine is a choice; a GPU that cannot be used is worth a warning."""
    assert (machine.check_gpu(graphics).level, machine.check_tensorrt(tensorrt, graphics).level) == levels
