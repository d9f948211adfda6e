"""What one evaluation knows of each class. Light: the verdict is also made where no model is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class Mistake:
    """One wrong answer.

    Attributes:
        path: File of the example, as the ingestion names it; None when the example does not say.
        truth: Its class.
        predicted: The class that the model put it into.
        probability: How sure the model was.
    """

    path: str | None
    truth: str
    predicted: str
    probability: float


@dataclasses.dataclass(frozen=True)
class ClassFacts:
    """The whole eval split by class and by parent, as the candidate answered.

    Attributes:
        labels: Classes in the order of the label map.
        parents: Parents, sorted by name.
        confusion: int64[classes + 1, classes], rows truth, columns predicted; last row: classes the model lacks.
        parent_confusion: int64[parents + 1, parents], the same by parent.
        unknown: Examples by class that the model does not know.
        true_classes: How many classes the examples have, unknown ones included.
        mistakes: The wrong answers that the model was surest of, the surest first.
        min_examples: Examples that a class needs to be the worst one.
    """

    labels: Sequence[str]
    parents: Sequence[str]
    confusion: npt.NDArray[np.int64]
    parent_confusion: npt.NDArray[np.int64]
    unknown: Mapping[str, int]
    true_classes: int
    mistakes: Sequence[Mistake]
    min_examples: int
