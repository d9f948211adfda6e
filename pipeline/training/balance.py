"""How much each class weighs in the loss. No TensorFlow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def balanced_weights(labels: npt.NDArray[np.int64], classes: int) -> npt.NDArray[np.float32]:
    """Returns the weight of each class, float32[classes], such that all classes weigh the same in total.

    The mean weight of the examples is 1, so that the learning rate keeps its meaning. A class without examples
    weighs 0.

    Args:
        labels: int64[examples], each from 0 to classes - 1.
        classes: Number of classes.
    """
    counts = np.bincount(labels, minlength=classes)
    present = counts > 0
    weights = np.zeros(classes, np.float32)
    weights[present] = len(labels) / (np.count_nonzero(present) * counts[present])
    return weights
