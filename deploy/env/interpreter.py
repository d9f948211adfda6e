"""Finds a Python 3.10 that really runs and has what the locked packages need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core.errors import EnvironmentProblem

WANTED = (3, 10)
_SERIES = ".".join(map(str, WANTED))
_PROBE_TIMEOUT_S = 20
# Runs inside the candidate. Pythons built by hand lack modules whose C library was missing at build time.
_PROBE = """
import json, os, platform, sys, sysconfig
missing = []
for name in ("bz2", "ctypes", "lzma", "sqlite3", "ssl", "zlib"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
headers = os.path.isfile(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
print(json.dumps({
    "path": base if os.path.exists(base) else os.path.realpath(sys.executable),
    "series": list(sys.version_info[:2]),
    "version": platform.python_version(),
    "implementation": sys.implementation.name,
    "missing": missing,
    "headers": headers,
}))
"""


class Interpreter(NamedTuple):
    """A Python that ran.

    Attributes:
        path: The real executable, never a shim or a virtual environment's link.
        version: Such as 3.10.13.
        headers: Whether Python.h is there, which the one package without a wheel is compiled against.
    """

    path: str
    version: str
    headers: bool


def probe(command: str) -> tuple[Interpreter | None, str]:
    """Runs a candidate and says whether it will do.

    Returns:
        The interpreter and an empty text, or None and why it was passed over.
    """
    try:
        done = subprocess.run(
            [command, "-I", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return None, f"{command}: no answer within {_PROBE_TIMEOUT_S} s"
    except (OSError, subprocess.CalledProcessError, ValueError):
        # A pyenv shim exists for every version that any pyenv project ever used, and fails when called.
        return None, f"{command}: does not run"
    if found["implementation"] != "cpython" or tuple(found["series"]) != WANTED:
        return None, f"{command}: is {found['implementation']} {found['version']}"
    if found["missing"]:
        return None, f"{command}: was built without {', '.join(found['missing'])}"
    return Interpreter(found["path"], found["version"], found["headers"]), ""


def local_candidates() -> Iterator[str]:
    """Yields commands worth trying without asking uv: PATH first, then pyenv's own versions folder."""
    for name in (f"python{_SERIES}", "python3"):
        found = shutil.which(name)
        if found:
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    versions = [
        path for path in pyenv.glob(f"versions/{_SERIES}*") if path.name.split("-")[0].startswith(f"{_SERIES}.")
    ]
    for path in sorted(versions, key=_patch_level, reverse=True):
        yield str(path / "bin" / "python")


def find(uv: str, environment: dict[str, str]) -> Interpreter:
    """Returns the first Python 3.10 that works: PATH, pyenv, what uv knows, what uv can install.

    One without Python.h is kept only for the case that nothing better can be had.

    Args:
        uv: The uv command.
        environment: Environment variables for uv.

    Raises:
        EnvironmentProblem: There is none and none can be installed.
    """
    passed_over: list[str] = []
    spare: Interpreter | None = None
    for command in local_candidates():
        found, reason = probe(command)
        if found and found.headers:
            return found
        spare = spare or found
        if reason:
            passed_over.append(reason)
    for arguments in (["find", "--managed-python"], ["install", "--quiet"]):
        command = _ask_uv(uv, arguments, environment)
        found, _ = probe(command) if command else (None, "")
        if found and found.headers:
            return found
    if spare:
        return spare
    raise EnvironmentProblem(
        f"no Python {_SERIES} on this machine, and uv could not install one"
        + (f" (tried {'; '.join(passed_over)})" if passed_over else ""),
        hint=f"Install it with `apt-get install python{_SERIES} python{_SERIES}-dev` where the distribution has it, "
        f"or `pyenv install {_SERIES}`, or run make env with a network.",
    )


def _ask_uv(uv: str, arguments: list[str], environment: dict[str, str]) -> str:
    """Runs `uv python ...` and returns the interpreter that uv then knows, or an empty text."""
    if arguments[0] == "install":
        print(f"env: no usable Python {_SERIES} here, asking uv to install one", flush=True)
        subprocess.run([uv, "python", *arguments, _SERIES], env=environment, capture_output=True, check=False)
        arguments = ["find", "--managed-python"]
    done = subprocess.run(
        [uv, "python", *arguments, _SERIES], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _patch_level(path: Path) -> int:
    digits = path.name.split(".")[-1].split("-")[0]
    return int(digits) if digits.isdigit() else -1
