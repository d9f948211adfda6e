"""The transformation of raw photos, run by TFX Transform and embedded in every exported model.

Photos pass through encoded: pixels would be fifty times the bytes in every file between here and the Trainer. What
there is to learn is the label map, from the train split alone; every other place joins classes to it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from core.label_map import LabelMap
from pipeline.models.image import features as names


def preprocessing_fn(inputs: Mapping[str, tf.Tensor], custom_config: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns the transformed features, each of shape [batch].

    Args:
        inputs: Raw features by name, dense: `image` and `label`, string[batch] or [batch, 1]. Others are not read.
        custom_config: The node's configuration; nothing in it changes what is learned.

    Returns:
        `image`, string, the bytes as they came; `label_index`, int64, the class' place in the vocabulary, in which the
        most frequent class of the train split is first and equally frequent ones are in falling order of their names;
        `features.UNKNOWN_LABEL` for a class that the train split does not have.
    """
    del custom_config
    index = tft.compute_and_apply_vocabulary(
        tf.reshape(inputs[names.LABEL], [-1]),
        default_value=names.UNKNOWN_LABEL,
        num_oov_buckets=0,
        vocab_filename=names.VOCABULARY,
    )
    return {names.IMAGE: tf.reshape(inputs[names.IMAGE], [-1]), names.LABEL_INDEX: tf.reshape(index, [-1])}


def label_map(transform: tft.TFTransformOutput) -> LabelMap:
    """Returns the classes that Transform learned, in the order of `label_index`."""
    return LabelMap(tuple(label.decode("utf-8") for label in transform.vocabulary_by_name(names.VOCABULARY)))
