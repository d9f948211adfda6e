"""Classifiers of many classes: examples that hold their own scores, and SavedModels that read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.label_map import LabelMap

LABELS = ("tops > shirt", "tops > polo", "shoes > boot", "shoes > sandal", "bags")
SCHEMA = """
feature { name: "scores" type: FLOAT }
feature { name: "label" type: BYTES }
feature { name: "parent" type: BYTES }
feature { name: "path" type: BYTES }
"""
EMPTY = {"min": None, "max": None, "max_drop": None, "max_relative_drop": None, "slices": [], "min_examples": 1}

Row = dict[str, Any]


def _rows() -> list[Row]:
    """200 examples whose `scores` are one logit a class, in the order of LABELS, higher for the truth."""
    generator = np.random.default_rng(5)
    rows = []
    for number in range(200):
        label = LABELS[number % len(LABELS)]
        scores = generator.normal(size=len(LABELS))
        scores[LABELS.index(label)] += 1.5
        rows.append({"label": label, "path": f"{label}/{number}.jpg", "scores": scores.astype(np.float32)})
    return rows


def _write_examples(rows: Sequence[Row], root: Path) -> str:
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
            if row.get("label") in LABELS:
                # TFMA takes numbers for the truth; ours is the text.
                feature["index"].int64_list.value.append(LABELS.index(row["label"]))
            if row.get("label"):
                feature["parent"].bytes_list.value.append((row["label"].rpartition(" > ")[0] or row["label"]).encode())
            writer.write(example.SerializeToString())
    return str(root)


def _save_classifier(
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


@pytest.fixture(scope="session")
def labels() -> tuple[str, ...]:
    """The classes, in the order of the scores in the examples."""
    return LABELS


@pytest.fixture
def rows() -> list[Row]:
    """200 examples, 40 of each class, for a test to change."""
    return _rows()


@pytest.fixture(scope="session")
def write_examples() -> Callable[..., str]:
    """Writes rows as the eval split of an Examples artifact below a folder, and returns that folder."""
    return _write_examples


@pytest.fixture(scope="session")
def save_classifier() -> Callable[..., str]:
    """Saves a model with some classes below a folder, and returns that folder."""
    return _save_classifier


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> str:
    """200 examples, 40 of each class: four batches, the last one short."""
    return _write_examples(_rows(), tmp_path_factory.mktemp("examples") / "all")


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A classifier that knows every class."""
    return _save_classifier(tmp_path_factory.mktemp("model"))


@pytest.fixture
def classify(tmp_path: Path) -> Callable[..., tuple[dict[str, Any], Path]]:
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
