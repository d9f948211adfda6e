"""One pass over the eval examples: predictions of the candidate and of the baseline, summed by slice."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.evaluator.served_model import UNLABELLED, ContractError, ServedModel
from components.evaluator.slices import Slicer, slice_name
from components.evaluator.totals import Totals

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2

# Examples per step: large enough that a step's fixed cost does not show, small enough for images.
_BATCH = 512


@dataclasses.dataclass(frozen=True)
class SliceMeasures:
    """What was measured on one slice.

    Attributes:
        column: Slicing column; None for the whole split.
        value: Value of the column; None for the whole split.
        examples: Number of examples.
        not_finite: Examples for which the candidate predicted NaN or an infinity.
        candidate: {metric: value}; NaN where undefined.
        baseline: The same of the baseline; None without one.
    """

    column: str | None
    value: str | int | float | None
    examples: int
    not_finite: int
    candidate: dict[str, float]
    baseline: dict[str, float] | None

    @property
    def name(self) -> str:
        """`overall` or `column=value`."""
        return slice_name(self.column, self.value)


@dataclasses.dataclass(frozen=True)
class Measures:
    """What one pass measured.

    Attributes:
        slices: By slice; the whole split first.
        lowest: Smallest finite prediction of the candidate; infinity when there is none.
        highest: Largest finite prediction; minus infinity when there is none.
        unlabelled: Examples that were left out because they have no label.
        baseline_problem: Why a baseline that was given could not be measured; empty when it was or none was given.
    """

    slices: list[SliceMeasures]
    lowest: float
    highest: float
    unlabelled: int = 0
    baseline_problem: str = ""

    @property
    def overall(self) -> SliceMeasures:
        """The whole split."""
        return self.slices[0]


def measure(
    files: Sequence[str],
    candidate: ServedModel,
    baseline_path: str | None,
    label: str,
    columns: Sequence[str],
    schema: schema_pb2.Schema,
) -> Measures:
    """Returns the metrics of the candidate, and of the baseline on the same examples and labels.

    Args:
        files: TFRecord files of raw tf.Examples; names that end in .gz are gzip-compressed.
        candidate: The model that is judged; its transform makes the labels of both.
        baseline_path: Directory of the baseline's SavedModel; None without one.
        label: Name of the transformed label.
        columns: Slicing columns.
        schema: Schema of the raw features.

    Raises:
        ConfigError: A slicing column does not exist or has too many values.
        ContractError: The candidate fails on the examples. A baseline that fails is a result, not an error.
    """
    import tensorflow as tf

    slicer, totals, others = Slicer(columns, schema), Totals(), Totals()
    baseline, problem = _load_baseline(baseline_path, label)
    unlabelled = 0
    for path in files:
        records = tf.data.TFRecordDataset(path, compression_type="GZIP" if path.endswith(".gz") else "")
        for serialized in records.batch(_BATCH):
            slices, rows = slicer.pairs(serialized, int(serialized.shape[0]))
            labels = candidate.labels(serialized)
            unlabelled += int((labels == UNLABELLED).sum())
            kept = labels[rows] != UNLABELLED
            slices, rows = slices[kept], rows[kept]
            totals.add(slices, rows, candidate.predict(serialized), labels)
            if baseline is not None:
                try:
                    others.add(slices, rows, baseline.predict(serialized), labels)
                except ContractError as error:
                    baseline, problem = None, str(error)
    measured = [
        SliceMeasures(
            column=column,
            value=value,
            examples=totals.examples(number),
            not_finite=totals.not_finite(number),
            candidate=totals.values(number),
            baseline=others.values(number) if baseline is not None else None,
        )
        for number, (column, value) in enumerate(slicer.keys)
    ]
    return Measures(measured, totals.lowest, totals.highest, unlabelled, problem)


def _load_baseline(path: str | None, label: str) -> tuple[ServedModel | None, str]:
    if path is None:
        return None, ""
    try:
        return ServedModel(path, label), ""
    except ContractError as error:
        return None, str(error)
