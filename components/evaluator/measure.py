"""One pass over the eval examples: predictions of the candidate and of the baseline, summed by slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.evaluator.examples import batches
from components.evaluator.measures import Measures, SliceMeasures
from components.evaluator.served_model import UNLABELLED, ContractError, ServedModel
from components.evaluator.slices import Slicer
from components.evaluator.totals import Totals

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2

# Rows per step: enough that a step's fixed cost does not show.
_BATCH = 512


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
    slicer, totals, others = Slicer(columns, schema), Totals(), Totals()
    baseline, problem = _load_baseline(baseline_path, label)
    unlabelled = 0
    for serialized in batches(files, _BATCH):
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
            baseline_not_finite=others.not_finite(number),
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
