"""`run_fn` of the tabular recipe: what TFX's Trainer calls."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.models.tabular import features as names
from pipeline.models.tabular import network, signatures
from pipeline.training import export, legacy_keras, loop, measuring, records, summary
from pipeline.training.profile import Profile
from pipeline.training.steps import StepPlan, plan_steps
from pipeline.training.tensorboard import EventLog

_log = logging.getLogger("forebay.training")
# Rows that the exported model has to answer as the trained one does.
_VERIFIED_ROWS = 8


def run_fn(fn_args: Any) -> None:
    """Trains the network on Transform's output and exports it with its four signatures.

    Args:
        fn_args: TFX's FnArgs: train_files, eval_files, transform_output, serving_model_dir, model_run_dir and
            custom_config (`settings`, see `features.read_settings`).

    Raises:
        ConfigError: The settings ask for something impossible, such as zero steps.
        DataError: A split is empty, or has rows without a label.
        RefusedError: The loss is not finite, or the exported model does not answer as the trained one does.
    """
    legacy_keras.install()
    settings = names.read_settings(fn_args.custom_config)
    transform = tft.TFTransformOutput(fn_args.transform_output)
    inputs = _inputs(settings, transform)
    train = _split(settings, transform, inputs, fn_args.train_files, "train")
    held_out = _split(settings, transform, inputs, fn_args.eval_files, "eval")
    plan = _plan(settings, train.count, held_out.count)
    model, facts = train_network(settings, inputs, train, held_out, plan, fn_args.model_run_dir)
    _export(signatures.ServingModule(model, transform, inputs, settings.features, settings.label), held_out, fn_args)
    summary.write(fn_args.model_run_dir, facts)


def train_network(
    settings: names.TabularSettings,
    inputs: names.ModelInputs,
    train: records.Split,
    held_out: records.Split,
    plan: StepPlan,
    run_directory: str,
) -> tuple[tf.keras.Model, summary.Summary]:
    """Returns the trained network and what its training measured."""
    training = settings.training
    strategy = loop.strategy_for(training.strategy)
    model, optimizer = _built(settings, inputs, strategy)
    _log.info(
        "%d train and %d eval examples, %d parameters, %d steps of %d examples",
        train.count, held_out.count, model.count_params(), plan.train_steps, plan.batch_size,
    )  # fmt: skip
    events = EventLog(run_directory if training.tensorboard else None)
    batches = records.training_batches(train, plan.batch_size, training.seed)
    epochs = []
    for epoch in loop.train(model, optimizer, batches, plan, _loss, strategy):
        events.epoch(epoch)
        epochs.append(epoch)
    held_out_batches = records.evaluation_batches(held_out, plan.batch_size)
    measures = loop.evaluate(model, held_out_batches, plan.eval_steps, {"loss": _loss, "accuracy": _accuracy})
    events.evaluation(plan.train_steps, measures)
    _log.info("eval: loss %.4f, accuracy %.4f", measures["loss"], measures["accuracy"])
    return model, summary.Summary(
        steps=plan.train_steps,
        loss=epochs[-1].loss,
        seconds=sum(epoch.seconds for epoch in epochs),
        examples={"train": train.count, "eval": held_out.count},
        parameters=model.count_params(),
        eval=measures,
    )


def profile_training(custom_config: Mapping[str, Any], files: Sequence[str], transform_dir: str, steps: int) -> Profile:
    """Returns what a step costs, and what the input pipeline adds to it.

    Args:
        custom_config: As the Trainer gets it.
        files: Files or globs of transformed train examples.
        transform_dir: Output of the Transform node.
        steps: Steps to measure.

    Raises:
        ConfigError: The settings ask for something impossible.
        DataError: There is no example, or there are rows without a label.
    """
    legacy_keras.install()
    settings = names.read_settings(custom_config)
    transform = tft.TFTransformOutput(transform_dir)
    inputs = _inputs(settings, transform)
    train = _split(settings, transform, inputs, files, "train")
    plan = _plan(settings, train.count, train.count)
    strategy = loop.strategy_for(settings.training.strategy)
    model, optimizer = _built(settings, inputs, strategy)
    block = loop.compiled_block(model, optimizer, _loss, strategy, plan.batch_size)
    batches = records.training_batches(train, plan.batch_size, settings.training.seed)
    return Profile((measuring.profile_phase("train", block, batches, plan, strategy, steps),))


def _inputs(settings: names.TabularSettings, transform: tft.TFTransformOutput) -> names.ModelInputs:
    """Returns what the network reads; counts Transform's vocabularies."""
    return names.model_inputs(settings.features, vocabulary_sizes(transform, settings))


def _split(
    settings: names.TabularSettings,
    transform: tft.TFTransformOutput,
    inputs: names.ModelInputs,
    files: Sequence[str],
    name: str,
) -> records.Split:
    """Returns the inputs and labels of a split."""
    spec = {column: transform.transformed_feature_spec()[column] for column in [*inputs.names(), settings.label.name]}
    return records.read_split(files, spec, settings.label.name, name)


def _plan(settings: names.TabularSettings, train_examples: int, eval_examples: int) -> StepPlan:
    """Returns the steps that the settings ask for."""
    return plan_steps(
        train_examples=train_examples,
        eval_examples=eval_examples,
        batch_size=settings.training.batch_size,
        epochs=settings.training.epochs,
        train_steps=settings.training.steps,
        eval_steps=settings.training.eval_steps,
    )


def _built(
    settings: names.TabularSettings, inputs: names.ModelInputs, strategy: tf.distribute.Strategy
) -> tuple[tf.keras.Model, tf.keras.optimizers.Optimizer]:
    """Returns the untrained network and its optimizer."""
    with strategy.scope():
        model = network.build(inputs, settings.network, settings.training.seed)
        optimizer = tf.keras.optimizers.Adam(settings.training.learning_rate)
        # Its variables have to exist before the first trace, or TensorFlow traces everything twice.
        optimizer.build(model.trainable_variables)
    return model, optimizer


def vocabulary_sizes(transform: tft.TFTransformOutput, settings: names.TabularSettings) -> dict[str, int]:
    """Returns the number of values that Transform learned for each column with a vocabulary."""
    return {
        column: transform.vocabulary_size_by_name(names.vocabulary_name(column))
        for column, kind in settings.features.categorical.items()
        if kind.top_k is not None
    }


def _loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Returns the cross entropy of each example, float32[batch]."""
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=tf.reshape(logits, [-1]))


def _accuracy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Returns 1 for each example whose more likely class is its label, float32[batch]."""
    return tf.cast(tf.equal(tf.cast(tf.reshape(logits, [-1]) >= 0.0, labels.dtype), labels), tf.float32)


def _export(module: signatures.ServingModule, held_out: records.Split, fn_args: Any) -> None:
    """Saves the model and makes sure that the saved one answers a few held-out rows as the trained one does."""
    started = time.monotonic()
    functions = module.signatures()
    export.save(module, fn_args.serving_model_dir, functions)
    rows = _first_rows(held_out)
    # Not the label: a probability of one half may fall on either side by rounding.
    expected = {signatures.PROBABILITY: module.dense(rows)[signatures.PROBABILITY].numpy()}
    export.verify(
        fn_args.serving_model_dir, "dense", {names.input_name(name): rows[name].numpy() for name in rows}, expected
    )
    _log.info("exported and verified in %.1f s: %s", time.monotonic() - started, fn_args.serving_model_dir)


def _first_rows(split: records.Split) -> Mapping[str, tf.Tensor]:
    """Returns the features of the first few examples of a split, {name: [rows]}."""
    return next(iter(records.evaluation_batches(split, _VERIFIED_ROWS)))[0]
