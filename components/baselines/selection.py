"""Picks baselines from ML Metadata without TFX, so that a fully cached run can be planned in milliseconds.

An artifact with the same content as the candidate is never its own baseline: comparing a model with itself would
always pass a change threshold, and would give a repeated run another answer than the first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

# Set on every artifact by the runner that made it: hex SHA-256 over its files.
CONTENT_DIGEST = "content_digest"


def newest_blessed_model(
    models: Iterable[Any], blessings: Iterable[Any], candidate: Any | None, given: Mapping[int, int]
) -> tuple[Any, Any] | None:
    """Returns the model that an Evaluator blessed last and that is not the candidate, with its blessing.

    Args:
        models: MLMD artifacts (or objects with `id`, `uri` and `custom_properties`) of type Model.
        blessings: MLMD artifacts of type ModelBlessing; each names its model in `current_model_id`.
        candidate: The model that is about to be evaluated; None when it is not known yet.
        given: Blessing id to the execution that gave it last; a reused blessing was given again.
    """
    by_id = {model.id: model for model in models}
    blessed = [item for item in blessings if _integer(item, "blessed") == 1]
    for blessing in sorted(blessed, key=lambda item: given.get(item.id, item.id), reverse=True):
        model = by_id.get(_integer(blessing, "current_model_id"))
        if model is not None and _is_here(model) and not same_content(model, candidate):
            return model, blessing
    return None


def newest_accepted_statistics(
    statistics: Iterable[Any],
    reports: Iterable[Any],
    candidate: Any | None,
    given: Mapping[int, int],
    statistics_of_report: Callable[[int], Iterable[int]],
) -> tuple[Any, Any] | None:
    """Returns the statistics that a DataGate let pass last and that are not the candidate's, with the gate's report.

    Args:
        statistics: Artifacts of type ExampleStatistics.
        reports: Artifacts of type DataGateReport; `blocked` is 0 where the data passed.
        candidate: The statistics that are about to be judged; None when they are not known yet.
        given: Report id to the execution that gave it last; a reused report was given again.
        statistics_of_report: Report id to the ids of the statistics that its gate read.
    """
    by_id = {item.id: item for item in statistics}
    passed = [report for report in reports if _integer(report, "blocked") == 0]
    for report in sorted(passed, key=lambda item: given.get(item.id, item.id), reverse=True):
        for statistics_id in statistics_of_report(report.id):
            found = by_id.get(statistics_id)
            if found is not None and _is_here(found) and not same_content(found, candidate):
                return found, report
    return None


def consent(blessings: Iterable[Any], models: Container[int]) -> str | None:
    """Returns the newest reason with which one of the models was blessed without a usable baseline; None: never.

    Args:
        blessings: Artifacts of type ModelBlessing.
        models: Ids of the models that count.
    """
    reasons = [
        (item.id, _text(item, "accepted_new_baseline"))
        for item in blessings
        if _integer(item, "blessed") == 1 and _integer(item, "current_model_id") in models
    ]
    return max([pair for pair in reasons if pair[1]], default=(0, None))[1]


def last_made(store: Any, artifacts: Iterable[Any]) -> dict[int, int]:
    """Returns {artifact id: id of the newest execution that put it out, having made or reused it}."""
    from ml_metadata.proto import metadata_store_pb2

    ids = [item.id for item in artifacts]
    made: dict[int, int] = {}
    for event in store.get_events_by_artifact_ids(ids) if ids else []:
        if event.type == metadata_store_pb2.Event.OUTPUT:
            made[event.artifact_id] = max(event.execution_id, made.get(event.artifact_id, 0))
    return made


def read_by(store: Any, report_id: int) -> list[int]:
    """Returns the ids of the `statistics` inputs of the executions that made a report."""
    from ml_metadata.proto import metadata_store_pb2

    output, read = metadata_store_pb2.Event.OUTPUT, metadata_store_pb2.Event.INPUT
    makers = {event.execution_id for event in store.get_events_by_artifact_ids([report_id]) if event.type == output}
    events = store.get_events_by_execution_ids(sorted(makers)) if makers else []
    return [
        event.artifact_id
        for event in events
        if event.type == read and any(step.key == "statistics" for step in event.path.steps)
    ]


def same_content(artifact: Any, candidate: Any | None) -> bool:
    """True when two artifacts are one, or hold the same bytes as far as their runner recorded."""
    if candidate is None:
        return False
    digest = _text(artifact, CONTENT_DIGEST)
    return artifact.id == candidate.id or (bool(digest) and digest == _text(candidate, CONTENT_DIGEST))


def _is_here(artifact: Any) -> bool:
    """False for what another machine recorded on a shared server, or what was deleted since."""
    return "://" in artifact.uri or os.path.exists(artifact.uri)


def _integer(artifact: Any, key: str) -> int:
    return int(artifact.custom_properties[key].int_value) if key in artifact.custom_properties else -1


def _text(artifact: Any, key: str) -> str:
    return str(artifact.custom_properties[key].string_value) if key in artifact.custom_properties else ""
