"""A network that is only asked: as fast as this machine can, and only by what was held against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.integration

SIDE_PX = 32


@pytest.fixture(scope="module")
def trunk() -> Any:
    """The first blocks of EfficientNet-Lite0 with seeded weights, from pixels to activations."""
    from core.settings import load
    from core.settings.load import BASE_FILE
    from pipeline.models.image import network

    flags = [f"classifier.image_px={SIDE_PX}", "classifier.fine_tune_blocks=12"]
    settings = load([str(BASE_FILE.parent / "clothing.yaml")], flags).settings
    return network.build(settings.classifier, 3, 1).trunk


def pixels(rows: int) -> np.ndarray:
    """Returns float32[rows, side, side, 3], 0 to 255."""
    return np.random.default_rng(rows).uniform(0, 255, (rows, SIDE_PX, SIDE_PX, 3)).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 8, 21])
def test_every_row_gets_what_tensorflow_answers(trunk: Any, rows: int) -> None:
    """Batches that fill no whole piece, one piece or several: each row in its place, equal to float32's noise."""
    from pipeline.training.frozen import Frozen

    frozen = Frozen(lambda values: trunk(values, training=False), [SIDE_PX, SIDE_PX, 3])
    found, expected = frozen(pixels(rows)), trunk(pixels(rows), training=False).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
    assert frozen.engine == "TensorFlow Lite"


def test_a_network_that_cannot_be_converted_runs_in_tensorflow(caplog: pytest.LogCaptureFixture) -> None:
    """An operation that TensorFlow Lite lacks costs time, not the run, and the log says so."""
    import tensorflow as tf

    from pipeline.training.frozen import Frozen

    def forward(values: tf.Tensor) -> tf.Tensor:
        return tf.strings.to_number(tf.strings.as_string(tf.reduce_mean(values, axis=[1, 2, 3]), precision=3))

    frozen = Frozen(forward, [SIDE_PX, SIDE_PX, 3])
    rows = pixels(3)
    np.testing.assert_allclose(frozen(rows), rows.mean(axis=(1, 2, 3)), atol=1e-2)
    assert frozen.engine == "TensorFlow"
    assert "which is slower" in caplog.text


def test_answers_that_differ_are_not_used(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A runtime that computes something else is noticed before its first answer counts."""
    import tensorflow as tf

    from pipeline.training import frozen as module

    asked = module._Interpreters._ask
    monkeypatch.setattr(module._Interpreters, "_ask", lambda self, piece: asked(self, piece) * 1.01)
    frozen = module.Frozen(lambda values: tf.reduce_mean(values, axis=[1, 2]), [SIDE_PX, SIDE_PX, 3])
    rows = pixels(2)
    np.testing.assert_allclose(frozen(rows), rows.mean(axis=(1, 2)), rtol=1e-5)
    assert frozen.engine == "TensorFlow"
    assert "differ by" in caplog.text


def test_every_core_gets_a_piece_and_few_pieces_few_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is as large as all cores need it; pieces that come one at a time meet one interpreter."""
    from pipeline.training import frozen as module

    monkeypatch.setattr(module, "_cores", lambda: 12)
    frozen = module.Frozen(lambda values: values * 2.0, [4])
    assert frozen.batch_size == 12 * module._PIECE
    used: set[Any] = set()
    asked = module.tf.lite.Interpreter.invoke
    monkeypatch.setattr(module.tf.lite.Interpreter, "invoke", lambda self: (used.add(self), asked(self)))
    rows = np.ones((module._PIECE, 4), np.float32)
    for _ in range(5):
        np.testing.assert_array_equal(frozen(rows), rows * 2.0)
    assert len(used) == 1
