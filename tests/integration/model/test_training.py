"""Training: what reaches the model, in which order, and what stops it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import DataError, EnvironmentProblem, RefusedError

pytestmark = pytest.mark.integration

TWO_DEVICES = """
import json
from pipeline.training import legacy_keras
legacy_keras.install()
import tensorflow as tf
from pipeline.training import loop
from pipeline.training.steps import plan_steps

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
losses = {}
for strategy in (tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])):
    x = tf.random.stateless_uniform([64], [1, 2])
    batches = tf.data.Dataset.from_tensors(({"x": x}, tf.cast(x > 0.5, tf.float32))).repeat()
    with strategy.scope():
        column = tf.keras.Input(shape=(), name="x")
        logits = tf.keras.layers.Dense(1, kernel_initializer="zeros")(column[:, tf.newaxis])
        model = tf.keras.Model({"x": column}, logits)
        optimizer = tf.keras.optimizers.SGD(0.5)
        optimizer.build(model.trainable_variables)
    plan = plan_steps(
        train_examples=640, eval_examples=1, batch_size=64, epochs=2, train_steps=None, eval_steps=None
    )
    loss = lambda labels, logits: tf.nn.sigmoid_cross_entropy_with_logits(labels, tf.reshape(logits, [-1]))
    epochs = loop.train(model, optimizer, batches, plan, loss, strategy)
    losses[strategy.num_replicas_in_sync] = [epoch.loss for epoch in epochs]
print(json.dumps(losses))
"""


@pytest.fixture
def numbered(tmp_path: Path) -> Callable[..., Any]:
    """Writes splits of examples {n: 0, 1, 2, ..., y: n % 2} and reads them back as `records.read_split` does."""
    import tensorflow as tf

    from pipeline.training import records

    spec = {name: tf.io.FixedLenFeature([], tf.int64) for name in ("n", "y")}

    def make(count: int, name: str = "train", files: int = 1, label: Callable[[int], int] = lambda n: n % 2) -> Any:
        for file in range(files):
            with tf.io.TFRecordWriter(str(tmp_path / f"{name}-{file}.gz"), "GZIP") as writer:
                for number in range(file, count, files):
                    example = tf.train.Example()
                    example.features.feature["n"].int64_list.value.append(number)
                    example.features.feature["y"].int64_list.value.append(label(number))
                    writer.write(example.SerializeToString())
        return records.read_split([str(tmp_path / f"{name}-*.gz")], spec, "y", name)

    return make


def order(split: Any, batches: int, batch_size: int, seed: int) -> list[list[int]]:
    """Returns the numbers of the examples in the first training batches."""
    from pipeline.training import records

    data = records.training_batches(split, batch_size, seed).take(batches)
    return [features["n"].numpy().tolist() for features, _ in data]


def test_a_pass_sees_each_example_once_even_across_batches(numbered: Callable[..., Any]) -> None:
    """10 examples in batches of 4: five batches are exactly two passes, each a permutation, and they differ."""
    seen = list(itertools.chain.from_iterable(order(numbered(10), 5, 4, seed=1)))
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10] != seen[10:]
    assert seen[:10] != list(range(10))


@pytest.mark.parametrize("in_memory", [pytest.param(True, id="in memory"), pytest.param(False, id="streamed")])
def test_the_seed_decides_the_order(
    numbered: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    """Equal seeds give equal batches, different seeds do not; small and large splits alike."""
    from pipeline.training import records

    if not in_memory:
        monkeypatch.setattr(records, "MEMORY_LIMIT_BYTES", 0)
    split = numbered(100, files=3)
    assert (split.columns is not None) is in_memory
    assert split.count == 100
    assert order(split, 6, 16, seed=1) == order(split, 6, 16, seed=1) != order(split, 6, 16, seed=2)


def test_a_split_too_large_for_memory_is_streamed_whole(
    numbered: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streaming reads every file, fills every batch, keeps labels with their examples, and evaluates each row once."""
    from pipeline.training import records

    monkeypatch.setattr(records, "MEMORY_LIMIT_BYTES", 0)
    split = numbered(30, files=3)
    seen = [
        (int(n), int(y))
        for features, labels in records.training_batches(split, 6, 1).take(5)
        for n, y in zip(features["n"], labels, strict=True)
    ]
    assert sorted(seen) == [(n, n % 2) for n in range(30)]
    evaluated = [features["n"].numpy().tolist() for features, _ in records.evaluation_batches(split, 8)]
    assert sorted(itertools.chain.from_iterable(evaluated)) == list(range(30))
    assert [len(batch) for batch in evaluated] == [8, 8, 8, 6]


def test_batches_are_full_when_there_are_fewer_examples_than_a_batch_holds(numbered: Callable[..., Any]) -> None:
    """3 examples fill a batch of 8 by repetition; evaluation still sees 3."""
    from pipeline.training import records

    split = numbered(3)
    (batch,) = order(split, 1, 8, seed=1)
    assert len(batch) == 8
    assert set(batch) == {0, 1, 2}
    assert [labels.shape[0] for _, labels in records.evaluation_batches(split, 8)] == [3]


def test_rows_without_a_usable_label_are_counted_and_refused(numbered: Callable[..., Any]) -> None:
    """An unknown label is never trained on as if it were one of the classes."""
    with pytest.raises(DataError, match="2 of 9 train examples have no usable label"):
        numbered(9, label=lambda n: -1 if n in (3, 5) else 1)


def test_an_empty_or_absent_split_is_named(numbered: Callable[..., Any], tmp_path: Path) -> None:
    """A split without examples, or without files, is an error that says which."""
    from pipeline.training import records

    with pytest.raises(DataError, match="the eval split has no example"):
        numbered(0, name="eval")
    with pytest.raises(DataError, match="the test split has no file"):
        records.read_split([f"{tmp_path}/nothing-*"], {}, "y", "test")


def test_a_training_leaves_events_and_a_summary(table: Any, trained: Path) -> None:
    """The run directory holds TensorBoard events of both splits and the facts of the training."""
    for split in ("train", "eval"):
        assert list((trained / "run" / split).glob("events.out.tfevents.*"))
    summary = json.loads((trained / "run" / "training_summary.json").read_text())
    assert summary["steps"] == 75
    assert summary["examples"] == {"train": 400, "eval": 21}
    assert summary["loss"] < 0.5
    assert summary["eval"]["accuracy"] > 0.7


def test_training_with_fewer_eval_rows_than_a_batch_and_without_events(table: Any, tmp_path: Path) -> None:
    """A batch of 64 with 21 eval rows trains, evaluates all 21, and writes no events when told so."""
    from pipeline.models.tabular.trainer import run_fn

    run_fn(table.fn_args(tmp_path, batch_size=64, steps=3, tensorboard=False))
    assert (tmp_path / "model" / "saved_model.pb").is_file()
    assert [file.name for file in (tmp_path / "run").rglob("*")] == ["training_summary.json"]


def test_a_loss_that_is_not_a_number_stops_the_training(table: Any, tmp_path: Path) -> None:
    """A learning rate that diverges ends in one sentence about it, and exports nothing."""
    from pipeline.models.tabular.trainer import run_fn

    with pytest.raises(RefusedError, match=r"the loss is (nan|inf) after \d+ training steps"):
        run_fn(table.fn_args(tmp_path, learning_rate=1e38))
    assert not (tmp_path / "model").exists()


def test_progress_is_one_line_an_epoch(table: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log has one line for each pass, also for a short last one."""
    from pipeline.models.tabular.trainer import run_fn

    with caplog.at_level("INFO", "forebay.training"):
        run_fn(table.fn_args(tmp_path, steps=30))
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("epoch")]
    assert [line.split(":")[0] for line in lines] == ["epoch 1", "epoch 2", "epoch 3"]
    assert "(30 of 30 steps)" in lines[-1]


def test_two_devices_learn_what_one_learns() -> None:
    """Mirrored over two devices, the losses are those of one device: each replica adds its share of the mean."""
    result = subprocess.run([sys.executable, "-c", TWO_DEVICES], capture_output=True, text=True, check=True)
    losses = json.loads(result.stdout.splitlines()[-1])
    np.testing.assert_allclose(losses["2"], losses["1"], rtol=1e-5)
    assert losses["1"][1] < losses["1"][0]


def test_an_export_that_lost_a_file_or_changed_its_mind_is_refused(trained: Path, tmp_path: Path) -> None:
    """Verification compares answers, and names a missing file."""
    from pipeline.training import export

    rows = {"examples": np.array([], dtype=object)}
    with pytest.raises(EnvironmentProblem, match=r"has no saved_model\.pb"):
        export.verify(str(tmp_path), "serving_default", rows, {})
    import tensorflow as tf

    module = tf.Module()
    module.scale = tf.Variable(2.0)
    double = tf.function(lambda x: {"y": x * module.scale}, input_signature=[tf.TensorSpec([None], name="x")])
    export.save(module, str(tmp_path / "double"), {"dense": double.get_concrete_function()})
    asked = {"x": np.array([1.0, 3.0], "f4")}
    export.verify(str(tmp_path / "double"), "dense", asked, {"y": np.array([2.0, 6.0])})
    with pytest.raises(RefusedError, match="y is off by 1"):
        export.verify(str(tmp_path / "double"), "dense", asked, {"y": np.array([2.0, 5.0])})
    with pytest.raises(RefusedError, match="answers y with a number that is not finite"):
        export.verify(str(tmp_path / "double"), "dense", {"x": np.array([np.inf], "f4")}, {"y": np.array([0.0])})


def test_the_wrong_keras_is_an_environment_problem() -> None:
    """When something bound tf.keras to Keras 3 first, installing says so instead of training with it."""
    code = (
        "import tensorflow as tf; tf.keras.Model\n"
        "from core.errors import EnvironmentProblem\n"
        "from pipeline.training import legacy_keras\n"
        "try:\n    legacy_keras.install()\nexcept EnvironmentProblem as error:\n    print(error)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "not tf_keras" in result.stdout


def test_keras_own_source_is_exempt_from_autograph_once() -> None:
    """Installing twice adds the exemption once, in front of the other rules."""
    from tensorflow.python.autograph.core import config

    from pipeline.training import legacy_keras

    legacy_keras.install()
    once = config.CONVERSION_RULES
    legacy_keras.install()
    assert once == config.CONVERSION_RULES
    assert str(once[0]) == "DoNotConvert rule for tf_keras"
