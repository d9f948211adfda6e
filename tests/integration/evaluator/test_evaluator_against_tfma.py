"""Our values against TFMA's own, on the same models and examples."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

METRICS = ("AUC", "BinaryAccuracy", "Precision", "Recall", "BinaryCrossentropy", "Calibration", "ExampleCount")


def _tfma(examples: str, model: str, output: Path) -> Any:
    """Runs TFMA itself and returns its result."""
    import tensorflow_model_analysis as tfma

    spec = tfma.ModelSpec(
        signature_name="serving_default",
        prediction_key="probability",
        preprocessing_function_names=["transform_features"],
        label_key="clicked_xf",
    )
    config = tfma.EvalConfig(
        model_specs=[spec],
        metrics_specs=[tfma.MetricsSpec(metrics=[tfma.MetricConfig(class_name=name) for name in METRICS])],
        slicing_specs=[tfma.SlicingSpec(), *(tfma.SlicingSpec(feature_keys=[name]) for name in ("hour", "kind"))],
    )
    config.options.include_default_metrics.value = False
    tfma.run_model_analysis(
        eval_shared_model=tfma.default_eval_shared_model(str(Path(model) / "Format-Serving"), eval_config=config),
        eval_config=config,
        data_location=f"{examples}/Split-eval/*",
        output_path=str(output),
    )
    return tfma.load_eval_result(str(output))


def _values(result: Any) -> dict[Any, dict[str, float]]:
    """Returns {slice key: {metric: value}} of a TFMA result."""
    return {
        key: {name: float(value["doubleValue"]) for name, value in outputs[""][""].items()}
        for key, outputs in result.slicing_metrics
    }


def test_values_and_files_are_those_of_tfma(
    evaluate: Callable[..., Any], examples_uri: str, poor_model: str, tmp_path: Path
) -> None:
    """Every metric of every slice equals TFMA's, read back from our files by TFMA's own reader."""
    import tensorflow_model_analysis as tfma

    verdict, _, directory = evaluate(poor_model, slices=("hour", "kind"), auc={"min": 0.5})
    ours, theirs = (
        _values(tfma.load_eval_result(str(directory))),
        _values(_tfma(examples_uri, poor_model, tmp_path / "tfma")),
    )
    assert set(ours) == set(theirs)
    assert len(ours) == 1 + 4 + 2
    for key, expected in theirs.items():
        for name, value in expected.items():
            same = (
                math.isnan(ours[key][name]) if math.isnan(value) else ours[key][name] == pytest.approx(value, abs=1e-5)
            )
            assert same, (key, name, ours[key][name], value)
    assert ours[()]["auc"] == verdict["metrics"]["auc"]
    assert tfma.load_validation_result(str(directory)).validation_ok is True


def test_tfma_reads_both_models_of_a_comparison(evaluate: Callable[..., Any], good_model: str, poor_model: str) -> None:
    """With a baseline, TFMA's reader finds each model under its name."""
    import tensorflow_model_analysis as tfma

    verdict, _, directory = evaluate(good_model, baseline=poor_model, auc={"min": 0.5, "max_drop": 0.01})
    for name, expected in (("candidate", verdict["metrics"]), ("baseline", verdict["baseline"]["metrics"])):
        values = _values(tfma.load_eval_result(str(directory), model_name=name))
        assert values[()]["auc"] == pytest.approx(expected["auc"])
