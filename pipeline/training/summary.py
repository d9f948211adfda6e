"""What a training measured, as a file beside its event files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence

import tensorflow as tf

FILE_NAME = "training_summary.json"
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class PhaseSummary:
    """What one phase of a training measured.

    Attributes:
        name: Of the phase.
        epochs: Passes over the train examples, the last one perhaps shorter.
        steps: Training steps.
        seconds: Wall time of the training steps.
        loss: Mean loss of the train examples in its last epoch.
        eval_accuracy: Share of the eval examples answered rightly after it.
    """

    name: str
    epochs: int
    steps: int
    seconds: float
    loss: float
    eval_accuracy: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a training measured.

    Attributes:
        steps: Training steps, of all phases.
        loss: Mean loss of the train examples in the last epoch.
        seconds: Wall time of the training steps.
        examples: Number of examples by split.
        parameters: Number of weights of the model.
        eval: Measures of the eval split after training, by name.
        phases: What each phase measured, in order; empty for a training of one phase.
    """

    steps: int
    loss: float
    seconds: float
    examples: Mapping[str, int]
    parameters: int
    eval: Mapping[str, float]
    phases: Sequence[PhaseSummary] = ()


def write(directory: str, measured: Summary) -> None:
    """Writes the summary as JSON into the model run directory, local or remote, which is made when missing."""
    tf.io.gfile.makedirs(directory)
    document = {"format_version": FORMAT_VERSION, **dataclasses.asdict(measured)}
    with tf.io.gfile.GFile(os.path.join(directory, FILE_NAME), "w") as stream:
        stream.write(json.dumps(document, indent=2, sort_keys=True) + "\n")
