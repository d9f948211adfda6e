"""The metrics in TFMA's file format, so that `tfma.load_eval_result` and its views read ours like TFMA's own."""

from __future__ import annotations

import os
from typing import Any

from components.evaluator.measures import Measures, SliceMeasures
from components.evaluator.metrics import ALL_METRICS, BINARY, CLASSIFICATION
from components.evaluator.served_model import SERVING, TRANSFORM
from core.files import write_atomic

CANDIDATE, BASELINE = "candidate", "baseline"
# TFMA's own metrics among ours, by task; its reader takes the others as they are.
_CLASSES = {
    BINARY: ("AUC", "BinaryAccuracy", "Precision", "Recall", "BinaryCrossentropy", "Calibration", "ExampleCount"),
    CLASSIFICATION: ("SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "ExampleCount"),
}


def write(directory: str, measures: Measures, blessed: bool, label: str, models: dict[str, str]) -> None:
    """Writes eval_config.json, metrics and validations.

    Args:
        directory: The evaluation artifact.
        measures: What was measured; slices without examples are left out, as TFMA does.
        blessed: Becomes `validation_ok`; the reasons stand in verdict.json.
        label: Name of the label: the transformed one, for many classes the raw one.
        models: {CANDIDATE: path} and, when it was measured, {BASELINE: path}.
    """
    import tensorflow as tf
    from tensorflow_model_analysis.proto import validation_result_pb2

    found = [item for item in measures.slices if item.examples]
    with tf.io.TFRecordWriter(os.path.join(directory, "metrics-00000-of-00001.tfrecord")) as writer:
        for item in found:
            writer.write(_metrics_record(item, sorted(models)).SerializeToString())
    with tf.io.TFRecordWriter(os.path.join(directory, "validations.tfrecord")) as writer:
        writer.write(validation_result_pb2.ValidationResult(validation_ok=blessed).SerializeToString())
    write_atomic(os.path.join(directory, "eval_config.json"), _eval_run(measures, label, models))


def _metrics_record(item: SliceMeasures, models: list[str]) -> Any:
    """Returns one slice as TFMA's MetricsForSlice; a single model has no name there."""
    from tensorflow_model_analysis.metrics.metric_types import MetricKey
    from tensorflow_model_analysis.writers import metrics_plots_and_validations_writer as writer

    values = {CANDIDATE: item.candidate, BASELINE: item.baseline or {}}
    names = {model: model if len(models) > 1 else "" for model in models}
    metrics = {
        MetricKey(ALL_METRICS[metric].tfma_name, model_name=names[model]): value
        for model in models
        for metric, value in values[model].items()
    }
    counts = {MetricKey("example_count", model_name=names[model]): float(item.examples) for model in models}
    key = () if item.column is None else ((item.column, item.value),)
    return writer.convert_slice_metrics_to_proto((key, {**metrics, **counts}), None)


def _eval_run(measures: Measures, label: str, models: dict[str, str]) -> str:
    import tensorflow_model_analysis as tfma
    from google.protobuf import json_format
    from tensorflow_model_analysis.proto import config_pb2

    alone = len(models) == 1
    task = BINARY if measures.classes is None else CLASSIFICATION
    names = {model: "" if alone else model for model in models}
    metrics = [config_pb2.MetricConfig(class_name=name) for name in _CLASSES[task]]
    columns = dict.fromkeys(item.column for item in measures.slices if item.column is not None)
    config = config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(
                name=names[model],
                is_baseline=model == BASELINE,
                signature_name=SERVING,
                preprocessing_function_names=[TRANSFORM] if task == BINARY else [],
                label_key=label,
            )
            for model in models
        ],
        slicing_specs=[config_pb2.SlicingSpec()] + [config_pb2.SlicingSpec(feature_keys=[name]) for name in columns],
        metrics_specs=[config_pb2.MetricsSpec(metrics=metrics)],
    )
    run = config_pb2.EvalRun(
        eval_config=config,
        version=tfma.version.VERSION,
        file_format="tfrecords",
        model_locations={names[model]: path for model, path in models.items()},
    )
    return str(json_format.MessageToJson(run))
