"""What a classifier answered on a batch, held against the truth by name: numbers of one model mean nothing to another.

The answer is the first of the most probable classes, as `tf.argmax` and so the served model have it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.label_map import LabelMap, parent_of

Flags: TypeAlias = "npt.NDArray[np.bool_]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Indices: TypeAlias = "npt.NDArray[np.int64]"

# How many of the most probable classes count as an answer in top_3_accuracy.
TOP = 3
# Keras' epsilon: probabilities are clipped to [epsilon, 1 - epsilon] before the logarithm.
_EPSILON = 1e-7


@dataclasses.dataclass(frozen=True)
class Answers:
    """A batch of answers. Rows that are not finite hold values without meaning.

    Attributes:
        finite: bool[batch], False where a probability is NaN or infinite.
        predicted: int64[batch], the most probable class, in the model's own label map.
        parent: int64[batch], the parent of the predicted class, which is the parent that the model answers, in the
            label map's `parents`.
        confidence: float64[batch], probability of the predicted class.
        right: bool[batch], the predicted class is the truth.
        parent_right: bool[batch], the predicted parent is the truth's.
        top_right: bool[batch], the truth is among the TOP most probable classes.
        loss_nats: float64[batch], minus the logarithm of the truth's probability.
    """

    finite: Flags
    predicted: Indices
    parent: Indices
    confidence: Floats
    right: Flags
    parent_right: Flags
    top_right: Flags
    loss_nats: Floats


def compare(probabilities: Floats, truths: Sequence[str], labels: LabelMap) -> Answers:
    """Returns the answers of one model.

    Args:
        probabilities: float64[batch, classes] in the order of `labels`.
        truths: Class of each example; one that `labels` does not hold makes every answer wrong and its probability 0.
        labels: The model's own label map.
    """
    index = labels.indices(truths)
    known, rows = index >= 0, np.arange(len(index))
    finite = np.isfinite(probabilities).all(axis=1)
    values = np.where(finite[:, None], probabilities, 0.0)
    predicted = values.argmax(axis=1)
    own = np.where(known, values[rows, index], 0.0)
    # Of equal probabilities the first class comes first, as it does for the answer itself.
    before = np.arange(values.shape[1])[None, :] < index[:, None]
    rank = ((values > own[:, None]) | ((values == own[:, None]) & before)).sum(axis=1)
    parent = labels.parent_indices()[predicted]
    parent_index = {name: number for number, name in enumerate(labels.parents)}
    truth_parent = np.array([parent_index.get(parent_of(truth), -1) for truth in truths], np.int64)
    return Answers(
        finite=finite,
        predicted=predicted,
        parent=parent,
        confidence=values[rows, predicted],
        right=known & (predicted == index),
        parent_right=known & (parent == truth_parent),
        top_right=known & (rank < TOP),
        loss_nats=-np.log(np.clip(own, _EPSILON, 1 - _EPSILON)),
    )
