"""What a training measured, as a file beside its event files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping

import tensorflow as tf

FILE_NAME = "training_summary.json"
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a training measured.

    Attributes:
        steps: Training steps.
        loss: Mean loss of the train examples in the last epoch.
        seconds: Wall time of the training steps.
        examples: Number of examples by split.
        parameters: Number of weights of the model.
        eval: Measures of the eval split after training, by name.
    """

    steps: int
    loss: float
    seconds: float
    examples: Mapping[str, int]
    parameters: int
    eval: Mapping[str, float]


def write(directory: str, measured: Summary) -> None:
    """Writes the summary as JSON into the model run directory, local or remote, which is made when missing."""
    tf.io.gfile.makedirs(directory)
    document = {"format_version": FORMAT_VERSION, **dataclasses.asdict(measured)}
    with tf.io.gfile.GFile(os.path.join(directory, FILE_NAME), "w") as stream:
        stream.write(json.dumps(document, indent=2, sort_keys=True) + "\n")
