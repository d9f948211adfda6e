"""The record of the machine that manifests and reports carry."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from core import fingerprint

pytestmark = pytest.mark.unit


def test_the_record_is_complete_and_survives_json() -> None:
    """Every group is there, and what is absent is null with a reason instead of missing."""
    record = fingerprint.collect()
    assert json.loads(json.dumps(record)) == record
    assert set(record) == {
        "format_version", "cpu", "memory_mib", "gpus", "driver", "tensorrt", "platform", "python", "versions",
    }  # fmt: skip
    assert record["versions"]["tensorflow"] == "2.16.2"
    assert record["cpu"]["cores"] > 0
    assert (record["tensorrt"]["version"] is None) == bool(record["tensorrt"]["reason"])


def test_a_package_that_is_not_installed_has_no_version() -> None:
    """Absent is None, not an exception."""
    assert fingerprint.version_of("no-such-distribution-as-this") is None


@pytest.mark.parametrize(
    ("content", "cores"),
    [
        pytest.param("50000 100000", 0.5, id="half a core"),
        pytest.param("max 100000", None, id="no quota"),
        pytest.param("", None, id="empty file"),
    ],
)
def test_a_containers_quota_cuts_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, cores: float | None
) -> None:
    """The kernel's own file format is read; without a quota the affinity alone counts."""
    monkeypatch.setattr(fingerprint, "_CGROUP", tmp_path / "absent")
    without = fingerprint.usable_cores()
    monkeypatch.setattr(fingerprint, "_CGROUP", tmp_path)
    (tmp_path / "cpu.max").write_text(content, encoding="ascii")
    assert fingerprint.usable_cores() == (without if cores is None else cores)


def test_a_containers_limit_cuts_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container of 1 MiB has 1 MiB, whatever the machine has."""
    monkeypatch.setattr(fingerprint, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1048576\n", encoding="ascii")
    assert fingerprint.memory_bytes() == 1 << 20


def test_the_processor_is_named_where_the_kernel_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a model name the architecture stands in."""
    fingerprint.cpu_model.cache_clear()
    (tmp_path / "cpuinfo").write_text("processor : 0\n", encoding="ascii")
    monkeypatch.setattr(fingerprint, "_CPU_INFO", tmp_path / "cpuinfo")
    try:
        assert fingerprint.cpu_model() == fingerprint.platform.machine()
    finally:
        fingerprint.cpu_model.cache_clear()


def test_no_heavy_library_is_needed() -> None:
    """Manifests are written by processes that have no TensorFlow: the module must not be what loads it."""
    heavy = {"tensorflow", "tfx", "apache_beam"}
    names = {name for name, module in vars(fingerprint).items() if getattr(module, "__name__", "") in sys.modules}
    assert not heavy & names
