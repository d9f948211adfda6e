"""Metrics from running totals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from components.evaluator.metrics import known_metrics
from components.evaluator.totals import Totals

pytestmark = pytest.mark.unit

PREDICTIONS = np.array([0.9, 0.8, 0.4, 0.3, 0.55, 0.1])
LABELS = np.array([1, 0, 1, 0, 1, 0])


def _totals(predictions: np.ndarray, labels: np.ndarray, batch: int = 100) -> Totals:
    totals = Totals()
    for start in range(0, len(labels), batch):
        part = slice(start, start + batch)
        rows = np.arange(len(labels[part]))
        totals.add(np.zeros(len(rows), np.int64), rows, predictions[part], labels[part])
    return totals


def test_values_match_hand_computed_ones() -> None:
    """Six examples: 2 true and 1 false positive, 1 false negative, 7 of 9 pairs in order."""
    values = _totals(PREDICTIONS, LABELS).values(0)
    loss = -(math.log(0.9) + math.log(0.2) + math.log(0.4) + math.log(0.7) + math.log(0.55) + math.log(0.9)) / 6
    assert values == pytest.approx(
        {
            "auc": 7 / 9,
            "binary_accuracy": 4 / 6,
            "precision": 2 / 3,
            "recall": 2 / 3,
            "binary_crossentropy": loss,
            "calibration": 3.05 / 3,
        }
    )


def test_every_known_metric_is_computed() -> None:
    """What the settings accept is exactly what is measured."""
    assert set(_totals(PREDICTIONS, LABELS).values(0)) == set(known_metrics())


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_batches_do_not_matter(batch: int) -> None:
    """The same examples in other batches give the same values."""
    assert _totals(PREDICTIONS, LABELS, batch).values(0) == pytest.approx(_totals(PREDICTIONS, LABELS).values(0))


def test_area_agrees_with_counting_pairs() -> None:
    """The area is the share of positive-negative pairs in order, a tie counting half."""
    generator = np.random.default_rng(7)
    labels = generator.integers(0, 2, 400)
    predictions = np.round(generator.random(400) * 0.7 + 0.3 * labels, 3)
    positive, negative = predictions[labels == 1][:, None], predictions[labels == 0][None, :]
    expected = ((positive > negative) + 0.5 * (positive == negative)).mean()
    assert _totals(predictions, labels).values(0)["auc"] == pytest.approx(expected, abs=1e-4)


def test_a_constant_prediction_has_area_one_half() -> None:
    """A model that always says the same ranks nothing."""
    totals = _totals(np.full(6, 0.37), LABELS)
    assert totals.values(0)["auc"] == 0.5
    assert totals.lowest == totals.highest == 0.37


@pytest.mark.parametrize(
    ("predictions", "labels", "undefined"),
    [
        pytest.param([0.2, 0.9], [0, 0], {"auc", "recall", "calibration"}, id="no-positive-label"),
        pytest.param([0.2, 0.3], [0, 1], {"precision"}, id="nothing-predicted-positive"),
    ],
)
def test_undefined_metrics_are_nan(predictions: list[float], labels: list[int], undefined: set[str]) -> None:
    """A division by nothing is NaN, never 0 or 1."""
    values = _totals(np.array(predictions), np.array(labels)).values(0)
    assert {name for name, value in values.items() if math.isnan(value)} == undefined


def test_a_prediction_that_is_not_finite_spoils_its_slices_only() -> None:
    """NaN makes every metric of its slice NaN, is counted, and leaves other slices alone."""
    totals = Totals()
    rows = np.array([0, 1, 2, 0, 1, 2])
    totals.add(np.array([0, 0, 0, 1, 2, 2]), rows, np.array([math.nan, 0.2, 0.8]), np.array([1, 0, 1]))
    assert [totals.not_finite(index) for index in range(3)] == [1, 1, 0]
    assert [totals.examples(index) for index in range(3)] == [3, 1, 2]
    assert all(math.isnan(value) for value in totals.values(0).values())
    assert totals.values(2)["auc"] == 1.0


def test_a_slice_that_never_appeared_has_no_example() -> None:
    """Asking for a slice beyond those seen is an empty slice, not an error."""
    totals = _totals(PREDICTIONS, LABELS)
    assert (totals.examples(5), totals.not_finite(5)) == (0, 0)
    assert math.isnan(totals.values(5)["auc"])
