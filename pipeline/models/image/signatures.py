"""The four signatures of an exported classifier of photos. Three of them embed the Transform graph.

    serving_default     examples: string[batch], serialized tf.Example    -> the answers below
    serving_raw         image: string[batch], encoded photos              -> the answers below
    transform_features  examples: string[batch], serialized tf.Example    -> what the Trainer saw
    dense               pixels: float32[batch, side, side, 3], 0 to 255   -> probabilities

Answers: `label` and `probability` of the likeliest class, `parent` of that class and `parent_probability`,
`top_labels` and `top_probabilities`, the likeliest first, and `probabilities` in the order of the label map. A
parent's probability is the sum of its classes' probabilities, so the two levels cannot contradict each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from core.label_map import LabelMap
from pipeline.models.image import decoder
from pipeline.models.image import features as names

LABEL = "label"
PROBABILITY = "probability"
PARENT = "parent"
PARENT_PROBABILITY = "parent_probability"
TOP_LABELS = "top_labels"
TOP_PROBABILITIES = "top_probabilities"
PROBABILITIES = "probabilities"
# The input of `dense`.
PIXELS = "pixels"

Answers = dict[str, tf.Tensor]


class ServingModule(tf.Module):
    """The trained network and the Transform graph, as one object that TensorFlow can save.

    No Keras object is an attribute, only the variables that the network uses: all that a signature needs is in its own
    graph, and the saved model depends on no version of Keras.

    Args:
        logits: The network: float32[batch, side_px, side_px, 3] from 0 to 255 -> float32[batch, classes].
        variables: Every variable that `logits` reads.
        transform: Output of the Transform node.
        labels: The classes in the order of the logits.
        side_px: Side of the square that the network sees, pixels.
        top_k: How many classes an answer lists, if there are that many.
    """

    def __init__(
        self,
        logits: Callable[[tf.Tensor], tf.Tensor],
        variables: Sequence[tf.Variable],
        transform: tft.TFTransformOutput,
        labels: LabelMap,
        side_px: int,
        top_k: int,
    ) -> None:
        super().__init__(name="image")
        self.weights = list(variables)
        self.transform = tf.saved_model.load(transform.transform_savedmodel_dir)
        # Partials and a closure hide a Keras model, a function and a dict from the tracking of attributes.
        self._logits = functools.partial(logits)
        # A function of its own: what two signatures share is traced once, which takes seconds.
        decode = tf.function(lambda image: decoder.decode_batch(image, side_px), autograph=False)
        self._decode = functools.partial(decode)
        schema = transform.raw_feature_spec()
        self._raw = lambda: schema
        self._labels = labels
        self._side_px = side_px
        self._top_k = min(top_k, len(labels.labels))

    def signatures(self) -> dict[str, Any]:
        """Returns the concrete functions to save, by signature name."""
        examples = tf.TensorSpec([None], tf.string, name="examples")
        photos = tf.TensorSpec([None], tf.string, name=names.IMAGE)
        pixels = tf.TensorSpec([None, self._side_px, self._side_px, 3], tf.float32, name=PIXELS)
        return {
            name: tf.function(function, autograph=False).get_concrete_function(spec)
            for name, function, spec in (
                ("serving_default", self.serving_default, examples),
                ("serving_raw", self.serving_raw, photos),
                ("transform_features", self.transform_features, examples),
                ("dense", self.dense, pixels),
            )
        }

    def serving_default(self, examples: tf.Tensor) -> Answers:
        """Returns the answers for serialized tf.Examples, string[batch], of which only `image` is read."""
        return self.serving_raw(self._parsed(examples, [names.IMAGE])[names.IMAGE])

    def serving_raw(self, image: tf.Tensor) -> Answers:
        """Returns the answers for encoded photos, string[batch]."""
        photos = self._transformed({names.IMAGE: image})[names.IMAGE]
        return self._answers(self._probabilities(tf.cast(self._decode(photos), tf.float32)))

    def transform_features(self, examples: tf.Tensor) -> Answers:
        """Returns `image` and `label_index` of serialized tf.Examples, string[batch].

        Examples without a label are allowed: their `label_index` is `features.UNKNOWN_LABEL`.
        """
        return self._transformed(self._parsed(examples, [names.IMAGE, names.LABEL]))

    def dense(self, pixels: tf.Tensor) -> Answers:
        """Returns the probabilities of photos that are pixels already, float32[batch, side_px, side_px, 3]."""
        return {PROBABILITIES: self._probabilities(pixels)}

    def _probabilities(self, pixels: tf.Tensor) -> tf.Tensor:
        """Returns float32[batch, classes]."""
        # Where the network computes in 16 bits, the softmax does not.
        return tf.nn.softmax(tf.cast(self._logits(pixels), tf.float32))

    def _answers(self, probabilities: tf.Tensor) -> Answers:
        """Returns all answers that follow from probabilities, float32[batch, classes]."""
        labels, parents = tf.constant(self._labels.labels), tf.constant(self._labels.parents)
        parent_of = self._labels.parent_indices()
        # float32[classes, parents], 1 where the class is a child of the parent.
        children = np.eye(len(self._labels.parents), dtype=np.float32)[parent_of]
        top, places = tf.math.top_k(probabilities, self._top_k)
        best = places[:, 0]
        parent = tf.gather(tf.constant(parent_of), best)
        return {
            LABEL: tf.gather(labels, best),
            PROBABILITY: top[:, 0],
            PARENT: tf.gather(parents, parent),
            PARENT_PROBABILITY: tf.gather(tf.matmul(probabilities, children), parent, batch_dims=1),
            TOP_LABELS: tf.gather(labels, places),
            TOP_PROBABILITIES: top,
            PROBABILITIES: probabilities,
        }

    def _parsed(self, examples: tf.Tensor, columns: Sequence[str]) -> dict[str, tf.Tensor]:
        """Returns text columns of serialized tf.Examples, string[batch]; "" where an example has none.

        A photo that is missing is thus told by the decoder, which names its row.
        """
        spec = {name: tf.io.FixedLenFeature([], tf.string, default_value="") for name in columns}
        return dict(tf.io.parse_example(examples, spec))

    def _transformed(self, columns: Mapping[str, tf.Tensor]) -> Answers:
        """Returns what the Transform graph makes of columns, string[batch]; the columns it lacks are filled."""
        batch = tf.size(columns[names.IMAGE])
        inputs = {
            name: tf.reshape(columns[name], [-1, *entry.shape]) if name in columns else _filled(entry, batch)
            for name, entry in self._raw().items()
        }
        outputs = self.transform.transform_fn(inputs)
        # Look-ups in a table lose the shape.
        return {name: tf.reshape(output, [-1]) for name, output in outputs.items()}


def _filled(entry: Any, batch: tf.Tensor) -> tf.Tensor | tf.SparseTensor:
    """Returns a raw column that nothing reads, `batch` rows long, in the form in which a parser would give it."""
    if isinstance(entry, tf.io.FixedLenFeature):
        return tf.fill([batch, *entry.shape], tf.constant("" if entry.dtype == tf.string else 0, entry.dtype))
    shape = tf.stack([tf.cast(batch, tf.int64), tf.constant(1, tf.int64)])
    return tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], entry.dtype), shape)
