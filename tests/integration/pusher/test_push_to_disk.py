"""Pushing to real directories from real processes: kill -9, two at once, other users, read-only and full disks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import ForebayError
from core.files import sha256_tree
from core.manifest import MANIFEST_FILE, Provenance
from serving import history
from serving.publish import Published, publish
from serving.stores import open_store
from serving.target import Target

pytestmark = pytest.mark.integration

NOON = 1_800_000_000
NOBODY = 65534
MakeFiles = Callable[..., Path]

# Pushes, saying so on stdout before each file and slowly, so that the parent can strike in the middle.
_SLOW_PUSH = """
import sys, time
from pathlib import Path
from core.manifest import Provenance
from serving import local_store
from serving.publish import publish
from serving.target import Target
root, model, pause = sys.argv[1:]
add = local_store.LocalStaging.add
def slow(self, path, source):
    print(path, flush=True)
    time.sleep(float(pause))
    return add(self, path, source)
local_store.LocalStaging.add = slow
result = publish(Path(model), Target(root, "forebay", "taxi"), Provenance(), keep=50, min_free_bytes=0)
print("pushed", result.version, flush=True)
"""


# Pushes, and stays between the rename and whatever would record it, so that the parent can strike there.
_UNRECORDED_PUSH = """
import sys, time
from pathlib import Path
from core.manifest import Provenance
from serving import local_store
from serving.publish import publish
from serving.target import Target
root, model = sys.argv[1:]
commit = local_store.LocalStaging.commit
def stay(self, choose, manifest):
    print("shown", commit(self, choose, manifest), flush=True)
    time.sleep(600)
local_store.LocalStaging.commit = stay
publish(Path(model), Target(root, "forebay", "taxi"), Provenance(run_id="killed"), keep=50, min_free_bytes=0)
"""


def start_push(root: Path, model: Path, pause_s: float) -> subprocess.Popen[str]:
    """Starts a push in a process of its own that waits before each file."""
    command = [sys.executable, "-c", _SLOW_PUSH, str(root), str(model), str(pause_s)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def push(target: Target, model: Path) -> Published:
    """Pushes with the real clock and no demand on free space."""
    return publish(model, target, Provenance(), keep=50, min_free_bytes=0)


def names(target: Target) -> list[str]:
    """Returns everything in the model's directory, hidden or not, but the lock file."""
    return sorted(name for name in os.listdir(target.location) if name != ".lock")


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """Returns a target below the test's own directory; nothing is there yet."""
    return Target(str(tmp_path / "serving"), "forebay", "taxi")


@pytest.mark.parametrize("files_before", [1, 2, 3])
def test_a_killed_push_leaves_no_version_and_the_next_push_cleans_up(
    target: Target, make_files: MakeFiles, files_before: int
) -> None:
    """P01: after kill -9 before the n-th file only hidden names are there; the next push removes them and succeeds."""
    process = start_push(Path(target.root), make_files("a"), 0.3)
    assert process.stdout is not None
    for _ in range(files_before):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    left = names(target)
    assert left
    assert all(name.startswith(".push-") for name in left)
    result = push(target, make_files("b"))
    assert names(target) == [str(result.version)]
    served = sha256_tree(result.location)
    del served[MANIFEST_FILE]
    assert served == sha256_tree(make_files("b"))


def test_a_push_that_was_killed_before_its_record_is_found_again(target: Target, make_files: MakeFiles) -> None:
    """P01: after kill -9 between the rename and the record, the next run's push of that model is the same version."""
    command = [sys.executable, "-c", _UNRECORDED_PUSH, target.root, str(make_files("a"))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    version = int(process.stdout.readline().split()[-1])
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    result = publish(make_files("a"), target, Provenance(run_id="next"), keep=50, min_free_bytes=0)
    assert (result.version, result.reused) == (version, True)
    assert [name for name in names(target) if name.isdigit()] == [str(version)]
    later = push(target, make_files("b"))
    assert names(target) == [str(version), str(later.version)]


def test_a_push_that_is_under_way_survives_the_sweep_of_another(target: Target, make_files: MakeFiles) -> None:
    """While one process is copying, another pushes and sweeps; both versions arrive whole."""
    process = start_push(Path(target.root), make_files("a"), 0.5)
    assert process.stdout is not None
    process.stdout.readline()
    first = push(target, make_files("b"))
    output = process.communicate(timeout=60)[0]
    second = int(output.split()[-1])
    assert second > first.version
    assert names(target) == [str(first.version), str(second)]
    store = open_store(target)
    for manifest in history.manifests(store):
        assert store.digests(manifest.version) == dict(manifest.files)


def test_pushers_in_many_processes_never_collide(target: Target, make_files: MakeFiles) -> None:
    """Five processes push at once: five versions, five different models, all with their checksums."""
    processes = [start_push(Path(target.root), make_files(content), 0.0) for content in "abcde"]
    for process in processes:
        process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0] * 5
    store = open_store(target)
    manifests = history.manifests(store)
    assert len({manifest.model_digest for manifest in manifests}) == 5
    assert names(target) == [str(manifest.version) for manifest in manifests]
    for manifest in manifests:
        assert store.digests(manifest.version) == dict(manifest.files)


def as_nobody(action: Callable[[], object]) -> dict[str, object]:
    """Runs an action as the user nobody in a forked child; returns the error that it ended with, {} for none."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer: dict[str, object] = {}
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            action()
        except ForebayError as error:
            answer = error.to_dict()
        except BaseException as error:  # The child must never return into the test runner.
            answer = {"error": repr(error)}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    answer = json.loads(content)
    assert isinstance(answer, dict)
    return answer


@pytest.fixture
def open_ground(make_files: MakeFiles) -> Iterator[Path]:
    """Returns a directory that every user can reach, with a model in it: pytest's own are private."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    directory = Path(tempfile.mkdtemp(prefix="forebay-push-"))
    directory.chmod(0o755)
    shutil.copytree(make_files("a"), directory / "model")
    yield directory
    shutil.rmtree(directory)


@pytest.mark.parametrize("level", ["root", "model"])
@pytest.mark.parametrize(("mode", "shown"), [(0o700, "mode 0700"), (0o755, "mode 0755")], ids=["private", "readable"])
def test_a_directory_of_another_user_is_refused_with_mode_and_owner(
    open_ground: Path, make_files: MakeFiles, level: str, mode: int, shown: str
) -> None:
    """P03: at whatever level the foreign directory is, the error names its mode, its owner and who asked."""
    target = Target(str(open_ground / "serving"), "forebay", "taxi")
    push(target, make_files("b"))
    foreign = Path(target.root if level == "root" else target.location)
    for path in [Path(target.root), *Path(target.root).rglob("*")]:
        os.chown(path, 12345, 12345)
    foreign.chmod(mode)
    before = names(target)
    found = as_nobody(lambda: push(target, open_ground / "model"))
    assert found["exit_code"] == 5
    assert shown in str(found["headline"])
    assert "uid 12345" in str(found["headline"])
    assert f"uid {NOBODY}" in str(found["headline"])
    assert names(target) == before


def test_the_owner_may_push_without_being_root(open_ground: Path) -> None:
    """An ordinary user who owns the root pushes, and the checks let him."""
    target = Target(str(open_ground / "serving"), "forebay", "taxi")
    push(Target(str(open_ground / "warm"), "forebay", "taxi"), open_ground / "model")
    Path(target.root).mkdir()
    os.chown(target.root, NOBODY, NOBODY)
    assert as_nobody(lambda: push(target, open_ground / "model")) == {}
    assert len(names(target)) == 1


def test_what_another_user_left_is_no_reason_to_refuse(open_ground: Path, make_files: MakeFiles) -> None:
    """Leftovers of a dead push that this user may not delete stay out of sight, and the push is done."""
    target = Target(str(open_ground / "serving"), "forebay", "taxi")
    push(target, make_files("b"))
    for name in (".push-dead", ".trash-1-x"):
        (Path(target.location) / name / "variables").mkdir(parents=True)
    (Path(target.location) / ".push-dead.lock").touch(mode=0o600)
    for path in (Path(target.location), Path(target.location) / ".lock"):
        os.chown(path, NOBODY, NOBODY)
    assert as_nobody(lambda: push(target, open_ground / "model")) == {}
    assert len([name for name in names(target) if name.isdigit()]) == 2


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Returns a function that mounts something on a new directory; all of it is unmounted at the end."""
    mounted: list[Path] = []

    def do(*options: str) -> Path:
        point = tmp_path / f"mount{len(mounted)}"
        point.mkdir()
        made = subprocess.run(["mount", *options, str(point)], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            pytest.skip(f"cannot mount here: {made.stderr.strip()}")
        mounted.append(point)
        return point

    yield do
    for point in reversed(mounted):
        subprocess.run(["umount", str(point)], check=True)


def test_a_read_only_file_system_is_refused_by_name(
    mount: Callable[..., Path], make_files: MakeFiles, tmp_path: Path
) -> None:
    """P03: on a read-only mount the push stops before it touches anything and calls the mount read-only."""
    (tmp_path / "store").mkdir()
    live = push(Target(str(tmp_path / "store"), "forebay", "taxi"), make_files("a"))
    point = mount("--bind", str(tmp_path / "store"))
    subprocess.run(["mount", "-o", "remount,ro,bind", str(point)], check=True)
    target = Target(str(point), "forebay", "taxi")
    with pytest.raises(ForebayError, match=r"read-only file system .*mode 0755") as caught:
        push(target, make_files("b"))
    assert caught.value.exit_code == 5
    assert names(target) == [str(live.version)]


def test_a_small_disk_is_refused_before_and_fails_cleanly_in_the_middle(
    mount: Callable[..., Path], make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P03: a disk known to be too small is refused in bytes; one that fills up meanwhile keeps its live version."""
    point = mount("-t", "tmpfs", "-o", "size=256k", "tmpfs")
    target = Target(str(point), "forebay", "taxi")
    live = push(target, make_files("a"))
    big = make_files("b", size_bytes=512 << 10)
    with pytest.raises(ForebayError, match=r"too little space: [0-9,]+ bytes free, 524,[0-9]+ needed"):
        push(target, big)
    assert names(target) == [str(live.version)]
    monkeypatch.setattr("serving.local_disk._check_space", lambda *sizes: None)
    with pytest.raises(ForebayError, match=r"full: [0-9,]+ bytes free") as caught:
        push(target, big)
    assert caught.value.exit_code == 5
    assert names(target) == [str(live.version)]
    assert open_store(target).digests(live.version) == dict(live.manifest.files)


def test_a_slow_push_of_a_large_file_is_never_seen_in_part(target: Target, make_files: MakeFiles) -> None:
    """P01: a process writes 200 MB while a poller lists every 10 ms: first nothing numeric, then all of it."""
    model = make_files("x", size_bytes=200 << 20)
    process = start_push(Path(target.root), model, 0.1)
    expected = {path.relative_to(model): path.stat().st_size for path in model.rglob("*") if path.is_file()}
    seen: list[dict[Path, int]] = []
    while process.poll() is None:
        try:
            found = [name for name in os.listdir(target.location) if name.isdigit()]
        except FileNotFoundError:
            found = []
        for name in found:
            top = Path(target.location) / name
            seen.append({path.relative_to(top): path.stat().st_size for path in top.rglob("*") if path.is_file()})
        if not found:
            seen.append({})
        time.sleep(0.01)
    assert process.returncode == 0
    process.communicate()
    partial = [sizes for sizes in seen if sizes and not expected.items() <= sizes.items()]
    assert partial == []
    assert sum(sizes == {} for sizes in seen) > 20
    (version,) = names(target)
    assert (Path(target.location) / version / MANIFEST_FILE).is_file()
