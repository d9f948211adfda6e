"""Checks of a split that need no schema: does it hold enough examples, and are its numbers finite."""

from __future__ import annotations

import math

from components.data_gate.dataset import Dataset
from components.data_gate.finding import CountOutside
from components.data_gate.policy import EMPTY_SPLIT, MIN_EXAMPLES, NON_FINITE, Policy
from core.gates import GateResult, Status


def example_result(data: Dataset, fewest: int, policy: Policy) -> GateResult:
    """Returns whether a split holds enough examples; one without any is "no data".

    Args:
        data: Statistics of the split.
        fewest: data_gate.min_examples. It applies to the train split; every other split needs one example.
        policy: Severity by kind.
    """
    bound = fewest if data.split == "train" else 1
    kind = MIN_EXAMPLES if data.examples else EMPTY_SPLIT
    reason = f"split {data.split}: {data.examples} rows, limit: at least {bound}"
    details = {"kind": kind, "split": data.split, "rows": data.examples}
    name = f"data.examples:{data.split}"
    if data.examples >= bound:
        return GateResult(name, Status.PASSED, data.examples, bound, "examples", reason, details=details)
    status = Status.FAILED if data.examples else Status.NO_DATA
    severity = policy.severity(kind)
    return GateResult(name, status, data.examples, bound, "examples", f"{reason} ({kind})", severity, details)


def finite_results(data: Dataset, policy: Policy, count_outside: CountOutside) -> list[GateResult]:
    """Returns one failure for each numeric feature that holds NaN or infinite values, or a single pass.

    One such value turns the z-score of a whole column into NaN; no domain in a schema is needed to call it wrong.
    """
    results = []
    for feature, statistics in sorted(data.features.items()):
        if statistics.WhichOneof("stats") != "num_stats":
            continue
        numeric = statistics.num_stats
        nan = max((int(histogram.num_nan) for histogram in numeric.histograms), default=0)
        infinite = [value for value in (numeric.min, numeric.max) if math.isinf(value)]
        if nan or infinite:
            value = "NaN" if nan else f"{infinite[0]:g}"
            results.append(_not_finite(feature, value, max(nan, len(infinite)), data, policy, count_outside))
    if results:
        return results
    details = {"kind": NON_FINITE, "split": data.split}
    reason = f"split {data.split}: every number is finite"
    return [GateResult("data.finite", Status.PASSED, 0, 0, "features", reason, details=details)]


def _not_finite(
    feature: str, value: str, fewest: int, data: Dataset, policy: Policy, count_outside: CountOutside
) -> GateResult:
    counted = count_outside(data.split, feature, -math.inf, math.inf)
    rows = fewest if counted is None else counted
    about = "at least " if counted is None else ""
    return GateResult(
        name=f"data.finite:{feature}",
        status=Status.FAILED,
        observed=value,
        bound="finite",
        reason=(
            f"{feature}: {value} in {about}{rows} of {data.examples} rows of split {data.split}, "
            f"limit: finite numbers ({NON_FINITE})"
        ),
        severity=policy.severity(NON_FINITE, feature),
        details={
            "feature": feature,
            "kind": NON_FINITE,
            "split": data.split,
            "rows": rows,
            "rows_exact": counted is not None,
            "examples": data.examples,
        },
    )
