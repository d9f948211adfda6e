"""ML Metadata on SQLite and on a real MariaDB: connect, reuse, clean up after a kill, move."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from core.errors import RemoteServiceError
from core.settings.metadata import PASSWORD_VARIABLE
from pipeline.runners import cache, mlmd
from pipeline.runners.cache import Entry, Parts
from pipeline.runners.layout import PipelineRoot

pytestmark = pytest.mark.integration


def free_port() -> int:
    """Returns a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(params=["sqlite", "mariadb"])
def metadata(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The setting `run.metadata`, for each kind of store."""
    if request.param == "sqlite":
        return "sqlite"
    monkeypatch.setenv(PASSWORD_VARIABLE, "pass word")
    return str(request.getfixturevalue("mariadb"))


def open_lineage(metadata: str, root: PipelineRoot, name: str) -> mlmd.Lineage:
    """Returns a connected Lineage; the root's folder exists."""
    root.path.mkdir(parents=True, exist_ok=True)
    return mlmd.Lineage(mlmd.connection(metadata, root), name, root)


def finish_node(lineage: mlmd.Lineage, name: str, *, state: str, run_id: str = "r0") -> tuple[int, int]:
    """Writes an execution of StatisticsGen with one artifact, as TFX does; returns (execution id, artifact id)."""
    from ml_metadata.proto import metadata_store_pb2 as pb

    store = lineage.store
    kind = store.put_execution_type(pb.ExecutionType(name="StatisticsGen"))
    type_id = store.put_artifact_type(pb.ArtifactType(name="ExampleStatistics"))
    execution = pb.Execution(type_id=kind, last_known_state=pb.Execution.State.Value(state))
    uri = lineage.artifacts / "StatisticsGen" / "statistics" / "1"
    uri.mkdir(parents=True, exist_ok=True)
    (uri / "stats").write_text("s", encoding="utf-8")
    artifact = pb.Artifact(type_id=type_id, uri=str(uri), state=pb.Artifact.LIVE)
    event = pb.Event(type=pb.Event.OUTPUT)
    event.path.steps.add().key = "statistics"
    event.path.steps.add().index = 0
    contexts = [lineage._ensure("pipeline", name), lineage._ensure("pipeline_run", run_id)]
    execution_id, artifact_ids, _ = store.put_execution(execution, [(artifact, event)], contexts)
    return execution_id, artifact_ids[0]


def entry_of(lineage: mlmd.Lineage, execution_id: int, artifact_id: int) -> Entry:
    """Returns a cache entry for the node that finish_node wrote."""
    output = cache.describe(
        lineage.artifacts, artifact_id, str(lineage.artifacts / "StatisticsGen" / "statistics" / "1")
    )
    return Entry("k", "r0", execution_id, "t", Parts({}, {}, {}, ""), {"statistics": [output]})


def test_a_reused_node_is_published_for_the_nodes_behind_it(metadata: str, tmp_path: Path) -> None:
    """A cache hit leaves a CACHED execution of this run whose outputs TFX's own look-up would find."""
    root, name = PipelineRoot(tmp_path / "root"), f"p-{tmp_path.name}"
    lineage = open_lineage(metadata, root, name)
    execution_id, artifact_id = finish_node(lineage, name, state="COMPLETE")
    assert lineage.knows(entry_of(lineage, execution_id, artifact_id))
    new = lineage.publish_reused("20240101-000000", "StatisticsGen", execution_id, {}, {"statistics": [artifact_id]})
    assert new != execution_id
    assert [item.id for item in lineage.outputs(new)["statistics"]] == [artifact_id]
    run = lineage.store.get_context_by_type_and_name("pipeline_run", "20240101-000000")
    assert [item.id for item in lineage.store.get_executions_by_context(run.id)] == [new]


def test_what_a_killed_run_left_running_is_failed_and_removed(metadata: str, tmp_path: Path) -> None:
    """R04: a stale RUNNING execution of a run of ours becomes FAILED and its half-written outputs go."""
    root, name = PipelineRoot(tmp_path / "root"), f"p-{tmp_path.name}"
    lineage = open_lineage(metadata, root, name)
    execution_id, _ = finish_node(lineage, name, state="RUNNING", run_id="20240101-000000-aaaa")
    half = lineage.artifacts / "StatisticsGen" / "statistics" / str(execution_id)
    half.mkdir(parents=True, exist_ok=True)
    assert lineage.fail_stale() == 0  # It may be alive: no run of this root bears that name.
    root.run("20240101-000000-aaaa").mkdir(parents=True)
    assert lineage.fail_stale() == 1
    assert not half.exists()
    assert lineage.fail_stale() == 0


def test_a_copied_project_finds_its_artifacts_where_they_are_now(tmp_path: Path) -> None:
    """R02: after a copy, the SQLite file's records point into the copy, and the original's stay as they were."""
    root, name = PipelineRoot(tmp_path / "root"), "p"
    lineage = open_lineage("sqlite", root, name)
    lineage.relocate()
    ids = finish_node(lineage, name, state="COMPLETE")
    entry = entry_of(lineage, *ids)
    del lineage
    shutil.copytree(root.path, tmp_path / "copy")
    copied = open_lineage("sqlite", PipelineRoot(tmp_path / "copy"), name)
    assert copied.knows(entry)  # A preview looks without writing.
    assert copied.relocate() == 1
    assert copied.relocate() == 0
    assert copied.knows(entry)
    assert open_lineage("sqlite", root, name).knows(entry)


def test_a_blank_marker_moves_nothing(tmp_path: Path) -> None:
    """A marker that a full disk left empty is taken for "not moved", not for a prefix of every path."""
    root = PipelineRoot(tmp_path / "root")
    lineage = open_lineage("sqlite", root, "p")
    entry = entry_of(lineage, *finish_node(lineage, "p", state="COMPLETE"))
    (root.path / "_root").write_text("", encoding="utf-8")
    again = open_lineage("sqlite", root, "p")
    assert again.relocate() == 0
    assert again.knows(entry)


def test_a_lost_database_means_that_nothing_is_known(tmp_path: Path) -> None:
    """When the metadata file is gone, its entries are not reused."""
    root = PipelineRoot(tmp_path / "root")
    lineage = open_lineage("sqlite", root, "p")
    entry = entry_of(lineage, *finish_node(lineage, "p", state="COMPLETE"))
    del lineage
    root.sqlite.unlink()
    assert not open_lineage("sqlite", root, "p").knows(entry)


def test_a_silent_server_is_named_within_seconds(tmp_path: Path) -> None:
    """Nothing listens: exit 6 with host and port, at once."""
    started = time.monotonic()
    with pytest.raises(RemoteServiceError, match=r"127\.0\.0\.1"):
        open_lineage(f"mysql://u@127.0.0.1:{free_port()}/d", PipelineRoot(tmp_path / "r"), "p")
    assert time.monotonic() - started < 10


def test_a_wrong_password_is_a_refusal_of_the_server(
    mariadb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's no is exit 6 and tells what to check."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "wrong")
    with pytest.raises(RemoteServiceError, match="Check user, password, database"):
        open_lineage(mariadb, PipelineRoot(tmp_path / "r"), "p")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """A file that is no SQLite database is exit 5 with its path."""
    from core.errors import EnvironmentProblem

    root: Any = PipelineRoot(tmp_path)
    root.sqlite.write_bytes(b"this is not a database" * 100)
    with pytest.raises(EnvironmentProblem, match="_metadata"):
        open_lineage("sqlite", root, "p")
