"""Rolling back: which version is the last known good, and what a rollback leaves behind."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from core.errors import DataError, RetryableError, UsageError
from core.manifest import MANIFEST_FILE
from serving import history, rollback
from serving.catalog import rows
from serving.local_store import LocalStore
from serving.publish import Published
from serving.stores import open_store
from serving.target import Target

pytestmark = pytest.mark.unit

NOON = 1_800_000_000


@pytest.fixture
def roll_back(target: Target) -> Any:
    """Returns a function that rolls the target back at the second `at`."""

    def do(reason: str = "complaints", to: int | None = None, at: float = NOON + 100, keep: int = 10) -> Published:
        return rollback.roll_back(open_store(target), reason, to=to, keep=keep, min_free_bytes=0, now=lambda: at)

    return do


def graph(result: Published) -> bytes:
    """Returns the graph that a server loads from a version."""
    return (Path(result.location) / "saved_model.pb").read_bytes()


def standings(target: Target) -> dict[int, str]:
    """Returns {version: standing}."""
    return {row.version: row.standing for row in rows(open_store(target))}


def test_a_rollback_is_a_new_higher_version_with_the_old_files(push: Any, roll_back: Any) -> None:
    """The older model is served again under a higher number, file for file, and the manifest says why and whence."""
    good = push("a", at=NOON, warmup=b"records")
    push("b", at=NOON + 1)
    result = roll_back("tips dropped")
    assert result.version == NOON + 100
    assert result.manifest.files == good.manifest.files
    assert graph(result) == b"graph a"
    assert result.manifest.pushed_by == "rollback"
    assert result.manifest.rollback is not None
    assert result.manifest.rollback.source_version == NOON
    assert result.manifest.rollback.left_version == NOON + 1
    assert result.manifest.rollback.reason == "tips dropped"
    assert result.manifest.provenance == good.manifest.provenance


def test_a_rollback_with_the_clock_set_back_is_still_the_newest(push: Any, roll_back: Any) -> None:
    """The number of a rollback is past the newest version whatever the clock says."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    assert roll_back(at=NOON - 3600).version == NOON + 2


def test_a_version_that_was_left_is_never_chosen_again_by_itself(push: Any, roll_back: Any, target: Target) -> None:
    """Two rollbacks in a row go one model further back each, past the bad one and past copies of the served one."""
    for step, content in enumerate("abc"):
        push(content, at=NOON + step)
    assert graph(roll_back(at=NOON + 10)) == b"graph b"
    assert graph(roll_back(at=NOON + 11)) == b"graph a"
    assert standings(target) == {
        NOON + 11: "serving",
        NOON + 10: "rolled back",
        NOON + 2: "rolled back",
        NOON + 1: "rolled back",
        NOON: "same as serving",
    }
    with pytest.raises(DataError, match="no last known good"):
        roll_back(at=NOON + 12)


def test_a_bad_model_stays_bad_when_its_directory_is_gone(push: Any, roll_back: Any, target: Target) -> None:
    """After retention has deleted the version that was left, the same model pushed again is still no way back."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    roll_back(at=NOON + 2, keep=1)
    push("b", at=NOON + 3)
    push("c", at=NOON + 4)
    assert standings(target)[NOON + 3] == "rolled back"
    assert graph(roll_back(at=NOON + 5)) == b"graph a"


def test_pushing_a_bad_model_again_is_done_with_a_warning(push: Any, roll_back: Any) -> None:
    """A run may push what was rolled back from, and is told the version and the reason."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    roll_back("tips dropped", at=NOON + 2)
    assert push("c", at=NOON + 3).warnings == ()
    (warning,) = push("b", at=NOON + 4).warnings
    assert f"version {NOON + 1}: tips dropped" in warning


def test_the_very_model_that_was_just_left_is_pushed_with_a_warning(push: Any, roll_back: Any) -> None:
    """With the rollback still the newest, a run that makes the bad model anew pushes it, and once only."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    roll_back("tips dropped", at=NOON + 2)
    pushed = push("b", at=NOON + 3)
    assert (pushed.version, pushed.reused) == (NOON + 3, False)
    assert f"version {NOON + 1}: tips dropped" in pushed.warnings[0]
    assert push("b", at=NOON + 4).version == NOON + 3


def test_a_run_that_makes_the_rolled_back_to_model_pushes_it_as_its_own(push: Any, roll_back: Any) -> None:
    """The rollback's copy is the operator's: the run gets a version with its own provenance, and no warning."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    roll_back("tips dropped", at=NOON + 2)
    pushed = push("a", at=NOON + 3)
    assert (pushed.version, pushed.reused, pushed.warnings) == (NOON + 3, False, ())


def test_naming_a_version_overrides_the_choice_and_clears_it(push: Any, roll_back: Any, target: Target) -> None:
    """A rollback by name to a bad version is done, and from then on its model is good and the other is bad."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    roll_back(at=NOON + 2)
    assert graph(roll_back("it was b after all", to=NOON + 1, at=NOON + 3)) == b"graph b"
    assert standings(target) == {
        NOON + 3: "serving",
        NOON + 2: "rolled back",
        NOON + 1: "same as serving",
        NOON: "rolled back",
    }


def test_a_damaged_version_is_passed_over(push: Any, roll_back: Any) -> None:
    """The last known good is the newest whose files still have their checksums; by name the damage is refused."""
    push("a", at=NOON)
    damaged = push("b", at=NOON + 1)
    push("c", at=NOON + 2)
    (Path(damaged.location) / "variables" / "variables.index").write_bytes(b"other")
    with pytest.raises(DataError, match=r"variables.index is not what was pushed \(1 of 4 files differ\)"):
        roll_back(to=NOON + 1)
    assert graph(roll_back()) == b"graph a"


def test_only_damaged_versions_leave_no_way_back(push: Any, roll_back: Any) -> None:
    """When every older version is damaged the rollback says so, and the serving one stays the newest."""
    damaged = push("a", at=NOON)
    push("b", at=NOON + 1)
    (Path(damaged.location) / "added").write_bytes(b"x")
    with pytest.raises(DataError, match="not what was pushed"):
        roll_back()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        pytest.param({"reason": "  "}, UsageError, "needs a reason", id="no reason"),
        pytest.param({"to": NOON + 1}, UsageError, "serves now", id="the serving version"),
        pytest.param({"to": NOON + 7}, UsageError, f"no version {NOON + 7}", id="unknown version"),
    ],
)
def test_a_senseless_rollback_is_refused(push: Any, roll_back: Any, arguments: Any, error: Any, words: str) -> None:
    """No reason, the version that serves, and a version that is not there each get their own refusal."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    with pytest.raises(error, match=words):
        roll_back(**arguments)


def test_an_empty_target_cannot_be_rolled_back(roll_back: Any) -> None:
    """Without any version the rollback is refused with exit 4."""
    with pytest.raises(DataError, match="no version to roll back from") as caught:
        roll_back()
    assert caught.value.exit_code == 4


def test_a_push_in_between_stops_the_rollback(
    push: Any, roll_back: Any, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When another version arrives after the operator's look, the rollback stops instead of burying it."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    check = LocalStore.check

    def push_meanwhile(store: LocalStore, needed_bytes: int, min_free_bytes: int) -> None:
        monkeypatch.setattr(LocalStore, "check", check)
        push("c", at=NOON + 50)

    monkeypatch.setattr(LocalStore, "check", push_meanwhile)
    with pytest.raises(RetryableError, match=f"version {NOON + 50} was pushed meanwhile"):
        roll_back()
    assert set(standings(target)) == {NOON, NOON + 1, NOON + 50}


def test_retention_protects_the_last_known_good_over_newer_bad_ones(push: Any, roll_back: Any, target: Target) -> None:
    """With keep=1 a version that was rolled back from goes, and an older good one stays."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    roll_back(at=NOON + 2)
    result = push("c", at=NOON + 3, keep=1)
    assert result.removed == (NOON, NOON + 1)
    assert standings(target) == {NOON + 3: "serving", NOON + 2: "last known good"}


def test_versions_with_unreadable_manifests_are_no_history(push: Any, target: Target) -> None:
    """A broken manifest hides its version from rollbacks and from retention, and breaks nothing else."""
    broken = push("a", at=NOON)
    push("b", at=NOON + 1)
    (Path(broken.location) / MANIFEST_FILE).write_bytes(b"\xff")
    assert [manifest.version for manifest in history.manifests(open_store(target))] == [NOON + 1]


def test_a_newest_version_with_an_unreadable_manifest_can_be_left(push: Any, roll_back: Any, target: Target) -> None:
    """It is listed as what serves, the rollback goes to the version before it, and the reason says what was left."""
    push("a", at=NOON)
    push("b", at=NOON + 1)
    broken = push("c", at=NOON + 2)
    (Path(broken.location) / MANIFEST_FILE).write_bytes(b"\xff")
    assert standings(target) == {
        NOON + 2: "serving, manifest unreadable",
        NOON + 1: "last known good",
        NOON: "good",
    }
    result = roll_back("tips dropped")
    assert graph(result) == b"graph b"
    link = result.manifest.rollback
    assert link is not None
    assert (link.left_version, link.left_digest) == (NOON + 2, "")
    assert link.reason == f"tips dropped (the manifest of version {NOON + 2} cannot be read)"
    assert standings(target)[NOON + 2] == "manifest unreadable"
    assert graph(roll_back(at=NOON + 200)) == b"graph a"


def test_an_unreadable_newest_version_can_be_left_for_a_named_one(push: Any, roll_back: Any) -> None:
    """--to works as well, also for the only other version."""
    push("a", at=NOON)
    broken = push("b", at=NOON + 1)
    (Path(broken.location) / MANIFEST_FILE).write_bytes(b"{}")
    assert graph(roll_back(to=NOON)) == b"graph a"


def test_a_copied_version_directory_is_not_taken_for_what_its_manifest_says(
    push: Any, roll_back: Any, target: Target
) -> None:
    """A copy under a higher number serves, has another version's manifest, and can be left."""
    first = push("a", at=NOON)
    shutil.copytree(first.location, Path(target.location) / str(NOON + 5))
    assert standings(target) == {NOON + 5: "serving, manifest unreadable", NOON: "last known good"}
    result = roll_back()
    assert result.manifest.rollback is not None
    assert (result.manifest.rollback.source_version, result.manifest.rollback.left_version) == (NOON, NOON + 5)


def test_a_manifest_that_may_not_be_read_is_unreadable(push: Any, target: Target) -> None:
    """A manifest whose bytes cannot be had names its file and the way out, as one that is no manifest does."""
    result = push("a", at=NOON)
    path = Path(result.location) / MANIFEST_FILE
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(DataError, match=r"manifest.json: cannot be read: .*Give this user the right"):
        open_store(target).read(NOON, MANIFEST_FILE)
