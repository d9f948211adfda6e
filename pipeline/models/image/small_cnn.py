"""A small convolutional network for photos, trained from scratch: the choice where there are no pretrained weights."""

from __future__ import annotations

import tensorflow as tf

# Channels of each stage; a stage halves the side.
_CHANNELS = (32, 64, 128, 192, 256)
_MOMENTUM = 0.9


def scaled(pixels: tf.Tensor) -> tf.Tensor:
    """Returns pixels of 0..255 scaled to -1..1, float32[batch, side, side, 3]."""
    return tf.keras.layers.Rescaling(1 / 127.5, offset=-1.0, name="scale")(pixels)


def features(activations: tf.Tensor, seed: int) -> tf.Tensor:
    """Returns float32[batch, 256], the features of each photo.

    Args:
        activations: Scaled pixels, float32[batch, side, side, 3], a side of at least 32.
        seed: Seed of the first convolution's initial weights; each further one has its own.
    """
    for stage, channels in enumerate(_CHANNELS):
        convolution = tf.keras.layers.Conv2D(
            channels,
            3,
            strides=2,
            padding="same",
            use_bias=False,
            kernel_initializer=tf.keras.initializers.HeNormal(seed + stage),
            name=f"stage_{stage}",
        )
        norm = tf.keras.layers.BatchNormalization(momentum=_MOMENTUM, name=f"stage_{stage}_norm")
        activations = tf.keras.layers.ReLU(6.0, name=f"stage_{stage}_relu")(norm(convolution(activations)))
    # Whatever the precision of the layers, what is learned from the features is float32.
    return tf.keras.layers.GlobalAveragePooling2D(name="pool", dtype=tf.float32)(activations)
