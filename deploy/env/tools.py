"""Gets the two tools that a bare machine lacks, from the package index, pinned by hash: uv and a C++ compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from core.errors import EnvironmentProblem
from deploy.env.command import environment, run_or_explain

# The oldest uv that we ran the whole installation with.
OLDEST_UV = (0, 8, 0)


def find_uv(root: Path, log: Path) -> str:
    """Returns a uv command: the PATH's when it is new enough, else our own under .tools/uv.

    Raises:
        EnvironmentProblem: None is there and none can be installed.
    """
    for candidate in (shutil.which("uv"), str(root / ".tools" / "uv" / "bin" / "uv")):
        if candidate and _uv_version(candidate) >= OLDEST_UV:
            return candidate
    print("env: fetching uv", flush=True)
    return _install_uv(root, log)


def find_compiler() -> dict[str, str] | None:
    """Returns CC and CXX for this machine's C++ compiler, or None when it has none."""
    if os.environ.get("CXX") and os.environ.get("CC"):
        return {"CC": os.environ["CC"], "CXX": os.environ["CXX"]}
    for cc, cxx in (("cc", "c++"), ("gcc", "g++"), ("clang", "clang++")):
        if shutil.which(cc) and shutil.which(cxx):
            return {"CC": cc, "CXX": cxx}
    return None


def install_compiler(root: Path, uv: str, python: str, log: Path) -> dict[str, str]:
    """Installs the compiler that comes as a wheel, and returns the CC, CXX and PATH that make builds use it.

    Build systems cut CC at spaces, and the clone may lie in a folder with spaces: CC is a bare name on the PATH.

    Raises:
        EnvironmentProblem: It cannot be installed.
    """
    print("env: no working C++ compiler here, fetching one (100 MB)", flush=True)
    target = root / ".tools" / "compiler"
    pins = str(root / "requirements" / "compiler.txt")
    install = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        "--target",
        str(target),
        "--require-hashes",
        "-r",
        pins,
    ]
    run_or_explain("fetching a C++ compiler", install, log, cwd=root)
    folder = target / "bin"
    folder.mkdir(exist_ok=True)
    for name, mode in (("forebay-cc", "cc"), ("forebay-cxx", "c++")):
        script = folder / name
        # Zig traps undefined behaviour unless told not to, and hashing code shifts and overflows on purpose.
        # It also tunes for the building machine, while a wheel may move: x86_64_v2 has the SSE4.2 of the last 15 years.
        script.write_text(
            f'#!/bin/sh\nexec "$(dirname "$0")/../ziglang/zig" {mode} -mcpu=x86_64_v2 -fno-sanitize=undefined "$@"\n',
            encoding="utf-8",
        )
        script.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    return {"CC": "forebay-cc", "CXX": "forebay-cxx", "PATH": path, "ZIG_GLOBAL_CACHE_DIR": str(target / "cache")}


def _install_uv(root: Path, log: Path) -> str:
    target = root / ".tools" / "uv"
    pins = str(root / "requirements" / "uv.txt")
    # -I: a PYTHONPATH, or a folder named like a module, must not reach into the new environment.
    if _can("import venv, ensurepip"):
        shutil.rmtree(target, ignore_errors=True)
        run_or_explain(
            "making a small environment for uv", [sys.executable, "-I", "-m", "venv", str(target)], log, cwd=root
        )
        install = [str(target / "bin" / "python"), "-I", "-m", "pip", "install"]
    elif _can("import pip"):
        install = [sys.executable, "-I", "-m", "pip", "install", "--target", str(target)]
    else:
        series = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise EnvironmentProblem(
            f"{sys.executable} has neither venv nor pip, and there is no uv on the PATH",
            hint=f"Install one Debian package: apt-get install python{series}-venv",
        )
    install += ["--quiet", "--disable-pip-version-check", "--require-hashes", "-r", pins]
    run_or_explain("fetching uv", install, log, cwd=root, variables=_pip_variables())
    return str(target / "bin" / "uv")


def _pip_variables() -> dict[str, str]:
    variables = environment()
    # pip's own configuration of the target would fight the one given here.
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV"):
        variables.pop(name, None)
    return variables


def _can(statement: str) -> bool:
    return subprocess.run([sys.executable, "-I", "-c", statement], capture_output=True, check=False).returncode == 0


def _uv_version(command: str) -> tuple[int, ...]:
    try:
        done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return (0,)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else (0,)
