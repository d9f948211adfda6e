"""The verdict: metric values and thresholds become gate results. Knows neither TFX nor TensorFlow.

| situation                                        | status        | blocks                                     |
|--------------------------------------------------|---------------|--------------------------------------------|
| inside the bound / outside it                    | passed/failed | when failed                                |
| fewer than min_examples, or no example           | no data       | overall: yes; a slice: evaluate.on_no_data |
| a metric that the examples do not define         | no data       | the same                                   |
| a prediction that is NaN or infinite             | failed        | yes                                        |
| one prediction for every example                 | failed        | yes                                        |
| examples of a class that the model does not know | failed        | no: they count as wrong in every metric    |
| change bound, no baseline                        | not evaluated | unless the metric has an absolute bound    |
| change bound, baseline incompatible              | not evaluated | yes                                        |
| relative change bound, baseline value 0          | not evaluated | yes                                        |
| no threshold at all                              | not evaluated | yes                                        |

A consent (accept_new_baseline) turns the three blocking "not evaluated" of a change bound into warnings.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from components.evaluator.guards import guards
from components.evaluator.measures import Measures, SliceMeasures, finite
from components.evaluator.metrics import ALL_METRICS, worsening
from components.evaluator.table import render_table
from core.gates import GateResult, Severity, Status

__all__ = ["Baseline", "judge", "render_table"]

_ABSOLUTE = ("min", "max")
_CHANGE = ("max_drop", "max_relative_drop")


@dataclasses.dataclass(frozen=True)
class Baseline:
    """The model that the candidate is held against.

    Attributes:
        exists: False on a first run.
        problem: Why it could not be measured; empty when it was, or when there is none.
        consent: Reason given by a person for going on without a comparison; None without one.
    """

    exists: bool
    problem: str = ""
    consent: str | None = None


def judge(evaluate: Mapping[str, Any], measures: Measures, baseline: Baseline) -> list[GateResult]:
    """Returns every result: predictions, baseline, then each bound of each metric overall and by slice.

    Args:
        evaluate: Dumped evaluate section of the settings.
        measures: What was measured.
        baseline: What is known of the baseline.
    """
    thresholds: Mapping[str, Mapping[str, Any]] = evaluate["thresholds"]
    results = [*guards(measures), _baseline_result(thresholds, baseline)]
    if not thresholds:
        reason = "evaluate.thresholds is empty: nothing says what a good model is"
        return [GateResult("evaluate.thresholds", Status.NOT_EVALUATED, reason=reason), *results]
    no_data = Severity(evaluate["on_no_data"])
    for metric in sorted(thresholds, key=list(ALL_METRICS).index):
        threshold = thresholds[metric]
        for measured in _slices(threshold, measures):
            severity = Severity.BLOCK if measured.column is None else no_data
            bounds = [kind for kind in (*_ABSOLUTE, *_CHANGE) if threshold.get(kind) is not None]
            results.extend(_bound(metric, kind, threshold, measured, baseline, severity) for kind in bounds)
    return results


def _slices(threshold: Mapping[str, Any], measures: Measures) -> Iterator[SliceMeasures]:
    """Yields the whole split and every slice of the threshold's columns; a column without values is an empty slice."""
    yield measures.overall
    for column in threshold["slices"]:
        found = [measured for measured in measures.slices if measured.column == column]
        yield from found or [SliceMeasures(column, "(no values)", 0, 0, {}, None)]


def _baseline_result(thresholds: Mapping[str, Mapping[str, Any]], baseline: Baseline) -> GateResult:
    name, details = "evaluate.baseline", {"accepted_new_baseline": baseline.consent}
    if not baseline.exists:
        reason = "no blessed model yet: nothing to compare with"
        return GateResult(name, Status.SKIPPED, reason=reason, severity=Severity.WARN, details=details)
    if not baseline.problem:
        reason = "the newest blessed model was measured on the same examples"
        return GateResult(name, Status.PASSED, reason=reason, details=details)
    compared = any(threshold.get(kind) is not None for threshold in thresholds.values() for kind in _CHANGE)
    severity = Severity.BLOCK if compared and not baseline.consent else Severity.WARN
    reason = _with_consent(f"the newest blessed model is incompatible: {baseline.problem}", baseline)
    return GateResult(name, Status.NOT_EVALUATED, reason=reason, severity=severity, details=details)


def _bound(
    metric: str, kind: str, threshold: Mapping[str, Any], measured: SliceMeasures, baseline: Baseline, no_data: Severity
) -> GateResult:
    """Returns the result of one bound of one metric on one slice."""
    value = measured.candidate.get(metric, math.nan)
    before = (measured.baseline or {}).get(metric, math.nan)
    limit = float(threshold[kind])
    result = GateResult(
        name=f"evaluate.{metric}.{kind}" + ("" if measured.column is None else f":{measured.name}"),
        status=Status.PASSED,
        bound=limit,
        details={
            "metric": metric,
            "kind": kind,
            "slice": None if measured.column is None else measured.name,
            "column": measured.column,
            "examples": measured.examples,
            "value": finite(value),
            "baseline": finite(before),
            **_worst(metric, measured),
        },
    )
    missing = _no_value(metric, threshold, measured, value)
    if missing is not None:
        status, reason = missing
        severity = no_data if status is Status.NO_DATA else Severity.BLOCK
        return dataclasses.replace(
            result, status=status, reason=f"{metric} on {measured.name}: {reason}", severity=severity
        )
    if kind in _ABSOLUTE:
        failed = value < limit if kind == "min" else value > limit
        text = f"{value:.4f}{_named(metric, measured)}"
        relation = f"{text} {'below' if kind == 'min' else 'above'}" if failed else f"{text} within"
        return _decided(result, value, failed, f"{metric} on {measured.name}: {relation} {kind} {limit:g}")
    return _change(result, metric, kind, threshold, measured, value, before, baseline)


def _no_value(
    metric: str, threshold: Mapping[str, Any], measured: SliceMeasures, value: float
) -> tuple[Status, str] | None:
    """Returns why a metric has no value that can be judged, or None when it has one."""
    fewest = threshold["min_examples"]
    if measured.examples < fewest:
        return Status.NO_DATA, f"{measured.examples} examples, fewer than min_examples {fewest}"
    if measured.not_finite:
        return Status.FAILED, f"NaN, {measured.not_finite} of {measured.examples} predictions are not finite"
    if math.isnan(value):
        return Status.NO_DATA, f"undefined: {ALL_METRICS[metric].undefined}"
    return None


def _change(
    result: GateResult,
    metric: str,
    kind: str,
    threshold: Mapping[str, Any],
    measured: SliceMeasures,
    value: float,
    before: float,
    baseline: Baseline,
) -> GateResult:
    """Returns the result of a bound on the change from the baseline."""
    limit, where = float(threshold[kind]), f"{metric} on {measured.name}"
    why, severity = "", Severity.BLOCK
    if not baseline.exists:
        why = "no baseline to compare with"
        # Another bound of the same metric judges the first model.
        if any(threshold.get(bound) is not None for bound in _ABSOLUTE):
            severity = Severity.WARN
        else:
            why += f", and {metric} has no min or max"
    elif baseline.problem:
        why = f"incompatible baseline: {baseline.problem}"
    elif measured.baseline_not_finite:
        why = f"the baseline has no value: {measured.baseline_not_finite} of its predictions are not finite"
    elif math.isnan(before):
        why = f"the baseline has no value: {ALL_METRICS[metric].undefined}"
    elif kind == "max_relative_drop" and before == 0:
        why = "the baseline is 0, so a relative change has no meaning; use max_drop"
    if why:
        severity = Severity.WARN if baseline.consent else severity
        reason = _with_consent(f"{where}: {why}", baseline)
        return dataclasses.replace(result, status=Status.NOT_EVALUATED, reason=reason, severity=severity)
    change = worsening(metric, value, before)
    observed = change / abs(before) if kind == "max_relative_drop" else change
    # Values that differ by less than the arithmetic's own noise are equal.
    failed = observed > limit + 1e-9
    change_text = f"{value:.4f}{_named(metric, measured)} after {before:.4f}, worse by {max(observed, 0.0):.4g}"
    reason = f"{where}: {change_text}, {kind} {limit:g}"
    return _decided(result, observed, failed, reason)


def _worst(metric: str, measured: SliceMeasures) -> dict[str, Any]:
    """Returns which class a bound on the worst class is about; nothing for another metric."""
    if metric != "worst_class_recall" or measured.worst is None:
        return {}
    return {"worst_class": measured.worst.label, "worst_class_examples": measured.worst.examples}


def _named(metric: str, measured: SliceMeasures) -> str:
    worst = _worst(metric, measured)
    return f" ({worst['worst_class']}, {worst['worst_class_examples']} examples)" if worst else ""


def _decided(result: GateResult, observed: float, failed: bool, reason: str) -> GateResult:
    status = Status.FAILED if failed else Status.PASSED
    return dataclasses.replace(result, status=status, observed=observed, reason=reason)


def _with_consent(reason: str, baseline: Baseline) -> str:
    return f"{reason}; accepted: {baseline.consent}" if baseline.consent else reason
