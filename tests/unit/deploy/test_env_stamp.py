"""When `make env` has something to do, and when it must not trust what is there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from deploy.env.stamp import SOURCES, Stamp

pytestmark = pytest.mark.unit


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone in a folder with spaces and letters outside ASCII, with an environment whose Python runs."""
    root = tmp_path / "é à" / "fore bay"
    for name in SOURCES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name, encoding="utf-8")
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return root


def _installed(root: Path) -> Stamp:
    stamp = Stamp(root, root / ".venv")
    stamp.begin()
    stamp.finish()
    return stamp


def test_a_finished_environment_is_current(clone: Path) -> None:
    """The second call has nothing to do."""
    assert _installed(clone).is_current()


def test_an_environment_without_a_stamp_is_adopted(clone: Path) -> None:
    """One that works is brought up to date instead of being made anew."""
    stamp = Stamp(clone, clone / ".venv")
    assert not stamp.is_current()
    assert not stamp.must_start_over()


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_counts(clone: Path, name: str) -> None:
    """A changed byte in any of them means there is something to install, on top of what is there."""
    stamp = _installed(clone)
    (clone / name).write_text("changed", encoding="utf-8")
    assert not stamp.is_current()
    assert not stamp.must_start_over()


def test_touching_the_sources_changes_nothing(clone: Path) -> None:
    """Content decides, not the clock: a checkout of the same commit stays current."""
    stamp = _installed(clone)
    (clone / "setup.py").write_text("setup.py", encoding="utf-8")
    assert stamp.is_current()


def test_an_interrupted_installation_is_made_anew(clone: Path) -> None:
    """A package may be half there with complete metadata, so nothing of it is trusted."""
    stamp = _installed(clone)
    stamp.begin()
    assert not stamp.is_current()
    assert stamp.must_start_over()


def test_a_moved_clone_is_made_anew(clone: Path) -> None:
    """The scripts inside name the old place."""
    _installed(clone)
    moved = clone.rename(clone.with_name("elsewhere"))
    stamp = Stamp(moved, moved / ".venv")
    assert not stamp.is_current()
    assert stamp.must_start_over()


def test_a_python_that_is_gone_is_made_anew(clone: Path) -> None:
    """The interpreter below an environment can be uninstalled."""
    stamp = _installed(clone)
    (clone / ".venv" / "bin" / "python").unlink()
    assert not stamp.is_current()
    assert stamp.must_start_over()


def test_a_damaged_stamp_is_no_stamp(clone: Path) -> None:
    """Half a JSON document does not stop the installation that would repair it."""
    stamp = _installed(clone)
    (clone / ".venv" / "forebay-env.json").write_text('{"venv": ', encoding="utf-8")
    assert not stamp.is_current()


def test_the_stamp_says_what_it_was_made_from(clone: Path) -> None:
    """A person can read which Python and which place it belongs to."""
    _installed(clone)
    record = json.loads((clone / ".venv" / "forebay-env.json").read_text(encoding="utf-8"))
    assert record["venv"] == str(clone / ".venv")
    assert record["python"].startswith("3.10.")
