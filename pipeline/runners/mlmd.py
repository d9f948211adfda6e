"""ML Metadata through its own client, without TFX: it opens in a fraction of a second."""

from __future__ import annotations

import functools
import secrets
import shutil
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from components.baselines import selection
from core.errors import EnvironmentProblem, ForebayError, RemoteServiceError
from core.files import write_atomic
from core.settings import metadata
from pipeline.runners.cache import Entry
from pipeline.runners.layout import PipelineRoot

_CONNECT_S = 5.0
# Type of the context that names a store.
_STORE = "forebay_store"


def connection(setting: str, root: PipelineRoot) -> Any:
    """Returns the MLMD ConnectionConfig of the setting `run.metadata`.

    Args:
        setting: `sqlite`, or `mysql://USER@HOST:PORT/DATABASE`.
        root: Holds the SQLite file.
    """
    from ml_metadata.proto import metadata_store_pb2

    config = metadata_store_pb2.ConnectionConfig()
    address = metadata.parse(setting)
    if address is None:
        config.sqlite.filename_uri = str(root.sqlite)
        config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READWRITE_OPENCREATE
        return config
    config.mysql.host, config.mysql.port = address.host, address.port
    config.mysql.user, config.mysql.password = address.user, address.password
    config.mysql.database = address.database
    return config


class Lineage:
    """One pipeline's executions and artifacts in ML Metadata."""

    def __init__(self, config: Any, pipeline: str, root: PipelineRoot) -> None:
        """Connects, creating the database schema in an empty store.

        Raises:
            RemoteServiceError: The MySQL server does not answer or refuses.
            EnvironmentProblem: The SQLite file cannot be opened.
        """
        from ml_metadata import errors
        from ml_metadata.metadata_store import metadata_store

        self._pipeline = pipeline
        self._root = root
        self._is_file = config.HasField("sqlite")
        if not self._is_file:
            _reach(config.mysql.host, config.mysql.port)
        try:
            self.store = metadata_store.MetadataStore(config)
            self.store.get_context_types()
        except (errors.StatusError, RuntimeError) as error:
            raise _refused(config, str(error).strip().splitlines()[0][:200]) from None
        self._marker = root.path / "_root"
        # Where the records say that this root is: elsewhere, after the project was moved or copied.
        self._recorded = str(root.path)
        if self._is_file and self._marker.is_file():
            self._recorded = self._marker.read_text(encoding="utf-8").strip() or self._recorded

    @functools.cached_property
    def artifacts(self) -> Path:
        """The directory of the artifacts that this store records.

        Each store has its own: ids begin anew in another store, and TFX names directories by them.
        """
        known = self.store.get_contexts_by_type(_STORE) if self._has_type(_STORE) else []
        name = min((context.name for context in known), default="") or secrets.token_hex(4)
        self._ensure(_STORE, name)
        return self._root.artifacts(name)

    def relocate(self) -> int:
        """Points artifacts of a moved or copied project to where they are now; returns how many were changed.

        Only for SQLite, whose file moved along. On a server the records belong to every copy of the project.
        """
        here = str(self._root.path)
        moved = []
        if self._recorded != here:
            for artifact in self.store.get_artifacts():
                uri = self._now(artifact.uri)
                if uri != artifact.uri:
                    artifact.uri = uri
                    moved.append(artifact)
            if moved:
                self.store.put_artifacts(moved)
        if self._is_file:
            write_atomic(self._marker, here)
        self._recorded = here
        return len(moved)

    def fail_stale(self) -> int:
        """Marks executions that a killed run left RUNNING as FAILED and removes what they half wrote.

        Call it only while holding the pipeline's lock. Returns how many there were.
        """
        from ml_metadata.proto import metadata_store_pb2

        states = metadata_store_pb2.Execution
        context = self._context("pipeline", self._pipeline)
        if context is None:
            return 0
        stale = [
            execution
            for execution in self.store.get_executions_by_context(context.id)
            if execution.last_known_state in (states.NEW, states.RUNNING) and self._is_ours(execution.id)
        ]
        for execution in stale:
            execution.last_known_state = states.FAILED
            for folder in self.artifacts.glob(f"*/*/{execution.id}"):
                shutil.rmtree(folder, ignore_errors=True)
        if stale:
            self.store.put_executions(stale)
        return len(stale)

    def _is_ours(self, execution_id: int) -> bool:
        """True for an execution of a run of this root: on a server, other roots' runs may be alive."""
        run_type = self.store.get_context_type("pipeline_run").id
        contexts = self.store.get_contexts_by_execution(execution_id)
        return any(item.type_id == run_type and self._root.run(item.name).is_dir() for item in contexts)

    def knows(self, entry: Entry) -> bool:
        """True when every artifact of a cache entry is still recorded, at the place where the entry has it."""
        wanted = {output.artifact_id: output for made in entry.outputs.values() for output in made}
        known = self.store.get_artifacts_by_id(list(wanted)) if wanted else []
        places = {artifact.id: self._now(artifact.uri) for artifact in known}
        return all(places.get(key) == str(self.artifacts / output.path) for key, output in wanted.items())

    def outputs(self, execution_id: int) -> dict[str, list[Any]]:
        """Returns {output key: artifacts} of an execution."""
        from ml_metadata.proto import metadata_store_pb2

        keys: dict[int, str] = {}
        for event in self.store.get_events_by_execution_ids([execution_id]):
            if event.type in (metadata_store_pb2.Event.OUTPUT, metadata_store_pb2.Event.INTERNAL_OUTPUT):
                keys[event.artifact_id] = next(
                    step.key for step in event.path.steps if step.WhichOneof("value") == "key"
                )
        made: dict[str, list[Any]] = {}
        for artifact in self.store.get_artifacts_by_id(list(keys)) if keys else []:
            made.setdefault(keys[artifact.id], []).append(artifact)
        return made

    def set_digests(self, digests: Mapping[int, str]) -> None:
        """Records the content digest of artifacts on the artifacts themselves."""
        artifacts = self.store.get_artifacts_by_id(list(digests))
        for artifact in artifacts:
            artifact.custom_properties[selection.CONTENT_DIGEST].string_value = digests[artifact.id]
        self.store.put_artifacts(artifacts)

    def baseline(self, kind: str, candidate_id: int | None) -> dict[str, Any]:
        """Returns what a resolver of this kind picks: {output key: artifact}; empty when there is no baseline.

        Args:
            kind: `model` or `statistics`.
            candidate_id: The artifact that is about to be judged.
        """
        candidate = self._artifact(candidate_id)
        if kind == "model":
            blessings = self._mine("ModelBlessing")
            given = selection.last_made(self.store, blessings)
            found = selection.newest_blessed_model(self._mine("Model"), blessings, candidate, given)
            keys = ("model", "model_blessing")
        else:
            reports = self._mine("DataGateReport")
            given = selection.last_made(self.store, reports)
            found = selection.newest_accepted_statistics(
                self._mine("ExampleStatistics"),
                reports,
                candidate,
                given,
                lambda report_id: selection.read_by(self.store, report_id),
            )
            keys = ("statistics", "gate_report")
        return dict(zip(keys, found, strict=True)) if found else {}

    def consent(self, model_id: int) -> str | None:
        """Returns the reason with which a model of this content was blessed without a usable baseline; None: never."""
        candidate = self._artifact(model_id)
        same = {model.id for model in self._mine("Model") if selection.same_content(model, candidate)}
        return selection.consent(self._mine("ModelBlessing"), same)

    def publish_reused(
        self,
        run_id: str,
        node_id: str,
        like: int,
        inputs: Mapping[str, Iterable[int]],
        outputs: Mapping[str, Iterable[int]],
    ) -> int:
        """Records that a node of this run took over an earlier execution's outputs; returns the new execution's id.

        It is what TFX's launcher writes on a cache hit, so that nodes that do run find their inputs.

        Args:
            run_id: This run.
            node_id: The node.
            like: The execution whose type and properties are repeated.
            inputs: Input key to artifact ids.
            outputs: Output key to artifact ids.
        """
        from ml_metadata.proto import metadata_store_pb2

        earlier = next(iter(self.store.get_executions_by_id([like])))
        execution = metadata_store_pb2.Execution(
            type_id=earlier.type_id, last_known_state=metadata_store_pb2.Execution.CACHED
        )
        for key, value in earlier.custom_properties.items():
            execution.custom_properties[key].CopyFrom(value)
        event = metadata_store_pb2.Event
        pairs = [
            *self._events(inputs, event.INPUT),
            *self._events(outputs, event.OUTPUT),
        ]
        contexts = [
            self._ensure("pipeline", self._pipeline),
            self._ensure("pipeline_run", run_id),
            self._ensure("node", f"{self._pipeline}.{node_id}"),
        ]
        execution_id, _, _ = self.store.put_execution(execution, pairs, contexts, reuse_context_if_already_exist=True)
        return int(execution_id)

    def _artifact(self, artifact_id: int | None) -> Any | None:
        return next(iter(self.store.get_artifacts_by_id([artifact_id])), None) if artifact_id is not None else None

    def _now(self, uri: str) -> str:
        """Returns where an artifact is now that its record places below the root as it was."""
        before, here = self._recorded, str(self._root.path)
        return here + uri[len(before) :] if uri == before or uri.startswith(f"{before}/") else uri

    def _has_type(self, kind: str) -> bool:
        return any(known.name == kind for known in self.store.get_context_types())

    def _events(self, artifacts: Mapping[str, Iterable[int]], kind: Any) -> list[tuple[Any, Any]]:
        from ml_metadata.proto import metadata_store_pb2

        pairs = []
        for key, ids in artifacts.items():
            for index, artifact in enumerate(self.store.get_artifacts_by_id(list(ids))):
                event = metadata_store_pb2.Event(type=kind, artifact_id=artifact.id)
                event.path.steps.add().key = key
                event.path.steps.add().index = index
                pairs.append((artifact, event))
        return pairs

    def _mine(self, type_name: str) -> list[Any]:
        """Returns the live artifacts of a type that belong to this pipeline."""
        from ml_metadata.proto import metadata_store_pb2

        context = self._context("pipeline", self._pipeline)
        if context is None:
            return []
        type_id = next((known.id for known in self.store.get_artifact_types() if known.name == type_name), None)
        live = metadata_store_pb2.Artifact.LIVE
        found = self.store.get_artifacts_by_context(context.id)
        return [item for item in found if item.type_id == type_id and item.state == live]

    def _context(self, kind: str, name: str) -> Any | None:
        return self.store.get_context_by_type_and_name(kind, name)

    def _ensure(self, kind: str, name: str) -> Any:
        from ml_metadata.proto import metadata_store_pb2

        known = self._context(kind, name)
        if known is not None:
            return known
        type_id = self.store.put_context_type(metadata_store_pb2.ContextType(name=kind), can_add_fields=True)
        context = metadata_store_pb2.Context(type_id=type_id, name=name)
        self.store.put_contexts([context])
        return self._context(kind, name)


def _reach(host: str, port: int) -> None:
    """Fails within seconds when no server listens; MLMD's own client would try for minutes."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError as error:
        hint = "Start the server, or use run.metadata=sqlite."
        raise RemoteServiceError(
            f"no MySQL server answers: {error.strerror or error}", place=f"run.metadata {host}:{port}", hint=hint
        ) from None


def _refused(config: Any, reason: str) -> ForebayError:
    if config.HasField("sqlite"):
        if "locked" in reason:
            hint = "Another program is writing to it; try again when it is done."
        else:
            hint = "Move it away to begin a new one; artifacts recorded there are then not reused."
        place = config.sqlite.filename_uri
        return EnvironmentProblem(f"ML Metadata cannot be opened: {reason}", place=place, hint=hint)
    place = f"run.metadata mysql://{config.mysql.host}:{config.mysql.port}/{config.mysql.database}"
    hint = "Check user, password, database."
    return RemoteServiceError(f"ML Metadata refused: {reason}", place=place, hint=hint)
