"""The arithmetic behind the benchmark's claims."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import pipeline_vs_tfx
from benchmarks.taxi_scores import auc

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seed", range(3))
def test_auc_is_the_share_of_pairs_in_the_right_order(seed: int) -> None:
    """Against the definition, pair by pair, with many ties."""
    random = np.random.default_rng(seed)
    labels, scores = random.random(120) > 0.7, random.integers(0, 8, 120) / 8
    pairs = [(high > low) + 0.5 * (high == low) for high in scores[labels] for low in scores[~labels]]
    assert auc(labels, scores) == pytest.approx(np.mean(pairs), abs=1e-12)


def _round(peer: float, ours: float, cached: float, our_auc: float) -> dict[str, object]:
    return {
        "peer": {"seconds": peer, "nodes": {"Trainer": peer / 2}, "lines": 6000},
        "ours": {"seconds": ours, "nodes": {"Trainer": ours / 2}, "lines": 20},
        "cached": {"seconds": cached},
        "floor": {"seconds": 5.0},
        "quality": {"rows": 10, "peer": {"auc": 0.9, "accuracy": 0.8}, "ours": {"auc": our_auc, "accuracy": 0.8}},
    }


def test_ratios_are_of_medians_and_quality_is_a_mean() -> None:
    """One disturbed round out of three does not decide the ratio."""
    rounds = [_round(100, 30, 3, 0.89), _round(100, 300, 3, 0.90), _round(100, 40, 4, 0.91)]
    summary = pipeline_vs_tfx.summarize(rounds)
    assert summary["first_run_ratio"] == pytest.approx(0.40)
    assert summary["cached_run_ratio"] == pytest.approx(0.075)
    assert summary["quality_gain"]["auc"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("ours", "our_auc", "missed"),
    [(30.0, 0.9, 0), (50.0, 0.9, 1), (50.0, 0.89, 2)],
    ids=["all met", "slow", "slow and worse"],
)
def test_a_missed_target_is_said(ours: float, our_auc: float, missed: int) -> None:
    """The text does not leave it to the reader to compare a number with its bound."""
    only = _round(100.0, ours, 2.0, our_auc)
    text = pipeline_vs_tfx.render(pipeline_vs_tfx.summarize([only]), only)
    assert text.count("MISSED") == missed
    assert text.count(": met") == 4 - missed
