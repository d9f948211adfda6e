"""In which order a training sees its examples: a function of (seed, position), not of a shuffle buffer's state.

A pass sees each example exactly once, two trainings with one seed see the same batches, and any position can be asked
for directly.
"""

from __future__ import annotations

import tensorflow as tf


def pick_rows(positions: tf.Tensor, count: int, seed: int) -> tf.Tensor:
    """Returns the example at each position of an endless training, int64[batch]; every pass has an order of its own.

    Args:
        positions: int64[batch], counted from 0 at the first example of the first pass.
        count: Number of examples.
        seed: Seed of the order.
    """
    passes = positions // count
    return _shuffled(positions % count, passes, tf.zeros_like(passes), count, seed)


def pick_views(rows: tf.Tensor, positions: tf.Tensor, count: int, views: int, seed: int) -> tf.Tensor:
    """Returns which version of each example is shown, int64[batch]: each one once in as many passes as there are.

    Args:
        rows: int64[batch], what `pick_rows` returned for the positions.
        positions: int64[batch].
        count: Number of examples.
        views: Number of versions of each example.
        seed: Seed of the choice.
    """
    passes = positions // count
    # Where an example begins among its views is drawn anew for each round of them. A permutation of so few numbers
    # would take longer than a small step: the operation looks for it among many more.
    cycles = passes // views
    return (_shuffled(rows, cycles, tf.ones_like(cycles), count, seed) + passes) % views


def _shuffled(index: tf.Tensor, first: tf.Tensor, second: tf.Tensor, size: int, seed: int) -> tf.Tensor:
    """Returns where each index, int64[batch], goes in the permutation of `size` that (seed, first, second) names."""
    seeds = tf.stack([tf.fill(tf.shape(index), tf.constant(seed, tf.int64)), first, second], axis=1)
    last = tf.fill(tf.shape(index), tf.constant(size - 1, tf.int64))
    return tf.raw_ops.RandomIndexShuffle(index=index, seed=seeds, max_index=last, rounds=4)
