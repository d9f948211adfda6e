"""Drift and skew verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from components.data_gate.drift import Comparison, Limits, compare
from components.data_gate.policy import DRIFT, SKEW, Policy
from core.gates import Severity, Status

pytestmark = pytest.mark.unit

BLOCK = Policy(Severity.BLOCK, {})
LIMITS = Limits(0.1, 0.1, {})


def _one(now: Any, reference: Any, scope: str = DRIFT, limits: Limits = LIMITS, policy: Policy = BLOCK) -> Any:
    results = compare(Comparison(scope, now, reference, "the last accepted run"), limits, policy)
    assert len(results) == 1
    return results[0]


def test_a_moved_category_fails_and_names_value_limit_and_rows(dataset, categorical) -> None:
    """The refusal of a categorical feature says by how much, at which value, and over how many rows."""
    before = dataset("train", 1000, categorical("payment_type", {"Cash": 700, "Card": 300}))
    now = dataset("train", 500, categorical("payment_type", {"Cash": 100, "Card": 400}))
    result = _one(now, before)
    assert (result.name, result.status) == ("data.drift:payment_type", Status.FAILED)
    assert result.observed == pytest.approx(0.5)
    for part in ("payment_type", "0.5", "limit 0.1", "500 rows against 1000", "'Card'"):
        assert part in result.reason
    assert result.details["metric"] == "L-infinity"
    assert result.details["histogram"]["counts"] == {"Card": 400, "Cash": 100}
    assert result.details["reference_histogram"]["counts"] == {"Cash": 700, "Card": 300}


def test_the_metric_follows_the_type(dataset, numeric, categorical) -> None:
    """Numbers get Jensen-Shannon, integers that the statistics count as categories get L-infinity."""
    features = (numeric("fare", [(0, 1, 500), (1, 9, 500)]), categorical("hour", {"1": 500, "2": 500}, integer=True))
    side = dataset("train", 1000, *features)
    results = compare(Comparison(SKEW, side, side, "split train"), LIMITS, BLOCK)
    assert {item.details["feature"]: item.details["metric"] for item in results} == {
        "fare": "Jensen-Shannon",
        "hour": "L-infinity",
    }
    assert all(item.status is Status.PASSED and item.observed == 0 for item in results)


def test_a_vanished_feature_fails_by_its_presence(dataset, numeric) -> None:
    """A feature that was filled and now is not has drifted, although no value is left to compare."""
    before = dataset("train", 1000, numeric("fare", [(0, 10, 1000)]))
    result = _one(dataset("train", 1000), before)
    assert (result.status, result.observed) == (Status.FAILED, 1.0)
    assert "filled in 0 of 1000 rows against 1000 of 1000" in result.reason


def test_a_column_the_baseline_lacks_is_not_evaluated_and_does_not_block(dataset, numeric) -> None:
    """A column added on purpose cannot be compared, is not called passed, and does not stop every later run."""
    result = _one(dataset("train", 1000, numeric("fare", [(0, 10, 1000)])), dataset("train", 1000))
    assert (result.status, result.blocks) == (Status.NOT_EVALUATED, False)


def test_too_few_values_are_no_data_and_not_a_pass(dataset, categorical) -> None:
    """A distance between a handful of values is noise: it is not judged."""
    before = dataset("train", 1000, categorical("company", {"a": 9, "b": 1}))
    result = _one(dataset("eval", 1000, categorical("company", {"b": 9})), before)
    assert (result.status, result.observed, result.blocks) == (Status.NO_DATA, None, False)
    assert "fewer than 100" in result.reason


def test_a_type_that_changed_is_not_measured(dataset, categorical, numeric) -> None:
    """A histogram and value counts have no distance; the result says so instead of passing."""
    before = dataset("train", 1000, categorical("hour", {"1": 1000}, integer=True))
    result = _one(dataset("train", 1000, numeric("hour", [(0, 23, 1000)], integer=True)), before)
    assert (result.status, result.observed) == (Status.NO_DATA, None)
    assert "type differs" in result.reason


@pytest.mark.parametrize("scope", [DRIFT, SKEW])
def test_an_empty_side_is_skipped(dataset, numeric, scope: str) -> None:
    """A comparison with a split that holds nothing is skipped by name."""
    full = dataset("train", 1000, numeric("fare", [(0, 10, 1000)]))
    result = _one(dataset("eval", 0), full, scope)
    assert (result.name, result.status) == (f"data.{scope}", Status.SKIPPED)
    assert "eval holds no examples" in result.reason


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        pytest.param(Limits(None, 0.1, {}), Status.SKIPPED, id="metric-switched-off"),
        pytest.param(Limits(0.1, 0.1, {"payment_type": 0.6}), Status.PASSED, id="own-limit-wider"),
        pytest.param(Limits(None, None, {"payment_type": 0.2}), Status.FAILED, id="own-limit-where-metric-is-off"),
    ],
)
def test_limits_of_single_features_replace_the_general_one(
    dataset, categorical, limits: Limits, status: Status
) -> None:
    """A feature's own limit wins; a metric that is switched off is skipped, not passed."""
    before = dataset("train", 1000, categorical("payment_type", {"Cash": 1000}))
    now = dataset("train", 1000, categorical("payment_type", {"Cash": 500, "Card": 500}))
    assert _one(now, before, limits=limits).status is status


def test_the_policy_turns_drift_of_one_feature_into_a_warning(dataset, categorical) -> None:
    """A rule for a feature decides over the default: it fails and does not block."""
    before = dataset("train", 1000, categorical("company", {"a": 1000}))
    now = dataset("train", 1000, categorical("company", {"b": 1000}))
    result = _one(now, before, policy=Policy(Severity.BLOCK, {"company": Severity.WARN}))
    assert (result.status, result.blocks) == (Status.FAILED, False)
