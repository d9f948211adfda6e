"""What decides whether imports find the right code, and find it fast."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.doctor.finding import Finding, Level

# Our packages, and our folders of files (an installed package of that name lies where ours would).
PACKAGES = ("core", "components", "pipeline", "serving")
FOLDERS = ("configs", "data")
# Packages whose import dominates the start of a run.
_SLOW = ("tensorflow", "tfx", "apache_beam", "tensorflow_transform")
_AREA = "imports"


def check_owners(root: Path, path: Sequence[str] | None = None) -> list[Finding]:
    """Looks for a second owner of our top-level names.

    Args:
        root: The folder that holds our packages.
        path: Folders in the order in which imports look; None: this process's own.

    Returns:
        A blocker for each name that an import would find elsewhere, a warning for one that only waits behind ours,
        or one finding that says that all is well.
    """
    entries = [Path(entry or ".").resolve() for entry in (sys.path if path is None else path)]
    findings = []
    for name in (*PACKAGES, *FOLDERS):
        owners = [entry for entry in dict.fromkeys(entries) if _provides(entry, name)]
        others = [entry for entry in owners if entry != root]
        if others:
            first = not owners or owners[0] != root
            findings.append(_second_owner(name, others[0], shadows=first and name in PACKAGES))
    if findings:
        return findings
    return [Finding(_AREA, "package names", Level.OK, "one owner each", ", ".join((*PACKAGES, *FOLDERS)))]


def check_bytecode(packages: Iterable[str] = _SLOW) -> list[Finding]:
    """Returns whether Python finds and keeps bytecode: without it, importing TFX takes three times as long."""
    missing = [name for name in packages if _lacks_bytecode(name)]
    findings = []
    if missing:
        fix = "run `make env` after `touch requirements/lock.txt`, or `.venv/bin/python -m compileall -q .venv/lib`"
        found = f"none for {', '.join(missing)}"
        findings.append(Finding(_AREA, "bytecode", Level.WARNING, found, "compiled at installation", fix))
    else:
        findings.append(Finding(_AREA, "bytecode", Level.OK, "compiled", "compiled at installation"))
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        level = Level.WARNING if missing else Level.NOTE
        fix = "unset PYTHONDONTWRITEBYTECODE, so that edited modules are compiled once and not at every start"
        findings.append(Finding(_AREA, "PYTHONDONTWRITEBYTECODE", level, "set", "not set", fix))
    return findings


def check_keras() -> list[Finding]:
    """Returns whether the environment asks TensorFlow for Keras 3, which does not train under several workers."""
    value = os.environ.get("TF_USE_LEGACY_KERAS")
    name = "TF_USE_LEGACY_KERAS"
    if value is None:
        return [Finding(_AREA, name, Level.OK, "not set; forebay sets it", "1")]
    if value.strip().lower() in ("1", "true"):
        return [Finding(_AREA, name, Level.OK, value, "1")]
    fix = f"unset {name}: forebay overrides it, other programs in this shell would get Keras 3"
    return [Finding(_AREA, name, Level.NOTE, repr(value), "1", fix)]


def _provides(entry: Path, name: str) -> bool:
    """Returns whether an import that looks only here would find the package.

    A folder without __init__.py counts for the names that have none with us either: for the others Python goes on
    looking and prefers a real package.
    """
    if not entry.is_dir():
        return False
    spec = importlib.machinery.PathFinder.find_spec(name, [str(entry)])
    if spec is None:
        return False
    return spec.origin is not None or name in FOLDERS


def _second_owner(name: str, entry: Path, *, shadows: bool) -> Finding:
    owner = _distribution_of(entry, name)
    found = f"also {owner} in {entry}" if owner else f"also in {entry}"
    if owner:
        fix = f"uv pip uninstall --python {sys.executable} {owner}"
    else:
        fix = f"take {entry} off PYTHONPATH, or start forebay from another folder"
    level = Level.BLOCKER if shadows else Level.WARNING
    return Finding(_AREA, f"package {name}", level, found, "forebay alone", fix)


def _distribution_of(entry: Path, name: str) -> str:
    """Returns the installed distribution whose file list has the package; empty when none says so."""
    for record in sorted(entry.glob("*.dist-info/RECORD")):
        with open(record, encoding="utf-8", errors="replace") as stream:
            if any(line.startswith((f"{name}/", f"{name}.py,")) for line in stream):
                return record.parent.name.removesuffix(".dist-info").rpartition("-")[0]
    return ""


def _lacks_bytecode(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        # Not installed is another check's finding.
        return False
    return not Path(importlib.util.cache_from_source(spec.origin)).is_file()
