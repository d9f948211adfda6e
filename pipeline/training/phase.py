"""One phase of a training: what is trained, on what, for how long, and what came of it."""

from __future__ import annotations

import dataclasses
import logging
import os

import tensorflow as tf

from pipeline.training import loop
from pipeline.training.loop import Measure, Trainee
from pipeline.training.steps import StepPlan
from pipeline.training.summary import PhaseSummary
from pipeline.training.tensorboard import EventLog

# Share of a phase's steps in which the learning rate rises to its full value.
_WARM_UP_SHARE = 0.05

_log = logging.getLogger("forebay.training")


@dataclasses.dataclass(frozen=True)
class Phase:
    """A phase that is ready to run.

    Attributes:
        name: Names it in logs, event files and the summary.
        trainee: What is trained; built under the strategy's scope.
        batches: Endless data set of (features, labels) batches of the plan's batch size.
        held_out: (features, labels) batches of the eval split, each example once.
        plan: How many steps.
        loss: What is minimized.
        learning_rate: At its highest; see `rate`.
        weight_decay: Decoupled decay of kernels; 0: none.
        setting: The key of the learning rate, for an error's hint.
    """

    name: str
    trainee: Trainee
    batches: tf.data.Dataset
    held_out: tf.data.Dataset
    plan: StepPlan
    loss: Measure
    learning_rate: float
    weight_decay: float
    setting: str


def rate(highest: float, steps: int) -> tf.keras.optimizers.schedules.LearningRateSchedule:
    """Returns a learning rate that rises to its highest in the first steps and then falls to 0 along a cosine."""
    schedule = tf.keras.optimizers.schedules.CosineDecay
    warm_up = round(steps * _WARM_UP_SHARE)
    if not warm_up:
        return schedule(highest, steps)
    # From the first step on above 0: a step that changes nothing would be a wasted one.
    return schedule(highest / (warm_up + 1), steps - warm_up, warmup_target=highest, warmup_steps=warm_up)


def optimizer(phase: Phase) -> tf.keras.optimizers.Optimizer:
    """Returns Adam for a phase, with the learning rate of `rate`.

    Kernels decay, decoupled from the gradients; biases and the scales of normalizations do not.
    """
    adam = tf.keras.optimizers.AdamW(rate(phase.learning_rate, phase.plan.train_steps), weight_decay=phase.weight_decay)
    variables = phase.trainee.trainable_variables
    adam.exclude_from_weight_decay([variable for variable in variables if "kernel" not in variable.name])
    # Its variables have to exist before the first trace, or TensorFlow traces everything twice.
    adam.build(variables)
    return adam


def run(
    phase: Phase, measures: dict[str, Measure], strategy: tf.distribute.Strategy, events: str | None
) -> tuple[PhaseSummary, dict[str, float]]:
    """Returns what a phase did, and the measures of the eval split after it.

    Args:
        phase: The phase.
        measures: What to measure on the eval split, `accuracy` among them.
        strategy: Where the steps run.
        events: Directory of event files, below which the phase has its own; None writes none.

    Raises:
        RefusedError: The loss is not a finite number.
    """
    log = EventLog(os.path.join(events, phase.name) if events is not None else None)
    _log.info("%s: %d steps of %d photos", phase.name, phase.plan.train_steps, phase.plan.batch_size)
    with strategy.scope():
        adam = optimizer(phase)
    epochs = []
    hint = f"lower {phase.setting}"
    for epoch in loop.train(phase.trainee, adam, phase.batches, phase.plan, phase.loss, strategy, hint):
        log.epoch(epoch)
        epochs.append(epoch)
    found = loop.evaluate(phase.trainee, phase.held_out, phase.plan.eval_steps, measures)
    log.evaluation(phase.plan.train_steps, found)
    _log.info("%s: eval loss %.4f, accuracy %.4f", phase.name, found["loss"], found["accuracy"])
    done = PhaseSummary(
        name=phase.name,
        epochs=len(epochs),
        steps=phase.plan.train_steps,
        seconds=sum(epoch.seconds for epoch in epochs),
        loss=epochs[-1].loss,
        eval_accuracy=found["accuracy"],
    )
    return done, found
