"""The verdict on classifiers of many classes: guards, the worst class by name, and how the table reads."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.evaluator.classes import reports
from components.evaluator.classes.facts import ClassFacts, Mistake
from components.evaluator.classes.served import check_probabilities
from components.evaluator.measures import Measures, SliceMeasures, WorstClass
from components.evaluator.metrics import ALL_METRICS, CLASSIFICATION, can_refuse, known_metrics, worsening
from components.evaluator.served_model import ContractError
from components.evaluator.table import render_table, verdict_record
from components.evaluator.verdict import Baseline, judge
from core.gates import GateResult, Severity, Status
from core.label_map import LabelMap

pytestmark = pytest.mark.unit

LABELS = LabelMap(
    (
        *("bags", "dresses", "outwear > coat", "outwear > jacket", "pants", "shoes > boot"),
        *("shoes > sandal", "tops > polo", "tops > shirt", "tops > t-shirt"),
    )
)
GOOD = {"accuracy": 0.91, "parent_accuracy": 0.98, "worst_class_recall": 0.52}
SHIRT = WorstClass("tops > shirt", 0.52, 31)
FIRST_RUN = Baseline(exists=False)
# What is said of the third example when nothing is wrong with the one before it.
_THIRD = "holds 7 for c.jpg, which is no probability"


def _facts(confusion: np.ndarray | None = None, **changes: Any) -> ClassFacts:
    classes, parents = len(LABELS.labels), len(LABELS.parents)
    counts = np.concatenate([np.eye(classes, dtype=np.int64) * 30, np.zeros((1, classes), np.int64)])
    facts = ClassFacts(
        labels=LABELS.labels,
        parents=LABELS.parents,
        confusion=counts if confusion is None else confusion,
        parent_confusion=np.zeros((parents + 1, parents), np.int64),
        unknown={},
        true_classes=classes,
        mistakes=(),
        min_examples=10,
    )
    return dataclasses.replace(facts, **changes)


def _measures(
    facts: ClassFacts | None = None,
    overall: dict[str, float] | None = None,
    baseline: dict[str, float] | None = None,
    slices: Sequence[SliceMeasures] = (),
    **changes: Any,
) -> Measures:
    whole = SliceMeasures(None, None, 300, 0, overall or GOOD, baseline, worst=SHIRT)
    return Measures([dataclasses.replace(whole, **changes), *slices], 0.3, 0.99, classes=facts or _facts())


def _evaluate(**thresholds: dict[str, Any]) -> dict[str, Any]:
    empty = {"min": None, "max": None, "max_drop": None, "max_relative_drop": None, "slices": [], "min_examples": 1}
    return {
        "slices": ["label", "parent"],
        "thresholds": {metric: {**empty, **bounds} for metric, bounds in thresholds.items()},
        "on_no_data": "warn",
    }


def _gate(results: list[GateResult], name: str) -> GateResult:
    found = [result for result in results if result.name == name]
    assert len(found) == 1, [result.name for result in results]
    return found[0]


def test_the_worst_class_is_named_where_its_bound_is_judged() -> None:
    """The reason holds class and examples; the details hold them for programs, and a change bound does too."""
    bounds = {"min": 0.6, "max_drop": 0.05, "min_examples": 10}
    measures = _measures(baseline={"worst_class_recall": 0.6})
    results = judge(_evaluate(worst_class_recall=bounds), measures, Baseline(exists=True))
    absolute = _gate(results, "evaluate.worst_class_recall.min")
    assert absolute.reason == "worst_class_recall on overall: 0.5200 (tops > shirt, 31 examples) below min 0.6"
    assert (absolute.details["worst_class"], absolute.details["worst_class_examples"]) == ("tops > shirt", 31)
    change = _gate(results, "evaluate.worst_class_recall.max_drop")
    assert (change.status, "(tops > shirt, 31 examples)" in change.reason) == (Status.FAILED, True)


def test_other_metrics_name_no_class() -> None:
    """Accuracy is of all classes: its details and reason hold none."""
    result = _gate(judge(_evaluate(accuracy={"min": 0.95}), _measures(), FIRST_RUN), "evaluate.accuracy.min")
    assert "worst_class" not in result.details
    assert result.reason == "accuracy on overall: 0.9100 below min 0.95"


def test_no_class_with_enough_examples_is_no_data() -> None:
    """Without a class that has min_examples the worst one is unknown, which blocks overall."""
    measures = _measures(overall={"worst_class_recall": math.nan}, worst=None)
    results = judge(_evaluate(worst_class_recall={"min": 0.5, "min_examples": 50}), measures, FIRST_RUN)
    result = _gate(results, "evaluate.worst_class_recall.min")
    assert (result.status, result.blocks) == (Status.NO_DATA, True)
    assert "no class has min_examples examples" in result.reason


@pytest.mark.parametrize(
    ("true_classes", "status"),
    [pytest.param(2, Status.FAILED, id="several-classes"), pytest.param(1, Status.PASSED, id="one-class")],
)
def test_one_answer_for_everything(true_classes: int, status: Status) -> None:
    """A model of one answer is refused, unless the eval split holds one class only and may well be right."""
    counts = np.zeros((11, 10), np.int64)
    counts[:true_classes, 8] = 150
    facts = _facts(counts, true_classes=true_classes)
    result = _gate(judge(_evaluate(accuracy={"min": 0.1}), _measures(facts), FIRST_RUN), "evaluate.predictions")
    assert (result.status, result.blocks) == (status, status is Status.FAILED)
    if status is Status.FAILED:
        assert result.reason == "the model predicts tops > shirt for every one of 300 examples"


def test_equal_sureness_is_no_constant_answer() -> None:
    """Answers of different classes are not one answer, although all are given with the same probability."""
    measures = dataclasses.replace(_measures(), lowest=1.0, highest=1.0)
    result = _gate(judge(_evaluate(accuracy={"min": 0.1}), measures, FIRST_RUN), "evaluate.predictions")
    assert result.status is Status.PASSED


def test_unknown_classes_warn_with_their_counts() -> None:
    """Classes that the model lacks are named, the commonest first, and do not block by themselves."""
    facts = _facts(unknown={"hats": 20, "tops > tunic": 9, "belts": 2, "socks": 1})
    result = _gate(judge(_evaluate(accuracy={"min": 0.1}), _measures(facts), FIRST_RUN), "evaluate.unknown_classes")
    assert (result.status, result.severity, result.observed) == (Status.FAILED, Severity.WARN, 32)
    assert result.reason.endswith("count as wrong: hats (20), tops > tunic (9), belts (2) and 1 more")
    assert result.details["classes"]["socks"] == 1


def test_a_baseline_of_nan_is_named_for_it() -> None:
    """A baseline whose predictions are NaN has no value for that reason, not because of the examples."""
    measures = _measures(baseline={"accuracy": math.nan}, baseline_not_finite=7)
    results = judge(_evaluate(accuracy={"min": 0.1, "max_drop": 0.1}), measures, Baseline(exists=True))
    assert "7 of its predictions are not finite" in _gate(results, "evaluate.accuracy.max_drop").reason


def test_ten_classes_are_one_row_while_they_pass() -> None:
    """Passing slices of one column collapse to their span, a failing class keeps its row, the worst class its name."""
    slices = [
        SliceMeasures("label", label, 30, 0, {"accuracy": 0.5 + number / 20}, None)
        for number, label in enumerate(LABELS.labels)
    ]
    evaluate = _evaluate(
        accuracy={"min": 0.52, "slices": ["label"]},
        parent_accuracy={"min": 0.9},
        worst_class_recall={"min": 0.5, "min_examples": 10},
    )
    gates = judge(evaluate, _measures(slices=slices), FIRST_RUN)
    _, _, *rows = (re.split(r" {2,}", row) for row in render_table(gates, collapse=True).splitlines())
    assert rows == [
        ["predictions", "overall", "passed: 300 answers, their probability from 0.3 to 0.99"],
        ["unknown_classes", "overall", "passed: the model knows the class of every example"],
        ["baseline", "overall", "skipped (warning): no blessed model yet: nothing to compare with"],
        ["accuracy", "overall", "0.9100", "-", ">= 0.52", "passed"],
        ["accuracy", "label=bags", "0.5000", "-", ">= 0.52", "failed"],
        ["parent_accuracy", "overall", "0.9800", "-", ">= 0.9", "passed"],
        ["worst_class_recall", "overall", "0.5200", "-", ">= 0.5", "passed: tops > shirt, 31 examples"],
        ["accuracy", "label: 9 of its values", "0.5500 to 0.9500", ">= 0.52", "passed"],
    ]


def test_the_record_and_the_files_hold_only_json(tmp_path: Path) -> None:
    """Classes without an example have null ratios, unknown ones a row of their own, and every file parses strictly."""
    counts = np.zeros((11, 10), np.int64)
    counts[0, 0], counts[0, 1], counts[10, 2] = 3, 1, 2
    mistake = Mistake("bags/é 1.jpg", "bags", "dresses", 0.9)
    facts = _facts(counts, unknown={"hats": 2}, mistakes=(mistake,))
    measures = _measures(facts, overall={"accuracy": math.nan}, worst=None)
    document = json.loads(json.dumps(verdict_record([], measures, None, None), allow_nan=False))
    assert document["classes"][0] == {
        "label": "bags",
        "parent": "bags",
        "examples": 4,
        "recall": 0.75,
        "precision": 1.0,
        "f1": pytest.approx(6 / 7),
        "most_confused_with": "dresses",
        "count": 1,
    }
    assert document["classes"][3] == {
        "label": "outwear > jacket",
        "parent": "outwear",
        "examples": 0,
        "recall": None,
        "precision": None,
        "f1": None,
        "most_confused_with": None,
        "count": 0,
    }
    assert (document["worst_class"], document["unknown_classes"]) == (None, {"hats": 2})
    reports.write(str(tmp_path), facts)
    table = (tmp_path / "confusion_matrix.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == 12
    assert table[-1] == "(unknown to the model),0,0,2,0,0,0,0,0,0,0"
    reports.write(str(tmp_path / "known"), _facts())
    assert len((tmp_path / "known" / "confusion_matrix.csv").read_text(encoding="utf-8").splitlines()) == 11
    line = (tmp_path / "mistakes.jsonl").read_text(encoding="utf-8")
    assert json.loads(line) == dataclasses.asdict(mistake)
    assert "é" in line


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        pytest.param([0.5, 0.5], _THIRD, id="probabilities"),
        pytest.param([0.5004, 0.5004], _THIRD, id="within-the-rounding-of-a-sum"),
        pytest.param([-1e-8, 1.0], _THIRD, id="within-the-rounding-of-zero"),
        pytest.param([math.nan, 9.0], _THIRD, id="not-finite-has-its-own-gate"),
        pytest.param([math.inf, -math.inf], _THIRD, id="infinities-have-their-own-gate"),
        pytest.param([0.6, 0.5], "adds up to 1.1 for b.jpg, not to 1", id="sum"),
        pytest.param([1.5, -0.5], "holds 1.5 for b.jpg", id="outside"),
    ],
)
def test_what_is_no_probability_is_named_by_its_example(row: list[float], problem: str) -> None:
    """The first example whose values are outside 0..1 or do not add up to 1 is named with the value."""
    values = np.array([[0.1, 0.9], row, [7.0, 7.0]])
    names = ["a.jpg", "b.jpg", "c.jpg"]
    with pytest.raises(ContractError) as caught:
        check_probabilities(values, names)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "low", "high", "expected"),
    [
        pytest.param("accuracy", 0.8, None, True, id="a-score-from-below"),
        pytest.param("accuracy", None, 0.9, False, id="a-score-from-above"),
        pytest.param("worst_class_recall", 0.0, None, False, id="a-score-at-zero"),
        pytest.param("categorical_crossentropy", None, 1.0, True, id="a-loss-from-above"),
        pytest.param("expected_calibration_error", None, 0.1, True, id="an-error-from-above"),
        pytest.param("expected_calibration_error", None, 1.0, False, id="an-error-that-is-never-larger"),
    ],
)
def test_which_bounds_can_refuse(metric: str, low: float | None, high: float | None, expected: bool) -> None:
    """Only a bound on the side on which a metric gets worse, inside its range, can refuse a bad model."""
    assert can_refuse(metric, low, high) is expected


def test_each_task_has_its_own_metrics() -> None:
    """The binary names are the default, no name means two things, and every one has a direction."""
    binary, many = known_metrics(), known_metrics(CLASSIFICATION)
    assert (binary[0], many[0]) == ("auc", "accuracy")
    assert not set(binary) & set(many)
    assert set(ALL_METRICS) == {*binary, *many}
    assert worsening("expected_calibration_error", 0.3, 0.1) == pytest.approx(0.2)
    assert worsening("accuracy", 0.3, 0.1) == pytest.approx(-0.2)


def test_printing_a_verdict_loads_no_numpy() -> None:
    """The command that prints a table answers at once: the light modules import nothing heavy."""
    code = "import sys, components.evaluator.verdict, components.evaluator.metrics; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
