"""Picks baselines from ML Metadata without TFX, so that a fully cached run can be planned in milliseconds.

An artifact with the same content as the candidate is never its own baseline: comparing a model with itself would
always pass a change threshold, and would give a repeated run another answer than the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

# Set on every artifact by the runner that made it: hex SHA-256 over its files.
CONTENT_DIGEST = "content_digest"


def newest_blessed_model(
    models: Iterable[Any], blessings: Iterable[Any], candidate: Any | None
) -> tuple[Any, Any] | None:
    """Returns the newest model that an Evaluator blessed and that is not the candidate, with its blessing.

    Args:
        models: MLMD artifacts (or objects with `id` and `custom_properties`) of type Model.
        blessings: MLMD artifacts of type ModelBlessing; each names its model in `current_model_id`.
        candidate: The model that is about to be evaluated; None when it is not known yet.
    """
    blessed_at: dict[int, Any] = {}
    for blessing in blessings:
        if _integer(blessing, "blessed") == 1:
            model_id = _integer(blessing, "current_model_id")
            if model_id not in blessed_at or blessing.id > blessed_at[model_id].id:
                blessed_at[model_id] = blessing
    eligible = [model for model in models if model.id in blessed_at and not same_content(model, candidate)]
    if not eligible:
        return None
    model = max(eligible, key=lambda item: blessed_at[item.id].id)
    return model, blessed_at[model.id]


def newest_accepted_statistics(
    statistics: Iterable[Any],
    reports: Sequence[Any],
    candidate: Any | None,
    statistics_of_report: Callable[[int], Iterable[int]],
) -> tuple[Any, Any] | None:
    """Returns the newest statistics that a DataGate let pass and that are not the candidate's, with the gate's report.

    Args:
        statistics: Artifacts of type ExampleStatistics.
        reports: Artifacts of type DataGateReport; `blocked` is 0 where the data passed.
        candidate: The statistics that are about to be judged; None when they are not known yet.
        statistics_of_report: Report id to the ids of the statistics that its gate read.
    """
    by_id = {item.id: item for item in statistics}
    passed = [report for report in reports if _integer(report, "blocked") == 0]
    for report in sorted(passed, key=lambda item: item.id, reverse=True):
        for statistics_id in statistics_of_report(report.id):
            found = by_id.get(statistics_id)
            if found is not None and not same_content(found, candidate):
                return found, report
    return None


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


def _integer(artifact: Any, key: str) -> int:
    return int(artifact.custom_properties[key].int_value) if key in artifact.custom_properties else -1


def _text(artifact: Any, key: str) -> str:
    return str(artifact.custom_properties[key].string_value) if key in artifact.custom_properties else ""
