"""The Pusher node on a real SavedModel: blessing, smoke test, warm-up records, manifest and TFX's properties."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, DataError, GateRefusedError
from core.manifest import MANIFEST_FILE, WARMUP_FILE, Manifest

pytestmark = pytest.mark.integration

MILES = [1.5, 2.5, 3.5, 4.5]


def example(miles: float) -> bytes:
    """Returns a serialized tf.Example with one float feature."""
    import tensorflow as tf

    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[miles]))
    return tf.train.Example(features=tf.train.Features(feature={"miles": feature})).SerializeToString()


def save_model(directory: Path, kind: str = "good") -> Path:
    """Saves a model that doubles `miles`.

    Args:
        directory: Where.
        kind: `good`; `raw` takes floats instead of tf.Examples; `failing` rejects every input.
    """
    import tensorflow as tf

    class Doubler(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serve(self, examples: Any) -> dict[str, Any]:
            parsed = tf.io.parse_example(examples, {"miles": tf.io.FixedLenFeature([], tf.float32)})
            if kind == "failing":
                tf.debugging.assert_less(parsed["miles"], 0.0)
            return {"doubled": parsed["miles"] * self.factor}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="miles")])
        def raw(self, miles: Any) -> dict[str, Any]:
            return {"doubled": miles * self.factor}

    module = Doubler()
    signature = module.raw if kind == "raw" else module.serve
    tf.saved_model.save(module, str(directory), signatures={"serving_default": signature})
    return directory


class Inputs:
    """Artifacts as the orchestrator would hand them to the executor."""

    def __init__(self, directory: Path, kind: str = "good", blessed: int = 1) -> None:
        from tfx.types import artifact_utils, standard_artifacts

        self.directory = directory
        self.model = standard_artifacts.Model()
        self.model.uri = str(directory / "model")
        save_model(directory / "model" / "Format-Serving", kind)
        self.blessing = standard_artifacts.ModelBlessing()
        self.blessing.uri = str(directory / "blessing")
        self.blessing.set_int_custom_property("blessed", blessed)
        self.examples = standard_artifacts.Examples()
        self.examples.uri = str(directory / "examples")
        self.examples.split_names = artifact_utils.encode_split_names(["train", "eval"])
        self.evaluation = standard_artifacts.ModelEvaluation()
        self.evaluation.uri = str(directory / "evaluation")
        self.pushed = standard_artifacts.PushedModel()
        self.pushed.uri = str(directory / "pushed")
        write_examples(directory / "examples" / "Split-eval")
        verdict = {"metrics": {"auc": 0.93}, "gates": [{"name": "model.auc", "status": "passed"}]}
        (directory / "evaluation").mkdir()
        (directory / "evaluation" / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")

    def spec(self, **changes: Any) -> str:
        """Returns the Pusher's parameter."""
        spec = {
            "root": str(self.directory / "serving"),
            "project": "forebay",
            "model": "doubler",
            "keep_versions": 3,
            "min_free_mib": 0,
            "warmup_records": 3,
            "s3_endpoint": None,
            "run_id": "run-7",
            "digests": {"data": "d", "code": "c", "settings": "s"},
        }
        return json.dumps({**spec, **changes})

    def run(self, without: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
        """Runs the executor; returns push.json."""
        from components.pusher.executor import Executor

        inputs = {
            "model": [self.model],
            "model_blessing": [self.blessing],
            "examples": [self.examples],
            "evaluation": [self.evaluation],
        }
        Executor().Do(
            {key: value for key, value in inputs.items() if key not in without},
            {"pushed_model": [self.pushed]},
            {"spec": self.spec(**changes)},
        )
        receipt: dict[str, Any] = json.loads((Path(self.pushed.uri) / "push.json").read_text(encoding="utf-8"))
        return receipt


def write_examples(split: Path) -> None:
    """Writes four tf.Examples to a plain and a gzipped TFRecord file, two each."""
    import tensorflow as tf

    split.mkdir(parents=True)
    for number, pair in enumerate((MILES[:2], MILES[2:])):
        path = split / f"data_tfrecord-0000{number}-of-00002"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for miles in pair:
                writer.write(example(miles))
    (split / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Inputs, dict[str, Any]]:
    """Returns the artifacts and the receipt of one ordinary push."""
    inputs = Inputs(tmp_path_factory.mktemp("pushed"))
    return inputs, inputs.run()


def test_a_blessed_model_is_pushed_with_tfx_properties(pushed: tuple[Inputs, dict[str, Any]]) -> None:
    """The output artifact says pushed, where and which version, as TFX's own Pusher would."""
    inputs, receipt = pushed
    assert inputs.pushed.get_int_custom_property("pushed") == 1
    assert inputs.pushed.get_string_custom_property("pushed_version") == str(receipt["version"])
    destination = inputs.pushed.get_string_custom_property("pushed_destination")
    assert destination == receipt["path"] == str(inputs.directory / "serving/forebay/doubler" / str(receipt["version"]))
    assert receipt["pushed"] is True
    assert (Path(destination) / "saved_model.pb").is_file()


def test_the_manifest_tells_run_digests_metrics_gates_and_host(pushed: tuple[Inputs, dict[str, Any]]) -> None:
    """What the Evaluator and the run said is in the manifest, with this machine and its TensorFlow."""
    _, receipt = pushed
    manifest = Manifest.parse((Path(receipt["path"]) / MANIFEST_FILE).read_bytes(), "test")
    assert manifest.provenance.run_id == "run-7"
    assert manifest.provenance.digests == {"data": "d", "code": "c", "settings": "s"}
    assert manifest.provenance.metrics == {"auc": 0.93}
    assert [gate["name"] for gate in manifest.provenance.gates] == ["model.auc"]
    assert manifest.provenance.optimizer is None
    assert manifest.provenance.host["versions"]["tensorflow"] == "2.16.2"
    assert manifest.model_digest == receipt["model_digest"]


def test_warm_up_records_replay_on_the_pushed_version(pushed: tuple[Inputs, dict[str, Any]]) -> None:
    """The three records are Predict requests with the first eval examples, right names, and the model answers them."""
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    _, receipt = pushed
    records = tf.data.TFRecordDataset([str(Path(receipt["path"]) / WARMUP_FILE)]).as_numpy_iterator()
    requests = [prediction_log_pb2.PredictionLog.FromString(record).predict_log.request for record in records]
    signature = tf.saved_model.load(receipt["path"]).signatures["serving_default"]
    answers = []
    for request in requests:
        assert request.model_spec.name == "doubler"
        assert request.model_spec.signature_name == "serving_default"
        fed = {name: tf.constant(tf.make_ndarray(tensor)) for name, tensor in request.inputs.items()}
        answers += signature(**fed)["doubled"].numpy().tolist()
    assert answers == [2 * miles for miles in MILES[:3]]


def test_the_same_artifacts_are_pushed_once(tmp_path: Path) -> None:
    """A second run with the same model and examples is given the first one's version, warm-up records included."""
    inputs = Inputs(tmp_path)
    first = inputs.run()
    second = inputs.run(run_id="run-8")
    assert (second["version"], second["reused"]) == (first["version"], True)
    assert second["reason"] == "the newest version is this very model"
    assert inputs.pushed.get_string_custom_property("pushed_version") == str(first["version"])
    assert inputs.run(warmup_records=2)["reused"] is False


def test_a_model_that_is_not_blessed_is_held_back(tmp_path: Path) -> None:
    """Without the blessing nothing is written to the target; the artifact and the receipt say so."""
    inputs = Inputs(tmp_path, blessed=0)
    receipt = inputs.run()
    assert receipt["pushed"] is False
    assert receipt["version"] is None
    assert receipt["reason"] == "the model is not blessed"
    assert inputs.pushed.get_int_custom_property("pushed") == 0
    assert not (tmp_path / "serving").exists()


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        pytest.param("failing", GateRefusedError, "a server could not use this model", id="rejects its examples"),
        pytest.param("raw", DataError, "takes miles, not one string tensor", id="takes no tf.Examples"),
    ],
)
def test_a_model_that_a_server_could_not_use_is_refused(tmp_path: Path, kind: str, error: Any, words: str) -> None:
    """A model whose warm-up would fail at load, or with another signature, is refused before anything is touched."""
    with pytest.raises(error, match=words) as caught:
        Inputs(tmp_path, kind).run()
    assert caught.value.exit_code == 4
    assert not (tmp_path / "serving").exists()


def test_a_model_with_damaged_variables_is_refused(tmp_path: Path) -> None:
    """Variables that cannot be restored are found by loading the model as a server does."""
    inputs = Inputs(tmp_path)
    (data,) = (tmp_path / "model" / "Format-Serving" / "variables").glob("variables.data-*")
    data.write_bytes(b"")
    with pytest.raises(GateRefusedError, match="a server could not use this model"):
        inputs.run()
    assert not (tmp_path / "serving").exists()


def test_examples_and_evaluation_are_optional(tmp_path: Path) -> None:
    """Without both inputs the model is pushed, without warm-up records, metrics and gates."""
    receipt = Inputs(tmp_path).run(without=("examples", "evaluation"))
    assert receipt["pushed"] is True
    manifest = Manifest.parse((Path(receipt["path"]) / MANIFEST_FILE).read_bytes(), "test")
    assert WARMUP_FILE not in manifest.files
    assert manifest.provenance.metrics == {}
    assert manifest.provenance.gates == ()


def test_no_warm_up_records_are_written_when_none_are_wanted(tmp_path: Path) -> None:
    """With zero wanted the model is still asked once, and no file is written."""
    receipt = Inputs(tmp_path).run(warmup_records=0)
    assert not (Path(receipt["path"]) / WARMUP_FILE).exists()


@pytest.mark.parametrize("changes", [{"keeep": 1}, {"root": "gs://bucket"}], ids=["unknown key", "unknown scheme"])
def test_a_wrong_spec_is_a_config_error(tmp_path: Path, changes: dict[str, Any]) -> None:
    """A spec with a key that does not exist, or a root that cannot be pushed to, exits with 3."""
    with pytest.raises(ConfigError) as caught:
        Inputs(tmp_path).run(**changes)
    assert caught.value.exit_code == 3


def test_the_node_has_tfx_types_and_its_usual_id(tmp_path: Path) -> None:
    """The component is called Pusher, takes what TFX's own takes, and puts out a PushedModel."""
    from tfx.types import channel_utils, standard_artifacts

    from components.pusher.component import Pusher

    inputs = Inputs(tmp_path)
    node = Pusher(
        model=channel_utils.as_channel([inputs.model]),
        model_blessing=channel_utils.as_channel([inputs.blessing]),
        spec=inputs.spec(),
    )
    assert node.id == "Pusher"
    assert node.outputs["pushed_model"].type is standard_artifacts.PushedModel
    assert set(node.inputs) == {"model", "model_blessing"}
