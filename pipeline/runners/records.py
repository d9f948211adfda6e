"""Run records: what each run was told, what every node did and why, and how it ended."""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import json
from collections.abc import Mapping
from typing import Any

from core.errors import EnvironmentProblem, UsageError
from core.files import write_json_atomic
from pipeline.runners import lock
from pipeline.runners.layout import PipelineRoot, existing_roots

FORMAT_VERSION = 1

# States of a run and of a node.
RUNNING, DONE, CACHED, REFUSED, FAILED, INTERRUPTED, KILLED, PENDING, SKIPPED = (
    "running",
    "done",
    "cached",
    "refused",
    "failed",
    "interrupted",
    "killed",
    "pending",
    "skipped",
)


@dataclasses.dataclass
class NodeRecord:
    """One node of one run.

    Attributes:
        id: Node id.
        state: pending, running, done, cached, refused, failed or skipped.
        reason: Why it ran, was reused or was not reached, in one sentence.
        key: Its cache key; empty until known.
        seconds: Wall time.
        number: The one number that matters, as text.
        execution_id: Its execution in ML Metadata; None until known.
        outputs: Output key to the paths of its artifacts.
    """

    id: str
    state: str = PENDING
    reason: str = ""
    key: str = ""
    seconds: float = 0.0
    number: str = ""
    execution_id: int | None = None
    outputs: dict[str, list[str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class RunRecord:
    """One run; saved after every change, so that a killed run leaves its story."""

    run_id: str
    pipeline: str
    state: str = RUNNING
    started: str = ""
    ended: str = ""
    exit_code: int | None = None
    pid: int = 0
    host: str = ""
    command: list[str] = dataclasses.field(default_factory=list)
    nodes: list[NodeRecord] = dataclasses.field(default_factory=list)
    error: dict[str, Any] | None = None
    pushed: dict[str, Any] | None = None
    accept_new_baseline: str | None = None
    first: str | None = None
    last: str | None = None
    format_version: int = FORMAT_VERSION

    def node(self, node_id: str) -> NodeRecord:
        """Returns the record of a node.

        Raises:
            UsageError: The run has no such node; names the nearest.
        """
        for record in self.nodes:
            if record.id.lower() == node_id.lower():
                return record
        names = [record.id for record in self.nodes]
        near = difflib.get_close_matches(node_id, names, n=1, cutoff=0.4)
        hint = f"Did you mean {near[0]}?" if near else f"Nodes: {', '.join(names)}."
        raise UsageError(f"run {self.run_id} has no node {node_id!r}", hint=hint)

    def to_dict(self) -> dict[str, Any]:
        """Returns the stable JSON form."""
        return dataclasses.asdict(self)


def now() -> str:
    """Returns the present in UTC, ISO 8601 to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def save(root: PipelineRoot, record: RunRecord) -> None:
    """Writes the record atomically into its run directory."""
    write_json_atomic(root.run(record.run_id) / "run.json", record.to_dict())


def load(root: PipelineRoot, run_id: str) -> RunRecord:
    """Returns a run's record; one whose process is gone is shown as killed.

    Raises:
        EnvironmentProblem: The record cannot be read or is of a later format.
    """
    path = root.run(run_id) / "run.json"
    try:
        values: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"the run record cannot be read: {error}", place=str(path)) from None
    if values.get("format_version", 0) > FORMAT_VERSION:
        raise EnvironmentProblem("the run record is of a later Forebay", place=str(path), hint="Update Forebay.")
    nodes = [NodeRecord(**node) for node in values["nodes"]]
    record = RunRecord(**{**values, "nodes": nodes})
    if record.state == RUNNING:
        holder = lock.owner(root.lock)
        if holder is None or holder.run_id != run_id:
            _mark_killed(record)
    return record


def all_runs(root: PipelineRoot) -> list[RunRecord]:
    """Returns the records of a pipeline, newest first."""
    ids = [path.parent.name for path in root.runs.glob("*/run.json")] if root.runs.is_dir() else []
    return sorted((load(root, run_id) for run_id in ids), key=lambda run: (run.started, run.run_id), reverse=True)


def find(run_root: str, run_id: str) -> tuple[PipelineRoot, RunRecord]:
    """Returns a run by id, by `latest`, or by the start of its id, from any pipeline below `run.root`.

    Raises:
        UsageError: There is no such run, or the prefix fits several.
    """
    runs = [(root, record) for root in existing_roots(run_root) for record in all_runs(root)]
    if not runs:
        raise UsageError(
            "no run yet", place=f"run.root {run_root}", hint="Start one: forebay run -c configs/taxi.yaml."
        )
    if run_id == "latest":
        return max(runs, key=lambda pair: (pair[1].started, pair[1].run_id))
    exact = [pair for pair in runs if pair[1].run_id == run_id]
    fitting = exact or [pair for pair in runs if pair[1].run_id.startswith(run_id)]
    if len(fitting) == 1:
        return fitting[0]
    ids = sorted((record.run_id for _, record in fitting or runs), reverse=True)
    what = "fits several runs" if fitting else "is no run here"
    raise UsageError(f"{run_id!r} {what}", hint=f"Runs: {', '.join(ids[:5])}.")


def _mark_killed(record: RunRecord) -> None:
    record.state = KILLED
    for node in record.nodes:
        if node.state == RUNNING:
            node.state = KILLED
            node.reason = "its process ended without a word"
