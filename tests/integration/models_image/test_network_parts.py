"""The network in parts: sizes, what is trained, what a seed decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError
from core.settings.images import ClassifierSettings
from pipeline.models.image import efficientnet_lite
from pipeline.models.image.network import Network, build
from pipeline.training import legacy_keras

pytestmark = pytest.mark.integration

BASE: dict[str, Any] = {
    "backbone": "efficientnet_lite0",
    "weights": "imagenet",
    "image_px": 64,
    "dropout": 0.2,
    "label_smoothing": 0.1,
    "class_weights": "none",
    "feature_epochs": 1,
    "feature_learning_rate": 0.001,
    "weight_decay": 0.0,
    "fine_tune_epochs": 1,
    "fine_tune_blocks": 2,
    "fine_tune_learning_rate": 0.0001,
    "augment": {
        "flip": True,
        "shift_share": 0.0,
        "zoom_share": 0.0,
        "brightness_share": 0.0,
        "contrast_share": 0.0,
    },
    "views": 1,
    "top_k": 3,
}
PRETRAINED = pytest.param({}, id="pretrained")
SCRATCH = pytest.param({"weights": "none"}, id="from scratch")
SMALL = pytest.param({"backbone": "small_cnn", "weights": "none"}, id="small")


def _build(changes: dict[str, Any], classes: int = 7, seed: int = 3) -> Network:
    """Returns a network of its own, which a test may change."""
    legacy_keras.install()
    return build(ClassifierSettings(**{**BASE, **changes}), classes, seed)


def _photos(count: int = 2, side: int = 64) -> np.ndarray:
    return np.random.default_rng(5).uniform(0, 255, (count, side, side, 3)).astype(np.float32)


def test_the_published_number_of_parameters() -> None:
    """With ImageNet's thousand classes the network has the 4.65 million parameters that its authors publish."""
    network = _build({"weights": "none"}, classes=1000)
    assert sum(int(np.prod(variable.shape)) for variable in network.top.trainable_variables) == 3_371_008
    assert network.head.count_params() == 1_281_000


@pytest.mark.parametrize(
    ("changes", "activations", "features"),
    [
        pytest.param({}, (2, 2, 192), 1280, id="two blocks"),
        pytest.param({"fine_tune_blocks": 0, "image_px": 96}, (3, 3, 320), 1280, id="head convolution only"),
        pytest.param({"fine_tune_blocks": 16}, (32, 32, 32), 1280, id="all blocks"),
        pytest.param({"weights": "none"}, (64, 64, 3), 1280, id="from scratch"),
        pytest.param({"backbone": "small_cnn", "weights": "none"}, (64, 64, 3), 256, id="small"),
    ],
)
def test_shapes(changes: dict[str, Any], activations: tuple[int, ...], features: int) -> None:
    """The parts fit together, and the cut lies where the settings put it."""
    network = _build(changes)
    pixels = _photos(side=changes.get("image_px", 64))
    assert network.trunk.output_shape == (None, *activations)
    assert network.top(network.trunk(pixels)).shape == (2, features)
    logits = network.logits(pixels)
    assert logits.shape == (2, 7)
    assert logits.dtype.name == "float32"


def test_the_cut_changes_nothing() -> None:
    """Wherever the backbone is cut, the features of a photo are the same."""
    pixels = _photos()
    features = []
    for blocks in (0, 16):
        network = _build({"fine_tune_blocks": blocks})
        features.append(network.top(network.trunk(pixels)).numpy())
    np.testing.assert_allclose(features[1], features[0], atol=1e-4)
    assert features[0].std() > 0.05


@pytest.mark.parametrize("changes", [PRETRAINED, SCRATCH, SMALL])
def test_gradients_reach_what_is_trained(changes: dict[str, Any]) -> None:
    """Nothing in the trunk can be trained; every trainable variable of the top and the head gets a gradient."""
    import tensorflow as tf

    network = _build(changes)
    trained = [*network.top.trainable_variables, *network.head.trainable_variables]

    @tf.function(autograph=False)
    def gradients(pixels: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 2, 3], network.logits(pixels, training=True))
        return tape.gradient(loss, trained)

    assert network.trunk.trainable_variables == []
    assert len(network.variables) == len({variable.ref() for variable in network.variables})
    for variable, gradient in zip(trained, gradients(_photos(4)), strict=True):
        assert gradient is not None, variable.name
        assert np.isfinite(gradient).all(), variable.name
        assert np.abs(gradient).max() > 0, variable.name


@pytest.mark.parametrize(("changes", "moves"), [(PRETRAINED.values[0], False), (SCRATCH.values[0], True)])
def test_statistics_move_only_from_scratch(changes: dict[str, Any], moves: bool) -> None:
    """Batch normalization keeps its pretrained statistics while fine-tuning, and learns them from scratch."""
    network = _build({**changes, "dropout": 0.0})
    before = [variable.numpy() for variable in network.top.non_trainable_variables]
    pixels = _photos(4)
    trained, served = network.logits(pixels, training=True), network.logits(pixels, training=False)
    after = [variable.numpy() for variable in network.top.non_trainable_variables]
    assert any(not np.array_equal(old, new) for old, new in zip(before, after, strict=True)) is moves
    assert np.allclose(trained, served, atol=1e-5) is not moves


@pytest.mark.parametrize("changes", [PRETRAINED, SMALL])
def test_a_seed_decides_every_weight(changes: dict[str, Any]) -> None:
    """Equal seeds give equal networks; another seed gives others, but never another pretrained backbone."""
    first, again, other = _build(changes), _build(changes), _build(changes, seed=4)
    for one, two in zip(first.variables, again.variables, strict=True):
        np.testing.assert_array_equal(one, two)
    pixels = _photos()
    np.testing.assert_array_equal(first.logits(pixels), again.logits(pixels))
    assert not np.allclose(first.logits(pixels), other.logits(pixels))
    same_features = np.allclose(first.top(first.trunk(pixels)), other.top(other.trunk(pixels)), atol=1e-5)
    assert same_features is (changes == {})


def test_convolutions_from_scratch() -> None:
    """A seed decides the kernels, and no two convolutions of the same shape begin with the same ones."""
    one, again = (
        {layer.name: layer.get_weights()[0] for layer in _build({"weights": "none"}).top.layers if layer.weights}
        for _ in range(2)
    )
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert one["block_12_expand"].shape == one["block_13_expand"].shape
    assert not np.allclose(one["block_12_expand"], one["block_13_expand"])


def test_dropout_only_in_training() -> None:
    """Dropout changes logits while training and never when serving."""
    network = _build({"backbone": "small_cnn", "weights": "none", "dropout": 0.5})
    pixels = _photos()
    np.testing.assert_array_equal(network.logits(pixels), network.logits(pixels))
    assert not np.allclose(network.logits(pixels, training=True), network.logits(pixels))


def test_more_blocks_than_there_are() -> None:
    """A number of blocks beyond the network's is refused with the setting and its range."""
    with pytest.raises(ConfigError, match="has 16 blocks, not 17") as caught:
        _build({"fine_tune_blocks": 17})
    assert caught.value.place == "classifier.fine_tune_blocks"
    assert len(efficientnet_lite.BLOCKS) == 16
