"""Writing a SavedModel, and proving that what was written answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from core.errors import EnvironmentProblem, RefusedError

Rows = Mapping[str, np.ndarray]


def save(module: tf.Module, directory: str, signatures: Mapping[str, Any]) -> None:
    """Writes a SavedModel.

    Args:
        module: Holds, as attributes, every variable and table that the signatures use.
        directory: Target; local or remote.
        signatures: Concrete functions by signature name.
    """
    tf.saved_model.save(module, directory, signatures=dict(signatures))


def answers(directory: str, signature: str, rows: Rows) -> dict[str, np.ndarray]:
    """Returns what a saved signature answers, loaded as TensorFlow Serving loads it: one graph, one session.

    Args:
        directory: A SavedModel.
        signature: Name of the signature.
        rows: Input name to values.
    """
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, [tf.saved_model.SERVING], directory)
        definition = loaded.signature_def[signature]
        outputs = {name: info.name for name, info in definition.outputs.items()}
        return session.run(outputs, {definition.inputs[name].name: value for name, value in rows.items()})


def verify(directory: str, signature: str, rows: Rows, expected: Rows, tolerance: float = 1e-5) -> None:
    """Makes sure that an exported model can be loaded and answers as the trained one does.

    Args:
        directory: The SavedModel.
        signature: The signature to call.
        rows: Its inputs for a few rows.
        expected: Output name to what the model in memory answers for them.
        tolerance: Largest absolute difference of any output.

    Raises:
        EnvironmentProblem: A file of the SavedModel is not there.
        RefusedError: An answer is not finite, or is not the expected one.
    """
    for name in ("saved_model.pb", os.path.join("variables", "variables.index")):
        if not tf.io.gfile.exists(os.path.join(directory, name)):
            raise EnvironmentProblem(f"the exported model has no {name}", place=directory, hint="is the disk full?")
    found = answers(directory, signature, rows)
    for name, value in expected.items():
        if not np.all(np.isfinite(found[name])):
            raise RefusedError(f"the exported model answers {name} with a number that is not finite", place=directory)
        difference = float(np.max(np.abs(found[name] - value)))
        if difference > tolerance:
            raise RefusedError(
                f"the exported model's {name} is off by {difference:.3g} from the trained model's", place=directory
            )
