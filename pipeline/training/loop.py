"""The training loop: blocks of steps that run inside TensorFlow, with one look at the loss after each.

A step of a small model takes less time than Python needs to start it, so Python starts a block of steps instead.
(`fit(steps_per_execution=...)` would do the same, but it needs autograph on Keras' own source, which costs every
process more than ten seconds of CPU: see `legacy_keras`.)
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from core.errors import RefusedError
from pipeline.training.steps import StepPlan

# Steps between two looks at the loss: a training that diverged stops this soon.
_BLOCK_STEPS = 200

# (labels: [batch], outputs of the model) -> one float32 value an example: [batch].
Measure = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

_log = logging.getLogger("forebay.training")


class Trainee(Protocol):
    """What is trained: a Keras model, or several of them behind one call."""

    @property
    def trainable_variables(self) -> Sequence[tf.Variable]:
        """The variables that a step changes."""

    @property
    def losses(self) -> Sequence[tf.Tensor]:
        """Terms that are added to the mean loss of the examples, each of shape []."""

    def __call__(self, features: Any, training: bool) -> tf.Tensor:
        """Returns the outputs for a batch of features."""


@dataclasses.dataclass(frozen=True)
class Epoch:
    """What one pass over the train examples did.

    Attributes:
        number: Counted from 1.
        steps: Steps of this pass.
        total_steps: Steps since the training began.
        loss: Mean loss of its examples.
        seconds: Wall time.
    """

    number: int
    steps: int
    total_steps: int
    loss: float
    seconds: float


def strategy_for(name: str) -> tf.distribute.Strategy:
    """Returns how the model is spread over devices.

    Args:
        name: `one_device`, or `auto`: all GPUs of this machine when there are several, else one device.
    """
    if name == "auto" and len(tf.config.list_logical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def train(
    model: Trainee,
    optimizer: tf.keras.optimizers.Optimizer,
    batches: tf.data.Dataset,
    plan: StepPlan,
    loss: Measure,
    strategy: tf.distribute.Strategy,
    hint: str = "lower training.learning_rate, or look for extreme values in the numeric features",
) -> Iterator[Epoch]:
    """Trains the model and yields a record after each epoch.

    Args:
        model: Built under the strategy's scope.
        optimizer: Likewise.
        batches: Endless data set of (features, labels) batches of the plan's batch size.
        plan: How many steps.
        loss: The loss of each example.
        strategy: Where the steps run.
        hint: What to do about a loss that is not finite.

    Raises:
        RefusedError: The loss is not a finite number.
    """
    iterator = iter(strategy.experimental_distribute_dataset(batches))
    block = compiled_block(model, optimizer, loss, strategy, plan.batch_size)
    done = 0
    for number, steps in enumerate(plan.epochs(), start=1):
        started, total, left = time.monotonic(), 0.0, steps
        while left:
            size = min(_BLOCK_STEPS, left)
            block_loss = float(block(iterator, tf.constant(size)))
            done, left = done + size, left - size
            if not math.isfinite(block_loss):
                raise RefusedError(
                    f"the loss is {block_loss} after {done} training steps",
                    place=f"epoch {number}",
                    hint=hint,
                )
            total += block_loss
        epoch = Epoch(number, steps, done, total / steps, time.monotonic() - started)
        _log.info(
            "epoch %d: %d steps, loss %.4f, %.1f s (%d of %d steps)",
            number, steps, epoch.loss, epoch.seconds, done, plan.train_steps,
        )  # fmt: skip
        yield epoch


def compiled_block(
    model: Trainee,
    optimizer: tf.keras.optimizers.Optimizer,
    loss: Measure,
    strategy: tf.distribute.Strategy,
    batch_size: int,
) -> Callable[..., tf.Tensor]:
    """Returns a TensorFlow function (iterator, steps: int32[]) -> sum of the steps' mean losses, float32[].

    Args:
        model: Built under the strategy's scope.
        optimizer: Likewise.
        loss: The loss of each example.
        strategy: Where the steps run.
        batch_size: Examples of a step, over all replicas.
    """

    def step(features: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            # Each replica adds its share of the mean over the whole batch.
            share = tf.reduce_sum(loss(labels, model(features, training=True))) / batch_size
            objective = tf.add_n([share, *[term / strategy.num_replicas_in_sync for term in model.losses]])
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(objective, variables), variables, strict=True))
        return share

    def block(iterator: tf.data.Iterator, steps: tf.Tensor) -> tf.Tensor:
        def body(index: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            shares = strategy.run(step, args=next(iterator))
            return index + 1, total + strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None)

        start = (tf.constant(0), tf.constant(0.0))
        return tf.while_loop(lambda index, _: index < steps, body, start, parallel_iterations=1)[1]

    return tf.function(block, autograph=False)


def evaluate(model: Trainee, batches: tf.data.Dataset, steps: int, measures: Mapping[str, Measure]) -> dict[str, float]:
    """Returns the mean of each measure over the examples of the first `steps` batches.

    Args:
        model: The trained model.
        batches: (features, labels) batches; the last one may be smaller.
        steps: How many of them to use.
        measures: What to average, by name.
    """

    def sums(features: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
        outputs = model(features, training=False)
        return tf.stack([tf.reduce_sum(measure(labels, outputs)) for measure in measures.values()])

    function = tf.function(sums, autograph=False, reduce_retracing=True)
    total, examples = tf.zeros([len(measures)]), 0
    for features, labels in batches.take(steps):
        total += function(features, labels)
        examples += int(tf.size(labels))
    return {name: float(value) / examples for name, value in zip(measures, total, strict=True)}
