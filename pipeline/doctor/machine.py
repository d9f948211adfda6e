"""What the machine has: disk, memory, cores, GPU, TensorRT."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from core.accelerators import TENSORRT_WANTED, Graphics, TensorRt
from core.fingerprint import cpu_model, memory_bytes, usable_cores
from pipeline.doctor.finding import Finding, Level

_AREA = "machine"
_GIB = 1 << 30
# What TensorFlow, Beam and one small model need at their peak.
_MEMORY_GIB = 4.0
_CORES = 2
# A run of the taxi recipe writes 30 MB; below these a disk is about to be the reason of the next failure.
_RUN_WARN_GIB = 2.0
_RUN_BLOCK_GIB = 0.25


def check_disk(setting: str, place: str, block_gib: float = _RUN_BLOCK_GIB, warn_gib: float = _RUN_WARN_GIB) -> Finding:
    """Returns whether a root has room and may be written.

    Args:
        setting: The setting that names it, such as `run.root`.
        place: A folder that need not exist yet, or a URI, which is not looked into.
        block_gib: Free GiB below which no run can end well.
        warn_gib: Free GiB below which the next runs may not.
    """
    if "://" in place:
        return Finding(_AREA, setting, Level.OK, f"{place}, an object store: not measured")
    folder = existing_parent(Path(place))
    if not folder.is_dir():
        return Finding(_AREA, setting, Level.BLOCKER, f"{folder} is a file", "a folder", f"set {setting} to a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        fix = f"give this user the right to write in {folder}, or set {setting} to another folder"
        return Finding(_AREA, setting, Level.BLOCKER, f"{folder} cannot be written", "writable", fix)
    free = shutil.disk_usage(folder).free / _GIB
    level = Level.BLOCKER if free < block_gib else Level.WARNING if free < warn_gib else Level.OK
    fix = "" if level is Level.OK else f"free some space there, or set {setting} to a folder on a larger disk"
    return Finding(
        _AREA, setting, level, f"{free:.1f} GiB free in {folder}", f"{max(block_gib, warn_gib):.2g} GiB", fix
    )


def check_cores() -> Finding:
    """Returns how many cores this process may use."""
    cores = usable_cores()
    found = f"{cores:g} of {cpu_model()}"
    if cores >= _CORES:
        return Finding(_AREA, "cores", Level.OK, found, f"{_CORES}")
    fix = "give the machine or container another core; runs work, slower"
    return Finding(_AREA, "cores", Level.WARNING, found, f"{_CORES}", fix)


def check_memory() -> Finding:
    """Returns how much memory this process may use."""
    gib = memory_bytes() / _GIB
    wanted = f"{_MEMORY_GIB:g} GiB"
    if gib >= _MEMORY_GIB:
        return Finding(_AREA, "memory", Level.OK, f"{gib:.1f} GiB", wanted)
    fix = "give the machine or container more memory; large inputs may end the run"
    return Finding(_AREA, "memory", Level.WARNING, f"{gib:.1f} GiB", wanted, fix)


def check_gpu(graphics: Graphics) -> Finding:
    """Returns which GPUs there are. Without one everything but TensorRT works."""
    if graphics.gpus:
        names = ", ".join(f"{gpu.name} ({gpu.architecture})" if gpu.architecture else gpu.name for gpu in graphics.gpus)
        return Finding(_AREA, "gpu", Level.OK, f"{names}, driver {graphics.driver or 'unknown'}")
    level = Level.NOTE if graphics.reason == "no NVIDIA driver" else Level.WARNING
    fix = "none needed on a CPU machine; on a GPU machine install NVIDIA's driver, then the extra gpu"
    return Finding(_AREA, "gpu", level, f"not found: {graphics.reason}", "", fix)


def check_tensorrt(tensorrt: TensorRt, graphics: Graphics) -> Finding:
    """Returns whether TensorFlow could build TensorRT engines here."""
    if not tensorrt.reason:
        return Finding(_AREA, "tensorrt", Level.OK, tensorrt.version, TENSORRT_WANTED)
    level = Level.WARNING if graphics.gpus else Level.NOTE
    fix = f"for TensorRT engines put NVIDIA's TensorRT {TENSORRT_WANTED} on the library path; native models need none"
    return Finding(_AREA, "tensorrt", level, f"not usable: {tensorrt.reason}", TENSORRT_WANTED, fix)


def existing_parent(path: Path) -> Path:
    """Returns the path itself, or its nearest ancestor that exists."""
    current = path.absolute()
    while not current.exists():
        current = current.parent
    return current
