"""The metrics that evaluate.thresholds may name. Light: read at config time, before anything is computed."""

from __future__ import annotations

import dataclasses
import math

HIGHER, LOWER, TO_ONE = "higher", "lower", "to one"
BINARY, CLASSIFICATION = "binary", "classification"


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric of a classifier.

    Attributes:
        tfma_name: Its name in TFMA's output.
        better: HIGHER, LOWER or TO_ONE (the nearer to 1 the better).
        undefined: When it has no value although there are examples.
        largest: The largest value that it can take: a bound there refuses nothing when lower is better.
    """

    tfma_name: str
    better: str
    undefined: str
    largest: float = math.inf


# Of two classes, one of which is called positive.
METRICS = {
    "auc": Metric("auc", HIGHER, "the examples hold only one of the two labels"),
    "binary_accuracy": Metric("binary_accuracy", HIGHER, "there is no example"),
    "precision": Metric("precision", HIGHER, "no example is predicted positive"),
    "recall": Metric("recall", HIGHER, "no example is labelled positive"),
    "binary_crossentropy": Metric("binary_crossentropy", LOWER, "there is no example"),
    "calibration": Metric("calibration", TO_ONE, "no example is labelled positive"),
}


_NO_EXAMPLE = "there is no example"
_ONE_CLASS = "the examples are all of one class"

# Of many classes, each with a parent; what each means stands in classes/totals.py.
CLASS_METRICS = {
    "accuracy": Metric("sparse_categorical_accuracy", HIGHER, _NO_EXAMPLE),
    "parent_accuracy": Metric("parent_accuracy", HIGHER, _NO_EXAMPLE),
    "top_3_accuracy": Metric("top_3_accuracy", HIGHER, _NO_EXAMPLE),
    "macro_f1": Metric("macro_f1", HIGHER, _ONE_CLASS),
    "macro_recall": Metric("macro_recall", HIGHER, _ONE_CLASS),
    "worst_class_recall": Metric("worst_class_recall", HIGHER, "no class has min_examples examples"),
    "categorical_crossentropy": Metric("sparse_categorical_crossentropy", LOWER, _NO_EXAMPLE),
    "expected_calibration_error": Metric("expected_calibration_error", LOWER, _NO_EXAMPLE, largest=1.0),
}

_OF_TASK = {BINARY: METRICS, CLASSIFICATION: CLASS_METRICS}
# No two tasks have a metric of one name in common.
ALL_METRICS = {**METRICS, **CLASS_METRICS}


def known_metrics(task: str = BINARY) -> tuple[str, ...]:
    """Returns the names that evaluate.thresholds may use for a task, in the order of the verdict table."""
    return tuple(_OF_TASK[task])


def worsening(metric: str, value: float, baseline: float) -> float:
    """Returns by how much `value` is worse than `baseline`, in the metric's unit; negative when it is better."""
    better = ALL_METRICS[metric].better
    if better == HIGHER:
        return baseline - value
    if better == LOWER:
        return value - baseline
    return abs(value - 1.0) - abs(baseline - 1.0)


def can_refuse(metric: str, low: float | None, high: float | None) -> bool:
    """Returns whether absolute bounds can refuse a bad model: a bound on the side on which the metric gets worse.

    Args:
        metric: A known metric of any task. Those that are better higher lie in 0 to 1, so a lower bound of 0 refuses
            nothing; one that is best at 1 gets worse on both sides.
        low: Lower bound; None without one.
        high: Upper bound; None without one.
    """
    judged = ALL_METRICS[metric]
    if judged.better == HIGHER:
        return low is not None and low > 0
    if judged.better == LOWER:
        return high is not None and high < judged.largest
    return low is not None and high is not None
