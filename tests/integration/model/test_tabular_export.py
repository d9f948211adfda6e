"""The exported model: its signatures, and that it answers elsewhere as it did where it was trained."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.integration

# Runs in a process that has TensorFlow and nothing of this project; TensorFlow's own choice of Keras is in force.
CLIENT = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
signature = model.signatures["serving_raw"]
columns = json.load(sys.stdin)
specs = signature.structured_input_signature[1]
inputs = {name: tf.constant(columns[name], spec.dtype) for name, spec in specs.items()}
eager = {name: value.numpy().tolist() for name, value in signature(**inputs).items()}
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    loaded = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    entry = loaded.signature_def["serving_raw"]
    feed = {entry.inputs[name].name: value.numpy() for name, value in inputs.items()}
    graph = session.run({name: info.name for name, info in entry.outputs.items()}, feed)
graph = {name: value.tolist() for name, value in graph.items()}
ours = [name for name in sys.modules if name.split(".")[0] in ("pipeline", "core", "tensorflow_transform", "tf_keras")]
print(json.dumps({"eager": eager, "graph": graph, "imported": ours}))
"""
MISSING = {"float": float("nan"), "int": -(2**53), "str": ""}
COLUMNS = {
    "fare": "float", "miles": "float", "started": "int", "latitude": "float", "company": "str", "tract": "int",
    "hour_of_day": "int", "area": "int",
}  # fmt: skip


def raw_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Returns rows as serving_raw takes them: by column, with the marker of the type where there is no value."""
    return {
        name: [row.get(name.replace("hour_of_day", "hour of day"), MISSING[kind]) for row in rows]
        for name, kind in COLUMNS.items()
    }


@pytest.fixture(scope="module")
def in_process(table: Any) -> np.ndarray:
    """float32[eval rows]: the probabilities of the trained network itself, trained here with the same seed."""
    import tensorflow as tf
    import tensorflow_transform as tft

    from pipeline.models.tabular import features as names
    from pipeline.models.tabular import trainer
    from pipeline.training import records
    from pipeline.training.steps import plan_steps

    fn_args = table.fn_args(Path("unused"), tensorboard=False)
    settings = names.read_settings(fn_args.custom_config)
    transform = tft.TFTransformOutput(fn_args.transform_output)
    inputs = names.model_inputs(settings.features, trainer.vocabulary_sizes(transform, settings))
    spec = {name: transform.transformed_feature_spec()[name] for name in [*inputs.names(), "big"]}
    splits = [records.read_split([f"{table.root}/{name}/*"], spec, "big", name) for name in ("train", "eval")]
    plan = plan_steps(train_examples=400, eval_examples=21, batch_size=32, epochs=6, train_steps=None, eval_steps=None)
    model, _ = trainer.train_network(settings, inputs, *splits, plan, fn_args.model_run_dir)
    columns = {name: tf.constant(table.transformed["eval"][name]) for name in inputs.names()}
    return tf.sigmoid(model(columns, training=False)).numpy()[:, 0]


def signature(trained: Path, name: str) -> Any:
    """Returns a signature of the exported model, loaded eagerly."""
    import tensorflow as tf

    model = tf.saved_model.load(str(trained / "model"))
    found = model.signatures[name]
    # A signature does not keep its model, whose variables it reads, alive.
    found.owner = model
    return found


def test_the_four_signatures_have_the_promised_inputs_and_outputs(trained: Path) -> None:
    """Names, types and shapes are those of docs/model-contract.md."""
    import tensorflow as tf

    signatures = tf.saved_model.load(str(trained / "model")).signatures
    assert set(signatures) == {"serving_default", "serving_raw", "transform_features", "dense"}
    for name in ("serving_default", "serving_raw", "dense"):
        outputs = signatures[name].structured_outputs
        assert {key: (spec.dtype, spec.shape.rank) for key, spec in outputs.items()} == {
            "probability": (tf.float32, 1),
            "label": (tf.int64, 1),
        }
    dtypes = {"float": tf.float32, "int": tf.int64, "str": tf.string}
    raw = signatures["serving_raw"].structured_input_signature[1]
    assert {name: spec.dtype for name, spec in raw.items()} == {name: dtypes[kind] for name, kind in COLUMNS.items()}
    assert {tuple(spec.shape) for spec in raw.values()} == {(None,)}
    for name in ("serving_default", "transform_features"):
        assert list(signatures[name].structured_input_signature[1]) == ["examples"]


def test_a_process_with_only_tensorflow_answers_from_raw_rows(
    table: Any, trained: Path, in_process: np.ndarray, tmp_path: Path
) -> None:
    """Loaded both eagerly and as TensorFlow Serving does, the export answers within 1e-6 of the training graph."""
    environment = {key: value for key, value in os.environ.items() if key not in ("TF_USE_LEGACY_KERAS", "PYTHONPATH")}
    result = subprocess.run(
        [sys.executable, "-c", CLIENT, str(trained / "model")],
        input=json.dumps(raw_columns(table.rows["eval"])),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    answer = json.loads(result.stdout.splitlines()[-1])
    assert answer["imported"] == []
    for how in ("eager", "graph"):
        np.testing.assert_allclose(answer[how]["probability"], in_process, atol=1e-6)
        np.testing.assert_array_equal(answer[how]["label"], in_process >= 0.5)


def test_serialized_examples_and_transformed_features_get_the_same_answers(
    table: Any, trained: Path, in_process: np.ndarray
) -> None:
    """serving_default and dense agree with the training graph, also for a single row."""
    import tensorflow as tf

    examples = tf.constant(table.examples["eval"])
    default = signature(trained, "serving_default")
    np.testing.assert_allclose(default(examples=examples)["probability"], in_process, atol=1e-6)
    np.testing.assert_allclose(default(examples=examples[:1])["probability"], in_process[:1], atol=1e-6)
    dense = {name: tf.constant(value) for name, value in table.transformed["eval"].items() if name != "big"}
    dense = {name.replace(" ", "_"): value for name, value in dense.items()}
    np.testing.assert_allclose(signature(trained, "dense")(**dense)["probability"], in_process, atol=1e-6)


def test_transform_features_gives_what_the_trainer_saw(table: Any, trained: Path) -> None:
    """Every transformed feature and the label come back as Transform wrote them."""
    import tensorflow as tf

    found = signature(trained, "transform_features")(examples=tf.constant(table.examples["eval"]))
    assert set(found) == set(table.transformed["eval"])
    for name, value in found.items():
        np.testing.assert_allclose(value, table.transformed["eval"][name], atol=1e-6)


def test_requests_need_no_label(table: Any, trained: Path, in_process: np.ndarray) -> None:
    """Examples without the label's column are predicted, and their transformed label says that it is unknown."""
    import tensorflow as tf

    unlabelled = []
    for serialized in table.examples["eval"]:
        made = tf.train.Example.FromString(serialized)
        del made.features.feature["tips"]
        unlabelled.append(made.SerializeToString())
    predicted = signature(trained, "serving_default")(examples=tf.constant(unlabelled))
    np.testing.assert_allclose(predicted["probability"], in_process, atol=1e-6)
    found = signature(trained, "transform_features")(examples=tf.constant(unlabelled))
    assert set(found["big"].numpy()) == {-1}
    np.testing.assert_array_equal(found["company_slot"], table.transformed["eval"]["company_slot"])


def test_a_required_column_that_a_request_lacks_is_named(table: Any, trained: Path) -> None:
    """A column that the schema requires is an error in the request, not a silent zero."""
    import tensorflow as tf

    made = tf.train.Example.FromString(table.examples["eval"][0])
    del made.features.feature["fare"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="fare"):
        signature(trained, "serving_default")(examples=tf.constant([made.SerializeToString()]))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({name: MISSING[kind] for name, kind in COLUMNS.items()}, id="nothing known"),
        pytest.param({"started": -(2**63), "area": -(2**63)}, id="the lowest integers"),
        pytest.param({"fare": float("inf"), "miles": float("-inf")}, id="infinite numbers"),
        pytest.param({"fare": 3e38, "company": "never seen \n before", "area": 10**12}, id="far out of range"),
    ],
)
def test_whatever_a_client_sends_the_answer_is_a_probability(
    table: Any, trained: Path, changed: dict[str, Any]
) -> None:
    """Absent, infinite and absurd values give a finite number between 0 and 1."""
    import tensorflow as tf

    dtypes = {"float": tf.float32, "int": tf.int64, "str": tf.string}
    columns = raw_columns(table.rows["eval"][:1]) | {name: [value] for name, value in changed.items()}
    inputs = {name: tf.constant(columns[name], dtypes[kind]) for name, kind in COLUMNS.items()}
    probability = float(signature(trained, "serving_raw")(**inputs)["probability"])
    assert 0.0 <= probability <= 1.0


def test_an_absent_number_is_an_average_one(table: Any, trained: Path) -> None:
    """Leaving a number out gives the answer that the train split's mean gives."""
    import tensorflow as tf

    dense = {name.replace(" ", "_"): value[:1] for name, value in table.transformed["eval"].items() if name != "big"}
    average = signature(trained, "dense")(
        **{k: tf.constant(v) for k, v in (dense | {"fare_scaled": np.zeros(1, "f4")}).items()}
    )
    columns = raw_columns(table.rows["eval"][:1]) | {"fare": [float("nan")]}
    dtypes = {"float": tf.float32, "int": tf.int64, "str": tf.string}
    absent = signature(trained, "serving_raw")(
        **{name: tf.constant(columns[name], dtypes[kind]) for name, kind in COLUMNS.items()}
    )
    np.testing.assert_allclose(absent["probability"], average["probability"], atol=1e-6)
