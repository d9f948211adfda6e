"""What was made can be found again by content, and a miss can say what changed."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from core.files import write_atomic
from pipeline.runners import cache
from pipeline.runners.cache import Entry, Parts
from pipeline.runners.layout import PipelineRoot

pytestmark = pytest.mark.unit

PARTS = Parts({"examples": "aa"}, {"training.epochs": 4}, {"m.trainer": "c0"}, "lock")


@pytest.fixture
def root(tmp_path: Path) -> PipelineRoot:
    """A pipeline root with one artifact and its entry."""
    root = PipelineRoot(tmp_path / "root")
    write_atomic(root.path / "Trainer" / "model" / "5" / "saved_model.pb", b"graph")
    output = cache.describe(root, 7, str(root.path / "Trainer" / "model" / "5"))
    cache.store(root, "Trainer", Entry(PARTS.key(), "r1", 5, "2024-01-01T00:00:00+00:00", PARTS, {"model": [output]}))
    return root


def test_an_entry_is_found_by_its_key_and_whole(root: PipelineRoot) -> None:
    """What was stored comes back equal, and nothing is missing."""
    entry = cache.lookup(root, "Trainer", PARTS.key())
    assert entry is not None
    assert entry.parts == PARTS
    assert cache.missing(root, entry) == ""
    assert cache.newest(root, "Trainer") == entry


def test_a_moved_root_still_has_its_entries(root: PipelineRoot, tmp_path: Path) -> None:
    """R02: entries hold relative paths, so a copied project reuses them."""
    shutil.copytree(root.path, tmp_path / "elsewhere")
    moved = PipelineRoot(tmp_path / "elsewhere")
    entry = cache.lookup(moved, "Trainer", PARTS.key())
    assert entry is not None
    shutil.rmtree(root.path)
    assert cache.missing(moved, entry) == ""


@pytest.mark.parametrize("damage", ["gone", "shorter"], ids=["gone", "shorter"])
def test_a_damaged_artifact_is_named(root: PipelineRoot, damage: str) -> None:
    """A cached node whose artifact is gone, or cut, may not be reused, and the reason names the file."""
    entry = cache.lookup(root, "Trainer", PARTS.key())
    assert entry is not None
    file = root.path / "Trainer" / "model" / "5" / "saved_model.pb"
    file.unlink() if damage == "gone" else file.write_bytes(b"gr")
    assert "Trainer/model/5/saved_model.pb" in cache.missing(root, entry)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"inputs": {"examples": "bb"}}, "input examples has other content"),
        ({"settings": {"training.epochs": 5}}, "setting training.epochs went from 4 to 5"),
        ({"code": {"m.trainer": "c1"}}, "code m.trainer changed"),
        ({"code": {"m.trainer": "c0", "file:vocab.txt": "x"}}, "code vocab.txt is new"),
        ({"environment": "other"}, "the locked environment changed"),
    ],
    ids=["input", "setting", "code", "file", "environment"],
)
def test_a_difference_is_told_in_words_and_changes_the_key(change: dict[str, object], says: str) -> None:
    """Each kind of change gives another key and names itself."""
    other = dataclasses.replace(PARTS, **change)
    assert other.key() != PARTS.key()
    assert says in cache.difference(PARTS, other)


def test_an_unreadable_entry_is_a_miss(root: PipelineRoot) -> None:
    """A half-written or foreign index file makes the node run again instead of failing the run."""
    path = root.cache / "Trainer" / f"{PARTS.key()}.json"
    path.write_text('{"format_version": 1, "key"', encoding="utf-8")
    assert cache.lookup(root, "Trainer", PARTS.key()) is None
