"""Pushing to a real S3 server: what pollers can see, numbers, retention, rollback, dead pushes and refusals."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.pusher import receipt
from core.errors import ConfigError, EnvironmentProblem, RemoteServiceError, RetryableError
from core.files import sha256_tree
from core.manifest import MANIFEST_FILE, Provenance
from core.settings import load
from core.settings.load import BASE_FILE
from pipeline.cli.main import run
from pipeline.stages.push import STAGE, check_target
from serving.publish import Published, publish
from serving.rollback import roll_back
from serving.s3_store import S3Store
from serving.stores import find_targets, open_store
from serving.target import Target

from .conftest import READER, S3Server, free_ports, use_credentials

pytestmark = pytest.mark.integration

NOON = 1_800_000_000
MakeFiles = Callable[..., Path]


def push(target: Target, model: Path, at: float = NOON, keep: int = 10, run_id: str = "") -> Published:
    """Pushes a directory at second `at` of the test's clock."""
    return publish(model, target, Provenance(run_id=run_id), keep=keep, min_free_bytes=0, now=lambda: at)


def below(target: Target) -> str:
    """Returns the key prefix of a target's model."""
    return target.location.split("/", 3)[3] + "/"


def numbers(server: S3Server, target: Target) -> list[str]:
    """Returns the first-level names below the model, hidden ones included."""
    return sorted({key.partition("/")[0] for key in server.keys(below(target))})


def test_a_version_is_stored_whole_and_nothing_else_stays(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles
) -> None:
    """What a server downloads has the checksums of what was pushed; staging and claims are gone."""
    model = make_files("a")
    result = push(s3_target, model)
    store = open_store(s3_target)
    with store.fetch(result.version) as directory:
        served = sha256_tree(directory)
    del served[MANIFEST_FILE]
    assert served == sha256_tree(model)
    assert store.digests(result.version) == dict(result.manifest.files)
    assert numbers(s3_server, s3_target) == [str(NOON)]
    assert find_targets(s3_target.root, s3_target.s3_endpoint) == [s3_target]


def test_a_large_file_goes_in_parts(s3_target: Target, make_files: MakeFiles) -> None:
    """A file above the multipart size arrives with its checksum, also through the copy inside the server."""
    result = push(s3_target, make_files("x", size_bytes=9 << 20))
    assert open_store(s3_target).digests(result.version) == dict(result.manifest.files)


def test_a_poller_never_sees_the_graph_before_the_rest(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles
) -> None:
    """P01 on S3: whenever saved_model.pb is there everything is there, and before the copy nothing numeric is."""
    seen: list[list[str]] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            seen.append([key for key in s3_server.keys(below(s3_target)) if key[0].isdigit()])

    poller = threading.Thread(target=poll)
    poller.start()
    result = push(s3_target, make_files("x", size_bytes=9 << 20))
    time.sleep(0.2)
    done.set()
    poller.join()
    whole = sorted(f"{result.version}/{path}" for path in [*result.manifest.files, MANIFEST_FILE])
    ready = f"{result.version}/saved_model.pb"
    assert seen[0] == []
    assert seen[-1] == whole
    assert all(keys == whole for keys in seen if ready in keys)


@pytest.mark.parametrize("second_at", [NOON, NOON - 3600], ids=["same second", "clock set back an hour"])
def test_versions_strictly_increase(s3_target: Target, make_files: MakeFiles, second_at: float) -> None:
    """P02 on S3: the second model gets the higher number."""
    assert push(s3_target, make_files("a")).version == NOON
    assert push(s3_target, make_files("b"), at=second_at).version == NOON + 1


def test_pushers_at_once_never_share_a_number(s3_server: S3Server, s3_target: Target, make_files: MakeFiles) -> None:
    """Four pushes at once give four numbers, each with one whole model."""
    models = [make_files(content) for content in "abcd"]
    results: list[Published] = []
    threads = [threading.Thread(target=lambda m=model: results.append(push(s3_target, m))) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({result.version for result in results}) == 4
    store = open_store(s3_target)
    for result in results:
        assert store.digests(result.version) == dict(result.manifest.files)
    assert numbers(s3_server, s3_target) == sorted(str(result.version) for result in results)


def test_retention_rollback_and_repeats_work_as_on_disk(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles
) -> None:
    """With keep=1 the newest and the last known good stay; a rollback is the old model under a new number."""
    push(s3_target, make_files("a"), at=NOON)
    push(s3_target, make_files("b"), at=NOON + 1)
    third = push(s3_target, make_files("c"), at=NOON + 2, keep=1, run_id="r")
    assert third.removed == (NOON,)
    assert push(s3_target, make_files("c"), at=NOON + 9, run_id="r").reused
    back = roll_back(open_store(s3_target), "bad", keep=10, min_free_bytes=0, now=lambda: NOON + 3)
    assert back.manifest.rollback is not None
    assert back.manifest.rollback.source_version == NOON + 1
    assert open_store(s3_target).read(back.version, "saved_model.pb") == b"graph b"
    assert numbers(s3_server, s3_target) == [str(NOON + step) for step in (1, 2, 3)]


def test_odd_names_are_warned_of_and_one_that_wins_for_ever_is_refused(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles
) -> None:
    """P04 on S3: `001` and an object named `7` give warnings; a 14-digit prefix stops the push."""
    client = s3_server.client()
    for key in ("001/x", "7", "v0.1/x"):
        client.put_object(Bucket=s3_server.bucket, Key=below(s3_target) + key, Body=b"")
    result = push(s3_target, make_files("a"))
    assert [warning.split(" ")[0] for warning in result.warnings] == ["'001'", "'7'", "'v0.1'"]
    client.put_object(Bucket=s3_server.bucket, Key=f"{below(s3_target)}20260101120000/x", Body=b"")
    with pytest.raises(EnvironmentProblem, match="20260101120000"):
        push(s3_target, make_files("b"))


_PUSH_AND_DIE = """
import os, signal, sys
from pathlib import Path
from core.manifest import Provenance
from serving import s3_store
from pipeline.cli.main import run
from serving.publish import publish
from serving.target import Target
root, endpoint, model, moment = sys.argv[1:]
def die(self, path, *rest):
    if path == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, path, *rest)
name = "add" if moment == "variables/variables.index" else "_copy"
original = getattr(s3_store.S3Staging, name)
setattr(s3_store.S3Staging, name, die)
target = Target(root, "forebay", "taxi", endpoint)
publish(Path(model), target, Provenance(), keep=5, min_free_bytes=0, now=lambda: 1_800_000_000)
"""


@pytest.mark.parametrize(
    "moment", ["variables/variables.index", "saved_model.pb"], ids=["during the upload", "just before the marker"]
)
def test_a_killed_push_is_never_loadable_and_is_swept(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles, moment: str
) -> None:
    """After kill -9 no version has its graph, and the next push removes every trace of the dead one."""
    command = [sys.executable, "-c", _PUSH_AND_DIE, s3_target.root, s3_server.endpoint, str(make_files("a")), moment]
    assert subprocess.run(command, check=False, timeout=60).returncode == -9
    left = s3_server.keys(below(s3_target))
    assert any(key.startswith(".push-") for key in left)
    assert not any(key.endswith("saved_model.pb") and key[0].isdigit() for key in left)
    result = push(s3_target, make_files("b"))
    assert result.version >= NOON
    assert numbers(s3_server, s3_target) == [str(result.version)]


@pytest.mark.parametrize(
    ("owner", "survives"),
    [
        pytest.param({"host": "elsewhere", "pid": 1, "started": 5}, True, id="another host, young"),
        pytest.param(
            {"host": socket.gethostname(), "pid": os.getpid(), "started": -1}, False, id="a reused process id"
        ),
    ],
)
def test_only_dead_pushes_are_swept(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles, owner: dict[str, Any], survives: bool
) -> None:
    """A push of another host is left alone for a day; one whose process id now belongs to another is swept at once."""
    client = s3_server.client()
    prefix = below(s3_target)
    client.put_object(Bucket=s3_server.bucket, Key=f"{prefix}.push-x/.owner.json", Body=json.dumps(owner).encode())
    client.put_object(Bucket=s3_server.bucket, Key=f"{prefix}.push-x/saved_model.pb", Body=b"half")
    push(s3_target, make_files("a"))
    assert (".push-x" in numbers(s3_server, s3_target)) is survives


def test_a_failed_copy_leaves_no_number(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the server fails between two copies the half-copied number is taken back before the error is raised."""
    push(s3_target, make_files("a"))
    connected = S3Store.__init__

    def failing(store: S3Store, target: Target) -> None:
        connected(store, target)
        copy = store.client.copy

        def fail_at_the_marker(source: Any, bucket: str, key: str) -> None:
            copy(source, bucket if not key.endswith("saved_model.pb") else "no-such-bucket", key)

        monkeypatch.setattr(store.client, "copy", fail_at_the_marker)

    monkeypatch.setattr(S3Store, "__init__", failing)
    with pytest.raises((RemoteServiceError, RetryableError)):
        push(s3_target, make_files("b"))
    assert numbers(s3_server, s3_target) == [str(NOON)]


def test_a_bucket_that_is_not_there_is_named(s3_server: S3Server, s3_target: Target, make_files: MakeFiles) -> None:
    """A missing bucket ends with exit 6, the URL and what to do."""
    target = Target("s3://no-such-bucket/x", "forebay", "taxi", s3_target.s3_endpoint)
    with pytest.raises(RemoteServiceError, match="no such bucket") as caught:
        push(target, make_files("a"))
    assert caught.value.exit_code == 6
    assert caught.value.place == target.location


@pytest.mark.parametrize(
    ("setting", "error", "words"),
    [
        pytest.param("root", ConfigError, "Invalid bucket name", id="impossible bucket name"),
        pytest.param("profile", EnvironmentProblem, "nobody-has-this", id="unknown profile"),
    ],
)
def test_a_setting_that_the_client_refuses_is_named(
    s3_target: Target, make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch, setting: str, error: Any, words: str
) -> None:
    """A bucket name that cannot exist and a profile that is not configured are told apart from a silent server."""
    if setting == "profile":
        monkeypatch.setenv("AWS_PROFILE", "nobody-has-this")
    root = "s3://no such bucket/x" if setting == "root" else s3_target.root
    with pytest.raises(error, match=words):
        push(Target(root, "forebay", "taxi", s3_target.s3_endpoint), make_files("a"))


def test_the_command_reads_a_bucket_like_a_directory(
    s3_target: Target, make_files: MakeFiles, s3_server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """list, verify and rollback take an s3:// root; a damaged object is found with exit 4."""
    push(s3_target, make_files("a"), at=NOON)
    second = push(s3_target, make_files("b"), at=NOON + 1)
    options = ["--root", s3_target.root, "--set", f"serving.s3_endpoint={s3_target.s3_endpoint}", "--output", "json"]

    def ask(*arguments: str) -> tuple[int, Any]:
        code = run(["models", *arguments, *options])
        return code, json.loads(capsys.readouterr().out)

    (model,) = ask("list")[1]["models"]
    assert [version["version"] for version in model["versions"]] == [NOON + 1, NOON]
    assert ask("verify", "taxi")[1]["intact"] is True
    assert ask("rollback", "taxi", "--reason", "r")[1]["source_version"] == NOON
    key = f"{below(s3_target)}{second.version}/saved_model.pb"
    s3_server.client().put_object(Bucket=s3_server.bucket, Key=key, Body=b"other")
    code, record = ask("verify", "taxi", str(second.version))
    assert (code, record["changed"]) == (4, ["saved_model.pb"])


def test_missing_rights_are_named(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that may only read ends with exit 6 and says which rights a push needs; nothing is written."""
    use_credentials(monkeypatch, READER)
    with pytest.raises(RemoteServiceError, match="did not allow") as caught:
        push(s3_target, make_files("a"))
    assert "writing" in caught.value.hint
    assert numbers(s3_server, s3_target) == []


def test_a_wrong_key_is_named(s3_target: Target, make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that the server does not know ends with exit 6 and points at the credentials."""
    use_credentials(monkeypatch, ("nobody", "wrong"))
    with pytest.raises(RemoteServiceError, match="did not allow it \\(InvalidAccessKeyId\\)"):
        push(s3_target, make_files("a"))


def test_no_credentials_are_a_problem_of_this_machine(
    s3_target: Target, make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without any credentials the error names the two variables to set, with exit 5."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    with pytest.raises(EnvironmentProblem, match="no S3 credentials"):
        push(s3_target, make_files("a"))


def test_a_server_that_does_not_answer_fails_soon(make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody at the endpoint: exit 6 with the endpoint in the message, within seconds."""
    use_credentials(monkeypatch, READER)
    (port,) = free_ports(1)
    target = Target("s3://models/x", "forebay", "taxi", f"http://127.0.0.1:{port}")
    start = time.monotonic()
    with pytest.raises(RemoteServiceError, match=f"127.0.0.1:{port}"):
        push(target, make_files("a"))
    assert time.monotonic() - start < 15


def test_an_endpoint_that_is_no_url_is_named(make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without its scheme is told apart from a server that is down."""
    use_credentials(monkeypatch, READER)
    with pytest.raises(EnvironmentProblem, match="is no URL"):
        push(Target("s3://models/x", "forebay", "taxi", "localhost:9000"), make_files("a"))


def taxi_settings(target: Target) -> Any:
    """Returns the taxi recipe's settings with this target's root and server."""
    flags = [f"serving.root={target.root}", f"serving.s3_endpoint={target.s3_endpoint}"]
    return load([str(BASE_FILE.parent / "taxi.yaml")], flags).settings


def test_a_cached_push_looks_into_the_bucket(
    s3_server: S3Server, s3_target: Target, make_files: MakeFiles, tmp_path: Path
) -> None:
    """A push stands while it is in the bucket, a rollback is told, and an emptied bucket is a reason to push."""
    given = taxi_settings(s3_target)
    push(s3_target, make_files("a"), at=NOON)
    made = push(s3_target, make_files("b"), at=NOON + 1)
    receipt.write(tmp_path, receipt.pushed(made))
    outputs = {"pushed_model": str(tmp_path)}
    assert STAGE.still_good(given, outputs) == ""
    assert STAGE.publication(given, outputs)["warnings"] == []
    roll_back(open_store(s3_target), "bad", keep=10, min_free_bytes=0, now=lambda: NOON + 2)
    assert STAGE.still_good(given, outputs) == ""
    assert STAGE.publication(given, outputs)["serving"] == NOON + 2
    push(s3_target, make_files("c"), at=NOON + 3)
    assert STAGE.still_good(given, outputs) == f"another run has pushed version {NOON + 3} since"
    for key in s3_server.keys(below(s3_target)):
        s3_server.client().delete_object(Bucket=s3_server.bucket, Key=below(s3_target) + key)
    assert STAGE.still_good(given, outputs) == f"version {NOON + 1} is gone from {s3_target.location}"


def test_the_early_check_finds_a_missing_bucket(s3_server: S3Server, s3_target: Target) -> None:
    """P03 on S3: a bucket that is there passes and stays as it was; one that is not is named with exit 6."""
    check_target(taxi_settings(s3_target))
    assert numbers(s3_server, s3_target) == []
    with pytest.raises(RemoteServiceError, match="no such bucket"):
        check_target(taxi_settings(Target("s3://no-such-bucket/x", "forebay", "taxi", s3_target.s3_endpoint)))


def test_without_boto3_the_install_command_is_named(make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without the extra gets the command that installs it, with exit 5."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(EnvironmentProblem, match="boto3 is not installed") as caught:
        push(Target("s3://models/x", "forebay", "taxi"), make_files("a"))
    assert caught.value.hint == "pip install 'forebay[s3]'"
