"""A small table as tf.Examples, and SavedModels that answer it in known ways."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROWS = 600
SCHEMA = """
feature { name: "x" type: FLOAT }
feature { name: "clicked" type: INT }
feature { name: "hour" type: INT int_domain { min: 0 max: 4 is_categorical: true } }
feature { name: "kind" type: BYTES }
"""


@pytest.fixture(scope="session")
def rows() -> list[dict[str, Any]]:
    """600 rows: x in 0 to 1, clicked more often for large x, hour 0 to 3 (never 4), kind missing in every tenth row."""
    generator = np.random.default_rng(3)
    made = []
    for index in range(ROWS):
        x = float(np.float32(generator.random()))
        row = {"x": x, "clicked": int(generator.random() < x), "hour": int(generator.integers(0, 4))}
        if index % 10:
            row["kind"] = str(generator.choice(["plain", "fancy"]))
        made.append(row)
    return made


@pytest.fixture(scope="session")
def examples_uri(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Directory of an Examples artifact whose eval split holds the rows, in two gzip files."""
    import tensorflow as tf

    root = tmp_path_factory.mktemp("examples")
    (root / "Split-eval").mkdir()
    for shard in range(2):
        path = root / "Split-eval" / f"data_tfrecord-{shard:05d}-of-00002.gz"
        with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
            for row in rows[shard::2]:
                example = tf.train.Example()
                feature = example.features.feature
                feature["x"].float_list.value.append(row["x"])
                feature["clicked"].int64_list.value.append(row["clicked"])
                feature["hour"].int64_list.value.append(row["hour"])
                if "kind" in row:
                    feature["kind"].bytes_list.value.append(row["kind"].encode())
                writer.write(example.SerializeToString())
    return str(root)


@pytest.fixture(scope="session")
def save_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Saves a model that answers `probability = answer(x)` and returns the directory of its Model artifact."""
    import tensorflow as tf

    specification = {"x": tf.io.FixedLenFeature([], tf.float32), "clicked": tf.io.FixedLenFeature([], tf.int64)}
    examples = tf.TensorSpec([None], tf.string, name="examples")

    def save(
        answer: Callable[[Any], Any], signatures: tuple[str, ...] = ("serving_default", "transform_features")
    ) -> str:
        @tf.function(input_signature=[examples])
        def serving(examples: Any) -> dict[str, Any]:
            probability = answer(tf.io.parse_example(examples, specification)["x"])
            return {"probability": probability, "label": tf.cast(probability > 0.5, tf.int64)}

        @tf.function(input_signature=[examples])
        def transform(examples: Any) -> dict[str, Any]:
            parsed = tf.io.parse_example(examples, specification)
            return {"x_xf": parsed["x"] * 2.0, "clicked_xf": parsed["clicked"]}

        module = tf.Module()
        module.serving, module.transform = serving, transform
        root = tmp_path_factory.mktemp("model")
        by_name = {"serving_default": serving, "transform_features": transform}
        chosen = {name: by_name[name] for name in signatures}
        tf.saved_model.save(module, str(root / "Format-Serving"), signatures=chosen)
        return str(root)

    return save


@pytest.fixture(scope="session")
def good_model(save_model: Callable[..., str]) -> str:
    """A model that answers x itself, which is the true probability."""
    return save_model(lambda x: x)


@pytest.fixture(scope="session")
def poor_model(save_model: Callable[..., str]) -> str:
    """A model that ranks a little worse: x folded above 0.7."""
    import tensorflow as tf

    return save_model(lambda x: tf.where(x > 0.7, 1.4 - x, x))


@pytest.fixture
def evaluate(examples_uri: str, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], Any, Path]]:
    """Runs the executor on artifacts and returns (verdict, blessing artifact, evaluation directory)."""
    from tfx.types import standard_artifacts

    from components.evaluator.executor import Executor

    def run(
        model: str,
        baseline: str | None = None,
        accept: str | None = None,
        examples: str = examples_uri,
        slices: tuple[str, ...] = ("hour",),
        **thresholds: dict[str, Any],
    ) -> tuple[dict[str, Any], Any, Path]:
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
        empty = {"min": None, "max": None, "max_drop": None, "max_relative_drop": None, "slices": [], "min_examples": 1}
        spec = {
            "evaluate": {
                "slices": list(slices),
                "thresholds": {metric: {**empty, **bounds} for metric, bounds in thresholds.items()},
                "on_no_data": "warn",
            },
            "label": {"name": "clicked_xf"},
            "accept_new_baseline": accept,
        }
        Executor().Do(inputs, outputs, {"spec": json.dumps(spec)})
        directory = tmp_path / "evaluation"
        verdict = json.loads((directory / "verdict.json").read_text(encoding="utf-8"))
        return verdict, outputs["blessing"][0], directory

    return run


def _artifact(kind: Any, uri: str, **properties: Any) -> Any:
    artifact = kind()
    artifact.uri = uri
    for name, value in properties.items():
        setattr(artifact, name, value)
    return artifact
