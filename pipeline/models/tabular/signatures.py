"""The four signatures of an exported model. Three of them embed the Transform graph.

    serving_default     examples: string[batch], serialized tf.Example     -> probability, label
    serving_raw         one tensor a raw column: [batch]                   -> probability, label
    transform_features  examples: string[batch], serialized tf.Example     -> what the Trainer saw
    dense               one tensor a transformed feature: [batch]          -> probability, label

`docs/model-contract.md` tells clients what they may send and what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from core.settings.tabular import FeatureSettings, LabelSettings
from pipeline.models.tabular.features import ModelInputs
from pipeline.models.tabular.raw import MARKERS

PROBABILITY = "probability"
LABEL = "label"

Tensors = Mapping[str, tf.Tensor]


class ServingModule(tf.Module):
    """The trained network and the Transform graph, as one object that TensorFlow can save.

    The network itself is not an attribute, its variables are: what a signature needs is in its graph, and a saved
    Keras object would only make the export slower and tie it to one version of Keras.

    Args:
        model: From {transformed name: [batch]} to logits, float32[batch, 1].
        transform: Output of the Transform node.
        inputs: The transformed features that the network reads.
        features: The feature settings.
        label: The label settings.
    """

    def __init__(
        self,
        model: tf.keras.Model,
        transform: tft.TFTransformOutput,
        inputs: ModelInputs,
        features: FeatureSettings,
        label: LabelSettings,
    ) -> None:
        super().__init__(name="tabular")
        self.weights = model.variables
        self.transform_layer = transform.transform_features_layer()
        spec = transform.raw_feature_spec()
        self._network = _Hidden(model)
        self._inputs = inputs
        self._request_spec = {column: spec[column] for column in features.columns()}
        label_columns = [column for column in (label.column, label.above_share_of) if column is not None]
        self._example_spec = self._request_spec | {
            column: _optional(spec[column]) for column in label_columns if column not in self._request_spec
        }

    def signatures(self) -> dict[str, Any]:
        """Returns the concrete functions to save, by signature name."""
        examples = tf.TensorSpec([None], tf.string, name="examples")
        raw = {name: tf.TensorSpec([None], entry.dtype, name=name) for name, entry in self._request_spec.items()}
        dense = {
            name: tf.TensorSpec([None], tf.float32 if name in self._inputs.numeric else tf.int64, name=name)
            for name in self._inputs.names()
        }
        return {
            name: tf.function(function, autograph=False).get_concrete_function(spec)
            for name, function, spec in (
                ("serving_default", self.serving_default, examples),
                ("serving_raw", self.serving_raw, raw),
                ("transform_features", self.transform_features, examples),
                ("dense", self.dense, dense),
            )
        }

    def serving_default(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the outputs for serialized tf.Examples, string[batch]."""
        return self.dense(self.transform_layer(tf.io.parse_example(examples, self._request_spec)))

    def serving_raw(self, columns: Tensors) -> dict[str, tf.Tensor]:
        """Returns the outputs for raw columns, each [batch]; `raw.MARKERS` stand for "no value"."""
        shaped = {name: _as_parsed(columns[name], entry) for name, entry in self._request_spec.items()}
        return self.dense(self.transform_layer(shaped))

    def transform_features(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the transformed features and the label of serialized tf.Examples, string[batch].

        Examples without the label's column are allowed; their label is `preprocessing.UNLABELLED`.
        """
        return dict(self.transform_layer(tf.io.parse_example(examples, self._example_spec)))

    def dense(self, transformed: Tensors) -> dict[str, tf.Tensor]:
        """Returns the outputs for transformed features, each [batch]."""
        logits = self._network.model({name: transformed[name] for name in self._inputs.names()}, training=False)
        probability = tf.sigmoid(tf.reshape(logits, [-1]))
        return {PROBABILITY: probability, LABEL: tf.cast(probability >= 0.5, tf.int64)}


class _Hidden:
    """Keeps an object out of sight of TensorFlow's tracking of attributes."""

    def __init__(self, model: tf.keras.Model) -> None:
        self.model = model


def _optional(entry: Any) -> Any:
    """Returns a parsing rule that accepts examples without the column, and marks them."""
    if isinstance(entry, tf.io.FixedLenFeature):
        return tf.io.FixedLenFeature(entry.shape, entry.dtype, default_value=[MARKERS[entry.dtype]])
    return entry


def _as_parsed(column: tf.Tensor, entry: Any) -> Any:
    """Returns a raw column, [batch], in the form in which the Transform graph expects it from a parser."""
    if isinstance(entry, tf.io.FixedLenFeature):
        return tf.reshape(column, [-1, *entry.shape])
    rows = tf.range(tf.size(column, tf.int64))
    indices = tf.stack([rows, tf.zeros_like(rows)], axis=1)
    return tf.SparseTensor(indices, column, tf.stack([tf.size(column, tf.int64), tf.constant(1, tf.int64)]))
