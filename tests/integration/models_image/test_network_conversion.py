"""The ImageNet weights do in Keras what they did in torch: against a forward pass in NumPy, and on photos."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from core.settings.images import ClassifierSettings
from pipeline.models.image import torch_file, weights
from pipeline.models.image.network import LOGITS, Network, build
from pipeline.training import legacy_keras

pytestmark = pytest.mark.integration

SETTINGS: dict[str, Any] = {
    "backbone": "efficientnet_lite0",
    "weights": "imagenet",
    "image_px": 64,
    "dropout": 0.0,
    "label_smoothing": 0.0,
    "class_weights": "none",
    "feature_epochs": 1,
    "feature_learning_rate": 0.001,
    "weight_decay": 0.0,
    "fine_tune_epochs": 1,
    "fine_tune_blocks": 13,
    "fine_tune_learning_rate": 0.0001,
    "augment": {
        "flip": False,
        "shift_share": 0.0,
        "zoom_share": 0.0,
        "brightness_share": 0.0,
        "contrast_share": 0.0,
    },
    "views": 1,
    "top_k": 5,
}
# The published table of blocks, written out: kernel and stride; the rest follows from the tensors.
KERNELS = (3, 3, 3, 5, 5, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 3)
STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1)
# Classes of ImageNet that a photo of each folder may well be taken for.
PLAUSIBLE = {
    "hat": {433, 439, 452, 515, 793, 808},
    "shoes": {502, 514, 630, 770, 774, 788},
    "pants": {608, 697, 834},
    "skirt": {601, 655, 689},
    "longsleeve": {474, 610, 834, 841},
    "t-shirt": {610, 841},
}
PHOTOS_EACH = 10


def _convolve(x: np.ndarray, kernel: np.ndarray, stride: int = 1) -> np.ndarray:
    """Returns a convolution padded by half a kernel, in torch's order of axes; depthwise when the kernel is."""
    half = kernel.shape[-1] // 2
    padded = np.pad(x, [(0, 0), (0, 0), (half, half), (half, half)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    if kernel.shape[1] == 1 and x.shape[1] > 1:
        return np.einsum("nchwij,cij->nchw", windows, kernel[:, 0])
    return np.einsum("nchwij,ocij->nohw", windows, kernel, optimize=True)


class TorchModel:
    """EfficientNet-Lite0 as torch would run it, from the tensors alone."""

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._tensors = tensors

    def _unit(self, x: np.ndarray, convolution: str, norm: str, stride: int = 1, activate: bool = True) -> np.ndarray:
        x = _convolve(x, self._tensors[f"{convolution}.weight"], stride)
        scale, shift, mean, variance = (
            self._tensors[f"{norm}.{part}"][:, None, None] for part in ("weight", "bias", "running_mean", "running_var")
        )
        x = (x - mean) / np.sqrt(variance + 1e-3) * scale + shift
        return np.clip(x, 0, 6) if activate else x

    def blocks(self, pixels: np.ndarray) -> list[np.ndarray]:
        """Returns the activations after each block, [batch, channels, side, side]."""
        x = self._unit((pixels.transpose(0, 3, 1, 2) - 127.0) / 128.0, "_conv_stem", "_bn0", 2)
        outputs = []
        for number, (kernel, stride) in enumerate(zip(KERNELS, STRIDES, strict=True)):
            name, inputs = f"_blocks.{number}", x
            assert self._tensors[f"{name}._depthwise_conv.weight"].shape[-1] == kernel
            if f"{name}._expand_conv.weight" in self._tensors:
                x = self._unit(x, f"{name}._expand_conv", f"{name}._bn0")
            x = self._unit(x, f"{name}._depthwise_conv", f"{name}._bn1", stride)
            x = self._unit(x, f"{name}._project_conv", f"{name}._bn2", activate=False)
            x = x + inputs if x.shape == inputs.shape else x
            outputs.append(x)
        return outputs

    def features(self, activations: np.ndarray) -> np.ndarray:
        """Returns [batch, 1280] for the activations after the last block."""
        return self._unit(activations, "_conv_head", "_bn1").mean((2, 3))


def _imagenet_classifier(side_px: int) -> Network:
    """Returns the network with ImageNet's own thousand classes on top."""
    legacy_keras.install()
    network = build(ClassifierSettings(**{**SETTINGS, "image_px": side_px}), 1000, 0)
    tensors = weights.imagenet()
    kernel, bias = (tensors[name] for name in weights.CLASSIFIER)
    network.head.get_layer(LOGITS).set_weights([kernel.T, bias])
    return network


def test_activations_equal_those_of_numpy() -> None:
    """After three blocks, at the end and in the logits, Keras and a forward pass in NumPy agree."""
    network, tensors = _imagenet_classifier(64), weights.imagenet()
    reference = TorchModel(tensors)
    pixels = np.random.default_rng(1).uniform(0, 255, (2, 64, 64, 3)).astype(np.float32)
    outputs = reference.blocks(pixels)
    trunk = network.trunk(pixels).numpy()
    np.testing.assert_allclose(trunk, outputs[2].transpose(0, 2, 3, 1), atol=2e-4)
    features = reference.features(outputs[-1])
    np.testing.assert_allclose(network.top(trunk), features, atol=2e-4)
    logits = features @ tensors["_fc.weight"].T + tensors["_fc.bias"]
    np.testing.assert_allclose(network.logits(pixels), logits, atol=2e-3)
    # Two photos of noise differ by much more than the tolerance.
    assert np.abs(logits[0] - logits[1]).max() > 0.1


def _sample() -> dict[str, np.ndarray]:
    """Returns a few photos of each folder, {folder: float32[photos, 224, 224, 3]}."""
    root = Path(os.environ.get("FOREBAY_PHOTOS", ""))
    if not os.environ.get("FOREBAY_PHOTOS") or not root.is_dir():
        pytest.skip("FOREBAY_PHOTOS names no folder of photos")
    sample = {}
    for folder in PLAUSIBLE:
        paths = sorted(root.glob(f"*/{folder}/*.jpg"))
        if len(paths) < PHOTOS_EACH:
            pytest.skip(f"FOREBAY_PHOTOS has fewer than {PHOTOS_EACH} photos in */{folder}")
        chosen = paths[:: len(paths) // PHOTOS_EACH][:PHOTOS_EACH]
        photos = [ImageOps.exif_transpose(Image.open(path)).convert("RGB").resize((224, 224)) for path in chosen]
        sample[folder] = np.stack([np.asarray(photo, np.float32) for photo in photos])
    return sample


def _plausible_share(network: Network, sample: Mapping[str, np.ndarray]) -> float:
    """Returns the share of photos with a plausible class among the best five."""
    hits = []
    for folder, photos in sample.items():
        best = np.argsort(network.logits(photos).numpy(), axis=1)[:, -5:]
        hits += [bool(PLAUSIBLE[folder] & set(row.tolist())) for row in best]
    return float(np.mean(hits))


def test_photos_are_recognized() -> None:
    """Most photos of clothes have a garment of ImageNet's that fits among the best five of a thousand classes."""
    assert _plausible_share(_imagenet_classifier(224), _sample()) > 0.7


def test_a_reader_that_ignores_strides_recognizes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without strides every shape still fits and the network falls to chance: that is why the reader has them."""
    sample = _sample()

    def contiguous(view: Any, values: np.ndarray) -> np.ndarray:
        return values[view.offset : view.offset + int(np.prod(view.shape))].reshape(view.shape)

    monkeypatch.setattr(torch_file._View, "of", contiguous)
    assert _plausible_share(_imagenet_classifier(224), sample) < 0.15
