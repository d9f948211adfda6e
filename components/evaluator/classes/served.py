"""A classifier under the SavedModel contract: one probability a class, in the order of the label map beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from components.evaluator.served_model import SERVING, ContractError, answer, load
from core import label_map
from core.errors import DataError

OUTPUT = "probabilities"
# How far the sum of an example's probabilities may be from 1: float32 sums of many classes are never exact.
_SUM_TOLERANCE = 1e-3
# Rounding may leave a probability this far outside 0..1.
_RANGE_TOLERANCE = 1e-6


class ServedClassifier:
    """A loaded model and its label map.

    Attributes:
        path: Directory of the SavedModel.
        labels: The classes in the order of its outputs.
    """

    def __init__(self, path: str) -> None:
        """Loads the model.

        Args:
            path: Directory of the SavedModel.

        Raises:
            ContractError: It cannot be loaded, has no label map, or its `serving_default` no output `probabilities`.
        """
        self.path = path
        # Kept as an attribute: the signatures do not keep the variables alive.
        self._loaded = load(path, (SERVING,))
        self._serving = self._loaded.signatures[SERVING]
        outputs = sorted(self._serving.structured_outputs)
        if OUTPUT not in outputs:
            raise ContractError(f"its {SERVING} has the outputs {outputs}; none is called {OUTPUT!r}")
        try:
            self.labels = label_map.read(path)
        except DataError as error:
            raise ContractError(error.headline) from error
        if not self.labels.labels:
            raise ContractError("its label map names no class")

    def probabilities(self, serialized: Any) -> npt.NDArray[np.float64]:
        """Returns float64[batch, classes] for string[batch] serialized tf.Examples; a row may hold NaN or infinities.

        Raises:
            ContractError: The model fails on these examples, or answers another number of values an example.
        """
        values = answer(self._serving, serialized, OUTPUT)
        expected = (int(serialized.shape[0]), len(self.labels.labels))
        if values.shape != expected:
            raise ContractError(
                f"output {OUTPUT!r} has the shape {list(values.shape)} for {expected[0]} examples and a label map of "
                f"{expected[1]} classes"
            )
        return values.astype(np.float64)


def check_probabilities(probabilities: npt.NDArray[np.float64], names: list[str]) -> None:
    """Refuses finite rows that are no probabilities.

    Args:
        probabilities: float64[batch, classes]; rows with NaN or infinities are not looked at, they have their own gate.
        names: What to call each example.

    Raises:
        ContractError: Names the first example with a value outside 0..1, or whose values do not add up to 1.
    """
    finite = np.isfinite(probabilities).all(axis=1)
    outside = (probabilities < -_RANGE_TOLERANCE) | (probabilities > 1 + _RANGE_TOLERANCE)
    wrong_range = outside.any(axis=1) & finite
    with np.errstate(invalid="ignore"):  # An infinity beside its opposite has no sum.
        sums = probabilities.sum(axis=1)
        wrong_sum = (np.abs(sums - 1) > _SUM_TOLERANCE) & finite
    wrong = np.flatnonzero(wrong_range | wrong_sum)
    if not wrong.size:
        return
    first = int(wrong[0])
    if wrong_range[first]:
        value = probabilities[first][outside[first]][0]
        raise ContractError(f"output {OUTPUT!r} holds {value:.6g} for {names[first]}, which is no probability")
    raise ContractError(f"output {OUTPUT!r} adds up to {sums[first]:.6g} for {names[first]}, not to 1")
