"""The fingerprint of this machine, from made-up kernel files and from the real ones."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path

import pytest

from serving import host

pytestmark = pytest.mark.unit


def test_the_fingerprint_reads_what_the_kernel_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU, the instruction sets that matter, GPUs and driver come out of the kernel's files."""
    (tmp_path / "cpuinfo").write_text("model name\t: Big Chip\nflags\t: fpu avx2 fma\n\nmodel name\t: Other\n", "utf-8")
    driver = tmp_path / "nvidia"
    (driver / "gpus" / "0").mkdir(parents=True)
    (driver / "gpus" / "0" / "information").write_text("Model: \t NVIDIA A10\nIRQ: 1\n", "utf-8")
    (driver / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct\n", "utf-8")
    monkeypatch.setattr(host, "_CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(host, "_NVIDIA", driver)
    assert host.fingerprint() == {
        "machine": platform.machine(),
        "cpu": "Big Chip",
        "instruction_sets": ["avx2", "fma"],
        "gpus": ["NVIDIA A10"],
        "gpu_driver": "535.129.03",
    }


def test_a_machine_without_those_files_has_a_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fails where the kernel offers no such files; the values are empty."""
    monkeypatch.setattr(host, "_CPU_INFO", tmp_path / "absent")
    monkeypatch.setattr(host, "_NVIDIA", tmp_path / "absent")
    found = host.fingerprint()
    assert (found["cpu"], found["instruction_sets"], found["gpus"], found["gpu_driver"]) == ("", [], [], None)


def test_the_runtime_names_absent_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions come from installed metadata, and what is not installed is None rather than left out."""

    def version(name: str) -> str:
        if name == "tensorrt":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.2"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert host.runtime() == {
        "python": platform.python_version(),
        "tensorflow": "1.2",
        "tf_keras": "1.2",
        "tensorrt": None,
    }
