"""The hardware and software that something was made or measured on, for manifests and reports."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import psutil

from core.accelerators import find_graphics, find_tensorrt

FORMAT_VERSION = 1
# The distributions whose versions decide what a model computes and whether an engine loads.
_PARTS = (
    "forebay",
    "tensorflow",
    "tf-keras",
    "tfx",
    "tensorflow-transform",
    "tensorflow-model-analysis",
    "apache-beam",
    "numpy",
)
_CPU_INFO = Path("/proc/cpuinfo")
_CGROUP = Path("/sys/fs/cgroup")
_MIB = 1 << 20


def collect() -> dict[str, Any]:
    """Returns a JSON-serializable record of this machine, without loading TensorFlow.

    Returns:
        `cpu` (model, cores usable by this process), `memory_mib`, `gpus` (name, compute capability, architecture,
        memory), `driver`, `tensorrt` (version, or null and a reason), `platform`, `python`, and `versions` by
        distribution.
    """
    graphics = find_graphics()
    tensorrt = find_tensorrt()
    return {
        "format_version": FORMAT_VERSION,
        "cpu": {"model": cpu_model(), "cores": usable_cores()},
        "memory_mib": memory_bytes() // _MIB,
        "gpus": [
            {
                "name": gpu.name,
                "compute_capability": gpu.compute_capability or None,
                "architecture": gpu.architecture or None,
                "memory_mib": gpu.memory_mib or None,
            }
            for gpu in graphics.gpus
        ],
        "driver": graphics.driver or None,
        "tensorrt": {"version": tensorrt.version or None, "reason": tensorrt.reason},
        "platform": {
            "system": platform.system(),
            "machine": platform.machine(),
            "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()).strip(),
        },
        "python": platform.python_version(),
        "versions": {name: version_of(name) for name in _PARTS},
    }


def version_of(distribution: str) -> str | None:
    """Returns the installed version of a distribution, from its metadata; None when it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.lru_cache(maxsize=1)
def cpu_model() -> str:
    """Returns the processor's name as the kernel gives it, or its architecture where the kernel gives none."""
    if _CPU_INFO.is_file():
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.machine()


def usable_cores() -> float:
    """Returns how many cores this process may use: its affinity, cut by a container's quota (maybe a fraction)."""
    cores = float(len(os.sched_getaffinity(0)))
    quota = _first_line("cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit():
        cores = min(cores, int(quota[0]) / int(quota[1]))
    return cores


def memory_bytes() -> int:
    """Returns how much memory this process may use: the machine's, cut by a container's limit."""
    total = int(psutil.virtual_memory().total)
    limit = _first_line("memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def _first_line(name: str) -> str:
    """Returns one control-group file's first line; empty outside a container or under the first version of cgroups."""
    try:
        return (_CGROUP / name).read_text(encoding="ascii").splitlines()[0]
    except (OSError, IndexError):
        return ""
