"""The same selection as TFX resolver strategies, for the graph's Resolver nodes."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.common import resolver

from components.baselines import selection


class LatestBlessedModel(resolver.ResolverStrategy):
    """Resolves the newest blessed model that is not the candidate.

    Channels: `model` and `model_blessing` (all there are), `candidate` (the model about to be evaluated).
    """

    def resolve_artifacts(self, store: Any, input_dict: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Returns one artifact a channel, or empty lists when no model was ever blessed."""
        blessings = _protos(input_dict["model_blessing"])
        found = selection.newest_blessed_model(
            _protos(input_dict["model"]),
            blessings,
            _newest(input_dict.get("candidate", [])),
            selection.last_made(store, blessings),
        )
        return _picked(input_dict, found, ("model", "model_blessing"))


class LatestAcceptedStatistics(resolver.ResolverStrategy):
    """Resolves the newest statistics that a DataGate let pass and that are not the candidate's.

    Channels: `statistics` and `gate_report` (all there are), `candidate` (the statistics about to be judged).
    """

    def resolve_artifacts(self, store: Any, input_dict: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Returns one artifact a channel, or empty lists when no data was ever accepted."""
        reports = _protos(input_dict["gate_report"])
        found = selection.newest_accepted_statistics(
            _protos(input_dict["statistics"]),
            reports,
            _newest(input_dict.get("candidate", [])),
            selection.last_made(store, reports),
            lambda report_id: selection.read_by(store, report_id),
        )
        return _picked(input_dict, found, ("statistics", "gate_report"))


def _protos(artifacts: list[Any]) -> list[Any]:
    return [artifact.mlmd_artifact for artifact in artifacts]


def _newest(artifacts: list[Any]) -> Any | None:
    return max(_protos(artifacts), key=lambda item: item.id, default=None)


def _picked(
    input_dict: dict[str, list[Any]], found: tuple[Any, Any] | None, keys: tuple[str, str]
) -> dict[str, list[Any]]:
    chosen = {key: item.id for key, item in zip(keys, found, strict=True)} if found else {}
    picked = {key: [item for item in input_dict[key] if item.id == chosen.get(key)] for key in keys}
    return {**picked, "candidate": []}
