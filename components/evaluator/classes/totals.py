"""Running totals of a classifier by slice, and the metrics that follow from them.

| metric                     | of the examples of a slice                                                             |
|----------------------------|----------------------------------------------------------------------------------------|
| accuracy                   | share whose most probable class is the truth                                           |
| parent_accuracy            | share whose most probable class has the truth's parent                                 |
| top_3_accuracy             | share whose truth is among the three most probable classes (all, when there are fewer) |
| macro_f1, macro_recall     | mean over the classes that have examples; undefined for a single class                 |
| worst_class_recall         | smallest recall of a class with at least min_examples examples                         |
| categorical_crossentropy   | mean of minus log(probability of the truth), nats, probabilities clipped at 1e-7       |
| expected_calibration_error | mean of abs(accuracy - mean probability) over 15 bins of equal width, by their examples |

Classes that the model does not know are classes with examples and a recall of 0: each by its name, not as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from components.evaluator.classes.answers import Answers, Floats, Indices
from components.evaluator.metrics import CLASSIFICATION, known_metrics

_BINS = 15
_SUMS = ("right", "parent_right", "top_right", "loss_nats")


class ClassTotals:
    """Sums over examples, one row a slice; memory does not grow with the number of examples.

    Classes are numbered by the caller, those that the model knows first. More appear as examples of classes come that
    it does not know.
    """

    def __init__(self, classes: int) -> None:
        """Starts without any slice.

        Args:
            classes: Number of classes that can be predicted and counted as right.
        """
        self._truths = np.zeros((0, classes), np.int64)
        self._predicted = np.zeros((0, classes), np.int64)
        self._hits = np.zeros((0, classes), np.int64)
        self._sums = {name: np.zeros(0) for name in _SUMS}
        self._bins = np.zeros((0, _BINS, 3))
        self._not_finite = np.zeros(0, np.int64)
        self.lowest = math.inf
        self.highest = -math.inf

    def add(self, slices: Indices, rows: Indices, answers: Answers, truths: Indices, predicted: Indices) -> None:
        """Adds a batch.

        Args:
            slices: int64[pairs], the slice of each pair.
            rows: int64[pairs], the example of each pair; an example is in as many pairs as it has slices.
            answers: What the model answered; rows that are not finite are counted apart.
            truths: int64[batch], number of the true class.
            predicted: int64[batch], number of the predicted class; -1 for one that is no truth of any example.
        """
        self._grow(int(slices.max(initial=-1)) + 1, int(truths.max(initial=-1)) + 1)
        size = len(self._not_finite)
        finite = answers.finite[rows]
        self._not_finite += np.bincount(slices[~finite], minlength=size)
        slices, rows = slices[finite], rows[finite]
        if not len(rows):
            return
        confidence, right = answers.confidence[rows], answers.right[rows]
        self.lowest = min(self.lowest, float(confidence.min()))
        self.highest = max(self.highest, float(confidence.max()))
        np.add.at(self._truths, (slices, truths[rows]), 1)
        np.add.at(self._hits, (slices[right], truths[rows][right]), 1)
        named = predicted[rows] >= 0
        np.add.at(self._predicted, (slices[named], predicted[rows][named]), 1)
        for name in _SUMS:
            weights = getattr(answers, name)[rows].astype(np.float64)
            self._sums[name] += np.bincount(slices, weights=weights, minlength=size)
        bins = np.clip((confidence * _BINS).astype(np.int64), 0, _BINS - 1)
        np.add.at(self._bins, (slices, bins), np.stack([np.ones(len(rows)), confidence, right], axis=1))

    def _grow(self, slices: int, classes: int) -> None:
        more_slices = max(0, slices - len(self._not_finite))
        more_classes = max(0, classes - self._truths.shape[1])
        if not more_slices and not more_classes:
            return
        wider = ((0, more_slices), (0, more_classes))
        self._truths, self._predicted, self._hits = (
            np.pad(counts, wider) for counts in (self._truths, self._predicted, self._hits)
        )
        self._bins = np.pad(self._bins, ((0, more_slices), (0, 0), (0, 0)))
        self._sums = {name: np.pad(value, (0, more_slices)) for name, value in self._sums.items()}
        self._not_finite = np.pad(self._not_finite, (0, more_slices))

    def examples(self, index: int) -> int:
        """Returns the number of examples of a slice, those with a prediction that is not finite included."""
        if index >= len(self._not_finite):
            return 0
        return int(self._truths[index].sum() + self._not_finite[index])

    def not_finite(self, index: int) -> int:
        """Returns how many examples of a slice got NaN or an infinity among their probabilities."""
        return int(self._not_finite[index]) if index < len(self._not_finite) else 0

    def worst(self, index: int, min_examples: int, names: Sequence[str]) -> tuple[int, float, int] | None:
        """Returns (class, recall, examples) of the class with the smallest recall; None when none has enough examples.

        Args:
            index: The slice.
            min_examples: Examples, 1 or more, that a class needs.
            names: Of the classes: of equal recalls the one with more examples is the surer one, then the first name.
        """
        if index >= len(self._not_finite) or self._not_finite[index]:
            return None
        truths, hits = self._truths[index], self._hits[index]
        enough = np.flatnonzero(truths >= min_examples)
        if not enough.size:
            return None
        number = int(min(enough, key=lambda one: (hits[one] / truths[one], -truths[one], names[one])))
        return number, float(hits[number] / truths[number]), int(truths[number])

    def values(self, index: int, min_examples: int = 1) -> dict[str, float]:
        """Returns {metric: value} of a slice; NaN where a metric is undefined or a prediction was not finite.

        Args:
            index: The slice.
            min_examples: Examples, 1 or more, that a class needs to be the worst one.
        """
        if index >= len(self._not_finite) or self._not_finite[index] or not self._truths[index].any():
            return dict.fromkeys(known_metrics(CLASSIFICATION), math.nan)
        truths, hits = self._truths[index].astype(np.float64), self._hits[index].astype(np.float64)
        examples, occurs = float(truths.sum()), truths > 0
        several = int(occurs.sum()) > 1
        f1 = 2 * hits[occurs] / (truths + self._predicted[index])[occurs]
        sums = {name: float(value[index]) for name, value in self._sums.items()}
        enough = truths >= min_examples
        return {
            "accuracy": sums["right"] / examples,
            "parent_accuracy": sums["parent_right"] / examples,
            "top_3_accuracy": sums["top_right"] / examples,
            "macro_f1": float(f1.mean()) if several else math.nan,
            "macro_recall": float((hits[occurs] / truths[occurs]).mean()) if several else math.nan,
            "worst_class_recall": float((hits[enough] / truths[enough]).min()) if enough.any() else math.nan,
            "categorical_crossentropy": sums["loss_nats"] / examples,
            "expected_calibration_error": _calibration_error(self._bins[index]),
        }


def _calibration_error(bins: Floats) -> float:
    """Returns the mean gap between accuracy and confidence from float64[bins, (examples, confidence, right)]."""
    return float(np.abs(bins[:, 1] - bins[:, 2]).sum() / bins[:, 0].sum())
