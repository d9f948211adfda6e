"""What the eval examples say of themselves: their class by name, and the file that they came from."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import DataError
from core.label_map import LabelMap

LABEL, PATH = "label", "path"
# With more than this the label is not a class but something like a file name; each also costs a column of totals.
MOST_UNKNOWN = 1000


class ClassNumbers:
    """Numbers classes by name: first those of the candidate in its own order, then others as they appear.

    Attributes:
        names: Class by number.
        unknown: Examples by class that the candidate does not know.
    """

    def __init__(self, labels: LabelMap) -> None:
        """Starts with the classes of the candidate's label map."""
        self._known = len(labels.labels)
        self.names = list(labels.labels)
        self._numbers = {label: number for number, label in enumerate(labels.labels)}
        self.unknown: Counter[str] = Counter()

    def number(self, truths: Sequence[str]) -> npt.NDArray[np.int64]:
        """Returns int64[truths], and counts those that the candidate does not know.

        Raises:
            DataError: More than MOST_UNKNOWN classes are unknown.
        """
        for truth in truths:
            if truth not in self._numbers:
                self._numbers[truth] = len(self.names)
                self.names.append(truth)
            if self._numbers[truth] >= self._known:
                self.unknown[truth] += 1
        if len(self.unknown) > MOST_UNKNOWN:
            example = self.names[-1]
            raise DataError(
                f"more than {MOST_UNKNOWN} classes of the eval split are unknown to the model, such as {example!r}",
                place=f"feature {LABEL!r}",
                hint="The feature has to hold the class that the model was trained on.",
            )
        return np.array([self._numbers[truth] for truth in truths], np.int64)

    def of(self, labels: Sequence[str]) -> npt.NDArray[np.int64]:
        """Returns int64[labels], the number of each class; -1 for one that is neither a truth so far nor known."""
        return np.array([self._numbers.get(label, -1) for label in labels], np.int64)


def read(serialized: Any) -> tuple[list[str | None], list[str | None]]:
    """Returns the class and the path of each example; None where the example has none.

    Args:
        serialized: string[batch] tf.Examples.

    Raises:
        DataError: A label is not one text.
    """
    import tensorflow as tf

    wanted = {name: tf.io.RaggedFeature(tf.string) for name in (LABEL, PATH)}
    try:
        parsed = tf.io.parse_example(serialized, wanted)
    except tf.errors.InvalidArgumentError as error:
        raise DataError(f"{LABEL!r} or {PATH!r} of an eval example holds numbers, not text") from error
    labels, paths = (_values(parsed[name]) for name in (LABEL, PATH))
    several = [values for values in labels if len(values) > 1]
    if several:
        raise DataError(f"an eval example has {len(several[0])} labels: {', '.join(map(_text, several[0][:3]))}")
    return [_first(values) for values in labels], [_first(values) for values in paths]


def _values(ragged: Any) -> list[list[bytes]]:
    # RaggedTensor.to_list asks TensorFlow for each row by itself.
    flat, splits = ragged.flat_values.numpy().tolist(), ragged.row_splits.numpy().tolist()
    return [flat[start:end] for start, end in itertools.pairwise(splits)]


def _first(values: list[bytes]) -> str | None:
    # An empty text is what a missing value becomes in some writers.
    return _text(values[0]) if values and values[0] else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="backslashreplace")
