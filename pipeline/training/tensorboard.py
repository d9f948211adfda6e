"""TensorBoard event files of a training."""

from __future__ import annotations

import os
from collections.abc import Mapping

import tensorflow as tf

from pipeline.training.loop import Epoch


class EventLog:
    """Writes scalars below a directory that TensorBoard reads, or nowhere.

    Args:
        directory: Where event files go (subdirectories `train` and `eval`); None writes nothing.
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory

    def epoch(self, epoch: Epoch) -> None:
        """Writes an epoch's mean loss and its speed in steps per second."""
        speed = epoch.steps / max(epoch.seconds, 1e-9)
        self._write("train", epoch.total_steps, {"loss": epoch.loss, "steps_per_second": speed})

    def evaluation(self, step: int, measures: Mapping[str, float]) -> None:
        """Writes the measures of the eval split after `step` training steps."""
        self._write("eval", step, measures)

    def _write(self, part: str, step: int, values: Mapping[str, float]) -> None:
        if self._directory is None:
            return
        # One short-lived writer a call: an epoch is rare, and nothing has to be closed when a training fails.
        with tf.summary.create_file_writer(os.path.join(self._directory, part)).as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=step)
