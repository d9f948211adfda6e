"""The four signatures of an exported model. Three of them embed the Transform graph.

    serving_default     examples: string[batch], serialized tf.Example     -> probability, label
    serving_raw         one tensor a raw column: [batch]                   -> probability, label
    transform_features  examples: string[batch], serialized tf.Example     -> what the Trainer saw
    dense               one tensor a transformed feature: [batch]          -> probability, label

Inputs are called as `features.input_name` says: what TensorFlow does not allow in a name becomes an underscore.

`docs/model-contract.md` tells clients what they may send and what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from core.settings.tabular import FeatureSettings, LabelSettings
from pipeline.models.tabular.features import ModelInputs, input_name
from pipeline.models.tabular.raw import MARKERS

PROBABILITY = "probability"
LABEL = "label"

Tensors = Mapping[str, tf.Tensor]


class ServingModule(tf.Module):
    """The trained network and the Transform graph, as one object that TensorFlow can save.

    Neither a Keras model nor TFT's Keras layer is an attribute, only the variables and tables that they use: all that
    a signature needs is in its own graph. Saving Keras objects would trace each of their layers again, which takes
    longer than the training of a small model, and would tie the export to one version of Keras.

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
        self.transform = tf.saved_model.load(transform.transform_savedmodel_dir)
        # A closure hides the model from the tracking of attributes.
        self._logits = lambda transformed: model(transformed, training=False)
        self._inputs = inputs
        self._schema = _Untracked(transform.raw_feature_spec())
        self._columns = tuple(features.columns())
        self._label_columns = tuple(column for column in (label.column, label.above_share_of) if column is not None)

    def signatures(self) -> dict[str, Any]:
        """Returns the concrete functions to save, by signature name."""
        examples = tf.TensorSpec([None], tf.string, name="examples")
        schema = self._schema.value
        raw = {
            input_name(name): tf.TensorSpec([None], schema[name].dtype, name=input_name(name)) for name in self._columns
        }
        dense = {
            input_name(name): tf.TensorSpec(
                [None], tf.float32 if name in self._inputs.numeric else tf.int64, name=input_name(name)
            )
            for name in self._inputs.names()
        }
        return {
            name: tf.function(function, autograph=False).get_concrete_function(spec)
            for name, function, spec in (
                ("serving_default", self.serving_default, examples),
                ("serving_raw", self.serving_raw, raw),
                ("transform_features", self.transform_features, examples),
                ("dense", self._dense_inputs, dense),
            )
        }

    def serving_default(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the outputs for serialized tf.Examples, string[batch]."""
        spec = {name: self._schema.value[name] for name in self._columns}
        return self.dense(self._transformed(tf.io.parse_example(examples, spec), tf.size(examples)))

    def serving_raw(self, columns: Tensors) -> dict[str, tf.Tensor]:
        """Returns the outputs for raw columns by input name, each [batch]; `raw.MARKERS` stand for "no value"."""
        shaped = {name: _as_parsed(columns[input_name(name)], self._schema.value[name]) for name in self._columns}
        return self.dense(self._transformed(shaped, tf.size(columns[input_name(self._columns[0])])))

    def transform_features(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the transformed features and the label of serialized tf.Examples, string[batch].

        Examples without the label's column are allowed; their label is `preprocessing.UNLABELLED`.
        """
        spec = {name: _optional(self._schema.value[name]) for name in self._label_columns}
        spec |= {name: self._schema.value[name] for name in self._columns}
        return self._transformed(tf.io.parse_example(examples, spec), tf.size(examples))

    def dense(self, transformed: Tensors) -> dict[str, tf.Tensor]:
        """Returns the outputs for transformed features, each [batch]."""
        logits = self._logits({name: transformed[name] for name in self._inputs.names()})
        probability = tf.sigmoid(tf.reshape(logits, [-1]))
        return {PROBABILITY: probability, LABEL: tf.cast(probability >= 0.5, tf.int64)}

    def _dense_inputs(self, inputs: Tensors) -> dict[str, tf.Tensor]:
        """Returns the outputs for transformed features by input name."""
        return self.dense({name: inputs[input_name(name)] for name in self._inputs.names()})

    def _transformed(self, columns: Mapping[str, Any], batch: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns what the Transform graph makes of parsed columns; it is told that the others have no value."""
        absent = {name: _absent(entry, batch) for name, entry in self._schema.value.items() if name not in columns}
        outputs = self.transform.transform_fn({**columns, **absent})
        # Look-ups in a table lose the shape.
        return {name: tf.reshape(output, [-1]) for name, output in outputs.items()}


class _Untracked:
    """Keeps a plain value as it is: TensorFlow replaces a dict that becomes an attribute of a module."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value


def _optional(entry: Any) -> Any:
    """Returns a parsing rule that accepts examples without the column, and marks them."""
    if isinstance(entry, tf.io.FixedLenFeature):
        default = np.full(entry.shape, MARKERS[entry.dtype], entry.dtype.as_numpy_dtype)
        return tf.io.FixedLenFeature(entry.shape, entry.dtype, default_value=default)
    return entry


def _as_parsed(column: tf.Tensor, entry: Any) -> Any:
    """Returns a raw column, [batch], in the form in which a parser would give it to the Transform graph."""
    if isinstance(entry, tf.io.FixedLenFeature):
        return tf.reshape(column, [-1, *entry.shape])
    batch = tf.size(column, tf.int64)
    rows = tf.range(batch)
    return tf.SparseTensor(tf.stack([rows, tf.zeros_like(rows)], axis=1), column, tf.stack([batch, 1]))


def _absent(entry: Any, batch: tf.Tensor) -> Any:
    """Returns a raw column of `batch` rows without any value, in the form in which a parser would give it."""
    if isinstance(entry, tf.io.FixedLenFeature):
        return tf.fill([batch, *entry.shape], tf.constant(MARKERS[entry.dtype], entry.dtype))
    shape = tf.stack([tf.cast(batch, tf.int64), tf.constant(1, tf.int64)])
    return tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], entry.dtype), shape)
