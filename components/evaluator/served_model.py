"""A SavedModel under the contract of two signatures: what it answers, and what it was trained to answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

SERVING = "serving_default"
TRANSFORM = "transform_features"
# The label of an example whose label column has no value.
UNLABELLED = -1
# Names of the output that holds the probability, for a signature with several outputs.
_PROBABILITY_KEYS = ("probability", "probabilities", "prediction", "predictions", "score", "scores")


class ContractError(Exception):
    """A model cannot be loaded, or lacks a signature, an output or the label; the message is one sentence."""


class ServedModel:
    """A loaded model.

    Attributes:
        path: Directory of the SavedModel.
        prediction_key: The output of `serving_default` that is judged.
    """

    def __init__(self, path: str, label: str) -> None:
        """Loads the model.

        Args:
            path: Directory of the SavedModel.
            label: Name of the label among the outputs of `transform_features`.

        Raises:
            ContractError: The model does not fulfil the contract.
        """
        self.path = path
        # Kept as an attribute: the signatures do not keep the variables alive.
        self._loaded = load(path, (SERVING, TRANSFORM))
        self._serving, self._transform = (self._loaded.signatures[name] for name in (SERVING, TRANSFORM))
        self._label = label
        if label not in self._transform.structured_outputs:
            raise ContractError(f"its {TRANSFORM} has no output {label!r}")
        self.prediction_key = _prediction_key(list(self._serving.structured_outputs))

    def predict(self, serialized: Any) -> npt.NDArray[np.float64]:
        """Returns float64[batch], the predicted probabilities of string[batch] serialized tf.Examples.

        Raises:
            ContractError: The model fails on these examples, or does not answer one number an example.
        """
        return self._numbers(self._serving, serialized, self.prediction_key).astype(np.float64)

    def labels(self, serialized: Any) -> npt.NDArray[np.int64]:
        """Returns int64[batch], the labels that the transform graph makes of the examples: 0, 1, or -1 for none.

        Raises:
            ContractError: The transform fails on these examples, or a label is something else.
        """
        labels = self._numbers(self._transform, serialized, self._label)
        odd = labels[~np.isin(labels, (UNLABELLED, 0, 1))]
        if odd.size:
            raise ContractError(f"label {self._label!r} holds {odd[0]}, which is neither 0 nor 1")
        return labels.astype(np.int64)

    def _numbers(self, signature: Any, serialized: Any, key: str) -> npt.NDArray[Any]:
        values = answer(signature, serialized, key)
        size = int(serialized.shape[0])
        if values.size != size:
            raise ContractError(
                f"output {key!r} has the shape {list(values.shape)} for {size} examples, not one number each"
            )
        return values.reshape(size)


def load(path: str, signatures: Sequence[str]) -> Any:
    """Returns a loaded SavedModel that has the named signatures.

    Raises:
        ContractError: There is none, it cannot be loaded, or it lacks one of them.
    """
    import tensorflow as tf

    if not os.path.exists(os.path.join(path, "saved_model.pb")):
        raise ContractError(f"there is no SavedModel at {path}")
    try:
        loaded = tf.saved_model.load(path)
    except Exception as error:  # A SavedModel can fail to load in any way: a missing op, a cut file, a bad proto.
        raise ContractError(f"it cannot be loaded ({type(error).__name__}: {_first_line(error)})") from error
    missing = [name for name in signatures if name not in loaded.signatures]
    if missing:
        raise ContractError(f"it lacks the signature {missing[0]!r}")
    return loaded


def answer(signature: Any, serialized: Any, key: str) -> npt.NDArray[Any]:
    """Returns one output of a signature of one argument, for string[batch] serialized tf.Examples.

    Raises:
        ContractError: The model fails on these examples.
    """
    import tensorflow as tf

    argument = next(iter(signature.structured_input_signature[1]))
    try:
        output = signature(**{argument: serialized})[key]
    except (tf.errors.OpError, TypeError, ValueError) as error:
        raise ContractError(f"it fails on the eval examples ({type(error).__name__}: {_first_line(error)})") from error
    return np.asarray(tf.sparse.to_dense(output) if isinstance(output, tf.SparseTensor) else output)


def _prediction_key(outputs: list[str]) -> str:
    if len(outputs) == 1:
        return outputs[0]
    known = [key for key in _PROBABILITY_KEYS if key in outputs]
    if not known:
        raise ContractError(f"its {SERVING} has the outputs {sorted(outputs)}; none is called 'probability'")
    return known[0]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else ""
