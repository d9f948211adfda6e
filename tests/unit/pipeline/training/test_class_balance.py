"""Rare classes weigh as much as frequent ones, and the learning rate keeps its meaning."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.training.balance import balanced_weights

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        pytest.param([0, 0, 0, 1], 2, [2 / 3, 2.0], id="one rare class"),
        pytest.param([0, 1, 2], 3, [1.0, 1.0, 1.0], id="already balanced"),
        pytest.param([0, 0, 0, 2], 3, [2 / 3, 0.0, 2.0], id="a class without photos"),
    ],
)
def test_classes_weigh_the_same_and_the_mean_is_one(labels: list[int], classes: int, expected: list[float]) -> None:
    """Each class' weights add up to the same, and the mean weight of the examples is 1."""
    weights = balanced_weights(np.array(labels), classes)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    assert weights[labels].mean() == pytest.approx(1.0)
