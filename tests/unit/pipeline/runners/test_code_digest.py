"""A node's code digest follows its imports and the files that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.runners import code_digest

pytestmark = pytest.mark.unit


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project: main imports helper in a function, helper imports a sibling relatively and reads a file."""
    package = tmp_path / "proj" / "model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "main.py").write_text("import os\ndef f():\n    from model.helper import g\n", encoding="utf-8")
    (package / "helper.py").write_text("from . import deep\nTABLE = 'tables/codes.txt'\n", encoding="utf-8")
    (package / "deep.py").write_text("X = 1\n", encoding="utf-8")
    (package / "tables").mkdir()
    (package / "tables" / "codes.txt").write_text("a\n", encoding="utf-8")
    (tmp_path / "proj" / "unrelated.py").write_text("Y = 2\n", encoding="utf-8")
    return tmp_path / "proj"


def test_imports_are_followed_and_nothing_else_counts(project: Path) -> None:
    """Imports in functions and relative ones count; the standard library and unrelated modules do not."""
    found = code_digest.digests(["model.main"], [project])
    assert {"model", "model.main", "model.helper", "model.deep"} <= set(found)
    assert "os" not in found
    assert "unrelated" not in found


@pytest.mark.parametrize("changed", ["model/main.py", "model/helper.py", "model/deep.py", "model/tables/codes.txt"])
def test_a_change_anywhere_below_changes_the_digest(project: Path, changed: str) -> None:
    """R03: a helper module or a lookup file that preprocessing reads is part of the code."""
    before = code_digest.digests(["model.main"], [project])
    path = project / changed
    path.write_text(path.read_text(encoding="utf-8") + "#\n", encoding="utf-8")
    code_digest._read.cache_clear()  # A new process would read anew.
    assert code_digest.digests(["model.main"], [project]) != before


def test_a_file_named_relative_to_the_module_counts_outside_its_package(project: Path) -> None:
    """A literal that names an existing file is followed even where it leaves the package folder."""
    (project / "lookup.csv").write_text("1\n", encoding="utf-8")
    (project / "model" / "main.py").write_text("PATH = '../lookup.csv'\n", encoding="utf-8")
    before = code_digest.digests(["model.main"], [project])
    (project / "lookup.csv").write_text("2\n", encoding="utf-8")
    assert code_digest.digests(["model.main"], [project]) != before


def test_a_copy_of_the_project_elsewhere_has_the_same_digests(project: Path, tmp_path: Path) -> None:
    """R02: paths are not in the digest."""
    import shutil

    shutil.copytree(project, tmp_path / "copy of it")
    assert code_digest.digests(["model.main"], [project]) == code_digest.digests(
        ["model.main"], [tmp_path / "copy of it"]
    )
