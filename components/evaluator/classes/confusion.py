"""Which classes a model takes for which, and the mistakes that it is surest of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from components.evaluator.classes.answers import Answers, Indices
from components.evaluator.classes.facts import Mistake
from core.label_map import LabelMap

MOST_MISTAKES = 100


class Confusion:
    """Counts of the whole split; the last row of both matrices is for classes that the model does not know.

    Attributes:
        classes: int64[classes + 1, classes], examples by true and predicted class.
        parents: int64[parents + 1, parents], the same by parent, the predicted one being the most probable parent.
        mistakes: The MOST_MISTAKES most probable wrong answers, the surest first.
    """

    def __init__(self, labels: LabelMap) -> None:
        """Starts empty."""
        self._labels = labels
        self._parent_of = labels.parent_indices()
        classes, parents = len(labels.labels), len(labels.parents)
        self.classes: npt.NDArray[np.int64] = np.zeros((classes + 1, classes), np.int64)
        self.parents: npt.NDArray[np.int64] = np.zeros((parents + 1, parents), np.int64)
        self.mistakes: list[Mistake] = []

    def add(self, answers: Answers, numbers: Indices, truths: Sequence[str], paths: Sequence[str | None]) -> None:
        """Adds a batch; examples without a finite answer are in neither matrix.

        Args:
            answers: What the model answered.
            numbers: int64[batch], number of the true class; from `classes` on it is unknown to the model.
            truths: Name of the true class of each example.
            paths: File of each example; None where it is not known.
        """
        classes, parents = self.classes.shape[1], self.parents.shape[1]
        finite = answers.finite
        rows = np.minimum(numbers, classes)
        np.add.at(self.classes, (rows[finite], answers.predicted[finite]), 1)
        parent_rows = np.append(self._parent_of, parents)[rows]
        np.add.at(self.parents, (parent_rows[finite], answers.parent[finite]), 1)
        wrong = np.flatnonzero(finite & ~answers.right)
        self.mistakes += [
            Mistake(
                path=paths[row],
                truth=truths[row],
                predicted=self._labels.labels[answers.predicted[row]],
                probability=float(answers.confidence[row]),
            )
            for row in wrong
        ]
        # Of equal probabilities by path: the order of the files says nothing.
        self.mistakes.sort(key=lambda mistake: (-mistake.probability, mistake.path or ""))
        del self.mistakes[MOST_MISTAKES:]
