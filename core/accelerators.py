"""What this machine has to run a model fast: GPUs, their driver, TensorRT. Found without loading TensorFlow.

Nothing here fails or waits long because a part is absent: absent is an answer.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# The file names that TensorFlow 2.16.2 loads, and the only version of TensorRT that it accepts.
TENSORRT_WANTED = "8.6.1"
TENSORRT_LIBRARIES = (f"libnvinfer.so.{TENSORRT_WANTED}", f"libnvinfer_plugin.so.{TENSORRT_WANTED}")
_DRIVER_FOLDER = Path("/proc/driver/nvidia")
_LINKER_CACHE = Path("/etc/ld.so.cache")
_LIBRARY_FOLDERS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib",
)
_QUERY_TIMEOUT_S = 5.0
_LOAD_TIMEOUT_S = 20.0
# Compute capability (major, or major.minor where one name does not cover the major) to NVIDIA's name for it.
_ARCHITECTURES = {
    "5": "Maxwell",
    "6": "Pascal",
    "7": "Volta",
    "7.5": "Turing",
    "8": "Ampere",
    "8.9": "Ada",
    "9": "Hopper",
    "10": "Blackwell",
    "12": "Blackwell",
}
# Runs in a child: loading a broken library can end the process that does it.
_LOAD_TENSORRT = """
import ctypes, sys
core, plugin = (ctypes.CDLL(name) for name in sys.argv[1:3])
print(core.getInferLibVersion())
"""


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes:
        name: Such as `NVIDIA A10`.
        compute_capability: Such as `8.6`; empty when it could not be asked for.
        architecture: Such as `Ampere`; empty when unknown. TensorRT engines run on the one they were built for.
        memory_mib: Its memory; 0 when unknown.
    """

    name: str
    compute_capability: str = ""
    architecture: str = ""
    memory_mib: int = 0


@dataclasses.dataclass(frozen=True)
class Graphics:
    """The GPUs that the driver shows to this process.

    Attributes:
        gpus: Empty when there are none.
        driver: The NVIDIA driver's version; empty without one.
        reason: Why there is no usable GPU; empty when there is one.
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class TensorRt:
    """TensorRT as TensorFlow would find it.

    Attributes:
        version: The version that loads; empty when none does.
        reason: Why TensorFlow cannot use TensorRT here; empty when it can.
    """

    version: str = ""
    reason: str = ""


@functools.lru_cache(maxsize=1)
def find_graphics() -> Graphics:
    """Returns the GPUs, their driver, or why there are none. Waits only where a driver is installed, at most 5 s."""
    command = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
    if command is None:
        if not _DRIVER_FOLDER.is_dir():
            return Graphics(reason="no NVIDIA driver")
        return _from_driver_folder(_DRIVER_FOLDER)
    fields = "name,compute_cap,memory.total,driver_version"
    try:
        done = subprocess.run(
            [command, f"--query-gpu={fields}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_QUERY_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Graphics(reason=f"nvidia-smi did not answer within {_QUERY_TIMEOUT_S:g} s")
    except OSError as error:
        return Graphics(reason=f"nvidia-smi does not run: {error.strerror}")
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.count(",") == 3]
    if done.returncode != 0 or not rows:
        said = (done.stdout + done.stderr).strip().splitlines()
        return Graphics(reason=f"nvidia-smi shows no GPU: {said[0][:120] if said else f'exit code {done.returncode}'}")
    gpus = tuple(Gpu(name, cap, architecture_of(cap), int(mib) if mib.isdigit() else 0) for name, cap, mib, _ in rows)
    return Graphics(gpus, driver=rows[0][3])


@functools.lru_cache(maxsize=1)
def find_tensorrt() -> TensorRt:
    """Returns the TensorRT that TensorFlow would load here, or why it would load none."""
    core = TENSORRT_LIBRARIES[0]
    missing = [name for name in TENSORRT_LIBRARIES if not _library_files(name)]
    if core in missing:
        others = sorted({path.name for path in _library_files("libnvinfer.so.")})
        also = f"; there is {', '.join(others)}, which TensorFlow 2.16.2 does not load" if others else ""
        return TensorRt(reason=f"{core} not found{also}")
    if missing:
        return TensorRt(reason=f"{missing[0]} not found beside {core}")
    return _load_tensorrt()


def architecture_of(compute_capability: str) -> str:
    """Returns NVIDIA's name for a compute capability such as `8.6`; empty when it is not one that we know."""
    return _ARCHITECTURES.get(compute_capability) or _ARCHITECTURES.get(compute_capability.partition(".")[0], "")


def _from_driver_folder(folder: Path) -> Graphics:
    """Reads what the kernel module says, in containers that have the driver but not its tools."""
    names = []
    for path in sorted(folder.glob("gpus/*/information")):
        found = re.search(r"^Model:\s*(.+)$", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        names.append(found.group(1).strip() if found else "unknown")
    version = folder / "version"
    text = version.read_text(encoding="utf-8", errors="replace") if version.is_file() else ""
    found = re.search(r"Kernel Module\D*(\d+\.[\d.]+)", text)
    driver = found.group(1) if found else ""
    if not names:
        return Graphics(driver=driver, reason="an NVIDIA driver without a GPU")
    return Graphics(tuple(Gpu(name) for name in names), driver)


def _library_files(prefix: str) -> list[Path]:
    """Returns the files that the dynamic linker would find, whose names start like this."""
    folders = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), *_LIBRARY_FOLDERS]
    found = [path for folder in folders for path in sorted(Path(folder).glob(f"{prefix}*"))]
    if _LINKER_CACHE.is_file():
        # The cache holds the full paths as zero-terminated strings; reading them needs no ldconfig on the PATH.
        pattern = rb"/[^\0]*/" + re.escape(prefix.encode()) + rb"[^\0/]*"
        found += [Path(os.fsdecode(path)) for path in re.findall(pattern, _LINKER_CACHE.read_bytes())]
    return [path for path in found if path.exists()]


def _load_tensorrt() -> TensorRt:
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _LOAD_TENSORRT, *TENSORRT_LIBRARIES],
            capture_output=True,
            text=True,
            timeout=_LOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TensorRt(reason=f"{TENSORRT_LIBRARIES[0]} did not load within {_LOAD_TIMEOUT_S:g} s")
    if done.returncode != 0 or not done.stdout.strip().isdigit():
        said = done.stderr.strip().splitlines()
        return TensorRt(
            reason=f"{TENSORRT_LIBRARIES[0]} does not load: {said[-1][:160] if said else 'it ended the process'}"
        )
    number = int(done.stdout)
    version = f"{number // 1000}.{number // 100 % 10}.{number % 100}"
    if version != TENSORRT_WANTED:
        return TensorRt(version, reason=f"{TENSORRT_LIBRARIES[0]} says that it is {version}")
    return TensorRt(version)
