"""Turns what an installer printed into one line that a person can act on."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from pathlib import Path

from core.errors import EnvironmentProblem

# What a first installation puts on the disk, measured: 3.5 GiB of .venv, and as much again where uv's cache
# is on another file system and cannot be hard-linked.
NEEDED_GIB = 4.5
_GIB = 1 << 30
_NETWORK_SIGNS = re.compile(
    "error sending request|dns error|failed to lookup address|connection (refused|reset|timed out)"
    "|network is unreachable|temporary failure in name resolution|no route to host|operation timed out"
    "|failed to fetch|max retries exceeded|newconnectionerror|could not find a version that satisfies"
    "|network connectivity is disabled",
    re.IGNORECASE,
)


def check_platform() -> None:
    """Refuses machines for which TFX and ML Metadata publish no wheels.

    Raises:
        EnvironmentProblem: Not Linux, not x86-64, or a C library that is not glibc 2.17 or later.
    """
    hint = "Use an x86-64 Linux with glibc, or a container of one."
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"):
        raise EnvironmentProblem(
            f"TFX 1.16 has no packages for {platform.system()} on {platform.machine()}, only for Linux on x86-64",
            hint=hint,
        )
    library, version = platform.libc_ver()
    if library != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < (2, 17):
        raise EnvironmentProblem(
            f"TFX 1.16 needs glibc 2.17 or later; this machine has {library or 'another C library'} {version}".rstrip(),
            hint=hint,
        )


def check_disk(root: Path) -> None:
    """Refuses to start an installation that the disk cannot hold.

    Raises:
        EnvironmentProblem: Fewer than `NEEDED_GIB` are free.
    """
    free = shutil.disk_usage(root).free / _GIB
    if free < NEEDED_GIB:
        raise EnvironmentProblem(
            f"{free:.1f} GiB free, the environment needs {NEEDED_GIB:g}",
            place=str(root),
            hint="Free some space, or clone onto a larger disk.",
        )


def is_build_failure(output: str) -> bool:
    """Returns whether an installer's output says that compiling a package failed."""
    return bool(
        re.search(r"failed to build|build backend returned an error|failed building wheel", output, re.IGNORECASE)
    )


def explain(what: str, output: str, log: Path) -> EnvironmentProblem:
    """Returns the error for an installer that failed.

    Args:
        what: What was being done, such as "installing packages".
        output: Everything the installer printed.
        log: The file that holds the same, named in the hint.
    """
    lowered = output.lower()
    if "no space left on device" in lowered or "os error 28" in lowered:
        return EnvironmentProblem(f"the disk filled up while {what}", hint="Free some space and run make env again.")
    if "hash mismatch" in lowered or "do not match the hashes" in lowered:
        return EnvironmentProblem(
            f"a package did not have the locked hash while {what}",
            hint=f"The index or a proxy altered it; nothing was installed. See {log}.",
        )
    if "permission denied" in lowered or "os error 13" in lowered:
        return EnvironmentProblem(f"a file could not be written while {what}", hint=f"See {log} for its name.")
    if is_build_failure(output):
        return EnvironmentProblem(
            f"compiling a package failed while {what}",
            hint=f"Install a compiler and Python's headers: apt-get install g++ python3.10-dev. See {log}.",
        )
    if _NETWORK_SIGNS.search(output):
        return EnvironmentProblem(
            f"the package index cannot be reached ({what})",
            hint="Check the network and the proxy or mirror settings (HTTPS_PROXY, UV_DEFAULT_INDEX, SSL_CERT_FILE), "
            "then run make env again.",
        )
    return EnvironmentProblem(f"{what} failed: {_last_line(output)}", hint=f"See {log}.")


def _last_line(output: str) -> str:
    # uv draws trees: what is not a letter, digit, quote or bracket at either end is decoration.
    lines = [re.sub(r"^[^\w'\"`(\[/]+|\s+$", "", line) for line in output.splitlines()]
    said = [line for line in lines if line]
    return said[-1][:200] if said else "no output"
