"""One run, node by node: reuse or compute, enforce the gates, keep the record true whatever happens."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import (
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    EXIT_UNEXPECTED,
    ForebayError,
    GateRefusedError,
    NodeFailedError,
)
from core.files import write_json_atomic
from pipeline import assembly
from pipeline.runners import cache, code_digest, mlmd, records
from pipeline.runners.layout import PipelineRoot
from pipeline.runners.plan import Decision, Planner
from pipeline.runners.records import NodeRecord, RunRecord
from pipeline.runners.request import Request, facts_of
from pipeline.runners.screen import Screen, noise_to
from pipeline.stages import push
from pipeline.stages.stage import RunFacts, Stage

if TYPE_CHECKING:
    from pipeline.runners.tfx_engine import TfxEngine

LOG = logging.getLogger("forebay.run")


class Walk:
    """One run, from its first record to its last."""

    def __init__(self, request: Request, root: PipelineRoot, run_id: str, screen: Screen) -> None:
        """Starts a record; nothing is written yet."""
        self._request = request
        self._settings = request.loaded.settings
        self._root = root
        self._screen = screen
        self._stages = assembly.stages(self._settings)
        self._engine: TfxEngine | None = None
        self._looked_up: list[str] = []
        self.record = RunRecord(
            run_id=run_id,
            pipeline=assembly.pipeline_name(self._settings),
            started=records.now(),
            pid=os.getpid(),
            host=socket.gethostname(),
            command=list(request.command),
            nodes=[NodeRecord(stage.id) for stage in self._stages],
            accept_new_baseline=request.accept_new_baseline,
            first=request.span.first,
            last=request.span.last,
        )

    def execute(self) -> RunRecord:
        """Runs every node; leaves a finished record whatever happens."""
        folder = self._root.run(self.record.run_id)
        folder.mkdir(parents=True)
        write_json_atomic(folder / "settings.json", self._request.loaded.values)
        self._save()
        with noise_to(folder / "run.log", self.record.run_id), _terminable():
            try:
                self._prepare()
                self._run_nodes()
                self._finish(records.DONE, 0)
            except GateRefusedError as error:
                self._finish(records.REFUSED, EXIT_REFUSED, error.to_dict())
            except KeyboardInterrupt:
                self._finish(records.INTERRUPTED, EXIT_INTERRUPTED, {"error": "Interrupted", "message": "interrupted"})
            except ForebayError as error:
                LOG.exception("the run ends")
                state = records.REFUSED if error.exit_code == EXIT_REFUSED else records.FAILED
                self._finish(state, error.exit_code, error.to_dict())
            except Exception as error:  # Anything a node raises: user code, TFX, Beam.
                LOG.exception("the run ends")
                self._finish(records.FAILED, EXIT_UNEXPECTED, self._explained(error).to_dict())
            except BaseException:  # A library that ends the process: the record must not say "running" for ever.
                LOG.exception("the run ends")
                self._finish(records.FAILED, EXIT_UNEXPECTED)
                raise
        return self.record

    def _prepare(self) -> None:
        self._connection = mlmd.connection(self._settings.run.metadata, self._root)
        self._lineage = mlmd.Lineage(self._connection, self.record.pipeline, self._root)
        self._lineage.relocate()
        stale = self._lineage.fail_stale()
        if stale:
            LOG.warning("%d executions of a killed run were marked failed", stale)
        self._facts = facts_of(self._request, self.record.run_id)
        self._planner = Planner(self._settings, self._facts, self._stages, self._lineage, self._request.span)

    def _run_nodes(self) -> None:
        for stage in self._stages:
            record = self.record.node(stage.id)
            if stage.resolves:
                self._resolve(stage, record)
                continue
            decision = self._planner.decide(stage)
            record.key, record.reason = decision.key, decision.reason
            if decision.skipped:
                record.state = records.SKIPPED
            elif decision.entry is not None:
                self._reuse(decision.entry, stage, record)
            else:
                self._compute(decision, record)
            self._save()
            self._screen.node(record)
            self._enforce(stage, record)

    def _resolve(self, stage: Stage, record: NodeRecord) -> None:
        """Looks a baseline up; TFX repeats the look-up for its own records once it is running."""
        if self._planner.skips(stage):
            record.state, record.reason = records.SKIPPED, f"not asked for: after --to {self.record.last}"
            return
        picked = self._planner.resolve(stage)
        self._planner.record(stage.id, picked)
        record.state, record.reason = records.DONE, "looked up in every run"
        record.outputs = {key: [item.path for item in made] for key, made in picked.items()}
        if self._engine is None:
            self._looked_up.append(stage.id)
        else:
            record.execution_id = self._engine.launch(stage.id)

    def _reuse(self, entry: cache.Entry, stage: Stage, record: NodeRecord) -> None:
        started = time.monotonic()
        outputs = {key: [item.artifact_id for item in made] for key, made in entry.outputs.items()}
        inputs = self._planner.inputs_of(stage)
        record.execution_id = self._lineage.publish_reused(
            self.record.run_id, stage.id, entry.execution_id, inputs, outputs
        )
        record.state = records.CACHED
        self._made(stage, record, entry.outputs)
        record.seconds = round(time.monotonic() - started, 3)

    def _compute(self, decision: Decision, record: NodeRecord) -> None:
        stage = decision.stage
        self._start_engine(self._planner.facts_for(stage))
        record.state = records.RUNNING
        self._save()
        started = time.monotonic()
        try:
            with self._screen.working(stage.id):
                record.execution_id = self._engine.launch(stage.id)  # type: ignore[union-attr]
                outputs = self._index(decision, record.execution_id)
        except BaseException as error:
            record.state = records.INTERRUPTED if isinstance(error, KeyboardInterrupt) else records.FAILED
            record.seconds = round(time.monotonic() - started, 3)
            self._screen.node(record)
            raise
        record.state = records.DONE
        record.seconds = round(time.monotonic() - started, 3)
        self._made(stage, record, outputs)

    def _index(self, decision: Decision, execution_id: int) -> dict[str, list[cache.Output]]:
        """Digests what a node made and enters it into the index of reusable outputs."""
        if decision.parts is None:
            raise RuntimeError(f"{decision.stage.id} ran before its inputs were known")
        outputs = {
            key: [cache.describe(self._lineage.artifacts, item.id, item.uri) for item in artifacts]
            for key, artifacts in self._lineage.outputs(execution_id).items()
        }
        digests = {item.artifact_id: item.digest for made in outputs.values() for item in made}
        self._lineage.set_digests(digests)
        entry = cache.Entry(decision.key, self.record.run_id, execution_id, records.now(), decision.parts, outputs)
        cache.store(self._lineage.artifacts, decision.stage.id, entry)
        return outputs

    def _made(self, stage: Stage, record: NodeRecord, outputs: Mapping[str, Sequence[cache.Output]]) -> None:
        self._planner.record(stage.id, outputs)
        paths = {key: [str(self._lineage.artifacts / item.path) for item in made] for key, made in outputs.items()}
        record.outputs = paths
        record.number = stage.summary({key: made[0] for key, made in paths.items() if made})

    def _start_engine(self, facts: RunFacts) -> None:
        """Compiles the graph with these facts, which change only where an earlier consent applies."""
        if self._engine is not None and facts == self._engine.facts:
            return
        from pipeline.runners.tfx_engine import TfxEngine

        if self._engine is None and self.record.last is None:
            # A target that cannot take the model is found now, not after the training. A run that reuses everything
            # does not come here, and needs no network.
            push.check_target(self._settings)
        with self._screen.working("TFX starting"):
            self._engine = TfxEngine(self._settings, facts, self._lineage.artifacts, self._connection)
            for node_id in self._looked_up:
                self.record.node(node_id).execution_id = self._engine.launch(node_id)
        self._looked_up.clear()

    def _enforce(self, stage: Stage, record: NodeRecord) -> None:
        """Stops the run where a gate refused; the gate's own outputs stay, and so does its place in the cache."""
        outputs = {key: made[0] for key, made in record.outputs.items() if made}
        if not outputs:
            return
        refusal = stage.refusal(outputs)
        if refusal:
            record.state = records.REFUSED
            self._screen.node(record)
            for later in self.record.nodes:
                if later.state == records.PENDING:
                    later.state, later.reason = records.SKIPPED, f"{stage.id} refused"
            raise GateRefusedError(refusal)
        pushed = stage.publication(self._settings, outputs)
        if pushed:
            self.record.pushed = {**pushed, "reused": pushed["reused"] or record.state == records.CACHED}

    def _finish(self, state: str, exit_code: int, error: dict[str, Any] | None = None) -> None:
        self.record.state, self.record.exit_code, self.record.error = state, exit_code, error
        self.record.ended = records.now()
        self._save()

    def _explained(self, error: Exception) -> NodeFailedError:
        """Returns what an unforeseen error means to the user: the node, the message, the line of their code."""
        node = next((item.id for item in self.record.nodes if item.state == records.FAILED), "the run")
        lines = [line for line in str(error).strip().splitlines() if line.strip()]
        message = lines[-1].strip()[:300] if lines else "no message"
        log = self._root.run(self.record.run_id) / "run.log"
        headline = f"{node} failed: {type(error).__name__}: {message}"
        return NodeFailedError(headline, place=_user_frame(error), hint=f"The log is {log}.")

    def _save(self) -> None:
        records.save(self._root, self.record)


def _user_frame(error: BaseException) -> str:
    """Returns `file:line` of the innermost frame in the project's own code; "" when there is none."""
    folders = code_digest.search_path()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if any(folder in path.parents for folder in folders) and "site-packages" not in path.parts:
            shown = path.relative_to(Path.cwd()) if Path.cwd() in path.parents else path
            return f"{shown}:{frame.lineno}"
    return ""


@contextmanager
def _terminable() -> Iterator[None]:
    """Lets SIGTERM end the run as an interrupt does, with its record and lock in order."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
