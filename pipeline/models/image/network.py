"""The network in three parts, cut where training cuts it: what never changes, what fine-tuning changes, the last layer.

What the trunk makes of a photo can be computed once and kept, because nothing in the trunk is ever trained.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from core.errors import ConfigError
from core.settings.images import ClassifierSettings
from pipeline.models.image import efficientnet_lite, small_cnn, weights

# Name of the last layer, whose outputs are the logits.
LOGITS = "logits"


@dataclasses.dataclass(frozen=True)
class Network:
    """A classifier of photos.

    Attributes:
        trunk: Pixels, float32[batch, side, side, 3] in 0..255, to activations; has no trainable variable.
        top: Activations to features, float32[batch, features]; trained while fine-tuning.
        head: Features to logits, float32[batch, classes]; always trained.
    """

    trunk: tf.keras.Model
    top: tf.keras.Model
    head: tf.keras.Model

    @property
    def variables(self) -> list[tf.Variable]:
        """Every variable of the three parts."""
        return [*self.trunk.variables, *self.top.variables, *self.head.variables]

    def logits(self, pixels: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns float32[batch, classes] for float32[batch, side, side, 3] pixels in 0..255.

        Args:
            pixels: Photos.
            training: Whether dropout, and batch normalization that is trained, behave as while training. The trunk
                never does.
        """
        activations = self.trunk(pixels, training=False)
        return self.head(self.top(activations, training=training), training=training)


def build(classifier: ClassifierSettings, classes: int, seed: int) -> Network:
    """Returns an untrained network; with weights `imagenet` all but its head is pretrained.

    Args:
        classifier: Which backbone, its weights, the input's side, and how many of its last blocks fine-tuning trains.
        classes: How many classes it tells apart.
        seed: Seed of every initial weight and of dropout: equal seeds give equal networks.

    Raises:
        ConfigError: The backbone has fewer blocks than fine-tuning is to train.
        EnvironmentProblem: The pretrained weights are not installed, or do not fit.
    """
    pixels = tf.keras.Input((classifier.image_px, classifier.image_px, 3), dtype=tf.float32, name="pixels")
    if classifier.backbone == "small_cnn":
        trunk, top = _small_cnn(pixels, seed)
    else:
        trunk, top = _efficientnet_lite(pixels, classifier, seed)
    trunk.trainable = False
    if classifier.weights == "imagenet":
        layers = {layer.name: layer for layer in [*trunk.layers, *top.layers]}
        weights.assign(layers, weights.imagenet())
    return Network(trunk, top, _head(top.output_shape[-1], classes, classifier.dropout, seed))


def _efficientnet_lite(
    pixels: tf.Tensor, classifier: ClassifierSettings, seed: int
) -> tuple[tf.keras.Model, tf.keras.Model]:
    """Returns the trunk and the top of EfficientNet-Lite0."""
    blocks = efficientnet_lite.BLOCKS
    if classifier.fine_tune_blocks > len(blocks):
        raise ConfigError(
            f"{classifier.backbone} has {len(blocks)} blocks, not {classifier.fine_tune_blocks}",
            place="classifier.fine_tune_blocks",
            hint=f"give a number from 0 to {len(blocks)}",
        )
    scaled = efficientnet_lite.scaled(pixels)
    if classifier.weights == "none":
        # Nothing is learned yet, so nothing can stay as it is.
        new = efficientnet_lite.Layers(seed, pretrained=False)
        return _cut(pixels, scaled, lambda inputs: new.head(new.blocks(new.stem(inputs), blocks)))
    cut = len(blocks) - classifier.fine_tune_blocks
    kept = efficientnet_lite.Layers(seed, pretrained=True, folded=True)
    tuned = efficientnet_lite.Layers(seed, pretrained=True)
    activations = kept.blocks(kept.stem(scaled), blocks[:cut])
    return _cut(pixels, activations, lambda inputs: tuned.head(tuned.blocks(inputs, blocks[cut:])))


def _small_cnn(pixels: tf.Tensor, seed: int) -> tuple[tf.keras.Model, tf.keras.Model]:
    """Returns the trunk and the top of the small network, which is all trained."""
    return _cut(pixels, small_cnn.scaled(pixels), lambda inputs: small_cnn.features(inputs, seed))


def _cut(
    pixels: tf.Tensor, activations: tf.Tensor, top: Callable[[tf.Tensor], tf.Tensor]
) -> tuple[tf.keras.Model, tf.keras.Model]:
    """Returns the model from pixels to activations, and the one that goes on from activations."""
    inputs = tf.keras.Input(activations.shape[1:], dtype=activations.dtype, name="activations")
    return tf.keras.Model(pixels, activations, name="trunk"), tf.keras.Model(inputs, top(inputs), name="top")


def _head(features: int, classes: int, dropout: float, seed: int) -> tf.keras.Model:
    """Returns dropout and the linear layer behind it."""
    inputs = tf.keras.Input((features,), dtype=tf.float32, name="features")
    kept = tf.keras.layers.Dropout(dropout, seed=seed)(inputs) if dropout > 0.0 else inputs
    linear = tf.keras.layers.Dense(
        classes, kernel_initializer=tf.keras.initializers.GlorotUniform(seed), dtype=tf.float32, name=LOGITS
    )
    return tf.keras.Model(inputs, linear(kept), name="head")
