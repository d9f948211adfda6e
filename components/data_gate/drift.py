"""Drift (this run's training data against the last accepted run's) and skew (one split against the other)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from components.data_gate.dataset import Dataset
from components.data_gate.distance import JENSEN_SHANNON, L_INFINITY, Distance, measure
from components.data_gate.policy import DRIFT, Policy
from core.gates import GateResult, Severity, Status


@dataclasses.dataclass(frozen=True)
class Limits:
    """Largest distances that pass; None switches a metric off, a feature's own limit replaces both."""

    categorical: float | None
    numeric: float | None
    per_feature: Mapping[str, float]

    @classmethod
    def from_settings(cls, section: Mapping[str, Any]) -> Limits:
        """Returns the limits of a dumped data_gate.drift or data_gate.skew section."""
        return cls(section["categorical_l_infinity"], section["numeric_jensen_shannon"], section["per_feature"])

    def of(self, feature: str, metric: str) -> float | None:
        """Returns the limit of a feature under a metric; None: do not judge it."""
        if feature in self.per_feature:
            return self.per_feature[feature]
        by_metric = {L_INFINITY: self.categorical, JENSEN_SHANNON: self.numeric}
        return by_metric.get(metric, self.categorical)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What is compared, and how it is called in the report.

    Attributes:
        scope: DRIFT or SKEW; also the kind that data_gate.severity names.
        now: The data that is judged.
        reference: The data it is held against.
        reference_name: The reference in a sentence, such as "the last accepted run".
    """

    scope: str
    now: Dataset
    reference: Dataset
    reference_name: str


def skipped(scope: str, reason: str) -> GateResult:
    """Returns the record of a comparison that could not take place; it is never a pass."""
    return GateResult(name=f"data.{scope}", status=Status.SKIPPED, reason=reason, severity=Severity.WARN)


def compare(comparison: Comparison, limits: Limits, policy: Policy, ignored: Collection[str] = ()) -> list[GateResult]:
    """Returns one result for each feature that either side holds.

    Args:
        comparison: The two data sets.
        limits: Largest distances that pass.
        policy: Severity of a distance above its limit.
        ignored: Features that the schema excludes from validation.
    """
    if not comparison.now.examples or not comparison.reference.examples:
        side = comparison.now.split if not comparison.now.examples else comparison.reference_name
        return [skipped(comparison.scope, f"{side} holds no examples")]
    names = sorted({*comparison.now.features, *comparison.reference.features} - set(ignored))
    return [_judge(name, comparison, limits, policy) for name in names]


def _judge(feature: str, comparison: Comparison, limits: Limits, policy: Policy) -> GateResult:
    now, reference = comparison.now, comparison.reference
    distance = measure(feature, reference, now)
    limit = limits.of(feature, distance.metric)
    name = f"data.{comparison.scope}:{feature}"
    details = _details(feature, comparison, distance)
    if limit is None:
        reason = f"{feature}: {distance.metric} is switched off"
        return GateResult(name, Status.SKIPPED, reason=reason, severity=Severity.WARN, details=details)
    if comparison.scope == DRIFT and not reference.filled(feature):
        # After a column was added on purpose there is nothing to hold it against until a run was accepted with it.
        status = Status.NOT_EVALUATED if now.filled(feature) else Status.SKIPPED
        reason = f"{feature}: {comparison.reference_name} has no values of it"
        return GateResult(name, status, bound=limit, reason=reason, severity=Severity.WARN, details=details)
    if distance.largest > limit:
        reason = _sentence(feature, comparison, distance, limit)
        severity = policy.severity(comparison.scope, feature)
        return GateResult(name, Status.FAILED, distance.largest, limit, "", reason, severity, details)
    if distance.of_values is None:
        reason = f"{feature}: {distance.why_not}"
        return GateResult(name, Status.NO_DATA, None, limit, "", reason, Severity.WARN, details)
    reason = f"{feature}: {distance.metric} {distance.largest:.3g} within {limit:g}"
    return GateResult(name, Status.PASSED, distance.largest, limit, "", reason, details=details)


def _details(feature: str, comparison: Comparison, distance: Distance) -> dict[str, Any]:
    return {
        "feature": feature,
        "kind": comparison.scope,
        "metric": distance.metric or None,
        "of_values": distance.of_values,
        "of_presence": distance.of_presence,
        "largest_at": distance.at or None,
        "split": comparison.now.split,
        "reference": comparison.reference_name,
        "rows": comparison.now.filled(feature),
        "examples": comparison.now.examples,
        "reference_rows": comparison.reference.filled(feature),
        "reference_examples": comparison.reference.examples,
        "histogram": distance.right,
        "reference_histogram": distance.left,
    }


def _sentence(feature: str, comparison: Comparison, distance: Distance, limit: float) -> str:
    now, reference = comparison.now, comparison.reference
    metric = distance.metric or "share"
    if distance.of_values is not None and distance.of_values >= distance.of_presence:
        where = f", most at {distance.at!r}" if distance.at else ""
        rows = f"{now.filled(feature)} rows against {reference.filled(feature)}"
        measured = f"{metric} distance {distance.of_values:.3g}{where}"
    else:
        before = f"{reference.filled(feature)} of {reference.examples}"
        rows = f"filled in {now.filled(feature)} of {now.examples} rows against {before}"
        measured = f"{metric} distance of its presence {distance.of_presence:.3g}"
    return f"{feature}: {measured} from {comparison.reference_name}, limit {limit:g} ({comparison.scope}, {rows})"
