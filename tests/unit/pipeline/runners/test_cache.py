"""What was made can be found again by content, and a miss can say what changed."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from core.files import write_atomic
from pipeline.runners import cache
from pipeline.runners.cache import Entry, Parts

pytestmark = pytest.mark.unit

PARTS = Parts({"examples": "aa"}, {"training.epochs": 4}, {"m.trainer": "c0"}, "lock")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory of artifacts with one of them and its entry."""
    base = tmp_path / "base"
    write_atomic(base / "Trainer" / "model" / "5" / "saved_model.pb", b"graph")
    output = cache.describe(base, 7, str(base / "Trainer" / "model" / "5"))
    cache.store(base, "Trainer", Entry(PARTS.key(), "r1", 5, "2024-01-01T00:00:00+00:00", PARTS, {"model": [output]}))
    return base


def test_an_entry_is_found_by_its_key_and_whole(base: Path) -> None:
    """What was stored comes back equal, and nothing is missing."""
    entry = cache.lookup(base, "Trainer", PARTS.key())
    assert entry is not None
    assert entry.parts == PARTS
    assert cache.missing(base, entry) == ""
    assert cache.newest(base, "Trainer") == entry


def test_a_moved_directory_still_has_its_entries(base: Path, tmp_path: Path) -> None:
    """R02: entries hold relative paths, so a copied project reuses them."""
    shutil.copytree(base, tmp_path / "elsewhere")
    moved = tmp_path / "elsewhere"
    entry = cache.lookup(moved, "Trainer", PARTS.key())
    assert entry is not None
    shutil.rmtree(base)
    assert cache.missing(moved, entry) == ""


@pytest.mark.parametrize("damage", ["gone", "shorter"], ids=["gone", "shorter"])
def test_a_damaged_artifact_is_named(base: Path, damage: str) -> None:
    """A cached node whose artifact is gone, or cut, may not be reused, and the reason names the file."""
    entry = cache.lookup(base, "Trainer", PARTS.key())
    assert entry is not None
    file = base / "Trainer" / "model" / "5" / "saved_model.pb"
    file.unlink() if damage == "gone" else file.write_bytes(b"gr")
    assert "Trainer/model/5/saved_model.pb" in cache.missing(base, entry)


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


def test_an_unreadable_entry_is_a_miss(base: Path) -> None:
    """A half-written or foreign index file makes the node run again instead of failing the run."""
    path = base / "_cache" / "Trainer" / f"{PARTS.key()}.json"
    path.write_text('{"format_version": 1, "key"', encoding="utf-8")
    assert cache.lookup(base, "Trainer", PARTS.key()) is None
