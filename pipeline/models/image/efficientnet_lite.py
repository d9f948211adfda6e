"""EfficientNet-Lite0, as functions from tensor to tensor, so that it can be cut between any two blocks.

Lite means: no squeeze-and-excitation and ReLU6 instead of swish, so that the network survives int8. Strided
convolutions are padded by half a kernel on every side: TensorFlow's own "same" pads even sides unevenly, one pixel
away from where the pretrained weights expect their input.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import tensorflow as tf

from pipeline.models.image import weights

# Few photos mean few steps: the statistics have to follow the weights within one epoch of a small data set.
_MOMENTUM = 0.9
_STEM_CHANNELS = 32
_HEAD_CHANNELS = 1280


@dataclasses.dataclass(frozen=True)
class Block:
    """One inverted residual block.

    Attributes:
        number: Counted from 0; part of its layers' names.
        kernel: Side of the depthwise kernel.
        stride: Step of the depthwise convolution.
        expand: How many times wider the block is inside.
        channels_in: Channels of its input.
        channels_out: Channels of its output.
    """

    number: int
    kernel: int
    stride: int
    expand: int
    channels_in: int
    channels_out: int

    @property
    def name(self) -> str:
        """The prefix of its layers' names."""
        return f"block_{self.number}"


def _blocks() -> Iterator[Block]:
    """Yields the blocks from the published table of stages."""
    stages = [
        (3, 1, 1, 32, 16, 1), (3, 2, 6, 16, 24, 2), (5, 2, 6, 24, 40, 2), (3, 2, 6, 40, 80, 3),
        (5, 1, 6, 80, 112, 3), (5, 2, 6, 112, 192, 4), (3, 1, 6, 192, 320, 1),
    ]  # fmt: skip
    number = 0
    for kernel, stride, expand, channels_in, channels_out, repeats in stages:
        for repeat in range(repeats):
            first = repeat == 0
            yield Block(
                number, kernel, stride if first else 1, expand, channels_in if first else channels_out, channels_out
            )
            number += 1


BLOCKS = tuple(_blocks())


def scaled(pixels: tf.Tensor) -> tf.Tensor:
    """Returns pixels of 0..255 as the pretrained weights expect them, float32[batch, side, side, 3]."""
    return tf.keras.layers.Rescaling(1 / 128, offset=-127 / 128, name="scale")(pixels)


class Layers:
    """Makes the layers of the network.

    Args:
        seed: Seed of the first convolution's initial weights; each further one has its own.
        pretrained: The weights come from elsewhere. Batch normalization then uses its stored statistics, always: a
            small batch of other photos would replace good statistics by noise. Its scale and offset are trained.
        folded: There is no batch normalization: it is part of the convolutions' weights. Only for layers that are
            never trained; it saves a third of the time.
    """

    def __init__(self, seed: int, pretrained: bool, folded: bool = False) -> None:
        self._seed = seed
        self._folded = folded
        # None leaves the choice to the caller of the model, as Keras does.
        self._training = False if pretrained else None

    def stem(self, pixels: tf.Tensor) -> tf.Tensor:
        """Returns the activations before the first block, for scaled pixels."""
        return self._unit(self._padded(pixels, "stem", 3), "stem", _STEM_CHANNELS, kernel=3, stride=2)

    def blocks(self, activations: tf.Tensor, blocks: tuple[Block, ...]) -> tf.Tensor:
        """Returns the activations after some consecutive blocks."""
        for block in blocks:
            activations = self._block(activations, block)
        return activations

    def head(self, activations: tf.Tensor) -> tf.Tensor:
        """Returns float32[batch, 1280], the features of each photo, for the activations after the last block."""
        wide = self._unit(activations, "head", _HEAD_CHANNELS)
        # Whatever the precision of the layers, what is learned from the features is float32.
        return tf.keras.layers.GlobalAveragePooling2D(name="pool", dtype=tf.float32)(wide)

    def _block(self, inputs: tf.Tensor, block: Block) -> tf.Tensor:
        name, wide = block.name, inputs
        if block.expand != 1:
            wide = self._unit(wide, f"{name}_expand", block.channels_in * block.expand)
        if block.stride > 1:
            wide = self._padded(wide, name, block.kernel)
        deep = tf.keras.layers.DepthwiseConv2D(
            block.kernel,
            block.stride,
            padding="valid" if block.stride > 1 else "same",
            use_bias=self._folded,
            depthwise_initializer=self._initializer(),
            name=f"{name}_depthwise",
        )(wide)
        deep = self._normalized(deep, f"{name}_depthwise")
        narrow = self._unit(deep, f"{name}_project", block.channels_out, activate=False)
        if block.stride == 1 and block.channels_in == block.channels_out:
            return tf.keras.layers.Add(name=f"{name}_add")([narrow, inputs])
        return narrow

    def _unit(
        self, inputs: tf.Tensor, name: str, channels: int, kernel: int = 1, stride: int = 1, activate: bool = True
    ) -> tf.Tensor:
        """Returns a convolution of already padded inputs, normalized."""
        convolution = tf.keras.layers.Conv2D(
            channels, kernel, stride, use_bias=self._folded, kernel_initializer=self._initializer(), name=name
        )
        return self._normalized(convolution(inputs), name, activate)

    def _normalized(self, inputs: tf.Tensor, name: str, activate: bool = True) -> tf.Tensor:
        if not self._folded:
            norm = tf.keras.layers.BatchNormalization(epsilon=weights.EPSILON, momentum=_MOMENTUM, name=f"{name}_norm")
            inputs = norm(inputs, training=self._training)
        return tf.keras.layers.ReLU(6.0, name=f"{name}_relu")(inputs) if activate else inputs

    @staticmethod
    def _padded(inputs: tf.Tensor, name: str, kernel: int) -> tf.Tensor:
        """Returns inputs with half a kernel of zeros on every side, for a strided convolution."""
        return tf.keras.layers.ZeroPadding2D(kernel // 2, name=f"{name}_pad")(inputs)

    def _initializer(self) -> tf.keras.initializers.Initializer:
        self._seed += 1
        return tf.keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal", self._seed)
