"""All checks of the data gate in their order, on statistics and a schema; knows nothing of TFX."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from components.data_gate.anomalies import schema_results
from components.data_gate.dataset import Dataset
from components.data_gate.drift import Comparison, Limits, compare, skipped
from components.data_gate.finding import CountOutside
from components.data_gate.policy import DRIFT, SKEW, Policy, check_names
from components.data_gate.splits import example_result, finite_results
from core.gates import GateResult

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

_TRAIN, _EVAL = "train", "eval"


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the gate judges.

    Attributes:
        splits: Statistics by split name.
        anomalies: What TFDV found, by split name.
        schema: The curated schema.
        baseline: Statistics of the train split of the last accepted run; None when there is none.
        count_outside: Counts examples outside a range.
    """

    splits: Mapping[str, Dataset]
    anomalies: Mapping[str, anomalies_pb2.Anomalies]
    schema: schema_pb2.Schema
    baseline: Dataset | None
    count_outside: CountOutside


def judge(evidence: Evidence, data_gate: Mapping[str, Any]) -> list[GateResult]:
    """Returns every result: example counts, schema, finite numbers, drift, skew.

    Args:
        evidence: Statistics, anomalies and schema.
        data_gate: Dumped data_gate section of the settings.

    Raises:
        ConfigError: A severity or a limit is given for something that does not exist.
    """
    seen = {name for data in evidence.splits.values() for name in data.features}
    check_names(data_gate, sorted({*seen, *(feature.name for feature in evidence.schema.feature)}))
    policy = Policy.from_settings(data_gate)
    results = [example_result(data, data_gate["min_examples"], policy) for data in evidence.splits.values()]
    for name, data in evidence.splits.items():
        if data.examples:
            results += schema_results(evidence.anomalies[name], evidence.schema, data, policy, evidence.count_outside)
            results += finite_results(data, policy, evidence.count_outside)
    ignored = excluded_features(evidence.schema)
    return results + _drift(evidence, data_gate, policy, ignored) + _skew(evidence, data_gate, policy, ignored)


def excluded_features(schema: schema_pb2.Schema) -> list[str]:
    """Returns the features that the schema takes out of validation (planned, alpha, debug, deprecated, disabled)."""
    stages = type(schema).DESCRIPTOR.file.enum_types_by_name["LifecycleStage"].values_by_name
    out = {stages[name].number for name in ("PLANNED", "ALPHA", "DEBUG_ONLY", "DEPRECATED", "DISABLED")}
    return [feature.name for feature in schema.feature if feature.lifecycle_stage in out]


def _drift(
    evidence: Evidence, data_gate: Mapping[str, Any], policy: Policy, ignored: Sequence[str]
) -> list[GateResult]:
    now = evidence.splits.get(_TRAIN)
    if evidence.baseline is None:
        return [skipped(DRIFT, "no accepted earlier run to compare with")]
    if now is None:
        return [skipped(DRIFT, f"this run has no split {_TRAIN}")]
    comparison = Comparison(DRIFT, now, evidence.baseline, "the last accepted run")
    return compare(comparison, Limits.from_settings(data_gate[DRIFT]), policy, ignored)


def _skew(evidence: Evidence, data_gate: Mapping[str, Any], policy: Policy, ignored: Sequence[str]) -> list[GateResult]:
    missing = [name for name in (_TRAIN, _EVAL) if name not in evidence.splits]
    if missing:
        return [skipped(SKEW, f"this run has no split {missing[0]}")]
    comparison = Comparison(SKEW, evidence.splits[_EVAL], evidence.splits[_TRAIN], f"split {_TRAIN}")
    return compare(comparison, Limits.from_settings(data_gate[SKEW]), policy, ignored)
