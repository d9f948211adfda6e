"""The Evaluator on classifiers of many classes: real SavedModels that read their answer out of the example."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError, DataError
from core.gates import GateResult
from core.label_map import LabelMap

pytestmark = pytest.mark.integration

LABELS = ("tops > shirt", "tops > polo", "shoes > boot", "shoes > sandal", "bags")
SCHEMA = """
feature { name: "scores" type: FLOAT }
feature { name: "label" type: BYTES }
feature { name: "parent" type: BYTES }
feature { name: "path" type: BYTES }
"""
EMPTY = {"min": None, "max": None, "max_drop": None, "max_relative_drop": None, "slices": [], "min_examples": 1}

Row = dict[str, Any]
Run = Callable[..., tuple[dict[str, Any], Path]]


def _rows(count: int = 200, labels: Sequence[str] = LABELS) -> list[Row]:
    """Examples whose `scores` are one logit a class, in the order of LABELS, higher for the truth."""
    generator = np.random.default_rng(5)
    rows = []
    for number in range(count):
        label = labels[number % len(labels)]
        scores = generator.normal(size=len(LABELS))
        if label in LABELS:
            scores[LABELS.index(label)] += 1.5
        rows.append({"label": label, "path": f"{label}/{number}.jpg", "scores": scores.astype(np.float32)})
    return rows


def _write(rows: Sequence[Row], root: Path) -> str:
    import tensorflow as tf

    (root / "Split-eval").mkdir(parents=True)
    with tf.io.TFRecordWriter(str(root / "Split-eval" / "data-00000-of-00001.gz"), options="GZIP") as writer:
        for row in rows:
            example = tf.train.Example()
            feature = example.features.feature
            feature["scores"].float_list.value.extend(row["scores"])
            for name in ("label", "path"):
                if row.get(name) is not None:
                    feature[name].bytes_list.value.append(row[name].encode())
            if row.get("label"):
                feature["parent"].bytes_list.value.append((row["label"].rpartition(" > ")[0] or row["label"]).encode())
            writer.write(example.SerializeToString())
    return str(root)


def _save(
    root: Path,
    labels: Sequence[str] = LABELS,
    answer: Callable[[Any], Any] | None = None,
    output: str = "probabilities",
    with_map: bool = True,
) -> str:
    """Saves a model that answers the softmax of its classes' scores; returns the folder of its artifact."""
    import tensorflow as tf

    # A class that the scores do not hold is never likely.
    columns = [LABELS.index(label) if label in LABELS else len(LABELS) for label in labels]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serving(examples: Any) -> dict[str, Any]:
        parsed = tf.io.parse_example(examples, {"scores": tf.io.FixedLenFeature([len(LABELS)], tf.float32)})
        padded = tf.pad(parsed["scores"], [[0, 0], [0, 1]], constant_values=-4.0)
        probabilities = tf.nn.softmax(tf.gather(padded, columns, axis=1))
        probabilities = probabilities if answer is None else answer(probabilities)
        best = tf.gather(tf.constant(labels), tf.argmax(probabilities, axis=1))
        return {output: probabilities, "label": best}

    module = tf.Module()
    module.serving = serving
    place = str(root / "Format-Serving")
    tf.saved_model.save(module, place, signatures={"serving_default": serving})
    if with_map:
        LabelMap(tuple(labels)).write(place)
    return str(root)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the executor and returns (verdict, evaluation directory)."""
    from tfx.types import standard_artifacts

    from components.evaluator.executor import Executor

    def evaluate(
        examples: str, model: str, baseline: str | None = None, slices: tuple[str, ...] = (), **thresholds: Any
    ) -> tuple[dict[str, Any], Path]:
        schema_dir = tmp_path / "schema"
        schema_dir.mkdir(exist_ok=True)
        (schema_dir / "schema.pbtxt").write_text(SCHEMA, encoding="utf-8")
        inputs = {
            "examples": [_artifact(standard_artifacts.Examples, examples, split_names='["eval"]')],
            "model": [_artifact(standard_artifacts.Model, model, id=11)],
            "baseline_model": [_artifact(standard_artifacts.Model, baseline, id=7)] if baseline else [],
            "schema": [_artifact(standard_artifacts.Schema, str(schema_dir))],
        }
        outputs = {
            "evaluation": [_artifact(standard_artifacts.ModelEvaluation, str(tmp_path / "evaluation"))],
            "blessing": [_artifact(standard_artifacts.ModelBlessing, str(tmp_path / "blessing"))],
        }
        section = {
            "slices": list(slices),
            "thresholds": {metric: {**EMPTY, **bounds} for metric, bounds in thresholds.items()},
            "on_no_data": "warn",
        }
        spec = {"evaluate": section, "task": "classification", "accept_new_baseline": None}
        Executor().Do(inputs, outputs, {"spec": json.dumps(spec)})
        directory = tmp_path / "evaluation"
        return json.loads((directory / "verdict.json").read_text(encoding="utf-8")), directory

    return evaluate


def _artifact(kind: Any, uri: str, **properties: Any) -> Any:
    artifact = kind()
    artifact.uri = uri
    for name, value in properties.items():
        setattr(artifact, name, value)
    return artifact


def _gates(verdict: dict[str, Any]) -> dict[str, GateResult]:
    return {gate["name"]: GateResult.from_dict(gate) for gate in verdict["gates"]}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> str:
    """200 examples, 40 of each class: four batches, the last one short."""
    return _write(_rows(), tmp_path_factory.mktemp("examples") / "all")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A classifier that knows every class."""
    return _save(tmp_path_factory.mktemp("model"))


def test_the_record_names_classes_parents_and_the_worst(run: Run, examples: str, model: str) -> None:
    """verdict.json counts every class and parent, and the gate names the worst class with its examples."""
    verdict, directory = run(
        examples,
        model,
        slices=("label", "parent"),
        accuracy={"min": 0.3, "slices": ["label"]},
        worst_class_recall={"min": 0.99, "min_examples": 10},
    )
    truths = [row["label"] for row in _rows()]
    answers = [LABELS[int(row["scores"].argmax())] for row in _rows()]
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
    assert len(list(directory.iterdir())) == 7


def test_the_artifacts_hold_every_example_once(run: Run, examples: str, model: str) -> None:
    """The matrix counts 200 examples in both formats, and the mistakes are the surest wrong answers, surest first."""
    verdict, directory = run(examples, model, accuracy={"min": 0.1})
    with (directory / "confusion_matrix.csv").open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert tuple(header[1:]) == LABELS
    assert tuple(row[0] for row in rows) == LABELS
    counts = [[int(cell) for cell in row[1:]] for row in rows]
    document = json.loads((directory / "confusion_matrix.json").read_text(encoding="utf-8"))
    assert (document["format_version"], document["labels"], document["counts"]) == (1, list(LABELS), counts)
    assert document["unknown_counts"] == [0] * 5
    assert np.sum(document["parents"]["counts"]) == np.sum(counts) == 200
    lines = (directory / "mistakes.jsonl").read_text(encoding="utf-8").splitlines()
    mistakes = [json.loads(line) for line in lines]
    assert len(mistakes) == min(100, 200 - round(200 * verdict["metrics"]["accuracy"]))
    sureness = [mistake["probability"] for mistake in mistakes]
    assert sureness == sorted(sureness, reverse=True)
    assert all(mistake["path"].startswith(mistake["truth"]) for mistake in mistakes)
    assert all(mistake["predicted"] != mistake["truth"] for mistake in mistakes)


def test_tfma_reads_every_metric(run: Run, examples: str, model: str, tmp_path: Path) -> None:
    """TFMA's reader finds our values of both models, by slice."""
    import tensorflow_model_analysis as tfma

    other = _save(tmp_path / "other", LABELS[::-1], answer=lambda probabilities: probabilities * 0.5 + 0.1)
    verdict, directory = run(examples, model, baseline=other, slices=("parent",), accuracy={"min": 0.1})
    result = tfma.load_eval_result(str(directory), model_name="candidate")
    values = {
        key: {name: value["doubleValue"] for name, value in found[""][""].items()}
        for key, found in result.slicing_metrics
    }
    assert set(values) == {(), (("parent", "tops"),), (("parent", "shoes"),), (("parent", "bags"),)}
    assert values[()]["sparse_categorical_accuracy"] == verdict["metrics"]["accuracy"]
    assert values[()]["parent_accuracy"] == verdict["metrics"]["parent_accuracy"]
    assert values[(("parent", "tops"),)]["example_count"] == 80
    assert tfma.load_eval_result(str(directory), model_name="baseline").slicing_metrics
    assert tfma.load_validation_result(str(directory)).validation_ok is True


def test_the_order_of_the_classes_means_nothing(run: Run, examples: str, model: str, tmp_path: Path) -> None:
    """I10: the same model with its classes in another order has the same metrics, also as the baseline."""
    turned = _save(tmp_path / "turned", LABELS[3:] + LABELS[:3])
    bound = {"min": 0.1, "max_drop": 0.0}
    first, _ = run(examples, model, baseline=turned, accuracy=bound, categorical_crossentropy={"max_drop": 0.0})
    second, _ = run(examples, turned, accuracy={"min": 0.1})
    assert first["baseline"]["compatible"] is True
    assert first["baseline"]["metrics"] == pytest.approx(first["metrics"])
    assert second["metrics"] == pytest.approx(first["metrics"])
    assert sorted(second["classes"], key=lambda entry: entry["label"]) == sorted(
        first["classes"], key=lambda entry: entry["label"]
    )


def test_a_baseline_of_fewer_and_other_classes_is_compared_by_name(
    run: Run, examples: str, model: str, tmp_path: Path
) -> None:
    """A baseline that lacks a class is wrong on its examples and right elsewhere; a class of its own is never right."""
    older = _save(tmp_path / "older", ("shoes > boot", "tops > tunic", "tops > shirt", "tops > polo", "bags"))
    verdict, _ = run(examples, model, baseline=older, slices=("label",), accuracy={"min": 0.1, "max_drop": 0.0})
    rows = _rows()
    kept = [LABELS.index(label) for label in ("shoes > boot", "tops > shirt", "tops > polo", "bags")]
    right = [
        bool(row["scores"][LABELS.index(row["label"])] == row["scores"][kept].max())
        and row["label"] != "shoes > sandal"
        for row in rows
    ]
    assert verdict["baseline"]["compatible"] is True
    assert verdict["baseline"]["metrics"]["accuracy"] == pytest.approx(np.mean(right))
    assert verdict["blessed"] is True


def test_unknown_classes_and_missing_labels_are_reported(run: Run, model: str, tmp_path: Path) -> None:
    """A class that the model lacks counts as wrong and is named; an example without label is left out."""
    rows = _rows()
    for row in rows[:30]:
        row["label"] = "tops > tunic"
    for row in rows[30:37]:
        row["label"] = None
    mixed = _write(rows, tmp_path / "mixed")
    verdict, directory = run(mixed, model, accuracy={"min": 0.1}, worst_class_recall={"min": 0.1, "min_examples": 30})
    assert (verdict["examples"], verdict["unlabelled"], verdict["unknown_classes"]) == (193, 7, {"tops > tunic": 30})
    right = sum(LABELS[int(row["scores"].argmax())] == row["label"] for row in rows)
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
    run: Run, examples: str, tmp_path: Path, change: str, sentence: str
) -> None:
    """One class for everything and NaN are named for what they are, although a weak bound might pass."""
    import tensorflow as tf

    constant = tf.constant([[0.6, 0.1, 0.1, 0.1, 0.1]])
    answers = {"constant": lambda p: p * 0 + constant, "nan": lambda p: p * math.nan}
    verdict, _ = run(examples, _save(tmp_path / "model", answer=answers[change]), accuracy={"min": 0.1})
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
    run: Run, examples: str, model: str, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    """What is no classifier under the contract is a configuration error as candidate, and incompatible as baseline."""
    broken = _save(tmp_path / "broken", **options)
    with pytest.raises(ConfigError) as caught:
        run(examples, broken, accuracy={"min": 0.1})
    assert sentence in caught.value.headline
    assert caught.value.place.startswith(broken)
    verdict, _ = run(examples, model, baseline=broken, accuracy={"min": 0.1, "max_drop": 0.1})
    assert (verdict["blessed"], verdict["baseline"]["compatible"]) == (False, False)
    assert sentence in _gates(verdict)["evaluate.baseline"].reason


def test_labels_that_are_no_text_are_a_data_error(run: Run, model: str, tmp_path: Path) -> None:
    """Numbers under `label` are refused with what is wrong, not with TensorFlow's words."""
    import tensorflow as tf

    (tmp_path / "numbers" / "Split-eval").mkdir(parents=True)
    with tf.io.TFRecordWriter(str(tmp_path / "numbers" / "Split-eval" / "data.gz"), options="GZIP") as writer:
        example = tf.train.Example()
        example.features.feature["label"].int64_list.value.append(3)
        writer.write(example.SerializeToString())
    with pytest.raises(DataError, match="holds numbers, not text"):
        run(str(tmp_path / "numbers"), model, accuracy={"min": 0.1})


def test_an_empty_eval_split_is_not_blessed(run: Run, model: str, tmp_path: Path) -> None:
    """Without held-out photos every gate says so, and the matrix is all zeros."""
    verdict, directory = run(_write([], tmp_path / "empty"), model, accuracy={"min": 0.1})
    assert (verdict["blessed"], verdict["examples"], verdict["worst_class"]) == (False, 0, None)
    assert _gates(verdict)["evaluate.accuracy.min"].status.value == "no data"
    assert (directory / "mistakes.jsonl").read_text(encoding="utf-8") == ""
