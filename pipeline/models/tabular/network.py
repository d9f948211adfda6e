"""The wide-and-deep network.

The wide part is a linear model over slots, numbers and crosses; the deep part is a multilayer perceptron over the
numbers and an embedding of every slot. All features share one weight table and one embedding table: each feature
owns a range of rows, so a step makes two look-ups, however many features there are.
"""

from __future__ import annotations

import itertools

import tensorflow as tf

from core.settings.schema import NetworkSettings
from pipeline.models.tabular.features import ModelInputs


def build(inputs: ModelInputs, network: NetworkSettings, seed: int) -> tf.keras.Model:
    """Returns the untrained network.

    Args:
        inputs: The transformed features and their numbers of slots.
        network: Layer sizes.
        seed: Seed of every initial weight and of dropout: equal seeds give equal networks.

    Returns:
        A functional model from {name: float32[batch] or int64[batch]} to the logits, float32[batch, 1].
    """
    seeds = itertools.count(seed)
    tensors = {name: tf.keras.Input(shape=(), dtype=tf.float32, name=name) for name in inputs.numeric}
    tensors |= {name: tf.keras.Input(shape=(), dtype=tf.int64, name=name) for name in [*inputs.slots, *inputs.crosses]}
    wide, deep = [], []
    if inputs.numeric:
        numbers = tf.stack([tensors[name] for name in inputs.numeric], axis=1)
        wide.append(tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", name="wide_numeric")(numbers))
        deep.append(numbers)
    if sizes := {**inputs.slots, **inputs.crosses}:
        rows = _rows(tensors, sizes)
        weights = tf.keras.layers.Embedding(sum(sizes.values()), 1, embeddings_initializer="zeros", name="wide_slots")
        wide.append(tf.reduce_sum(weights(rows), axis=1))
        if inputs.slots:
            deep.append(_embedded(rows, inputs, network.embedding_dimensions, next(seeds)))
    hidden = tf.concat(deep, axis=1) if len(deep) > 1 else deep[0]
    for units in network.hidden_units:
        initializer = tf.keras.initializers.HeNormal(next(seeds))
        hidden = tf.keras.layers.Dense(units, activation="relu", kernel_initializer=initializer)(hidden)
        if network.dropout > 0.0:
            hidden = tf.keras.layers.Dropout(network.dropout, seed=next(seeds))(hidden)
    initializer = tf.keras.initializers.GlorotUniform(next(seeds))
    logits = tf.add_n([tf.keras.layers.Dense(1, kernel_initializer=initializer, name="deep")(hidden), *wide])
    # Whatever the precision of the layers, the loss is computed from float32.
    return tf.keras.Model(tensors, tf.cast(logits, tf.float32), name="wide_and_deep")


def _rows(tensors: dict[str, tf.Tensor], sizes: dict[str, int]) -> tf.Tensor:
    """Returns int64[batch, features]: each feature's slot as a row of the shared tables.

    A slot beyond a feature's range, which only a caller of the `dense` signature can send, is taken for its last one:
    it must not read another feature's row.
    """
    starts = list(itertools.accumulate(sizes.values(), initial=0))[:-1]
    slots = tf.stack([tensors[name] for name in sizes], axis=1)
    last = tf.constant([size - 1 for size in sizes.values()], tf.int64)
    return tf.clip_by_value(slots, tf.constant(0, tf.int64), last) + tf.constant(starts, tf.int64)


def _embedded(rows: tf.Tensor, inputs: ModelInputs, dimensions: int, seed: int) -> tf.Tensor:
    """Returns float32[batch, slots * dimensions]: the embeddings of the features that are not crosses."""
    table = tf.keras.layers.Embedding(
        sum(inputs.slots.values()),
        dimensions,
        embeddings_initializer=tf.keras.initializers.RandomUniform(-0.05, 0.05, seed),
        name="deep_slots",
    )
    # Crosses come last in `rows`, so that the ranges of the other features are the same in both tables.
    return tf.reshape(table(rows[:, : len(inputs.slots)]), [-1, len(inputs.slots) * dimensions])
