"""One pass over the eval examples: what the candidate and the baseline answer, summed by slice and by class."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from components.evaluator.classes import truth
from components.evaluator.classes.answers import Answers, compare
from components.evaluator.classes.confusion import Confusion
from components.evaluator.classes.facts import ClassFacts
from components.evaluator.classes.served import ServedClassifier, check_probabilities
from components.evaluator.classes.totals import ClassTotals
from components.evaluator.examples import batches
from components.evaluator.measures import Measures, SliceMeasures, WorstClass
from components.evaluator.served_model import ContractError
from components.evaluator.slices import Indices, Slicer

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2

_LOG = logging.getLogger(__name__)

# Photos per step: a step of 64 decodes to some tens of MB, and its fixed cost no longer shows.
_BATCH = 64
_LOG_EVERY = 16


def measure(
    files: Sequence[str],
    candidate: ServedClassifier,
    baseline_path: str | None,
    columns: Sequence[str],
    schema: schema_pb2.Schema,
    min_examples: int = 1,
) -> Measures:
    """Returns the metrics of the candidate, and of the baseline on the same examples, joined by the names of classes.

    Args:
        files: TFRecord files of raw tf.Examples with the class as text in `label`; .gz files are gzip-compressed.
        candidate: The model that is judged. Examples of classes that it does not know are wrong.
        baseline_path: Directory of the baseline's SavedModel; None without one.
        columns: Slicing columns.
        schema: Schema of the raw features.
        min_examples: Examples that a class needs to be the worst one.

    Raises:
        ConfigError: A slicing column does not exist or has too many values.
        ContractError: The candidate fails on the examples. A baseline that fails is a result, not an error.
        DataError: A label is not one text, or is no class.
    """
    import tensorflow as tf

    numbers = truth.ClassNumbers(candidate.labels)
    evaluation = _Evaluation(candidate, baseline_path, numbers, Slicer(columns, schema))
    seen = unlabelled = 0
    for step, serialized in enumerate(batches(files, _BATCH), start=1):
        labels, paths = truth.read(serialized)
        names = [path or f"example {seen + row}" for row, path in enumerate(paths)]
        seen += len(labels)
        kept = [row for row, label in enumerate(labels) if label is not None]
        unlabelled += len(labels) - len(kept)
        if kept:
            truths = [label for label in labels if label is not None]
            chosen = serialized if len(kept) == len(labels) else tf.gather(serialized, kept)
            evaluation.add(chosen, truths, [paths[row] for row in kept], [names[row] for row in kept])
        if step % _LOG_EVERY == 0:
            _LOG.info("%d examples evaluated", seen)
    return evaluation.measures(unlabelled, min_examples)


class _Evaluation:
    """The running state of one pass."""

    def __init__(
        self, candidate: ServedClassifier, baseline_path: str | None, numbers: truth.ClassNumbers, slicer: Slicer
    ) -> None:
        self._candidate, self._numbers, self._slicer = candidate, numbers, slicer
        self._classes = len(candidate.labels.labels)
        self._totals, self._others = ClassTotals(self._classes), ClassTotals(self._classes)
        self._confusion = Confusion(candidate.labels)
        self._true_classes: set[int] = set()
        self._baseline: ServedClassifier | None = None
        self._problem = ""
        if baseline_path is not None:
            try:
                self._baseline = ServedClassifier(baseline_path)
            except ContractError as error:
                self._problem = str(error)

    def add(self, serialized: Any, truths: list[str], paths: list[str | None], names: list[str]) -> None:
        """Adds string[batch] labelled tf.Examples."""
        slices, rows = self._slicer.pairs(serialized, len(truths))
        numbers = self._numbers.number(truths)
        self._true_classes.update(numbers.tolist())
        answers = _answers(self._candidate, serialized, truths, names)
        self._totals.add(slices, rows, answers, numbers, answers.predicted)
        self._confusion.add(answers, numbers, truths, paths)
        if self._baseline is not None:
            try:
                self._add_baseline(self._baseline, serialized, truths, names, slices, rows, numbers)
            except ContractError as error:
                self._baseline, self._problem = None, str(error)

    def _add_baseline(
        self,
        baseline: ServedClassifier,
        serialized: Any,
        truths: list[str],
        names: list[str],
        slices: Indices,
        rows: Indices,
        numbers: Indices,
    ) -> None:
        # A class that the candidate has forgotten counts for a baseline that knows it: that is the drop.
        answers = _answers(baseline, serialized, truths, names)
        numbered = self._numbers.of(baseline.labels.labels)
        self._others.add(slices, rows, answers, numbers, numbered[answers.predicted])

    def measures(self, unlabelled: int, min_examples: int) -> Measures:
        """Returns what was measured."""
        totals, others = self._totals, self._others
        measured = [
            SliceMeasures(
                column=column,
                value=value,
                examples=totals.examples(number),
                not_finite=totals.not_finite(number),
                candidate=totals.values(number, min_examples),
                baseline=others.values(number, min_examples) if self._baseline is not None else None,
                baseline_not_finite=others.not_finite(number),
                worst=self._worst(number, min_examples),
            )
            for number, (column, value) in enumerate(self._slicer.keys)
        ]
        labels = self._candidate.labels
        facts = ClassFacts(
            labels=labels.labels,
            parents=labels.parents,
            confusion=self._confusion.classes,
            parent_confusion=self._confusion.parents,
            unknown=dict(sorted(self._numbers.unknown.items(), key=lambda item: (-item[1], item[0]))),
            true_classes=len(self._true_classes),
            mistakes=tuple(self._confusion.mistakes),
            min_examples=min_examples,
        )
        return Measures(measured, totals.lowest, totals.highest, unlabelled, self._problem, facts)

    def _worst(self, number: int, min_examples: int) -> WorstClass | None:
        worst = self._totals.worst(number, min_examples, self._numbers.names)
        return None if worst is None else WorstClass(self._numbers.names[worst[0]], worst[1], worst[2])


def _answers(model: ServedClassifier, serialized: Any, truths: list[str], names: list[str]) -> Answers:
    probabilities = model.probabilities(serialized)
    check_probabilities(probabilities, names)
    return compare(probabilities, truths, model.labels)
