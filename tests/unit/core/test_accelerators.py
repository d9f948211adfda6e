"""What a machine has to run models fast, with tiny stand-ins for the driver's tools and NVIDIA's libraries."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import accelerators

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """Forgets what an earlier test, or this machine, was seen to have."""
    accelerators.find_graphics.cache_clear()
    accelerators.find_tensorrt.cache_clear()
    yield
    accelerators.find_graphics.cache_clear()
    accelerators.find_tensorrt.cache_clear()


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hides the real machine's driver and libraries; returns the only folder on the PATH and the library path."""
    monkeypatch.setattr(accelerators, "_DRIVER_FOLDER", tmp_path / "driver")
    monkeypatch.setattr(accelerators, "_LINKER_CACHE", tmp_path / "ld.so.cache")
    monkeypatch.setattr(accelerators, "_LIBRARY_FOLDERS", ())
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def _install_tool(folder: Path, script: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def test_a_machine_without_a_driver_has_no_gpu_and_says_why(bare_machine: Path) -> None:
    """Nothing installed is an answer, not an error."""
    assert accelerators.find_graphics() == accelerators.Graphics(reason="no NVIDIA driver")


def test_gpus_are_read_from_the_drivers_tool(bare_machine: Path) -> None:
    """Name, capability, architecture, memory and driver come from one call."""
    _install_tool(bare_machine, "echo 'NVIDIA A10, 8.6, 23028, 535.104'\necho 'NVIDIA L4, 8.9, 23034, 535.104'")
    found = accelerators.find_graphics()
    assert found.driver == "535.104"
    assert found.gpus == (
        accelerators.Gpu("NVIDIA A10", "8.6", "Ampere", 23028),
        accelerators.Gpu("NVIDIA L4", "8.9", "Ada", 23034),
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param(
            "echo 'NVIDIA-SMI has failed'; exit 9", "nvidia-smi shows no GPU: NVIDIA-SMI has failed", id="driver"
        ),
        pytest.param("exit 3", "nvidia-smi shows no GPU: exit code 3", id="silent"),
        pytest.param("exec /bin/sleep 30", "nvidia-smi did not answer within 0.2 s", id="hangs"),
    ],
)
def test_a_broken_driver_is_named_and_never_waited_for(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    """A tool that fails or hangs becomes a reason."""
    monkeypatch.setattr(accelerators, "_QUERY_TIMEOUT_S", 0.2)
    _install_tool(bare_machine, script)
    assert accelerators.find_graphics().reason == reason


def test_the_kernel_module_is_read_where_the_tool_is_missing(bare_machine: Path) -> None:
    """A container with the driver but without nvidia-smi still knows its GPU."""
    gpu = bare_machine / "driver" / "gpus" / "0000:01:00.0"
    gpu.mkdir(parents=True)
    (gpu / "information").write_text("Model: \t\t NVIDIA T4\nIRQ: 1\n", encoding="utf-8")
    (bare_machine / "driver" / "version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue\n", encoding="utf-8"
    )
    assert accelerators.find_graphics() == accelerators.Graphics((accelerators.Gpu("NVIDIA T4"),), driver="535.54.03")


@pytest.mark.parametrize(
    ("capability", "name"),
    [("7.0", "Volta"), ("7.5", "Turing"), ("8.0", "Ampere"), ("8.9", "Ada"), ("9.0", "Hopper"), ("99.1", ""), ("", "")],
)
def test_architectures_follow_the_compute_capability(capability: str, name: str) -> None:
    """The minor number decides where one major number covers two architectures; unknown stays unknown."""
    assert accelerators.architecture_of(capability) == name


def test_absent_tensorrt_is_said_in_so_many_words(bare_machine: Path) -> None:
    """The reason names the file that TensorFlow looks for."""
    assert accelerators.find_tensorrt() == accelerators.TensorRt(reason="libnvinfer.so.8.6.1 not found")


def test_another_tensorrt_is_named_and_not_accepted(bare_machine: Path) -> None:
    """TensorRT 10 beside TensorFlow 2.16 is the usual mistake."""
    (bare_machine / "libnvinfer.so.10").touch()
    assert accelerators.find_tensorrt().reason == (
        "libnvinfer.so.8.6.1 not found; there is libnvinfer.so.10, which TensorFlow 2.16.2 does not load"
    )


def test_tensorrt_without_its_plugins_is_not_usable(bare_machine: Path) -> None:
    """TensorFlow needs both libraries."""
    (bare_machine / "libnvinfer.so.8.6.1").touch()
    assert accelerators.find_tensorrt().reason == "libnvinfer_plugin.so.8.6.1 not found beside libnvinfer.so.8.6.1"


def test_libraries_that_do_not_load_are_not_counted_as_found(bare_machine: Path) -> None:
    """Two files with the right names prove nothing: they are loaded, in a child process."""
    for name in accelerators.TENSORRT_LIBRARIES:
        (bare_machine / name).write_bytes(b"not a library")
    found = accelerators.find_tensorrt()
    assert found.version == ""
    assert found.reason.startswith("libnvinfer.so.8.6.1 does not load: ")


def test_the_linkers_cache_is_searched(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library outside the usual folders is found where ldconfig has registered it."""
    monkeypatch.delenv("LD_LIBRARY_PATH")
    hidden = bare_machine / "opt" / "libnvinfer.so.8.5.3"
    hidden.parent.mkdir()
    hidden.touch()
    (bare_machine / "ld.so.cache").write_bytes(
        b"header\0libnvinfer.so.8\0" + os.fsencode(hidden) + b"\0/gone/libnvinfer.so.8\0"
    )
    assert "there is libnvinfer.so.8.5.3" in accelerators.find_tensorrt().reason
