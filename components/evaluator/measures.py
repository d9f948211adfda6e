"""What one evaluation measured. Light: the verdict and its table are also read where no model is loaded."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.evaluator.classes.facts import ClassFacts

OVERALL = "overall"


@dataclasses.dataclass(frozen=True)
class WorstClass:
    """The class that a model recognizes least, among those with enough examples to say so.

    Attributes:
        label: Full class path.
        recall: Share of its examples that the model puts into it.
        examples: How many it has.
    """

    label: str
    recall: float
    examples: int


@dataclasses.dataclass(frozen=True)
class SliceMeasures:
    """What was measured on one slice.

    Attributes:
        column: Slicing column; None for the whole split.
        value: Value of the column; None for the whole split.
        examples: Number of examples.
        not_finite: Examples for which the candidate predicted NaN or an infinity.
        candidate: {metric: value}; NaN where undefined.
        baseline: The same of the baseline; None without one.
        baseline_not_finite: Examples for which the baseline predicted NaN or an infinity.
        worst: The class behind the candidate's worst_class_recall; None where that is undefined, and for two classes.
    """

    column: str | None
    value: str | int | float | None
    examples: int
    not_finite: int
    candidate: dict[str, float]
    baseline: dict[str, float] | None
    baseline_not_finite: int = 0
    worst: WorstClass | None = None

    @property
    def name(self) -> str:
        """`overall` or `column=value`."""
        return slice_name(self.column, self.value)


@dataclasses.dataclass(frozen=True)
class Measures:
    """What one pass measured.

    Attributes:
        slices: By slice; the whole split first.
        lowest: Smallest finite prediction of the candidate (of many classes: the probability of the predicted one);
            infinity when there is none.
        highest: Largest finite prediction; minus infinity when there is none.
        unlabelled: Examples that were left out because they have no label.
        baseline_problem: Why a baseline that was given could not be measured; empty when it was or none was given.
        classes: What is known of each class; None for a binary classifier.
    """

    slices: list[SliceMeasures]
    lowest: float
    highest: float
    unlabelled: int = 0
    baseline_problem: str = ""
    classes: ClassFacts | None = None

    @property
    def overall(self) -> SliceMeasures:
        """The whole split."""
        return self.slices[0]


def slice_name(column: str | None, value: str | int | float | None) -> str:
    """Returns a slice's name, `overall` or `column=value`."""
    return OVERALL if column is None else f"{column}={value}"


def finite(value: float) -> float | None:
    """Returns the value, or None for NaN and infinities, which JSON cannot hold."""
    return value if math.isfinite(value) else None
