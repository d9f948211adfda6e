"""The phases in which the network is trained, each with the data that it reads.

Pretrained: the layers that stay as they are run once over every view of every photo; the last layer is trained on
what comes of it, then, when asked for, the top of the backbone with it. From scratch: everything, on pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from core.settings.images import AugmentSettings
from pipeline.models.image import decoder
from pipeline.models.image.features import ImageSettings
from pipeline.models.image.network import Network
from pipeline.training import activations, augment, balance, classification, photos, scratch
from pipeline.training.frozen import Forward, Frozen
from pipeline.training.loop import Measure
from pipeline.training.phase import Phase
from pipeline.training.photos import POSITIONS, VALUES, PhotoSplit
from pipeline.training.steps import StepPlan, plan_steps

Features = Mapping[str, tf.Tensor]
# (features of a batch, training) -> what the first of the trained models reads.
Enter = Callable[[Features, bool], tf.Tensor]
Values = npt.NDArray[Any]


class Part:
    """The part of a network that a phase trains, as one callable.

    Args:
        models: Called one after the other.
        enter: Makes the first one's input of a batch.
    """

    def __init__(self, models: Sequence[tf.keras.Model], enter: Enter) -> None:
        self._models = tuple(models)
        self._enter = enter

    @property
    def trainable_variables(self) -> list[tf.Variable]:
        """The variables that a step changes."""
        return [variable for model in self._models for variable in model.trainable_variables]

    @property
    def losses(self) -> list[tf.Tensor]:
        """Terms that are added to the mean loss of the photos, each of shape []."""
        return [loss for model in self._models for loss in model.losses]

    def __call__(self, features: Features, training: bool) -> tf.Tensor:
        """Returns logits, float32[batch, classes]."""
        values = self._enter(features, training)
        for model in self._models:
            values = model(values, training=training)
        return values


def phases(
    network: Network,
    settings: ImageSettings,
    classes: int,
    train: PhotoSplit,
    held_out: PhotoSplit,
    *,
    sample: int | None = None,
) -> Iterator[Phase]:
    """Yields the phases in order; what a phase reads is computed when it is asked for.

    Args:
        network: Built under the strategy's scope.
        settings: How it is trained.
        classes: Number of classes.
        train: The photos to train on.
        held_out: The photos to measure on.
        sample: How many train photos are looked at; their values, repeated, stand for the whole split's, so that
            steps cost what they cost in the training. None: all.

    Raises:
        EnvironmentProblem: There is no room for what the phases keep.
        ConfigError: The settings ask for zero steps.
    """
    maker = _Maker(settings, classes, train, held_out, sample)
    if settings.classifier.weights == "none":
        yield maker.on_pixels(network)
    else:
        yield from maker.on_activations(network)


class _Maker:
    """Makes phases from what they have in common."""

    def __init__(
        self, settings: ImageSettings, classes: int, train: PhotoSplit, held_out: PhotoSplit, sample: int | None
    ) -> None:
        self._classifier, self._training = settings.classifier, settings.training
        self._train, self._held_out = train, held_out
        self._seen = train if sample is None else train.first(sample)
        self._loss = loss(settings, classes, train.labels)

    def on_pixels(self, network: Network) -> Phase:
        """Returns the only phase of a network without pretrained weights."""
        train, held_out = (
            photos.pixels(split, decoder.decode_square, self._classifier.image_px)
            for split in (self._seen, self._held_out)
        )
        part = Part([network.trunk, network.top, network.head], _changed(self._classifier.augment, self._training.seed))
        return self._fine_tuning("pixels", part, train, held_out)

    def on_activations(self, network: Network) -> Iterator[Phase]:
        """Yields the phases of a pretrained network."""
        settings = self._classifier
        if not settings.fine_tune_epochs:
            # The top stays as it is too, so that only what comes out of it is kept.
            yield self._learning(network, *self._frozen(lambda pixels: network.top(network.trunk(pixels))))
            return
        train, held_out = self._frozen(network.trunk)
        if settings.feature_epochs:
            top = Frozen(network.top, train.shape[2:])
            features = (activations.of_activations(top, values) for values in (train, held_out))
            yield self._learning(network, *features)
        yield self._fine_tuning("fine_tune", Part([network.top, network.head], _widened), train, held_out)

    def _frozen(self, forward: Forward) -> tuple[Values, Values]:
        """Returns what frozen layers make of every view of the train photos, and of the held-out photos."""
        changes = self._classifier.augment
        views = augment.distinct_views(self._classifier.views, changes)
        side_px = self._classifier.image_px
        network = Frozen(forward, [side_px, side_px, 3])
        train, held_out = (
            activations.of_photos(
                network, split, decoder.decode_square, side_px,
                views=count, changes=changes, seed=self._training.seed,
            )
            for split, count in ((self._seen, views), (self._held_out, 1))
        )  # fmt: skip
        return train, held_out

    def _learning(self, network: Network, train: Values, held_out: Values) -> Phase:
        settings = self._classifier
        part = Part([network.head], _widened)
        return self._phase(
            "features", part, train, held_out, settings.feature_epochs, settings.feature_learning_rate,
            "classifier.feature_learning_rate",
        )  # fmt: skip

    def _fine_tuning(self, name: str, part: Part, train: Values, held_out: Values) -> Phase:
        settings = self._classifier
        return self._phase(
            name, part, train, held_out, settings.fine_tune_epochs, settings.fine_tune_learning_rate,
            "classifier.fine_tune_learning_rate",
        )  # fmt: skip

    def _phase(
        self, name: str, part: Part, train: Values, held_out: Values, epochs: int, learning_rate: float, setting: str
    ) -> Phase:
        plan = self._plan(epochs)
        values = scratch.repeated(train, self._train.count)
        return Phase(
            name=name,
            trainee=part,
            batches=photos.training_batches(values, self._train.labels, plan.batch_size, self._training.seed),
            held_out=photos.evaluation_batches(held_out, self._held_out.labels, plan.batch_size),
            plan=plan,
            loss=self._loss,
            learning_rate=learning_rate,
            weight_decay=self._classifier.weight_decay,
            setting=setting,
        )

    def _plan(self, epochs: int) -> StepPlan:
        """Returns a phase's steps: its passes over the photos, of which `training.steps` is the upper limit."""
        training = self._training
        whole = math.ceil(self._train.count * epochs / training.batch_size)
        return plan_steps(
            train_examples=self._train.count,
            eval_examples=self._held_out.count,
            batch_size=training.batch_size,
            epochs=epochs,
            train_steps=None if training.steps is None else min(training.steps, whole),
            eval_steps=training.eval_steps,
        )


def loss(settings: ImageSettings, classes: int, labels: npt.NDArray[np.int64]) -> Measure:
    """Returns the loss that training minimizes: smoothed and weighted as the settings say.

    Args:
        settings: `classifier.label_smoothing` and `classifier.class_weights` count.
        classes: Number of classes.
        labels: int64[photos] of the train split.
    """
    balanced = settings.classifier.class_weights == "balanced"
    weights = balance.balanced_weights(labels, classes) if balanced else None
    return classification.cross_entropy(classes, settings.classifier.label_smoothing, weights)


def _widened(features: Features, training: bool) -> tf.Tensor:
    """Returns the kept values, float16[batch, ...], as float32."""
    return tf.cast(features[VALUES], tf.float32)


def _changed(changes: AugmentSettings, seed: int) -> Enter:
    """Returns a function from a batch of pixels, uint8[batch, side, side, 3], to float32, changed while training."""

    def enter(features: Features, training: bool) -> tf.Tensor:
        pixels = _widened(features, training)
        if not training:
            return pixels
        return augment.change(pixels, changes, tf.stack([tf.constant(seed, tf.int64), features[POSITIONS][0]]))

    return enter
