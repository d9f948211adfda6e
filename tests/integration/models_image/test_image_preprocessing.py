"""What Transform makes of photos, and that classes are joined by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

LABELS = ("tops > shirt", "tops > hoodie", "footwear > sandálky", "accessories > bag")


def test_the_label_map_is_learned_from_the_train_split_alone(export: Any) -> None:
    """Frequent classes first, equally frequent ones by falling name; a class of the eval split alone is not in it."""
    import tensorflow_transform as tft

    from pipeline.models.image import preprocessing

    assert preprocessing.label_map(tft.TFTransformOutput(export.transform_dir)).labels == LABELS


def test_eval_labels_are_joined_by_name(export: Any) -> None:
    """I10: with another order, a class fewer and one more, each photo has the index of its class, or -1."""
    assert export.transformed["eval"]["label_index"] == [3, -1, 1, 0, 0]
    assert export.transformed["train"]["label_index"] == [0] * 5 + [1] * 3 + [3, 2] * 2


def test_photos_pass_through_as_they_came(photos: Any, export: Any) -> None:
    """The transformed image is the encoded photo, byte by byte, and its types are what the Trainer parses."""
    import tensorflow as tf
    import tensorflow_transform as tft

    assert set(export.transformed["eval"]["image"]) == {photos.encode(photos.draw(40, 30))}
    assert tft.TFTransformOutput(export.transform_dir).transformed_feature_spec() == {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label_index": tf.io.FixedLenFeature([], tf.int64),
    }


def test_the_saved_label_map_is_the_vocabulary(export: Any) -> None:
    """What the model carries in its assets names the same classes in the same order."""
    from core import label_map

    assert label_map.read(export.model_dir).labels == LABELS
    assert Path(export.model_dir, label_map.FILE_NAME).is_file()
