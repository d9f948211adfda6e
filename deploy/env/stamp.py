"""Remembers what `.venv` was made from, so that nothing is done twice and a half-made one is not trusted."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
from pathlib import Path

# Files whose content decides what the environment holds.
SOURCES = (
    "requirements/lock.txt",
    *(f"requirements/{name}.in" for name in ("base", "dev", "gpu", "kfp", "s3")),
    "setup.py",
)
_DONE = "forebay-env.json"
_UNDER_WAY = "forebay-env.unfinished"


class Stamp:
    """The record inside one environment folder."""

    def __init__(self, root: Path, venv: Path) -> None:
        self._root = root
        self._venv = venv

    def wanted(self) -> dict[str, str]:
        """Returns what the environment has to be made from: digests of the sources, and its own place.

        The place counts because the scripts inside name it: a copied or moved clone needs its own.
        """
        record = {"venv": str(self._venv)}
        for name in SOURCES:
            record[name] = hashlib.sha256((self._root / name).read_bytes()).hexdigest()
        return record

    def is_current(self) -> bool:
        """Returns whether the environment is complete, made from today's sources, and its Python still runs."""
        recorded = self._read()
        if recorded is None or (self._venv / _UNDER_WAY).exists():
            return False
        python = recorded.pop("python", "")
        return recorded == self.wanted() and python_version(self._venv) == python

    def must_start_over(self) -> bool:
        """Returns whether what is there cannot be brought up to date: interrupted, moved, or not a working 3.10."""
        if (self._venv / _UNDER_WAY).exists():
            return True
        recorded = self._read()
        moved = recorded is not None and recorded.get("venv") != str(self._venv)
        return moved or not python_version(self._venv).startswith("3.10.")

    def begin(self) -> None:
        """Marks the environment as unfinished; `finish` takes the mark away."""
        (self._venv / _UNDER_WAY).touch()

    def finish(self) -> None:
        """Records that the environment is complete. The last thing that an installation does."""
        target = self._venv / _DONE
        temporary = target.with_suffix(".new")
        record = {**self.wanted(), "python": python_version(self._venv)}
        temporary.write_text(json.dumps(record, indent=2), encoding="utf-8")
        os.replace(temporary, target)
        (self._venv / _UNDER_WAY).unlink()

    def _read(self) -> dict[str, str] | None:
        with contextlib.suppress(OSError, ValueError):
            record: dict[str, str] = json.loads((self._venv / _DONE).read_text(encoding="utf-8"))
            return record
        return None


def python_version(venv: Path) -> str:
    """Returns the version that the environment's Python says it is; empty when it does not run."""
    try:
        done = subprocess.run(
            [str(venv / "bin" / "python"), "-I", "-S", "-c", "import platform; print(platform.python_version())"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
