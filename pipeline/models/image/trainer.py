"""`run_fn` of the image recipe: what TFX's Trainer calls."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from core.label_map import LabelMap
from pipeline.models.image import decoder, network, preprocessing, signatures
from pipeline.models.image import features as names
from pipeline.models.image.phases import phases
from pipeline.training import classification, export, legacy_keras, loop, measuring, phase, photos, summary
from pipeline.training.profile import Profile

_log = logging.getLogger("forebay.training")
# Photos that the exported model has to answer as the trained one does.
_VERIFIED_PHOTOS = 8
# Largest difference of a probability: TensorFlow Serving's graph is optimized, so that sums are added up otherwise.
_TOLERANCE = 1e-3
# Photos that a profile decodes: their values, repeated, stand for those of all photos.
_PROFILED_PHOTOS = 256


def run_fn(fn_args: Any) -> None:
    """Trains the network on Transform's output and exports it with its four signatures and its label map.

    Args:
        fn_args: TFX's FnArgs: train_files, eval_files, transform_output, serving_model_dir, model_run_dir and
            custom_config (`settings`, see `features.read_settings`).

    Raises:
        ConfigError: The settings ask for something impossible, such as zero steps.
        DataError: A split is empty, or has photos of unknown classes.
        EnvironmentProblem: The pretrained weights are not installed, or there is no room for what training keeps.
        RefusedError: The loss is not finite, or the exported model does not answer as the trained one does.
    """
    legacy_keras.install()
    settings = names.read_settings(fn_args.custom_config)
    transform = tft.TFTransformOutput(fn_args.transform_output)
    labels = preprocessing.label_map(transform)
    train = photos.read_split(fn_args.train_files, names.IMAGE, names.LABEL_INDEX, "train")
    held_out = photos.read_split(fn_args.eval_files, names.IMAGE, names.LABEL_INDEX, "eval")
    trained, facts = train_network(settings, labels, train, held_out, fn_args.model_run_dir)
    _export(trained, transform, labels, settings, held_out, fn_args.serving_model_dir)
    summary.write(fn_args.model_run_dir, facts)


def train_network(
    settings: names.ImageSettings,
    labels: LabelMap,
    train: photos.PhotoSplit,
    held_out: photos.PhotoSplit,
    run_directory: str,
) -> tuple[network.Network, summary.Summary]:
    """Returns the trained network and what its training measured."""
    training, classes = settings.training, len(labels.labels)
    strategy = loop.strategy_for(training.strategy)
    with strategy.scope():
        model = network.build(settings.classifier, classes, training.seed)
    parameters = sum(int(np.prod(variable.shape)) for variable in model.variables)
    _log.info(
        "%d train and %d eval photos of %d classes, %d parameters", train.count, held_out.count, classes, parameters
    )
    measures = {"loss": classification.cross_entropy(classes), "accuracy": classification.accuracy}
    events = run_directory if training.tensorboard else None
    done: list[summary.PhaseSummary] = []
    found: dict[str, float] = {}
    for each in phases(model, settings, classes, train, held_out):
        record, found = phase.run(each, measures, strategy, events)
        done.append(record)
    return model, summary.Summary(
        steps=sum(record.steps for record in done),
        loss=done[-1].loss,
        seconds=sum(record.seconds for record in done),
        examples={"train": train.count, "eval": held_out.count},
        parameters=parameters,
        eval=found,
        phases=done,
    )


def profile_training(custom_config: Mapping[str, Any], files: Sequence[str], transform_dir: str, steps: int) -> Profile:
    """Returns what a step of each phase costs, and what the input pipeline adds to it.

    Args:
        custom_config: As the Trainer gets it.
        files: Files or globs of transformed train examples; the first photos stand for all of them.
        transform_dir: Output of the Transform node.
        steps: Steps to measure in each phase.

    Raises:
        ConfigError: The settings ask for something impossible.
        DataError: There is no photo, or there are photos of unknown classes.
        EnvironmentProblem: The pretrained weights are not installed, or there is no room for what training keeps.
    """
    legacy_keras.install()
    settings = names.read_settings(custom_config)
    labels = preprocessing.label_map(tft.TFTransformOutput(transform_dir))
    train = photos.read_split(files, names.IMAGE, names.LABEL_INDEX, "train")
    strategy = loop.strategy_for(settings.training.strategy)
    with strategy.scope():
        model = network.build(settings.classifier, len(labels.labels), settings.training.seed)
    measured = []
    for each in phases(model, settings, len(labels.labels), train, train.first(1), sample=_PROFILED_PHOTOS):
        with strategy.scope():
            optimizer = phase.optimizer(each)
        block = loop.compiled_block(each.trainee, optimizer, each.loss, strategy, each.plan.batch_size)
        measured.append(measuring.profile_phase(each.name, block, each.batches, each.plan, strategy, steps))
    return Profile(tuple(measured))


def _export(
    model: network.Network,
    transform: tft.TFTransformOutput,
    labels: LabelMap,
    settings: names.ImageSettings,
    held_out: photos.PhotoSplit,
    directory: str,
) -> None:
    """Saves the model and makes sure that the saved one answers a few held-out photos as the trained one does."""
    started = time.monotonic()
    side_px, top_k = settings.classifier.image_px, settings.classifier.top_k
    module = signatures.ServingModule(model.logits, model.variables, transform, labels, side_px, top_k)
    export.save(module, directory, module.signatures())
    labels.write(directory)
    encoded = next(iter(photos.encoded(held_out).batch(_VERIFIED_PHOTOS)))
    pixels = tf.cast(decoder.decode_batch(encoded, side_px), tf.float32)
    expected = {"probabilities": tf.nn.softmax(model.logits(pixels)).numpy()}
    export.verify(directory, "serving_raw", {"image": encoded.numpy()}, expected, _TOLERANCE)
    _log.info("exported and verified in %.1f s: %s", time.monotonic() - started, directory)
