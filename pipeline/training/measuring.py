"""The time of training steps, with the real input pipeline and on batches that are in memory already."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import tensorflow as tf

from pipeline.training.profile import PhaseProfile
from pipeline.training.steps import StepPlan

# Blocks of each kind, taken in turns: whatever else the machine does then meets both kinds alike.
_BLOCKS = 10
# Batches that stand in memory for the bound.
_PREPARED = 4

# (iterator over batches, steps: int32[]) -> sum of losses, float32[]; see `loop.compiled_block`.
Block = Callable[[tf.data.Iterator, tf.Tensor], tf.Tensor]


def profile_phase(
    name: str, block: Block, batches: tf.data.Dataset, plan: StepPlan, strategy: tf.distribute.Strategy, steps: int
) -> PhaseProfile:
    """Returns what the steps of a phase cost. It trains: what is trained is of no use afterwards.

    Args:
        name: Of the phase.
        block: The compiled steps.
        batches: Endless data set of (features, labels) batches.
        plan: Of the phase.
        strategy: Where the steps run.
        steps: Steps to measure each way, rounded up to whole blocks.
    """
    speed = _delivered(batches, plan)
    prepared = _in_memory(batches)
    real = iter(strategy.experimental_distribute_dataset(batches.skip(plan.steps_per_epoch)))
    bound = iter(strategy.experimental_distribute_dataset(prepared))
    size = -(-steps // _BLOCKS)
    # The first round compiles, and fills the buffers.
    rounds = [(_time_ms(block, real, size), _time_ms(block, bound, size)) for _ in range(_BLOCKS + 1)][1:]
    step_ms, bound_ms = (statistics.median(times) for times in zip(*rounds, strict=True))
    return PhaseProfile(name, plan.batch_size, size * _BLOCKS, step_ms, bound_ms, speed)


def _time_ms(block: Block, iterator: tf.data.Iterator, steps: int) -> float:
    """Returns the time of a step in a block of steps."""
    started = time.perf_counter()
    # The value, not the tensor: the call itself may return before the steps are done.
    float(block(iterator, tf.constant(steps)))
    return (time.perf_counter() - started) / steps * 1e3


def _delivered(batches: tf.data.Dataset, plan: StepPlan) -> float:
    """Returns the examples a second that the input pipeline alone delivers, after the first pass."""
    iterator = iter(batches)
    for _ in range(plan.steps_per_epoch):
        next(iterator)
    started = time.perf_counter()
    for _ in range(plan.steps_per_epoch):
        next(iterator)
    return plan.steps_per_epoch * plan.batch_size / (time.perf_counter() - started)


def _in_memory(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the first few batches, again and again, from memory."""
    stacked = tf.nest.map_structure(lambda *parts: tf.stack(parts), *batches.take(_PREPARED))
    return tf.data.Dataset.from_tensor_slices(stacked).repeat().prefetch(1)
