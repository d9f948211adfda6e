"""The Evaluator on real SavedModels of many classes: values, verdicts, joins by name."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError, DataError
from core.gates import GateResult

pytestmark = pytest.mark.integration

Classify = Callable[..., tuple[dict[str, Any], Path]]


def _gates(verdict: dict[str, Any]) -> dict[str, GateResult]:
    return {gate["name"]: GateResult.from_dict(gate) for gate in verdict["gates"]}


def test_the_record_names_classes_parents_and_the_worst(
    classify: Classify, examples: str, classifier: str, labels: tuple[str, ...], rows: list[dict[str, Any]]
) -> None:
    """verdict.json counts every class and parent, and the gate names the worst class with its examples."""
    verdict, _ = classify(
        examples,
        classifier,
        slices=("label", "parent"),
        accuracy={"min": 0.3, "slices": ["label"]},
        worst_class_recall={"min": 0.99, "min_examples": 10},
    )
    truths = [row["label"] for row in rows]
    answers = [labels[int(row["scores"].argmax())] for row in rows]
    expected = np.mean([truth == answer for truth, answer in zip(truths, answers, strict=True)])
    assert verdict["metrics"]["accuracy"] == pytest.approx(expected)
    assert [(entry["label"], entry["parent"], entry["examples"]) for entry in verdict["classes"]] == [
        ("tops > shirt", "tops", 40),
        ("tops > polo", "tops", 40),
        ("shoes > boot", "shoes", 40),
        ("shoes > sandal", "shoes", 40),
        ("bags", "bags", 40),
    ]
    assert [(entry["parent"], entry["examples"]) for entry in verdict["parents"]] == [
        ("bags", 40),
        ("shoes", 80),
        ("tops", 80),
    ]
    recalls = {entry["label"]: entry["recall"] for entry in verdict["classes"]}
    worst = min(recalls, key=lambda label: recalls[label])
    assert verdict["worst_class"] == {"label": worst, "recall": recalls[worst], "examples": 40, "min_examples": 10}
    gate = _gates(verdict)["evaluate.worst_class_recall.min"]
    assert gate.reason == f"worst_class_recall on overall: {recalls[worst]:.4f} ({worst}, 40 examples) below min 0.99"
    assert (gate.details["worst_class"], verdict["blessed"]) == (worst, False)
    assert (verdict["label_map"], verdict["unlabelled"], verdict["unknown_classes"]) == (
        "assets.extra/labels.json",
        0,
        {},
    )
    by_slice = {entry["slice"]: entry["metrics"] for entry in verdict["slices"]}
    assert by_slice["label=bags"]["accuracy"] == recalls["bags"]
    assert by_slice["label=bags"]["macro_f1"] is None
    assert by_slice["parent=shoes"]["accuracy"] == pytest.approx(
        np.mean([recalls["shoes > boot"], recalls["shoes > sandal"]])
    )


def test_the_order_of_the_classes_means_nothing(
    classify: Classify,
    examples: str,
    classifier: str,
    tmp_path: Path,
    labels: tuple[str, ...],
    save_classifier: Callable[..., str],
) -> None:
    """I10: the same model with its classes in another order has the same metrics, also as the baseline."""
    turned = save_classifier(tmp_path / "turned", labels[3:] + labels[:3])
    bound = {"min": 0.1, "max_drop": 0.0}
    first, _ = classify(
        examples, classifier, baseline=turned, accuracy=bound, categorical_crossentropy={"max_drop": 0.0}
    )
    second, _ = classify(examples, turned, accuracy={"min": 0.1})
    assert first["baseline"]["compatible"] is True
    assert first["baseline"]["metrics"] == pytest.approx(first["metrics"])
    assert second["metrics"] == pytest.approx(first["metrics"])
    assert sorted(second["classes"], key=lambda entry: entry["label"]) == sorted(
        first["classes"], key=lambda entry: entry["label"]
    )


def test_a_baseline_of_fewer_and_other_classes_is_compared_by_name(
    classify: Classify,
    examples: str,
    classifier: str,
    tmp_path: Path,
    labels: tuple[str, ...],
    rows: list[dict[str, Any]],
    save_classifier: Callable[..., str],
) -> None:
    """A baseline that lacks a class is wrong on its examples and right elsewhere; a class of its own is never right."""
    older = save_classifier(tmp_path / "older", ("shoes > boot", "tops > tunic", "tops > shirt", "tops > polo", "bags"))
    verdict, _ = classify(
        examples, classifier, baseline=older, slices=("label",), accuracy={"min": 0.1, "max_drop": 0.0}
    )
    kept = [labels.index(label) for label in ("shoes > boot", "tops > shirt", "tops > polo", "bags")]
    right = [
        bool(row["scores"][labels.index(row["label"])] == row["scores"][kept].max())
        and row["label"] != "shoes > sandal"
        for row in rows
    ]
    assert verdict["baseline"]["compatible"] is True
    assert verdict["baseline"]["metrics"]["accuracy"] == pytest.approx(np.mean(right))
    assert verdict["blessed"] is True


def test_unknown_classes_and_missing_labels_are_reported(
    classify: Classify,
    classifier: str,
    tmp_path: Path,
    labels: tuple[str, ...],
    rows: list[dict[str, Any]],
    write_examples: Callable[..., str],
) -> None:
    """A class that the model lacks counts as wrong and is named; an example without label is left out."""
    for row in rows[:30]:
        row["label"] = "tops > tunic"
    for row in rows[30:37]:
        row["label"] = None
    mixed = write_examples(rows, tmp_path / "mixed")
    verdict, directory = classify(
        mixed, classifier, accuracy={"min": 0.1}, worst_class_recall={"min": 0.1, "min_examples": 30}
    )
    assert (verdict["examples"], verdict["unlabelled"], verdict["unknown_classes"]) == (193, 7, {"tops > tunic": 30})
    right = sum(labels[int(row["scores"].argmax())] == row["label"] for row in rows)
    assert verdict["metrics"]["accuracy"] == pytest.approx(right / 193)
    gate = _gates(verdict)["evaluate.unknown_classes"]
    assert (gate.status.value, gate.observed, gate.blocks) == ("failed", 30, False)
    assert "tops > tunic (30)" in gate.reason
    assert verdict["worst_class"]["label"] == "tops > tunic"
    with (directory / "confusion_matrix.csv").open(encoding="utf-8", newline="") as stream:
        last = list(csv.reader(stream))[-1]
    assert last[0] == "(unknown to the model)"
    assert sum(map(int, last[1:])) == 30


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param("constant", "the model predicts tops > shirt for every one of 200 examples", id="constant"),
        pytest.param("nan", "NaN or infinity for 200 of 200", id="nan"),
    ],
)
def test_models_that_say_nothing_are_refused(
    classify: Classify, examples: str, tmp_path: Path, change: str, sentence: str, save_classifier: Callable[..., str]
) -> None:
    """One class for everything and NaN are named for what they are, although a weak bound might pass."""
    import tensorflow as tf

    constant = tf.constant([[0.6, 0.1, 0.1, 0.1, 0.1]])
    answers = {"constant": lambda p: p * 0 + constant, "nan": lambda p: p * math.nan}
    verdict, _ = classify(
        examples, save_classifier(tmp_path / "classifier", answer=answers[change]), accuracy={"min": 0.1}
    )
    assert verdict["blessed"] is False
    assert sentence in _gates(verdict)["evaluate.predictions"].reason


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        pytest.param({"answer": lambda p: p * 2}, "adds up to 2 for tops > shirt/0.jpg", id="sum-of-2"),
        pytest.param({"answer": lambda p: p * 3 - 0.4}, "which is no probability", id="outside-0-to-1"),
        pytest.param({"answer": lambda p: p[:, :4]}, "a label map of 5 classes", id="fewer-columns-than-classes"),
        pytest.param({"output": "scores"}, "none is called 'probabilities'", id="no-probabilities"),
        pytest.param({"with_map": False}, "has no label map", id="no-label-map"),
    ],
)
def test_a_candidate_that_breaks_the_contract_is_named(
    classify: Classify,
    examples: str,
    classifier: str,
    tmp_path: Path,
    options: dict[str, Any],
    sentence: str,
    save_classifier: Callable[..., str],
) -> None:
    """What is no classifier under the contract is a configuration error as candidate, and incompatible as baseline."""
    broken = save_classifier(tmp_path / "broken", **options)
    with pytest.raises(ConfigError) as caught:
        classify(examples, broken, accuracy={"min": 0.1})
    assert sentence in caught.value.headline
    assert caught.value.place.startswith(broken)
    verdict, _ = classify(examples, classifier, baseline=broken, accuracy={"min": 0.1, "max_drop": 0.1})
    assert (verdict["blessed"], verdict["baseline"]["compatible"]) == (False, False)
    assert sentence in _gates(verdict)["evaluate.baseline"].reason


def test_labels_that_are_no_text_are_a_data_error(classify: Classify, classifier: str, tmp_path: Path) -> None:
    """Numbers under `label` are refused with what is wrong, not with TensorFlow's words."""
    import tensorflow as tf

    (tmp_path / "numbers" / "Split-eval").mkdir(parents=True)
    with tf.io.TFRecordWriter(str(tmp_path / "numbers" / "Split-eval" / "data.gz"), options="GZIP") as writer:
        example = tf.train.Example()
        example.features.feature["label"].int64_list.value.append(3)
        writer.write(example.SerializeToString())
    with pytest.raises(DataError, match="holds numbers, not text"):
        classify(str(tmp_path / "numbers"), classifier, accuracy={"min": 0.1})


def test_an_empty_eval_split_is_not_blessed(
    classify: Classify, classifier: str, tmp_path: Path, write_examples: Callable[..., str]
) -> None:
    """Without held-out photos every gate says so, and the matrix is all zeros."""
    verdict, directory = classify(write_examples([], tmp_path / "empty"), classifier, accuracy={"min": 0.1})
    assert (verdict["blessed"], verdict["examples"], verdict["worst_class"]) == (False, 0, None)
    assert _gates(verdict)["evaluate.accuracy.min"].status.value == "no data"
    assert (directory / "mistakes.jsonl").read_text(encoding="utf-8") == ""
