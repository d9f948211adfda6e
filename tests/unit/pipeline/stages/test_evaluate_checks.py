"""Thresholds that no model can miss are not a gate."""

from __future__ import annotations

import pytest

from core.errors import ConfigError
from core.settings import load
from core.settings.load import BASE_FILE
from pipeline.stages import evaluate

pytestmark = pytest.mark.unit

TAXI = str(BASE_FILE.parent / "taxi.yaml")
CLOTHING = str(BASE_FILE.parent / "clothing.yaml")


@pytest.mark.parametrize(
    "thresholds",
    [
        "{auc: {max: 1.0}}",
        "{auc: {min: 0}}",
        "{binary_crossentropy: {min: 0.1}}",
        "{auc: {max: 1.0}, recall: {max: 1}}",
        "{calibration: {max: 100}}",
    ],
    ids=["upper-only", "zero", "lower-loss", "two", "one-sided"],
)
def test_bounds_on_the_good_side_alone_are_refused(thresholds: str) -> None:
    """R07: an upper bound on the AUC, a lower one on the loss or a bound of 0 lets a constant model through."""
    settings = load([TAXI], [f"evaluate.thresholds={thresholds}"]).settings
    with pytest.raises(ConfigError, match="no bound that a bad model could miss"):
        evaluate.check(settings)


@pytest.mark.parametrize(
    "thresholds",
    ["{auc: {min: 0.7}}", "{binary_crossentropy: {max: 0.5}}", "{calibration: {min: 0.9, max: 1.1}}"],
    ids=["auc", "loss", "calibration"],
)
def test_one_bound_on_the_bad_side_is_enough(thresholds: str) -> None:
    """Each kind of metric has a side on which it gets worse; a bound there is a gate."""
    evaluate.check(load([TAXI], [f"evaluate.thresholds={thresholds}"]).settings)


def test_an_unknown_metric_gets_the_nearest_name() -> None:
    """A typo in a metric is a ConfigError before anything runs."""
    settings = load([TAXI], ["evaluate.thresholds={auk: {min: 0.7}}"]).settings
    with pytest.raises(ConfigError, match="Did you mean 'auc'"):
        evaluate.check(settings)


@pytest.mark.parametrize(
    ("recipe", "metric", "near"),
    [
        (TAXI, "accuracy", "binary_accuracy"),
        (CLOTHING, "parent_acuracy", "parent_accuracy"),
        (CLOTHING, "auc", "Known"),
    ],
    ids=["table", "photos", "other-task"],
)
def test_metrics_are_those_of_the_task(recipe: str, metric: str, near: str) -> None:
    """A classifier of photos has no AUC and a table no worst class; the error says what there is instead."""
    settings = load([recipe], [f"evaluate.thresholds={{{metric}: {{min: 0.5}}}}"]).settings
    with pytest.raises(ConfigError) as caught:
        evaluate.check(settings)
    assert near in str(caught.value)
