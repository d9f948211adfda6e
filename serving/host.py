"""Fingerprint of this machine: what decides whether an optimized model runs, and as fast, elsewhere."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Any

# Instruction sets that change which kernels TensorFlow picks.
_INSTRUCTION_SETS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
_CPU_INFO = Path("/proc/cpuinfo")
_NVIDIA = Path("/proc/driver/nvidia")
# Name in a manifest -> distribution. A missing one is recorded as None.
_RUNTIME = {"tensorflow": "tensorflow", "tf_keras": "tf-keras", "tensorrt": "tensorrt"}


def fingerprint() -> dict[str, Any]:
    """Returns the hardware of this machine, read from the kernel: no driver is loaded, no library is imported.

    Returns:
        machine (such as x86_64), cpu (model name), instruction_sets (sorted), gpus (model names),
        gpu_driver (version or None).
    """
    cpu = _read_cpu(_CPU_INFO)
    return {
        "machine": platform.machine(),
        "cpu": cpu.get("model name", ""),
        "instruction_sets": sorted(set(cpu.get("flags", "").split()) & set(_INSTRUCTION_SETS)),
        "gpus": _gpus(_NVIDIA),
        "gpu_driver": _driver(_NVIDIA),
    }


def runtime() -> dict[str, str | None]:
    """Returns the versions of Python and of what runs models, without importing it; None for what is absent."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name, distribution in _RUNTIME.items():
        try:
            versions[name] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def _read_cpu(path: Path) -> dict[str, str]:
    """Returns the first processor's entries of a cpuinfo file; none when it cannot be read."""
    try:
        first = path.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _gpus(driver: Path) -> list[str]:
    models = []
    for path in sorted(driver.glob("gpus/*/information")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "Model":
                models.append(value.strip())
    return models


def _driver(driver: Path) -> str | None:
    """Returns the driver's version: the first dotted number in the kernel module's own description."""
    try:
        words = (driver / "version").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return None
    return next((word for word in words if word[0].isdigit() and "." in word), None)
