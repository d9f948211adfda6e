"""What the Evaluator writes for many classes: for people, for programs, for TFMA."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.integration

Classify = Callable[..., tuple[dict[str, Any], Path]]


def _values(result: Any) -> dict[Any, dict[str, float]]:
    """Returns {slice key: {metric: value}} of a TFMA result."""
    return {
        key: {name: float(value["doubleValue"]) for name, value in outputs[""][""].items()}
        for key, outputs in result.slicing_metrics
    }


def test_the_artifacts_hold_every_example_once(
    classify: Classify, examples: str, classifier: str, labels: tuple[str, ...]
) -> None:
    """The matrix counts 200 examples in both formats, and the mistakes are the surest wrong answers, surest first."""
    verdict, directory = classify(examples, classifier, accuracy={"min": 0.1})
    with (directory / "confusion_matrix.csv").open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert tuple(header[1:]) == labels
    assert tuple(row[0] for row in rows) == labels
    counts = [[int(cell) for cell in row[1:]] for row in rows]
    document = json.loads((directory / "confusion_matrix.json").read_text(encoding="utf-8"))
    assert (document["format_version"], document["labels"], document["counts"]) == (1, list(labels), counts)
    assert document["unknown_counts"] == [0] * 5
    assert np.sum(document["parents"]["counts"]) == np.sum(counts) == 200
    lines = (directory / "mistakes.jsonl").read_text(encoding="utf-8").splitlines()
    mistakes = [json.loads(line) for line in lines]
    assert len(mistakes) == min(100, 200 - round(200 * verdict["metrics"]["accuracy"]))
    sureness = [mistake["probability"] for mistake in mistakes]
    assert sureness == sorted(sureness, reverse=True)
    assert all(mistake["path"].startswith(mistake["truth"]) for mistake in mistakes)
    assert all(mistake["predicted"] != mistake["truth"] for mistake in mistakes)


def test_tfma_reads_every_metric(
    classify: Classify,
    examples: str,
    classifier: str,
    tmp_path: Path,
    labels: tuple[str, ...],
    save_classifier: Callable[..., str],
) -> None:
    """TFMA's reader finds our values of both models, by slice."""
    import tensorflow_model_analysis as tfma

    other = save_classifier(tmp_path / "other", labels[::-1], answer=lambda probabilities: probabilities * 0.5 + 0.1)
    verdict, directory = classify(examples, classifier, baseline=other, slices=("parent",), accuracy={"min": 0.1})
    values = _values(tfma.load_eval_result(str(directory), model_name="candidate"))
    assert set(values) == {(), (("parent", "tops"),), (("parent", "shoes"),), (("parent", "bags"),)}
    assert values[()]["sparse_categorical_accuracy"] == verdict["metrics"]["accuracy"]
    assert values[()]["parent_accuracy"] == verdict["metrics"]["parent_accuracy"]
    assert values[(("parent", "tops"),)]["example_count"] == 80
    assert tfma.load_eval_result(str(directory), model_name="baseline").slicing_metrics
    assert tfma.load_validation_result(str(directory)).validation_ok is True


def test_values_are_those_of_tfma(classify: Classify, examples: str, classifier: str, tmp_path: Path) -> None:
    """Accuracy and cross-entropy of every slice equal what TFMA itself computes on the same model and examples."""
    import tensorflow_model_analysis as tfma

    names = ("SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "ExampleCount")
    config = tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(signature_name="serving_default", prediction_key="probabilities", label_key="index")
        ],
        metrics_specs=[tfma.MetricsSpec(metrics=[tfma.MetricConfig(class_name=name) for name in names])],
        slicing_specs=[tfma.SlicingSpec(), tfma.SlicingSpec(feature_keys=["parent"])],
    )
    config.options.include_default_metrics.value = False
    tfma.run_model_analysis(
        eval_shared_model=tfma.default_eval_shared_model(f"{classifier}/Format-Serving", eval_config=config),
        eval_config=config,
        data_location=f"{examples}/Split-eval/*",
        output_path=str(tmp_path / "tfma"),
    )
    _, directory = classify(examples, classifier, slices=("parent",), accuracy={"min": 0.1})
    ours, theirs = (
        _values(tfma.load_eval_result(str(directory))),
        _values(tfma.load_eval_result(str(tmp_path / "tfma"))),
    )
    assert set(ours) == set(theirs)
    for key, expected in theirs.items():
        assert {name: ours[key][name] for name in expected} == pytest.approx(expected, abs=1e-5)
        assert len(expected) == len(names)
