"""The verdict: every case that others pass over in silence has its own status and sentence."""

from __future__ import annotations

import math
from typing import Any

import pytest

from components.evaluator.measures import Measures, SliceMeasures
from components.evaluator.metrics import METRICS, known_metrics, worsening
from components.evaluator.table import render_table, verdict_record
from components.evaluator.verdict import Baseline, judge
from core.gates import GateResult, Severity, Status, refusal_line

pytestmark = pytest.mark.unit

FIRST_RUN = Baseline(exists=False)
COMPARED = Baseline(exists=True)


def _overall(
    candidate: dict[str, float], baseline: dict[str, float] | None = None, examples: int = 1000, **extra: Any
) -> Any:
    return SliceMeasures(None, None, examples, extra.get("not_finite", 0), candidate, baseline)


def _hour(hour: int, candidate: dict[str, float], examples: int = 100, baseline: dict[str, float] | None = None) -> Any:
    return SliceMeasures("hour", hour, examples, 0, candidate, baseline)


def _measures(*slices: SliceMeasures, lowest: float = 0.01, highest: float = 0.99, problem: str = "") -> Measures:
    return Measures(list(slices), lowest, highest, 0, problem)


def _evaluate(on_no_data: str = "warn", **thresholds: dict[str, Any]) -> dict[str, Any]:
    empty = {"min": None, "max": None, "max_drop": None, "max_relative_drop": None, "slices": [], "min_examples": 1}
    return {
        "slices": ["hour"],
        "thresholds": {metric: {**empty, **bounds} for metric, bounds in thresholds.items()},
        "on_no_data": on_no_data,
    }


def _gate(results: list[GateResult], name: str) -> GateResult:
    found = [result for result in results if result.name == name]
    assert len(found) == 1, [result.name for result in results]
    return found[0]


@pytest.mark.parametrize(
    ("bounds", "value", "kind", "status"),
    [
        pytest.param({"min": 0.8}, 0.8, "min", Status.PASSED, id="at-the-minimum"),
        pytest.param({"min": 0.8}, 0.7999, "min", Status.FAILED, id="below-the-minimum"),
        pytest.param({"max": 0.8}, 0.8, "max", Status.PASSED, id="at-the-maximum"),
        pytest.param({"max": 0.8}, 0.81, "max", Status.FAILED, id="above-the-maximum"),
    ],
)
def test_absolute_bounds(bounds: dict[str, float], value: float, kind: str, status: Status) -> None:
    """A bound includes its own value; a failure blocks."""
    result = _gate(judge(_evaluate(auc=bounds), _measures(_overall({"auc": value})), FIRST_RUN), f"evaluate.auc.{kind}")
    assert (result.status, result.observed, result.bound) == (status, value, 0.8)
    assert result.blocks is (status is Status.FAILED)


@pytest.mark.parametrize(
    ("metric", "bounds", "value", "before", "status"),
    [
        pytest.param("auc", {"max_drop": 0.01}, 0.89, 0.90, Status.PASSED, id="drop-at-the-limit"),
        pytest.param("auc", {"max_drop": 0.01}, 0.88, 0.90, Status.FAILED, id="drop-beyond"),
        pytest.param("auc", {"max_drop": 0.01}, 0.95, 0.90, Status.PASSED, id="better"),
        pytest.param("auc", {"max_relative_drop": 0.1}, 0.80, 0.90, Status.FAILED, id="relative-beyond"),
        pytest.param("binary_crossentropy", {"max_drop": 0.01}, 0.5, 0.4, Status.FAILED, id="a-loss-that-rose"),
        pytest.param("binary_crossentropy", {"max_drop": 0.01}, 0.3, 0.4, Status.PASSED, id="a-loss-that-fell"),
        pytest.param("calibration", {"max_drop": 0.01}, 1.2, 0.9, Status.FAILED, id="calibration-further-from-1"),
        pytest.param("calibration", {"max_drop": 0.01}, 0.95, 1.2, Status.PASSED, id="calibration-nearer-to-1"),
    ],
)
def test_change_bounds_know_which_way_is_worse(
    metric: str, bounds: dict[str, float], value: float, before: float, status: Status
) -> None:
    """A drop is a worsening: down for a score, up for a loss, away from 1 for calibration."""
    measures = _measures(_overall({metric: value}, {metric: before}))
    result = _gate(judge(_evaluate(**{metric: bounds}), measures, COMPARED), f"evaluate.{metric}.{next(iter(bounds))}")
    assert result.status is status


def test_every_metric_has_a_direction() -> None:
    """No metric is equal to itself and worse at once."""
    assert [worsening(metric, 0.5, 0.5) for metric in known_metrics()] == [0.0] * len(METRICS)


def test_without_thresholds_nothing_is_blessed() -> None:
    """R06: an evaluation that asks for nothing is not evaluated, and blocks."""
    results = judge(_evaluate(), _measures(_overall({"auc": 0.99})), FIRST_RUN)
    result = _gate(results, "evaluate.thresholds")
    assert (result.status, result.blocks) == (Status.NOT_EVALUATED, True)


@pytest.mark.parametrize(
    ("bounds", "consent", "blocks"),
    [
        pytest.param({"max_drop": 0.01}, None, True, id="only-a-change-bound"),
        pytest.param({"max_drop": 0.01}, "first model of this recipe", False, id="with-consent"),
        pytest.param({"max_drop": 0.01, "min": 0.5}, None, False, id="an-absolute-bound-judges-it"),
    ],
)
def test_a_first_run_never_passes_a_change_bound(bounds: dict[str, float], consent: str | None, blocks: bool) -> None:
    """R07: without a baseline a change bound is not evaluated; alone on its metric it blocks without consent."""
    results = judge(_evaluate(auc=bounds), _measures(_overall({"auc": 0.9})), Baseline(False, consent=consent))
    result = _gate(results, "evaluate.auc.max_drop")
    assert (result.status, result.blocks) == (Status.NOT_EVALUATED, blocks)
    assert "no baseline" in result.reason
    assert (consent or "") in result.reason


@pytest.mark.parametrize("consent", [None, "new label definition"])
def test_an_incompatible_baseline_blocks_until_a_person_consents(consent: str | None) -> None:
    """A baseline that cannot be measured is its own finding, also where an absolute bound passes."""
    measures = _measures(_overall({"auc": 0.9}), problem="it lacks the signature 'serving_default'")
    baseline = Baseline(True, "it lacks the signature 'serving_default'", consent)
    results = judge(_evaluate(auc={"min": 0.5, "max_drop": 0.01}), measures, baseline)
    for name in ("evaluate.baseline", "evaluate.auc.max_drop"):
        result = _gate(results, name)
        assert (result.status, result.blocks) == (Status.NOT_EVALUATED, consent is None)
        assert "it lacks the signature" in result.reason
        assert ("accepted: new label definition" in result.reason) is (consent is not None)


def test_an_incompatible_baseline_matters_only_to_change_bounds() -> None:
    """With absolute bounds alone an incompatible baseline is reported and does not block."""
    results = judge(
        _evaluate(auc={"min": 0.5}), _measures(_overall({"auc": 0.9})), Baseline(True, "it cannot be loaded")
    )
    assert _gate(results, "evaluate.baseline").severity is Severity.WARN
    assert not any(result.blocks for result in results)


def test_a_relative_bound_on_a_baseline_of_zero_is_not_evaluated() -> None:
    """Nothing is a share of zero: the result names the other bound instead of dividing."""
    measures = _measures(_overall({"recall": 0.4}, {"recall": 0.0}))
    result = _gate(
        judge(_evaluate(recall={"max_relative_drop": 0.1}), measures, COMPARED), "evaluate.recall.max_relative_drop"
    )
    assert (result.status, result.blocks, result.observed) == (Status.NOT_EVALUATED, True, None)
    assert "use max_drop" in result.reason


def test_an_undefined_baseline_value_is_not_evaluated() -> None:
    """A baseline whose metric is NaN is no yardstick."""
    measures = _measures(_overall({"precision": 0.4}, {"precision": math.nan}))
    result = _gate(judge(_evaluate(precision={"max_drop": 0.1}), measures, COMPARED), "evaluate.precision.max_drop")
    assert (result.status, result.details["baseline"]) == (Status.NOT_EVALUATED, None)


def test_predictions_that_are_not_finite_fail_everything() -> None:
    """NaN predictions fail the model and each bound, with the number of examples."""
    measures = _measures(_overall({"auc": math.nan}, not_finite=7))
    results = judge(_evaluate(auc={"min": 0.5}), measures, FIRST_RUN)
    for name in ("evaluate.predictions", "evaluate.auc.min"):
        assert _gate(results, name).status is Status.FAILED
        assert "7 of 1000" in _gate(results, name).reason


def test_a_constant_model_is_refused_although_its_metrics_pass() -> None:
    """R07: one prediction for every example fails, even where always saying no is accurate."""
    measures = _measures(_overall({"binary_accuracy": 0.98}), lowest=0.02, highest=0.02)
    results = judge(_evaluate(binary_accuracy={"min": 0.9}), measures, FIRST_RUN)
    assert _gate(results, "evaluate.binary_accuracy.min").status is Status.PASSED
    constant = _gate(results, "evaluate.predictions")
    assert (constant.status, constant.blocks) == (Status.FAILED, True)
    assert "0.02 for every one of 1000 examples" in constant.reason


@pytest.mark.parametrize(("on_no_data", "blocks"), [("warn", False), ("block", True)])
def test_a_small_slice_is_no_data_with_the_severity_of_the_settings(on_no_data: str, blocks: bool) -> None:
    """A slice below min_examples is neither passed nor failed, whatever its value."""
    measures = _measures(_overall({"auc": 0.9}), _hour(3, {"auc": 0.1}, examples=9), _hour(4, {"auc": 0.9}))
    evaluate = _evaluate(on_no_data, auc={"min": 0.5, "slices": ["hour"], "min_examples": 10})
    results = judge(evaluate, measures, FIRST_RUN)
    small = _gate(results, "evaluate.auc.min:hour=3")
    assert (small.status, small.blocks) == (Status.NO_DATA, blocks)
    assert "9 examples, fewer than min_examples 10" in small.reason
    assert _gate(results, "evaluate.auc.min:hour=4").status is Status.PASSED


@pytest.mark.parametrize(
    ("measures", "slice_name"),
    [
        pytest.param(_measures(_overall({"auc": 0.9}), _hour(3, {}, examples=0)), "hour=3", id="a-value-of-the-domain"),
        pytest.param(_measures(_overall({"auc": 0.9})), "hour=(no values)", id="the-whole-column"),
    ],
)
def test_an_empty_slice_is_seen(measures: Measures, slice_name: str) -> None:
    """A slice without any example appears as "no data"; it does not vanish from the verdict."""
    results = judge(_evaluate(auc={"min": 0.5, "slices": ["hour"]}), measures, FIRST_RUN)
    assert _gate(results, f"evaluate.auc.min:{slice_name}").status is Status.NO_DATA


def test_no_data_overall_always_blocks() -> None:
    """on_no_data speaks of slices: a model without held-out examples is not blessed."""
    measures = _measures(_overall({}, examples=0), lowest=math.inf, highest=-math.inf)
    results = judge(_evaluate("warn", auc={"min": 0.5}), measures, FIRST_RUN)
    for name in ("evaluate.predictions", "evaluate.auc.min"):
        assert (_gate(results, name).status, _gate(results, name).blocks) == (Status.NO_DATA, True)


def test_an_undefined_metric_says_why() -> None:
    """An area over one label only is undefined, not 0 and not passed."""
    measures = _measures(_overall({"auc": 0.9}), _hour(3, {"auc": math.nan}))
    results = judge(_evaluate(auc={"min": 0.5, "slices": ["hour"]}), measures, FIRST_RUN)
    result = _gate(results, "evaluate.auc.min:hour=3")
    assert result.status is Status.NO_DATA
    assert "only one of the two labels" in result.reason


def test_the_record_is_blessed_only_without_blocking_gates() -> None:
    """verdict.json says blessed exactly when nothing blocks, and holds no NaN."""
    measures = _measures(_overall({"auc": 0.9, "precision": math.nan}), _hour(3, {"auc": 0.7}))
    for least, blessed in ((0.8, True), (0.95, False)):
        gates = judge(_evaluate(auc={"min": least}), measures, FIRST_RUN)
        record = verdict_record(gates, measures, None, None)
        assert record["blessed"] is blessed
        assert record["metrics"] == {"auc": 0.9, "precision": None}
        assert record["slices"] == [{"slice": "hour=3", "examples": 100, "metrics": {"auc": 0.7}}]
        assert [GateResult.from_dict(gate) for gate in record["gates"]] == gates
        assert refusal_line(gates) == ("" if blessed else "auc on overall: 0.9000 below min 0.95")


PASSED_BASELINE = "passed: the newest blessed model was measured on the same examples"
FEW = "no data (warning): 5 examples, fewer than min_examples 10"
TABLE = [
    ("metric", "slice", "value", "baseline", "limit", "verdict"),
    ("predictions", "overall", "", "", "", "passed: 1000 predictions from 0.01 to 0.99"),
    ("baseline", "overall", "", "", "", PASSED_BASELINE),
    ("auc", "overall", "0.9000", "0.9500", ">= 0.8", "passed"),
    ("auc", "overall", "0.9000", "0.9500", "drop <= 0.01", "failed"),
    ("auc", "hour=3", "0.7000", "-", ">= 0.8", FEW),
    ("auc", "hour=3", "0.7000", "-", "drop <= 0.01", FEW),
    ("auc", "hour: 2 of its values", "0.8500 to 0.9000", "", ">= 0.8", "passed"),
    ("auc", "hour: 2 of its values", "0.8500 to 0.9000", "", "drop <= 0.01", "passed"),
]


def test_the_table_is_aligned_and_collapses_passed_slices() -> None:
    """Metric, slice, value, baseline, limit, verdict; passed slices of a column may share a line."""
    measures = _measures(
        _overall({"auc": 0.9}, {"auc": 0.95}),
        _hour(3, {"auc": 0.7}, examples=5),
        _hour(4, {"auc": 0.85}, baseline={"auc": 0.85}),
        _hour(5, {"auc": 0.9}, baseline={"auc": 0.85}),
    )
    evaluate = _evaluate(auc={"min": 0.8, "max_drop": 0.01, "slices": ["hour"], "min_examples": 10})
    gates = judge(evaluate, measures, COMPARED)
    header, rule, *rows = render_table(gates, collapse=True).splitlines()
    starts = [index for index, mark in enumerate(rule) if mark == "-" and rule[index - 1 : index] != "-"]
    edges = list(zip(starts, [*starts[1:], None], strict=True))
    assert [tuple(line[low:high].strip() for low, high in edges) for line in (header, *rows)] == TABLE
    assert len(render_table(gates).splitlines()) == 2 + len(gates)
