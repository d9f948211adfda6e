"""The exported classifier of photos: its signatures, and that it answers alike wherever it is loaded."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.integration

SIDE_PX, CLASSES, TOP_K = 48, 4, 3
ANSWERS = {
    "label": ("string", [None]),
    "probability": ("float32", [None]),
    "parent": ("string", [None]),
    "parent_probability": ("float32", [None]),
    "top_labels": ("string", [None, TOP_K]),
    "top_probabilities": ("float32", [None, TOP_K]),
    "probabilities": ("float32", [None, CLASSES]),
}
# Runs in a process that has TensorFlow and nothing of this project; TensorFlow's own choice of Keras is in force.
CLIENT = """
import base64, json, sys
import tensorflow as tf
photos = [base64.b64decode(photo) for photo in json.load(sys.stdin)]
model = tf.saved_model.load(sys.argv[1])
eager = model.signatures["serving_raw"](image=tf.constant(photos))
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    loaded = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    entry = loaded.signature_def["serving_raw"]
    outputs = {name: info.name for name, info in entry.outputs.items()}
    graph = session.run(outputs, {entry.inputs["image"].name: photos})
    try:
        session.run(outputs, {entry.inputs["image"].name: [photos[0], b"<html>"]})
    except tf.errors.InvalidArgumentError as error:
        refused = error.message.splitlines()
ours = [name for name in sys.modules if name.split(".")[0] in ("pipeline", "core", "tensorflow_transform", "tf_keras")]
print(json.dumps({
    "eager": eager["probabilities"].numpy().tolist(), "graph": graph["probabilities"].tolist(),
    "labels": [label.decode() for label in graph["label"]], "imported": ours, "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def model(export: Any) -> Any:
    """The exported model, loaded."""
    import tensorflow as tf

    return tf.saved_model.load(export.model_dir)


@pytest.fixture(scope="module")
def shown(photos: Any) -> list[bytes]:
    """Photos of several sizes and kinds."""
    kinds = ["JPEG", "PNG", "JPEG", "GIF", "BMP"]
    return [photos.encode(photos.draw(90 + 40 * row, 150, seed=row), kind) for row, kind in enumerate(kinds)]


def test_the_four_signatures_have_the_promised_inputs_and_outputs(model: Any) -> None:
    """Names, types and shapes are those of the contract."""
    inputs = {
        "serving_default": {"examples": ("string", [None])},
        "serving_raw": {"image": ("string", [None])},
        "transform_features": {"examples": ("string", [None])},
        "dense": {"pixels": ("float32", [None, SIDE_PX, SIDE_PX, 3])},
    }
    outputs = {
        "serving_default": ANSWERS,
        "serving_raw": ANSWERS,
        "transform_features": {"image": ("string", [None]), "label_index": ("int64", [None])},
        "dense": {"probabilities": ("float32", [None, CLASSES])},
    }

    def read(specs: Any) -> dict[str, tuple[str, list[int | None]]]:
        return {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in specs.items()}

    assert {name: read(one.structured_input_signature[1]) for name, one in model.signatures.items()} == inputs
    assert {name: read(one.structured_outputs) for name, one in model.signatures.items()} == outputs


def test_a_process_with_only_tensorflow_sees_every_twin_alike(photos: Any, export: Any, tmp_path: Path) -> None:
    """I03: loaded eagerly and as TensorFlow Serving does, eight orientations of a photo get one answer."""
    from pipeline.models.image import decoder

    upright = photos.draw()
    sent = [photos.on_its_side(upright, stored) for stored in range(1, 9)]
    sent += [photos.on_its_side(upright, stored, "PNG") for stored in (1, 6)]
    environment = {key: value for key, value in os.environ.items() if key not in ("TF_USE_LEGACY_KERAS", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, export.model_dir],
        input=json.dumps([base64.b64encode(photo).decode() for photo in sent]),
        capture_output=True, text=True, check=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["imported"] == []
    # 300 x 200 in the middle of white.
    square = Image.new("RGB", (SIDE_PX, SIDE_PX), "white")
    square.paste(upright.resize((SIDE_PX, SIDE_PX * 2 // 3), Image.Resampling.BILINEAR), (0, SIDE_PX // 6))
    pixels = np.asarray(square, np.float32)
    expected = softmax(export.logits(pixels[np.newaxis]).numpy())[0]
    # The classifier is no friend of errors: turned by hand, the photo is another class.
    turned = softmax(export.logits(np.rot90(pixels)[np.newaxis].copy()).numpy())[0]
    assert np.abs(turned - expected).max() > 0.1
    for how in ("eager", "graph"):
        np.testing.assert_allclose(answer[how], np.tile(expected, (len(sent), 1)), atol=0.02)
    assert len(set(answer["labels"])) == 1
    assert [line for line in answer["refused"] if "row" in line] == [
        f"assertion failed: [row 1 of the batch is no photo: {decoder.ADVICE}]"
    ]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Returns probabilities, float[batch, classes]."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_examples_photos_and_pixels_get_the_same_answers(export: Any, model: Any, shown: list[bytes]) -> None:
    """serving_default, which reads the image alone, serving_raw and dense agree, for a batch and for each row."""
    import tensorflow as tf

    from pipeline.models.image import decoder

    raw = model.signatures["serving_raw"](image=tf.constant(shown))
    bare = [tf.train.Example() for _ in shown]
    for made, photo in zip(bare, shown, strict=True):
        made.features.feature["image"].bytes_list.value.append(photo)
    for examples in (
        [export.example(photo, "any > thing") for photo in shown],
        [made.SerializeToString() for made in bare],
    ):
        default = model.signatures["serving_default"](examples=tf.constant(examples))
        for name, value in raw.items():
            assert value.numpy().tolist() == default[name].numpy().tolist(), name
    pixels = tf.cast(decoder.decode_batch(tf.constant(shown), SIDE_PX), tf.float32)
    np.testing.assert_allclose(
        model.signatures["dense"](pixels=pixels)["probabilities"], raw["probabilities"], atol=1e-6
    )
    for row, photo in enumerate(shown):
        alone = model.signatures["serving_raw"](image=tf.constant([photo]))
        np.testing.assert_allclose(alone["probabilities"][0], raw["probabilities"][row], atol=1e-6)


def test_dense_holds_numbers_only(model: Any) -> None:
    """The signature that an optimizer converts has no operation on strings and no table in it."""
    graph = model.signatures["dense"].graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    kinds = {node.op for node in nodes}
    assert not {kind for kind in kinds if "String" in kind or "Decode" in kind or "Table" in kind or "Dataset" in kind}


def test_a_parent_is_the_sum_of_its_classes_and_the_best_come_first(
    export: Any, model: Any, shown: list[bytes]
) -> None:
    """Both levels of every answer, and its list, follow from the probabilities, joined by the names in the map."""
    import tensorflow as tf

    from core import label_map

    labels = label_map.read(export.model_dir).labels
    answers = {name: value.numpy() for name, value in model.signatures["serving_raw"](image=tf.constant(shown)).items()}
    assert len(set(answers["label"])) > 1
    for row, chances in enumerate(answers["probabilities"]):
        assert chances.sum() == pytest.approx(1.0, abs=1e-6)
        order = sorted(range(CLASSES), key=lambda index: -chances[index])
        best = labels[order[0]]
        parent = best.split(" > ")[0]
        assert answers["label"][row].decode() == best
        assert answers["parent"][row].decode() == parent
        assert answers["probability"][row] == chances.max()
        summed = sum(chance for label, chance in zip(labels, chances, strict=True) if label.startswith(f"{parent} > "))
        assert answers["parent_probability"][row] == pytest.approx(summed, abs=1e-6)
        assert [label.decode() for label in answers["top_labels"][row]] == [labels[index] for index in order[:TOP_K]]
        assert answers["top_probabilities"][row].tolist() == [chances[index] for index in order[:TOP_K]]


def test_transform_features_joins_by_name(export: Any, model: Any) -> None:
    """I10: the index of a class depends on its name only; without a label, or with a strange one, it is -1."""
    import tensorflow as tf

    labels = ["accessories > bag", "tops > shirt", None, "hats > cap", "footwear > sandálky", "tops"]
    examples = [export.example(b"photo", label) for label in labels]
    found = model.signatures["transform_features"](examples=tf.constant(examples))
    assert found["label_index"].numpy().tolist() == [3, 0, -1, -1, 2, -1]
    assert found["image"].numpy().tolist() == [b"photo"] * len(labels)


def test_an_empty_batch_gets_an_empty_answer(model: Any) -> None:
    """A batch of no rows is no error, in any signature."""
    import tensorflow as tf

    none = tf.zeros([0], tf.string)
    for name, key in (("serving_default", "examples"), ("serving_raw", "image")):
        answers = model.signatures[name](**{key: none})
        assert answers["probabilities"].shape == (0, CLASSES)
        assert answers["top_labels"].shape == (0, TOP_K)
    assert model.signatures["transform_features"](examples=none)["image"].shape == (0,)


def test_an_example_without_a_photo_is_told_by_its_row(export: Any, model: Any, shown: list[bytes]) -> None:
    """serving_default says which row lacks its photo, and what to send."""
    import tensorflow as tf

    examples = tf.constant([export.example(shown[0], "a"), export.example(None, "a")])
    with pytest.raises(tf.errors.InvalidArgumentError, match="row 1 of the batch is empty: send a JPEG"):
        model.signatures["serving_default"](examples=examples)
