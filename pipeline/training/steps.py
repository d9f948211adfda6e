"""How many steps a training runs: computed from counted records, never zero, never endless. No TensorFlow."""

from __future__ import annotations

import dataclasses
import math

from core.errors import ConfigError, DataError


@dataclasses.dataclass(frozen=True)
class StepPlan:
    """How the steps of a training and of the evaluation after it add up.

    Attributes:
        batch_size: Examples per training step.
        train_steps: Training steps in total.
        steps_per_epoch: Training steps in one pass over the train examples (the last one may wrap around).
        eval_steps: Evaluation steps; the last batch may be smaller.
    """

    batch_size: int
    train_steps: int
    steps_per_epoch: int
    eval_steps: int

    def epochs(self) -> list[int]:
        """Returns the number of steps of each epoch; only the last one may be shorter than the others."""
        whole, rest = divmod(self.train_steps, self.steps_per_epoch)
        return [self.steps_per_epoch] * whole + ([rest] if rest else [])


def plan_steps(
    *,
    train_examples: int,
    eval_examples: int,
    batch_size: int,
    epochs: int,
    train_steps: int | None,
    eval_steps: int | None,
) -> StepPlan:
    """Returns the steps that the settings and the counted records ask for.

    Args:
        train_examples: Records of the train split.
        eval_examples: Records of the eval split.
        batch_size: Examples per step, for both.
        epochs: Passes over the train split; used when `train_steps` is None.
        train_steps: Steps in total; None computes them.
        eval_steps: Evaluation steps; None computes as many as see each eval example once.

    Raises:
        DataError: A split is empty.
        ConfigError: A given number is not positive.
    """
    for split, count in (("train", train_examples), ("eval", eval_examples)):
        if count <= 0:
            raise DataError(f"the {split} split has no example", hint="check data.split and what ingest set aside")
    for key, value in (
        ("batch_size", batch_size),
        ("epochs", epochs),
        ("steps", train_steps),
        ("eval_steps", eval_steps),
    ):
        if value is not None and value <= 0:
            raise ConfigError(
                f"training.{key} is {value}: nothing would be trained or measured",
                place=f"training.{key}",
                hint="give a positive number" + (", or null to compute it" if key.endswith("steps") else ""),
            )
    whole_eval = math.ceil(eval_examples / batch_size)
    return StepPlan(
        batch_size=batch_size,
        train_steps=train_steps or math.ceil(train_examples * epochs / batch_size),
        steps_per_epoch=math.ceil(train_examples / batch_size),
        # Asking for more steps than there are batches must not wait for batches that never come.
        eval_steps=min(eval_steps or whole_eval, whole_eval),
    )
