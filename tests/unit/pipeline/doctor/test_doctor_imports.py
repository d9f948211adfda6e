"""Whether imports find our code, and bytecode."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipeline.doctor import imports
from pipeline.doctor.finding import Level

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[4]


def _package(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    return folder


def test_our_names_have_one_owner_here() -> None:
    """The locked environment holds no other package with one of our names."""
    path = [str(ROOT), *(entry for entry in sys.path if "site-packages" in entry)]
    assert [finding.level for finding in imports.check_owners(ROOT, path)] == [Level.OK]


def test_a_package_earlier_on_the_path_is_a_blocker(tmp_path: Path) -> None:
    """Python would import the other `core`; the folder is named."""
    other = _package(tmp_path / "other", "core")
    (finding,) = imports.check_owners(ROOT, [str(other), str(ROOT)])
    assert (finding.name, finding.level) == ("package core", Level.BLOCKER)
    assert str(other) in finding.found
    assert str(other) in finding.fix


def test_a_package_later_on_the_path_is_a_warning(tmp_path: Path) -> None:
    """It waits behind ours: worth knowing, not in the way."""
    other = _package(tmp_path / "other", "serving")
    (finding,) = imports.check_owners(ROOT, [str(ROOT), str(other)])
    assert (finding.name, finding.level) == ("package serving", Level.WARNING)


def test_an_installed_owner_is_named_with_its_removal(tmp_path: Path) -> None:
    """The distribution that brought the package can be taken out by name."""
    other = _package(tmp_path / "site-packages", "components")
    record = other / "rogue_parts-1.2.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("components/__init__.py,sha256=x,0\n", encoding="utf-8")
    (finding,) = imports.check_owners(ROOT, [str(other), str(ROOT)])
    assert "rogue_parts" in finding.found
    assert finding.fix.endswith("rogue_parts")


def test_a_bare_folder_does_not_shadow_a_package(tmp_path: Path) -> None:
    """Python prefers a real package wherever it stands, so a folder called `core` is harmless."""
    (tmp_path / "core").mkdir()
    assert [finding.level for finding in imports.check_owners(ROOT, [str(tmp_path), str(ROOT)])] == [Level.OK]


def test_a_second_folder_of_files_is_a_warning(tmp_path: Path) -> None:
    """We find `data` and `configs` by path, so another owner is only confusing."""
    _package(tmp_path, "data")
    (finding,) = imports.check_owners(ROOT, [str(tmp_path), str(ROOT)])
    assert (finding.name, finding.level) == ("package data", Level.WARNING)


def test_missing_bytecode_is_a_warning_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package without .pyc files is named."""
    _package(tmp_path, "forebay_uncompiled")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (finding,) = imports.check_bytecode(["forebay_uncompiled", "not_installed_at_all"])
    assert (finding.name, finding.level) == ("bytecode", Level.WARNING)
    assert "forebay_uncompiled" in finding.found
    assert "not_installed_at_all" not in finding.found


def test_switched_off_bytecode_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable alone slows only edited modules."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert [(finding.name, finding.level) for finding in imports.check_bytecode([])] == [
        ("bytecode", Level.OK),
        ("PYTHONDONTWRITEBYTECODE", Level.NOTE),
    ]


@pytest.mark.parametrize(
    ("value", "level"),
    [(None, Level.OK), ("1", Level.OK), ("True", Level.OK), ("0", Level.NOTE), ("", Level.NOTE)],
    ids=["unset", "one", "true", "zero", "empty"],
)
def test_an_environment_that_asks_for_keras_3_is_noted(
    monkeypatch: pytest.MonkeyPatch, value: str | None, level: Level
) -> None:
    """Forebay sets the variable itself, so nothing here stops a run."""
    if value is None:
        monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    else:
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", value)
    assert [finding.level for finding in imports.check_keras()] == [level]
