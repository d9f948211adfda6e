"""The metrics that evaluate.thresholds may name. Light: read at config time, before anything is computed."""

from __future__ import annotations

import dataclasses

HIGHER, LOWER, TO_ONE = "higher", "lower", "to one"


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric of a binary classifier.

    Attributes:
        tfma_name: Its name in TFMA's output.
        better: HIGHER, LOWER or TO_ONE (the nearer to 1 the better).
        undefined: When it has no value although there are examples.
    """

    tfma_name: str
    better: str
    undefined: str


METRICS = {
    "auc": Metric("auc", HIGHER, "the examples hold only one of the two labels"),
    "binary_accuracy": Metric("binary_accuracy", HIGHER, "there is no example"),
    "precision": Metric("precision", HIGHER, "no example is predicted positive"),
    "recall": Metric("recall", HIGHER, "no example is labelled positive"),
    "binary_crossentropy": Metric("binary_crossentropy", LOWER, "there is no example"),
    "calibration": Metric("calibration", TO_ONE, "no example is labelled positive"),
}


def known_metrics() -> tuple[str, ...]:
    """Returns the names that evaluate.thresholds may use, in the order of the verdict table."""
    return tuple(METRICS)


def worsening(metric: str, value: float, baseline: float) -> float:
    """Returns by how much `value` is worse than `baseline`, in the metric's unit; negative when it is better."""
    better = METRICS[metric].better
    if better == HIGHER:
        return baseline - value
    if better == LOWER:
        return value - baseline
    return abs(value - 1.0) - abs(baseline - 1.0)


def can_refuse(metric: str, low: float | None, high: float | None) -> bool:
    """Returns whether absolute bounds can refuse a bad model: a bound on the side on which the metric gets worse.

    Args:
        metric: A known metric. Those that are better higher lie in 0 to 1, so a lower bound of 0 refuses nothing; one
            that is best at 1 gets worse on both sides.
        low: Lower bound; None without one.
        high: Upper bound; None without one.
    """
    better = METRICS[metric].better
    if better == HIGHER:
        return low is not None and low > 0
    if better == LOWER:
        return high is not None
    return low is not None and high is not None
