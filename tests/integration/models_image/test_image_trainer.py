"""Training of photo classifiers: what it learns, what it leaves behind, what stops it."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import label_map
from core.errors import DataError, RefusedError
from core.settings.load import load

pytestmark = pytest.mark.integration

# The classes that the graph of the fixture `export` knows, told apart by colour: any network learns that quickly.
COLOURS = {
    "tops > shirt": (200, 40, 40),
    "tops > hoodie": (200, 200, 40),
    "footwear > sandálky": (40, 40, 200),
    "accessories > bag": (40, 200, 40),
}
SIDE_PX = 32
FnArgs = Callable[..., Any]


def photo(label: str, number: int) -> bytes:
    """Returns a noisy PNG in the colour of its class."""
    import tensorflow as tf

    noise = np.random.default_rng(number).integers(-40, 40, (40, 48, 3))
    return tf.io.encode_png(np.clip(np.array(COLOURS[label]) + noise, 0, 255).astype(np.uint8)).numpy()


def labels_of(count: int) -> list[str]:
    """Returns the classes of `count` photos, half of them of the first class."""
    names = list(COLOURS)
    return [names[0] if number % 2 else names[number // 2 % 4] for number in range(count)]


@pytest.fixture(scope="module")
def examples(export: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with transformed examples: 48 train photos in two files and 16 eval photos in one."""
    import tensorflow as tf
    import tensorflow_transform as tft

    from pipeline.models.image.preprocessing import label_map as learned

    folder = tmp_path_factory.mktemp("transformed")
    known = learned(tft.TFTransformOutput(export.transform_dir))
    for name, count, files in (("train", 48, 2), ("eval", 16, 1)):
        for file in range(files):
            with tf.io.TFRecordWriter(str(folder / f"{name}-{file}.gz"), "GZIP") as writer:
                for number, label in list(enumerate(labels_of(count)))[file::files]:
                    example = tf.train.Example()
                    features = example.features.feature
                    features["image"].bytes_list.value.append(photo(label, number))
                    features["label_index"].int64_list.value.append(int(known.indices([label])[0]))
                    writer.write(example.SerializeToString())
    return folder


@pytest.fixture
def fn_args(export: Any, examples: Path, tmp_path: Path) -> FnArgs:
    """Makes TFX's FnArgs for a training into a folder, with keys of `classifier` changed."""

    def make(folder: str = "one", training: dict[str, Any] | None = None, **classifier: Any) -> Any:
        values = load([], ["evaluate.thresholds={accuracy: {min: 0.5}}", "features.numeric=[x]"]).values
        changes = {"backbone": "small_cnn", "weights": "none", "image_px": SIDE_PX, "fine_tune_learning_rate": 0.01,
                   "fine_tune_epochs": 4, "label_smoothing": 0.0}  # fmt: skip
        settings = {
            "classifier": {**values["classifier"], **changes, **classifier},
            "training": {**values["training"], "batch_size": 8, **(training or {})},
            "user_code": "pipeline.models.image",
        }
        return types.SimpleNamespace(
            train_files=[str(examples / "train-*")],
            eval_files=[str(examples / "eval-*")],
            transform_output=export.transform_dir,
            serving_model_dir=str(tmp_path / folder / "model"),
            model_run_dir=str(tmp_path / folder / "run"),
            custom_config={"settings": json.dumps(settings)},
        )

    return make


@pytest.fixture
def quick_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder of the PNGs here in the place of the real one, which takes seconds to trace for each split.

    The training that exports a model, and the one whose steps are limited, go through the real one.
    """
    import tensorflow as tf

    from pipeline.models.image import decoder

    def decode_square(encoded: tf.Tensor, side_px: int) -> tf.Tensor:
        return tf.cast(tf.image.resize(tf.io.decode_png(encoded, channels=3), [side_px, side_px]), tf.uint8)

    monkeypatch.setattr(decoder, "decode_square", decode_square)


@pytest.fixture
def pretrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network in the place of the pretrained one, cut as that one is: seconds instead of minutes."""
    import tensorflow as tf

    from pipeline.models.image import network

    def build(classifier: Any, classes: int, seed: int) -> network.Network:
        pixels = tf.keras.Input((SIDE_PX, SIDE_PX, 3))
        scaled = tf.keras.layers.Rescaling(1 / 255)(pixels)
        trunk = tf.keras.Model(pixels, tf.keras.layers.AveragePooling2D(8)(scaled))
        trunk.trainable = False
        activations = tf.keras.Input(trunk.output_shape[1:])
        wide = tf.keras.layers.Conv2D(8, 1, kernel_initializer=tf.keras.initializers.HeNormal(seed))(activations)
        top = tf.keras.Model(activations, tf.keras.layers.GlobalAveragePooling2D()(wide))
        features = tf.keras.Input((8,))
        kept = tf.keras.layers.Dropout(classifier.dropout, seed=seed)(features)
        dense = tf.keras.layers.Dense(classes, kernel_initializer=tf.keras.initializers.GlorotUniform(seed))
        return network.Network(trunk, top, tf.keras.Model(features, dense(kept)))

    monkeypatch.setattr(network, "build", build)


def summary_of(args: Any) -> dict[str, Any]:
    """Returns the summary that a training left."""
    return json.loads((Path(args.model_run_dir) / "training_summary.json").read_text())


def trained(args: Any) -> Any:
    """Returns the network that `run_fn` would export; exporting takes longer than such a training."""
    import tensorflow_transform as tft

    from pipeline.models.image import features, preprocessing, trainer
    from pipeline.training import photos, summary

    settings = features.read_settings(args.custom_config)
    known = preprocessing.label_map(tft.TFTransformOutput(args.transform_output))
    splits = (
        photos.read_split(files, "image", "label_index", name)
        for files, name in ((args.train_files, "train"), (args.eval_files, "eval"))
    )
    network, facts = trainer.train_network(settings, known, *splits, args.model_run_dir)
    summary.write(args.model_run_dir, facts)
    return network


def assert_same_weights(one: Any, other: Any) -> None:
    """Two networks have the same weights, to the bit."""
    for first, second in zip(one.variables, other.variables, strict=True):
        np.testing.assert_array_equal(first.numpy(), second.numpy(), err_msg=first.name)


def test_from_scratch_it_learns_colours_and_exports_a_model_that_names_them(fn_args: FnArgs) -> None:
    """Trained on pixels with random changes, the saved model answers each class' photo with its name and parent."""
    from pipeline.models.image.trainer import run_fn
    from pipeline.training.export import answers as answers_of

    args = fn_args(fine_tune_epochs=8)
    run_fn(args)
    assert label_map.read(args.serving_model_dir).labels == tuple(COLOURS)
    photos = np.array([photo(label, 1000) for label in COLOURS], object)
    answers = answers_of(args.serving_model_dir, "serving_raw", {"image": photos})
    assert [label.decode() for label in answers["label"]] == list(COLOURS)
    assert [parent.decode() for parent in answers["parent"]] == ["tops", "tops", "footwear", "accessories"]
    summary = summary_of(args)
    assert summary["examples"] == {"train": 48, "eval": 16}
    assert summary["steps"] == 48
    assert summary["eval"]["accuracy"] == 1.0
    (phase,) = summary["phases"]
    assert (phase["name"], phase["epochs"], phase["steps"]) == ("pixels", 8, 48)
    for split in ("train", "eval"):
        assert list((Path(args.model_run_dir) / "pixels" / split).glob("events.out.tfevents.*"))


@pytest.mark.usefixtures("quick_decoder")
def test_two_trainings_of_one_seed_give_the_same_weights(fn_args: FnArgs) -> None:
    """Order, random changes, initial weights and dropout all come from the seed; another seed gives other weights."""
    first, second, other = (trained(fn_args(training={"seed": seed}, dropout=0.5)) for seed in (4, 4, 5))
    assert_same_weights(first, second)
    with pytest.raises(AssertionError):
        assert_same_weights(first, other)


@pytest.mark.usefixtures("pretrained", "quick_decoder")
def test_pretrained_the_head_learns_first_and_then_the_top_with_it(fn_args: FnArgs) -> None:
    """Two phases on kept activations, each with its record and events; equal seeds give equal weights here too."""
    settings: dict[str, Any] = {
        "backbone": "efficientnet_lite0", "weights": "imagenet", "feature_epochs": 20, "fine_tune_epochs": 3,
        "feature_learning_rate": 0.05, "views": 4, "class_weights": "balanced", "label_smoothing": 0.1,
    }  # fmt: skip
    args = fn_args(**settings)
    assert_same_weights(trained(args), trained(fn_args("two", **settings)))
    summary = summary_of(args)
    assert [(phase["name"], phase["epochs"], phase["steps"]) for phase in summary["phases"]] == [
        ("features", 20, 120),
        ("fine_tune", 3, 18),
    ]
    assert summary["eval"]["accuracy"] == summary["phases"][-1]["eval_accuracy"] == 1.0
    assert summary["seconds"] == pytest.approx(sum(phase["seconds"] for phase in summary["phases"]))
    assert (Path(args.model_run_dir) / "fine_tune" / "eval").is_dir()


@pytest.mark.usefixtures("pretrained", "quick_decoder")
@pytest.mark.parametrize(
    ("feature_epochs", "fine_tune_epochs", "changed"),
    [
        pytest.param(2, 0, {"head"}, id="features only"),
        pytest.param(0, 2, {"head", "top"}, id="fine-tuning only"),
    ],
)
def test_a_phase_of_no_passes_is_left_out_and_trains_nothing(
    fn_args: FnArgs, feature_epochs: int, fine_tune_epochs: int, changed: set[str]
) -> None:
    """The last layer alone, or the top with it: what the phase does not name keeps its weights."""
    import tensorflow as tf

    from pipeline.models.image import features, network

    args = fn_args(
        backbone="efficientnet_lite0", weights="imagenet", feature_epochs=feature_epochs,
        fine_tune_epochs=fine_tune_epochs, views=1,
    )  # fmt: skip
    after = trained(args)
    assert len(summary_of(args)["phases"]) == 1
    settings = features.read_settings(args.custom_config)
    fresh = network.build(settings.classifier, len(COLOURS), settings.training.seed)
    different = {
        part
        for part in ("trunk", "top", "head")
        for old, new in zip(getattr(fresh, part).variables, getattr(after, part).variables, strict=True)
        if not bool(tf.reduce_all(old == new))
    }
    assert different == changed


def test_steps_are_an_upper_limit_and_events_can_be_switched_off(fn_args: FnArgs) -> None:
    """With training.steps a phase stops early; without tensorboard only the summary is written."""
    args = fn_args(training={"steps": 3, "tensorboard": False})
    trained(args)
    assert summary_of(args)["steps"] == 3
    assert [file.name for file in Path(args.model_run_dir).rglob("*")] == ["training_summary.json"]


@pytest.mark.usefixtures("quick_decoder")
def test_a_loss_that_is_not_a_number_names_the_setting_to_lower(fn_args: FnArgs) -> None:
    """A learning rate that diverges ends in one sentence about it, and exports nothing."""
    from pipeline.models.image.trainer import run_fn

    args = fn_args(fine_tune_learning_rate=1e38)
    with pytest.raises(RefusedError, match=r"the loss is (nan|inf)") as caught:
        run_fn(args)
    assert caught.value.hint == "lower classifier.fine_tune_learning_rate"
    assert not Path(args.serving_model_dir).exists()


def test_a_split_without_photos_is_named(fn_args: FnArgs, tmp_path: Path) -> None:
    """The training stops before it starts."""
    from pipeline.models.image.trainer import run_fn

    args = fn_args()
    args.eval_files = [str(tmp_path / "nothing-*")]
    with pytest.raises(DataError, match="the eval split has no file"):
        run_fn(args)


@pytest.mark.parametrize(
    ("smoothing", "weights", "expected"),
    [
        pytest.param(0.0, None, [-np.log(0.7), -np.log(0.1)], id="plain"),
        pytest.param(
            0.2,
            None,
            [-0.8 * np.log(0.7) - 0.1 * np.log(0.2) - 0.1 * np.log(0.1), -0.8 * np.log(0.1) - 0.1 * np.log(0.14)],
            id="smoothed",
        ),
        pytest.param(0.0, [0.5, 1.0, 3.0], [-0.5 * np.log(0.7), -3.0 * np.log(0.1)], id="weighted"),
    ],
)
def test_the_loss_is_the_cross_entropy_that_the_settings_describe(
    smoothing: float, weights: list[float] | None, expected: list[float]
) -> None:
    """Smoothing spreads its share over the other classes; a class' weight multiplies the loss of its examples."""
    import tensorflow as tf

    from pipeline.training import classification

    shares = tf.constant([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]])
    array = None if weights is None else np.array(weights, np.float32)
    measure = classification.cross_entropy(3, smoothing, array)
    np.testing.assert_allclose(measure(tf.constant([0, 2], tf.int64), tf.math.log(shares)), expected, rtol=1e-5)


def test_the_learning_rate_rises_and_then_falls_to_zero() -> None:
    """Full after the first twentieth of the steps, half in the middle of the rest, nothing at the end."""
    from pipeline.training.phase import rate

    rates = [float(rate(0.1, 100)(step)) for step in (0, 5, 52, 53, 100)]
    assert 0.0 < rates[0] < 0.05
    assert rates[1] == pytest.approx(0.1, rel=0.01)
    assert rates[2] > 0.05 > rates[3] or rates[2] == pytest.approx(0.05, rel=0.05)
    assert rates[4] == pytest.approx(0.0, abs=1e-6)
    assert float(rate(0.1, 1)(0)) == pytest.approx(0.1)


@pytest.mark.usefixtures("pretrained", "quick_decoder")
def test_a_profile_measures_every_phase_as_it_is_trained(fn_args: FnArgs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both phases have a step time, a bound and the speed of their input; 8 photos stand for 48, where 48 are kept."""
    from pipeline.models.image import trainer
    from pipeline.training import photos, scratch
    from pipeline.training.profile import profile_run

    read: list[tuple[int, bool]] = []
    batches = photos.training_batches

    def spied(values: np.ndarray, *rest: Any) -> Any:
        read.append((len(values), isinstance(values, np.memmap)))
        return batches(values, *rest)

    monkeypatch.setattr(photos, "training_batches", spied)
    monkeypatch.setattr(trainer, "_PROFILED_PHOTOS", 8)
    # Less than the 48 photos' features take, more than those of 8.
    monkeypatch.setattr(scratch, "MEMORY_LIMIT_BYTES", 48 * 8)

    args = fn_args(backbone="efficientnet_lite0", weights="imagenet", feature_epochs=1, fine_tune_epochs=1)
    profile = profile_run(args.train_files, args.transform_output, args.custom_config["settings"], 20)
    assert read == [(48, True), (48, True)]
    assert [phase.name for phase in profile.phases] == ["features", "fine_tune"]
    for phase in profile.phases:
        assert (phase.steps, phase.batch_size) == (20, 8)
        assert phase.input_examples_per_s > 0.0
        assert phase.bound_ms > 0.0
        assert phase.step_ms > 0.0
