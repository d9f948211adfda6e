"""Python itself and the packages: found against the lock."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.doctor.finding import Finding, Level

DISTRIBUTION = "forebay"
_SETUP = "make env"
# Not named in requirements/*.in, yet it is their versions that decide whether TFX imports and what it computes.
_DECIDING = (
    "tfx-bsl", "tensorflow-transform", "tensorflow-model-analysis", "tensorflow-data-validation", "ml-metadata",
    "protobuf", "numpy", "pyarrow", "kfp",
)  # fmt: skip
# Extras that the lock does not hold.
_UNLOCKED = ("gpu",)
_GLIBC = (2, 17)


def check_python() -> list[Finding]:
    """Returns the findings on the interpreter and the C library."""
    version = platform.python_version()
    good = sys.version_info[:2] == (3, 10)
    fix = "" if good else f"tfx 1.16.0 is locked and tested on 3.10: run `{_SETUP}`"
    findings = [Finding("python", "python", Level.OK if good else Level.BLOCKER, version, "3.10", fix)]
    library, number = platform.libc_ver()
    enough = library == "glibc" and tuple(int(part) for part in number.split(".")[:2]) >= _GLIBC
    fix = "" if enough else "use an x86-64 Linux with glibc, or a container of one"
    found = f"{library} {number}".strip() or "another C library"
    findings.append(Finding("python", "glibc", Level.OK if enough else Level.BLOCKER, found, "2.17 or later", fix))
    return findings


def check_packages(lock: Path) -> list[Finding]:
    """Returns a finding for each package that Forebay names, and one for all that the lock holds.

    Args:
        lock: requirements/lock.txt; when there is none (an installation from a wheel), the package's own metadata
            says what is wanted.
    """
    pins = read_pins(lock.read_text(encoding="utf-8")) if lock.is_file() else {}
    installed = installed_versions(sys.path)
    findings = [_compare(name, extra, wanted, pins, installed) for name, extra, wanted in _named()]
    named = {finding.name for finding in findings}
    findings += [
        _compare(name, "", "", pins, installed) for name in _DECIDING if name in pins and name not in named
    ]  # fmt: skip
    return [*findings, *_check_whole_lock(pins, installed)]


def read_pins(lock: str) -> dict[str, str]:
    """Returns {canonical name: version} of every package in a lock file's text."""
    found = re.findall(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", lock, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def installed_versions(folders: Iterable[str]) -> dict[str, str]:
    """Returns {canonical name: version} of what is installed, the first on the path winning.

    Reads folder names alone: opening the metadata of 280 packages takes longer than all other checks together.
    """
    found: dict[str, str] = {}
    for folder in folders:
        for path in Path(folder or ".").glob("*.dist-info"):
            name, _, version = path.name[: -len(".dist-info")].rpartition("-")
            found.setdefault(canonicalize_name(name), version)
    return found


def _named() -> list[tuple[str, str, str]]:
    """Returns (canonical name, extra or empty, specifier) of each package that our own metadata names."""
    named: dict[str, tuple[str, str, str]] = {}
    for text in importlib.metadata.requires(DISTRIBUTION) or []:
        requirement = Requirement(text)
        extras = re.findall(r"extra == [\"'](\w+)[\"']", str(requirement.marker or ""))
        extra = extras[0] if extras else ""
        name = canonicalize_name(requirement.name)
        if extra not in _UNLOCKED:
            named.setdefault(name, (name, extra, str(requirement.specifier)))
    return list(named.values())


def _compare(name: str, extra: str, specifier: str, pins: dict[str, str], installed: dict[str, str]) -> Finding:
    wanted = pins.get(name, specifier.removeprefix("=="))
    found = installed.get(name)
    area = f"extra {extra}" if extra else "packages"
    if found is None:
        level, text = (Level.NOTE, "not installed") if extra else (Level.BLOCKER, "not installed")
        return Finding(area, name, level, text, wanted, _SETUP)
    agrees = (
        found == wanted
        if name in pins or specifier.startswith("==")
        else Requirement(f"x{specifier}").specifier.contains(found)
    )
    if agrees:
        return Finding(area, name, Level.OK, found, wanted)
    # A pin in requirements/*.in has a reason (docs/decisions/0001-stack.md); one of the lock alone is what we tested.
    pinned = specifier.startswith("==") or name in _DECIDING
    return Finding(area, name, Level.BLOCKER if pinned else Level.WARNING, found, wanted, _SETUP)


def _check_whole_lock(pins: dict[str, str], installed: dict[str, str]) -> list[Finding]:
    if not pins:
        return []
    other = sorted(name for name, version in pins.items() if installed.get(name) != version)
    found = f"{len(pins) - len(other)} of {len(pins)} as locked"
    if not other:
        return [Finding("packages", "lock", Level.OK, found, f"{len(pins)}")]
    shown = ", ".join(other[:5]) + (f" and {len(other) - 5} more" if len(other) > 5 else "")
    return [Finding("packages", "lock", Level.WARNING, f"{found}; not: {shown}", f"{len(pins)}", _SETUP)]
