"""AUC and accuracy of two taxi models on the same held-out trips. Run as a child: it loads TensorFlow.

Held out means: the trip is in the eval split of both pipelines and no trip equal to it is in either train split. Each
pipeline splits by its own hash, so that is about a ninth of the rows. Each model is given the trip as its own pipeline
serialized it (one writes a census tract as a number, the other as text) through its `serving_default` signature.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Key = tuple[tuple[str, Any], ...]
_GZIP = b"\x1f\x8b"
_BATCH = 512
_SCORE_NAMES = ("probability", "outputs")


def read_split(folder: Path) -> Iterator[tuple[Key, bytes]]:
    """Yields (identity, serialized tf.Example) of every record below a split's folder."""
    import tensorflow as tf

    for path in sorted(folder.iterdir()):
        with open(path, "rb") as stream:
            compression = "GZIP" if stream.read(2) == _GZIP else ""
        for record in tf.data.TFRecordDataset([str(path)], compression).as_numpy_iterator():
            yield identity(tf.train.Example.FromString(record)), record


def identity(example: Any) -> Key:
    """Returns what makes two trips the same, whatever types a pipeline gave their cells; missing cells do not count."""
    cells = []
    for name, feature in example.features.feature.items():
        values = getattr(feature, feature.WhichOneof("kind") or "float_list").value
        if len(values) and values[0] != b"":
            cells.append((name, _comparable(values[0])))
    return tuple(sorted(cells))


def _comparable(value: Any) -> float | str:
    text = value.decode("utf-8") if isinstance(value, bytes) else value
    try:
        # Both pipelines store numbers as float32 at the latest when they make features of them.
        return float(np.float32(text))
    except ValueError:
        return str(text)


def held_out(first: Path, second: Path) -> tuple[list[Key], dict[Key, bytes], dict[Key, bytes]]:
    """Returns the trips that neither pipeline trained on, and their serialized form in each."""
    trained = {key for side in (first, second) for key, _ in read_split(side / "Split-train")}
    sides = [dict(read_split(side / "Split-eval")) for side in (first, second)]
    keys = sorted((sides[0].keys() & sides[1].keys()) - trained, key=repr)
    return [key for key in keys if {"fare", "tips"} <= dict(key).keys()], sides[0], sides[1]


def scores(model: Path, examples: list[bytes]) -> np.ndarray:
    """Returns the probability of a big tip for each serialized trip, float64[rows]."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(model))
    signature = loaded.signatures["serving_default"]
    found = []
    for start in range(0, len(examples), _BATCH):
        outputs = signature(examples=tf.constant(examples[start : start + _BATCH]))
        name = next(name for name in _SCORE_NAMES if name in outputs)
        found.append(outputs[name].numpy().reshape(-1))
    return np.concatenate(found).astype(np.float64)


def auc(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Returns the area under the ROC curve, exactly: the share of (positive, negative) pairs in the right order.

    Args:
        labels: bool[rows].
        probabilities: float[rows]; ties count half.
    """
    _, inverse, counts = np.unique(probabilities, return_inverse=True, return_counts=True)
    middle_ranks = np.cumsum(counts) - (counts - 1) / 2
    positives = int(labels.sum())
    negatives = len(labels) - positives
    rank_sum = float(middle_ranks[inverse][labels].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def compare(peer_model: Path, peer_examples: Path, our_model: Path, our_examples: Path) -> dict[str, Any]:
    """Returns the number of held-out trips and both models' AUC and accuracy on them."""
    keys, peer_rows, our_rows = held_out(peer_examples, our_examples)
    trips = [dict(key) for key in keys]
    labels = np.array([np.float32(trip["tips"]) > np.float32(trip["fare"]) * np.float32(0.2) for trip in trips])
    result: dict[str, Any] = {"rows": len(keys), "positives": int(labels.sum())}
    for name, model, rows in (("peer", peer_model, peer_rows), ("ours", our_model, our_rows)):
        probabilities = scores(model, [rows[key] for key in keys])
        accuracy = float(np.mean((probabilities >= 0.5) == labels))
        result[name] = {"auc": auc(labels, probabilities), "accuracy": accuracy}
    return result


if __name__ == "__main__":
    print(json.dumps(compare(*(Path(argument) for argument in sys.argv[1:5]))))
