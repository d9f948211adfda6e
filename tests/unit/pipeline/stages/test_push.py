"""What a cached push is worth: is it still there, does it serve, and can the target be asked at all."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from components.pusher import receipt
from core.errors import EnvironmentProblem, RemoteServiceError
from core.manifest import MANIFEST_FILE, Provenance
from core.settings import load
from core.settings.load import BASE_FILE
from pipeline.stages import push as stage
from serving.publish import Published, publish
from serving.rollback import roll_back
from serving.stores import open_store
from serving.target import Target

if TYPE_CHECKING:
    from core.settings import Settings

pytestmark = pytest.mark.unit

NOON = 1_800_000_000
Push = Callable[..., Published]


def settings(root: str, endpoint: str = "null", min_free_mib: int = 0) -> Settings:
    """Returns the taxi recipe's settings with another serving root."""
    changes = {"root": root, "s3_endpoint": endpoint, "min_free_mib": min_free_mib}
    flags = [f"serving.{key}={value}" for key, value in changes.items()]
    return load([str(BASE_FILE.parent / "taxi.yaml")], flags).settings


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """Returns where the taxi recipe is pushed to below the test's own directory."""
    return Target(str(tmp_path / "serving"), "forebay", "taxi")


@pytest.fixture
def push(tmp_path: Path, target: Target) -> Push:
    """Returns a function that pushes the model made of `content` at second `at`."""

    def do(content: str, at: int) -> Published:
        model = tmp_path / "models" / content
        model.mkdir(parents=True, exist_ok=True)
        (model / "saved_model.pb").write_text(f"graph {content}", encoding="utf-8")
        provenance = Provenance(run_id=f"run-{content}")
        return publish(model, target, provenance, keep=10, min_free_bytes=0, now=lambda: float(at))

    return do


@pytest.fixture
def outputs(tmp_path: Path) -> Callable[[dict[str, Any]], dict[str, str]]:
    """Returns a function that writes a receipt and gives the Pusher's outputs."""

    def do(record: dict[str, Any]) -> dict[str, str]:
        directory = tmp_path / "pushed"
        directory.mkdir(exist_ok=True)
        receipt.write(directory, record)
        return {"pushed_model": str(directory)}

    return do


@pytest.fixture
def silent_s3(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Returns settings of a bucket on a server that does not answer."""
    pytest.importorskip("boto3", reason="boto3 is not installed (extra s3)")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return settings("s3://models/x", f"http://127.0.0.1:{port}")


def leave(target: Target, at: int, keep: int = 10) -> Published:
    """Rolls back at second `at`."""
    return roll_back(open_store(target), "tips dropped", keep=keep, min_free_bytes=0, now=lambda: float(at))


def test_an_untouched_push_stands_and_serves(push: Push, target: Target, outputs: Any) -> None:
    """The version of the receipt is the newest: nothing to push, nothing to warn of."""
    push("a", NOON)
    made = outputs(receipt.pushed(push("b", NOON + 1)))
    given = settings(target.root)
    assert stage.STAGE.still_good(given, made) == ""
    assert stage.STAGE.publication(given, made) == {
        "version": NOON + 1,
        "path": target.version_location(NOON + 1),
        "reused": False,
        "warnings": [],
    }


def test_a_model_that_was_held_back_has_nothing_to_check(target: Target, outputs: Any) -> None:
    """Without a push the target is not asked."""
    made = outputs(receipt.not_pushed("the model is not blessed"))
    assert stage.STAGE.still_good(settings(target.root), made) == ""
    assert stage.STAGE.publication(settings(target.root), made) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param("delete", f"version {NOON + 1} is gone from", id="deleted"),
        pytest.param("break", f"the manifest of version {NOON + 1} cannot be read", id="unreadable"),
        pytest.param("other run", f"another run has pushed version {NOON + 2} since", id="another run"),
        pytest.param("cut", f"version {NOON + 1} is gone from", id="no longer loadable"),
    ],
)
def test_a_push_that_no_longer_stands_is_done_again(
    push: Push, target: Target, outputs: Any, change: str, words: str
) -> None:
    """A version that is gone, broken or overtaken by another run's model is a reason to push, in one sentence."""
    push("a", NOON)
    result = push("b", NOON + 1)
    made = outputs(receipt.pushed(result))
    if change == "delete":
        shutil.rmtree(result.location)
    elif change == "break":
        (Path(result.location) / MANIFEST_FILE).write_text("{", encoding="utf-8")
    elif change == "cut":
        (Path(result.location) / "saved_model.pb").unlink()
    else:
        push("c", NOON + 2)
    assert words in stage.STAGE.still_good(settings(target.root), made)


@pytest.mark.parametrize(
    ("keep", "ours"),
    [
        pytest.param(10, f"this run's model is version {NOON + 1}", id="left and kept"),
        pytest.param(1, f"this run's model was version {NOON + 1}, which is gone", id="left and deleted"),
    ],
)
def test_a_rollback_stands_and_the_verdict_names_what_serves(
    push: Push, target: Target, outputs: Any, keep: int, ours: str
) -> None:
    """After a rollback the run is not pushed again, also when retention deleted what was left; what serves is told."""
    push("a", NOON)
    made = outputs(receipt.pushed(push("b", NOON + 1)))
    leave(target, NOON + 2, keep)
    given = settings(target.root)
    assert stage.STAGE.still_good(given, made) == ""
    published = stage.STAGE.publication(given, made)
    assert (published["version"], published["serving"]) == (NOON + 1, NOON + 2)
    assert published["warnings"] == [f"version {NOON + 2} serves since a rollback (tips dropped); {ours}"]


def test_another_model_pushed_after_a_rollback_is_a_reason_to_push(push: Push, target: Target, outputs: Any) -> None:
    """A rollback protects the operator's choice only until a run pushes another model over it."""
    push("a", NOON)
    made = outputs(receipt.pushed(push("b", NOON + 1)))
    leave(target, NOON + 2)
    push("c", NOON + 3)
    assert "another run has pushed" in stage.STAGE.still_good(settings(target.root), made)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        pytest.param("run", f"version {NOON + 9} serves, pushed by run run-c; this run's model is", id="another run"),
        pytest.param("foreign", "which Forebay did not push or whose manifest cannot be read", id="foreign"),
        pytest.param("nothing", "no version serves; this run's model was", id="nothing left"),
    ],
)
def test_whatever_serves_in_place_of_the_push_is_named(
    push: Push, target: Target, outputs: Any, what: str, words: str
) -> None:
    """The first warning of the verdict says what servers load when it is not this run's version."""
    result = push("a", NOON)
    made = outputs({**receipt.pushed(result), "warnings": ["an earlier one"]})
    if what == "run":
        push("c", NOON + 9)
    elif what == "foreign":
        shutil.copytree(result.location, Path(target.location) / str(NOON + 9))
    else:
        shutil.rmtree(result.location)
    published = stage.STAGE.publication(settings(target.root), made)
    assert published["serving"] == (None if what == "nothing" else NOON + 9)
    assert words in published["warnings"][0]
    assert published["warnings"][1:] == ["an earlier one"]


def test_a_silent_object_store_is_a_warning_not_an_error(silent_s3: Settings, push: Push, outputs: Any) -> None:
    """Without an answer the push stands, and the verdict says that nobody looked."""
    made = outputs(receipt.pushed(push("a", NOON)))
    assert stage.STAGE.still_good(silent_s3, made) == ""
    (warning,) = stage.STAGE.publication(silent_s3, made)["warnings"]
    assert warning.startswith(f"whether version {NOON} still serves could not be checked: s3://models/x/forebay/taxi")


def test_without_boto3_the_push_stands_with_a_warning(push: Push, outputs: Any, monkeypatch: Any) -> None:
    """A cached run on a machine without the extra ends, and names what to install for the check."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    made = outputs(receipt.pushed(push("a", NOON)))
    given = settings("s3://models/x")
    assert stage.STAGE.still_good(given, made) == ""
    assert "boto3 is not installed" in stage.STAGE.publication(given, made)["warnings"][0]


def test_a_good_target_passes_the_early_check_untouched(push: Push, target: Target, tmp_path: Path) -> None:
    """A root that is not there yet, and one with versions, pass, and nothing is made in either."""
    stage.check_target(settings(str(tmp_path / "new" / "root")))
    assert not (tmp_path / "new").exists()
    push("a", NOON)
    before = sorted(Path(target.root).rglob("*"))
    stage.check_target(settings(target.root))
    assert sorted(Path(target.root).rglob("*")) == before


@pytest.mark.parametrize(
    ("obstacle", "words"),
    [
        pytest.param("file", "is a file", id="a file in its place"),
        pytest.param("name", "it takes '20260101120000' for a newer one", id="a name that wins for ever"),
        pytest.param("space", "too little space", id="a full disk"),
    ],
)
def test_a_target_that_could_not_take_the_push_fails_the_early_check(target: Target, obstacle: str, words: str) -> None:
    """P03: what would stop the push after the training stops it before, with exit 5."""
    if obstacle == "file":
        Path(target.root).write_text("x", encoding="utf-8")
    elif obstacle == "name":
        (Path(target.location) / "20260101120000").mkdir(parents=True)
    given = settings(target.root, min_free_mib=1 << 40 if obstacle == "space" else 0)
    with pytest.raises(EnvironmentProblem, match=words) as caught:
        stage.check_target(given)
    assert caught.value.exit_code == 5


def test_a_silent_object_store_fails_the_early_check(silent_s3: Settings) -> None:
    """Nobody at the endpoint: exit 6 with its URL, before anything is trained."""
    with pytest.raises(RemoteServiceError, match=r"no answer from http://127\.0\.0\.1"):
        stage.check_target(silent_s3)


def test_the_early_check_names_a_missing_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket without the extra is exit 5 with the command that installs it."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(EnvironmentProblem, match="boto3 is not installed"):
        stage.check_target(settings("s3://models/x"))


@pytest.mark.parametrize("root", ["here", "s3://models/x"], ids=["relative", "s3"])
def test_stage_and_pusher_mean_the_same_target(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the stage hands to the Pusher is its own target; a relative root is taken from the folder of the call."""
    from components.pusher.push import PushSpec

    monkeypatch.chdir(tmp_path)
    spec = PushSpec(**stage.STAGE.settings(settings(root)), keep_versions=1, min_free_mib=0)
    place = root if root.startswith("s3") else str(tmp_path / root)
    assert spec.target == Target(place, "forebay", "taxi")
