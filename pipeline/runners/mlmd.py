"""ML Metadata through its own client, without TFX: it opens in a fraction of a second."""

from __future__ import annotations

import os
import shutil
import socket
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from components.baselines import selection
from core.errors import ConfigError, EnvironmentProblem, RemoteServiceError
from pipeline.runners.cache import Entry
from pipeline.runners.layout import PipelineRoot

PASSWORD_VARIABLE = "FOREBAY_MYSQL_PASSWORD"  # noqa: S105  The name of a variable, not a password.
_CONNECT_S = 5.0


def connection(metadata: str, root: PipelineRoot) -> Any:
    """Returns the MLMD ConnectionConfig of the setting `run.metadata`.

    Args:
        metadata: `sqlite`, or `mysql://USER@HOST:PORT/DATABASE`.
        root: Holds the SQLite file.

    Raises:
        ConfigError: The value is neither.
    """
    from ml_metadata.proto import metadata_store_pb2

    config = metadata_store_pb2.ConnectionConfig()
    if metadata == "sqlite":
        config.sqlite.filename_uri = str(root.sqlite)
        config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READWRITE_OPENCREATE
        return config
    url = urllib.parse.urlsplit(metadata)
    database = url.path.strip("/")
    if url.scheme != "mysql" or not url.hostname or not url.username or not database or url.password:
        hint = f"Use sqlite or mysql://USER@HOST:PORT/DATABASE, with the password in {PASSWORD_VARIABLE}."
        raise ConfigError(f"{metadata!r} is no metadata store", place="run.metadata", hint=hint)
    config.mysql.host = url.hostname
    config.mysql.port = url.port or 3306
    config.mysql.user = url.username
    config.mysql.database = database
    config.mysql.password = os.environ.get(PASSWORD_VARIABLE, "")
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
            reason = str(error).strip().splitlines()[0][:200]
            if self._is_file:
                place, hint = config.sqlite.filename_uri, "Move the file away to start a new one."
                raise EnvironmentProblem(f"ML Metadata cannot be opened: {reason}", place=place, hint=hint) from None
            place = f"run.metadata mysql://{config.mysql.host}:{config.mysql.port}/{config.mysql.database}"
            raise RemoteServiceError(
                f"ML Metadata refused: {reason}", place=place, hint="Check user, password, database."
            ) from None

    def relocate(self) -> int:
        """Points artifacts of a moved or copied project to where they are now; returns how many were changed.

        Only for SQLite, whose file moved along. On a server the records belong to every copy of the project.
        """
        marker = self._root.path / "_root"
        here = str(self._root.path)
        before = marker.read_text(encoding="utf-8") if marker.is_file() else here
        moved = []
        if self._is_file and before != here:
            for artifact in self.store.get_artifacts():
                if artifact.uri == before or artifact.uri.startswith(f"{before}/"):
                    artifact.uri = here + artifact.uri[len(before) :]
                    moved.append(artifact)
            if moved:
                self.store.put_artifacts(moved)
        if before != here or not marker.is_file():
            marker.write_text(here, encoding="utf-8")
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
            if execution.last_known_state in (states.NEW, states.RUNNING)
        ]
        for execution in stale:
            execution.last_known_state = states.FAILED
            for folder in self._root.path.glob(f"*/*/{execution.id}"):
                shutil.rmtree(folder, ignore_errors=True)
        if stale:
            self.store.put_executions(stale)
        return len(stale)

    def knows(self, entry: Entry) -> bool:
        """True when every artifact of a cache entry is still recorded, at the place where the entry has it."""
        wanted = {output.artifact_id: output for made in entry.outputs.values() for output in made}
        known = self.store.get_artifacts_by_id(list(wanted)) if wanted else []
        places = {artifact.id: artifact.uri for artifact in known}
        return all(places.get(key) == str(self._root.path / output.path) for key, output in wanted.items())

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
        candidate = None
        if candidate_id is not None:
            candidate = next(iter(self.store.get_artifacts_by_id([candidate_id])), None)
        if kind == "model":
            found = selection.newest_blessed_model(self._mine("Model"), self._mine("ModelBlessing"), candidate)
            keys = ("model", "model_blessing")
        else:
            found = selection.newest_accepted_statistics(
                self._mine("ExampleStatistics"),
                self._mine("DataGateReport"),
                candidate,
                lambda report_id: selection.read_by(self.store, report_id),
            )
            keys = ("statistics", "gate_report")
        return dict(zip(keys, found, strict=True)) if found else {}

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
