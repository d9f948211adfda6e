"""Files are whole or absent, and digests depend on bytes only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core import files

pytestmark = pytest.mark.unit


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the rename fails, readers still see the old content and no temporary file stays."""
    target = tmp_path / "a.json"
    files.write_atomic(target, "old")

    def refuse(source: str, destination: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        files.write_atomic(target, "new")
    assert target.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_tree_digests_ignore_times_and_order(tmp_path: Path) -> None:
    """Two trees with equal names and bytes have equal digests, whenever and in whatever order they were written."""
    for name, order in (("x", ("b", "a")), ("y", ("a", "b"))):
        for file in order:
            files.write_atomic(tmp_path / name / "sub" / file, file * 3)
    os.utime(tmp_path / "x" / "sub" / "a", (1, 1))
    assert files.sha256_tree(tmp_path / "x") == files.sha256_tree(tmp_path / "y")
    assert list(files.sha256_tree(tmp_path / "x")) == ["sub/a", "sub/b"]


def test_json_digest_ignores_key_order() -> None:
    """Settings that differ only in the order of keys have one digest."""
    assert files.sha256_json({"a": 1, "b": [2]}) == files.sha256_json({"b": [2], "a": 1})
