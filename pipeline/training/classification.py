"""What a classifier of many classes is measured by, example by example."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from pipeline.training.loop import Measure


def cross_entropy(
    classes: int, label_smoothing: float = 0.0, class_weights: npt.NDArray[np.float32] | None = None
) -> Measure:
    """Returns a measure (labels int64[batch], logits float32[batch, classes]) -> cross entropy, float32[batch].

    Args:
        classes: Number of classes.
        label_smoothing: Share of a label's weight that is spread over the other classes.
        class_weights: float32[classes] by which the loss of a label's examples is multiplied; None: 1 for each.
    """
    others = label_smoothing / (classes - 1) if classes > 1 else 0.0
    own = 1.0 - label_smoothing if classes > 1 else 1.0

    def measure(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        target = tf.one_hot(labels, classes, on_value=own, off_value=others)
        loss = tf.nn.softmax_cross_entropy_with_logits(labels=target, logits=logits)
        return loss if class_weights is None else loss * tf.gather(tf.constant(class_weights), labels)

    return measure


def accuracy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Returns 1 for each example whose most likely class is its label, float32[batch]."""
    return tf.cast(tf.equal(tf.argmax(logits, axis=1), labels), tf.float32)
