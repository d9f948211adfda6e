"""The frozen part of the photo classifier in TensorFlow against TensorFlow Lite: photos a second, and how they differ.

    .venv/bin/python -m benchmarks.frozen --photos 64 --rounds 5

Both sides get the same batches in one process, in alternating order. Needs the extra `pretrained`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.settings import load
from pipeline.training import legacy_keras

RECIPE = Path(__file__).resolve().parents[1] / "configs" / "clothing.yaml"


def sides(side_px: int) -> dict[str, Callable[[Any], Any]]:
    """Returns the two functions from float32[photos, side, side, 3] to the activations of the trunk."""
    import tensorflow as tf

    from pipeline.models.image import network
    from pipeline.training.frozen import Frozen

    classifier = load([str(RECIPE)], [f"classifier.image_px={side_px}"]).settings.classifier
    trunk = network.build(classifier, 2, 1).trunk

    def forward(pixels: Any) -> Any:
        return trunk(pixels, training=False)

    plain = tf.function(forward, [tf.TensorSpec([None, side_px, side_px, 3], tf.float32)], autograph=False)
    return {"tensorflow": lambda rows: plain(rows).numpy(), "lite": Frozen(forward, [side_px, side_px, 3])}


def main() -> None:
    """Parses the command line and prints the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--photos", type=int, default=64, help="photos a round")
    parser.add_argument("--side-px", type=int, default=288, help="side of the network's input")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    legacy_keras.install()
    import numpy as np

    shape = (arguments.photos, arguments.side_px, arguments.side_px, 3)
    rows = np.random.default_rng(1).uniform(0, 255, shape).astype(np.float32)
    both = sides(arguments.side_px)
    answers = {name: run(rows) for name, run in both.items()}
    seconds: dict[str, list[float]] = {name: [] for name in both}
    for number in range(arguments.rounds):
        for name in both if number % 2 == 0 else reversed(both):
            started = time.monotonic()
            both[name](rows)
            seconds[name].append(time.monotonic() - started)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name:<12}{arguments.photos / median:8.1f} photos/s")
    print(f"ratio       {medians['tensorflow'] / medians['lite']:8.2f} times TensorFlow")
    difference = np.abs(answers["lite"] - answers["tensorflow"]).max() / np.abs(answers["tensorflow"]).max()
    print(f"difference  {difference:8.1e} of the largest answer")


if __name__ == "__main__":
    main()
