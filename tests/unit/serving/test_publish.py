"""Pushing to a local directory: atomic, numbered upwards, verified, and refused before anything is touched."""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from core.errors import DataError, EnvironmentProblem, RetryableError
from core.files import sha256_tree
from core.manifest import MANIFEST_FILE, WARMUP_FILE, Manifest, Provenance
from serving import local_disk
from serving.publish import publish
from serving.stores import open_store
from serving.target import Target

pytestmark = pytest.mark.unit

NOON = 1_800_000_000


def names(target: Target) -> list[str]:
    """Returns everything in the model's directory, hidden or not, but the lock file."""
    directory = Path(target.location)
    return sorted(name for name in os.listdir(directory) if name != ".lock") if directory.exists() else []


class Poller(threading.Thread):
    """Lists a directory every 10 ms as a server does, and keeps what it saw below every number."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.directory = directory
        self.seen: list[dict[str, dict[str, int]]] = []
        self.done = threading.Event()

    def run(self) -> None:
        """Polls until told to stop."""
        while not self.done.is_set():
            self.seen.append(self.look())
            time.sleep(0.01)

    def look(self) -> dict[str, dict[str, int]]:
        """Returns {number: {relative path: bytes}} of what is there now."""
        try:
            found = [name for name in os.listdir(self.directory) if name.isdigit()]
        except FileNotFoundError:
            return {}
        return {
            name: {
                str(path.relative_to(self.directory / name)): path.stat().st_size
                for path in (self.directory / name).rglob("*")
                if path.is_file()
            }
            for name in found
        }


def test_a_poller_never_sees_a_part_of_a_version(push: Any, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """P01: while every file is made durable slowly, a 10 ms poller sees no number, then the whole version."""
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        time.sleep(0.05)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    poller = Poller(Path(target.location))
    poller.start()
    result = push(size_bytes=8 << 20)
    time.sleep(0.05)
    poller.done.set()
    poller.join()
    expected = {path: record.size_bytes for path, record in result.manifest.files.items()}
    expected[MANIFEST_FILE] = len(result.manifest.to_json())
    assert sum(seen == {} for seen in poller.seen) >= 10
    assert all(seen in ({}, {str(result.version): expected}) for seen in poller.seen)
    assert poller.seen[-1] == {str(result.version): expected}


def test_what_is_served_has_the_checksums_of_what_was_pushed(push: Any, make_model: Any, target: Target) -> None:
    """Every served file equals its source, and the manifest lists each of them with that checksum and nothing else."""
    result = push("a")
    served = sha256_tree(result.location)
    manifest = Manifest.parse((Path(result.location) / MANIFEST_FILE).read_bytes(), "test")
    del served[MANIFEST_FILE]
    assert served == sha256_tree(make_model("a"))
    assert served == {path: record.sha256 for path, record in result.manifest.files.items()}
    assert manifest == result.manifest
    assert manifest.pushed_at == "2027-01-15T08:00:00+00:00"
    assert manifest.pushed_by == "run"
    assert names(target) == [str(NOON)]


@pytest.mark.parametrize(
    ("second_at", "expected"),
    [pytest.param(NOON, NOON + 1, id="same second"), pytest.param(NOON - 3600, NOON + 1, id="clock set back an hour")],
)
def test_versions_strictly_increase(push: Any, second_at: float, expected: int) -> None:
    """P02: the second model gets a higher number than the first, and that number holds the second model."""
    first = push("a")
    second = push("b", at=second_at)
    assert (first.version, second.version) == (NOON, expected)
    assert (Path(second.location) / "saved_model.pb").read_bytes() == b"graph b"
    assert (Path(first.location) / "saved_model.pb").read_bytes() == b"graph a"


def test_pushes_at_once_all_arrive(push: Any, make_model: Any, target: Target) -> None:
    """Eight pushes of eight models within one second give eight numbers in a row, each with one whole model."""
    for content in "abcdefgh":
        make_model(content)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda c=content: results.append(push(c))) for content in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.version for result in results) == [NOON + step for step in range(8)]
    for result in results:
        served = sha256_tree(result.location)
        del served[MANIFEST_FILE]
        assert served == {path: record.sha256 for path, record in result.manifest.files.items()}
    assert len({result.manifest.model_digest for result in results}) == 8
    assert names(target) == [str(NOON + step) for step in range(8)]


def test_odd_names_in_the_target_are_warned_of_and_left_alone(push: Any, target: Target) -> None:
    """P04: `v0.1`, `001` and a file named `7` give a warning each and stay; the new version is the newest."""
    directory = Path(target.location)
    (directory / "v0.1").mkdir(parents=True)
    (directory / "001").mkdir()
    (directory / "7").write_text("a file", encoding="utf-8")
    result = push("a", keep=1)
    assert result.version == NOON
    assert [warning.split(" ")[0] for warning in result.warnings] == ["'001'", "'7'", "'v0.1'"]
    assert names(target) == ["001", str(NOON), "7", "v0.1"]


def test_a_name_that_would_win_for_ever_stops_the_push_untouched(push: Any, target: Target) -> None:
    """P04: with a 14-digit directory there the push is refused, and the target is as it was."""
    (Path(target.location) / "20260101120000").mkdir(parents=True)
    with pytest.raises(EnvironmentProblem, match="20260101120000"):
        push("a")
    assert os.listdir(target.location) == ["20260101120000"]


def test_too_little_space_is_refused_with_the_bytes(make_model: Any, target: Target) -> None:
    """P03: when the free bytes would fall below what must stay free, the error names all three numbers."""
    with pytest.raises(
        EnvironmentProblem, match=r"bytes free, .* needed and 1,152,921,504,606,846,976 must stay"
    ) as caught:
        publish(make_model("a"), target, Provenance(), keep=5, min_free_bytes=1 << 60)
    assert caught.value.exit_code == 5
    assert not Path(target.root).exists()


def test_a_full_disk_in_the_middle_leaves_nothing(push: Any, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """P03: when a write fails for lack of space, the live version stays, nothing hidden stays, free bytes are named."""
    push("a")
    fsync = os.fsync
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentProblem, match=r"full: [0-9,]+ bytes free") as caught:
        push("b")
    assert "No live version was touched" in caught.value.hint
    assert names(target) == [str(NOON)]


def test_a_file_in_place_of_the_directory_is_refused(push: Any, target: Target) -> None:
    """A target that is a file is named as such, and stays."""
    Path(target.location).parent.mkdir(parents=True)
    Path(target.location).write_text("not a directory", encoding="utf-8")
    with pytest.raises(EnvironmentProblem, match=r"is a file|Not a directory"):
        push("a")
    assert Path(target.location).read_text(encoding="utf-8") == "not a directory"


@pytest.mark.parametrize(
    ("absent", "words"),
    [
        pytest.param("saved_model.pb", "not a SavedModel", id="no graph"),
        pytest.param("variables/variables.index", "variables.index is missing", id="no index"),
        pytest.param("variables/variables.data-00000-of-00001", "variables.data-\\* is missing", id="no values"),
    ],
)
def test_half_a_saved_model_is_refused(push: Any, make_model: Any, target: Target, absent: str, words: str) -> None:
    """A source without its graph, or with half of its variables, is refused before the target is touched."""
    directory = make_model("a")
    (directory / absent).unlink()
    with pytest.raises(DataError, match=words):
        publish(directory, target, Provenance(), keep=5, min_free_bytes=0)
    assert not Path(target.root).exists()


def test_a_linked_folder_in_the_model_is_refused(make_model: Any, target: Target, tmp_path: Path) -> None:
    """A folder that is a symbolic link would be lost in the copy: the push names it instead."""
    directory = make_model("a")
    (tmp_path / "elsewhere").mkdir()
    (directory / "more").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="'more' is a symbolic link"):
        publish(directory, target, Provenance(), keep=5, min_free_bytes=0)


def test_a_source_that_changes_during_the_copy_is_not_shown(
    push: Any, make_model: Any, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a file is rewritten between hashing and copying, the push fails and no number appears."""
    check = local_disk.check_writable

    def rewrite(directory: Path, needed_bytes: int, min_free_bytes: int) -> None:
        check(directory, needed_bytes, min_free_bytes)
        (make_model("a") / "saved_model.pb").write_bytes(b"another graph")

    monkeypatch.setattr(local_disk, "check_writable", rewrite)
    with pytest.raises(RetryableError, match=r"saved_model.pb arrived with sha256") as caught:
        push("a")
    assert caught.value.exit_code == 7
    assert names(target) == []


def test_any_user_can_read_what_is_served(push: Any, make_model: Any) -> None:
    """A model written with private modes under a strict umask is readable by a server that runs as another user."""
    os.chmod(make_model("a") / "saved_model.pb", 0o600)
    old = os.umask(0o077)
    try:
        result = push("a")
    finally:
        os.umask(old)
    paths = [Path(result.location), *Path(result.location).rglob("*")]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}
    assert modes == {(True, 0o755), (False, 0o644)}


def test_warm_up_records_are_stored_and_listed(push: Any) -> None:
    """Warm-up bytes stand where servers look for them, and the manifest has their checksum."""
    result = push("a", warmup=b"records")
    assert (Path(result.location) / WARMUP_FILE).read_bytes() == b"records"
    assert result.manifest.files[WARMUP_FILE].size_bytes == len(b"records")


def test_the_model_that_serves_is_not_pushed_again(push: Any, target: Target) -> None:
    """A push of the newest version's very files, by whatever run, is that version; other files are a new one."""
    first = push("a", warmup=b"records", provenance=Provenance(run_id="r1"))
    again = push("a", at=NOON + 60, warmup=b"records", provenance=Provenance(run_id="r2"))
    assert again.reused
    assert (again.version, again.manifest, again.location) == (first.version, first.manifest, first.location)
    assert names(target) == [str(NOON)]
    assert push("b", at=NOON + 60, warmup=b"records").version == NOON + 60
    assert push("a", at=NOON + 90, warmup=b"records").version == NOON + 90
    assert push("a", at=NOON + 95, warmup=b"others").version == NOON + 95


@pytest.mark.parametrize("obstacle", ["damaged file", "unreadable manifest", "not loadable", "outranked", "copied"])
def test_the_same_model_is_pushed_again_when_the_newest_version_is_no_good(
    push: Any, target: Target, obstacle: str
) -> None:
    """A newest version that is damaged, a copy, unreadable, not loadable or outranked by another name is not reused."""
    first = push("a")
    directory = Path(first.location)
    if obstacle == "damaged file":
        (directory / "assets" / "vocabulary").write_text("other", encoding="utf-8")
    elif obstacle == "unreadable manifest":
        (directory / MANIFEST_FILE).write_text("{", encoding="utf-8")
    elif obstacle == "not loadable":
        (directory / "saved_model.pb").unlink()
    elif obstacle == "copied":
        shutil.copytree(directory, Path(target.location) / str(NOON + 30))
    else:
        (Path(target.location) / str(NOON + 30)).mkdir()
    again = push("a", at=NOON + 60)
    assert (again.reused, again.version) == (False, NOON + 60)


def test_retention_keeps_the_newest_and_the_last_known_good(push: Any, target: Target) -> None:
    """With keep=1 the newest stays and so does the one a rollback would choose; older ones go, oldest first."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    third = push("c", at=NOON + 2, keep=1)
    assert third.removed == (NOON,)
    assert names(target) == [str(NOON + 1), str(NOON + 2)]


def test_retention_never_deletes_what_forebay_did_not_push(push: Any, target: Target, tmp_path: Path) -> None:
    """Foreign versions, links, and versions with a broken manifest outlive any number of pushes."""
    broken = push("a", at=NOON)
    (Path(broken.location) / MANIFEST_FILE).write_text("{", encoding="utf-8")
    (Path(target.location) / "5").mkdir()
    (Path(target.location) / "6").symlink_to(tmp_path)
    for step, content in enumerate("bcd", start=1):
        push(content, at=NOON + step, keep=1)
    assert names(target) == [str(NOON), str(NOON + 2), str(NOON + 3), "5", "6"]


def test_leftovers_of_dead_pushes_are_swept(push: Any, target: Target) -> None:
    """Hidden directories without a living owner, and half-deleted versions, are gone after the next push."""
    directory = Path(target.location)
    (directory / ".push-dead" / "variables").mkdir(parents=True)
    (directory / ".push-dead.lock").write_text("", encoding="utf-8")
    (directory / ".push-unclaimed").mkdir()
    (directory / ".trash-17-x" / "variables").mkdir(parents=True)
    push("a")
    assert names(target) == [str(NOON)]


def test_a_living_push_is_not_swept(push: Any, target: Target) -> None:
    """While one push is being written, another push to the same model leaves it alone and both arrive."""
    store = open_store(target)
    with store.stage() as staging:
        staging.add_bytes("saved_model.pb", b"slow graph")
        push("a")
        version = staging.commit(lambda entries: NOON + 9, lambda number: b"{}")
    assert (Path(target.location) / str(version) / "saved_model.pb").read_bytes() == b"slow graph"
    assert names(target) == [str(NOON), str(NOON + 9)]


def test_a_number_made_by_another_program_is_not_overwritten(target: Target) -> None:
    """A directory that appears under the chosen number stops the push: rename would replace an empty one silently."""
    store = open_store(target)

    def choose(entries: list[Any]) -> int:
        (Path(target.location) / "7").mkdir()
        return 7

    with store.stage() as staging:
        staging.add_bytes("saved_model.pb", b"graph")
        with pytest.raises(EnvironmentProblem, match="another program"):
            staging.commit(choose, lambda number: b"{}")
    assert names(target) == ["7"]
    assert os.listdir(Path(target.location) / "7") == []
