"""What the record and the files of an evaluation say of each class."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from components.evaluator.classes.facts import ClassFacts
from components.evaluator.measures import Measures
from core import label_map
from core.files import write_atomic, write_json_atomic

FORMAT_VERSION = 1
CONFUSION_CSV, CONFUSION_JSON, MISTAKES = "confusion_matrix.csv", "confusion_matrix.json", "mistakes.jsonl"
UNKNOWN = "(unknown to the model)"


def record(measures: Measures, facts: ClassFacts) -> dict[str, Any]:
    """Returns what verdict.json says of classes: each class and parent, the worst class, the unknown ones.

    A ratio without anything to divide by is None.
    """
    worst = measures.overall.worst
    classes = [
        {"label": entry.pop("name"), "parent": label_map.parent_of(label), **entry}
        for label, entry in zip(facts.labels, _each(facts.labels, facts.confusion), strict=True)
    ]
    return {
        "classes": classes,
        "parents": [{"parent": entry.pop("name"), **entry} for entry in _each(facts.parents, facts.parent_confusion)],
        "worst_class": None if worst is None else {**dataclasses.asdict(worst), "min_examples": facts.min_examples},
        "unknown_classes": dict(facts.unknown),
        "label_map": label_map.FILE_NAME,
    }


def write(directory: str, facts: ClassFacts) -> None:
    """Writes the confusion matrix (CSV for spreadsheets, JSON for programs) and the surest mistakes.

    Args:
        directory: The evaluation artifact.
        facts: What is known of each class.
    """
    place = Path(directory)
    write_atomic(place / CONFUSION_CSV, _csv(facts.labels, facts.confusion))
    document = {
        "format_version": FORMAT_VERSION,
        **_matrix(facts.labels, facts.confusion),
        "parents": _matrix(facts.parents, facts.parent_confusion),
    }
    write_json_atomic(place / CONFUSION_JSON, document)
    lines = [json.dumps(dataclasses.asdict(mistake), ensure_ascii=False) + "\n" for mistake in facts.mistakes]
    write_atomic(place / MISTAKES, "".join(lines))


def _each(names: Sequence[str], counts: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """Returns what a matrix int64[classes + 1, classes] says of each of its classes."""
    truths, predicted = counts.sum(axis=1), counts.sum(axis=0)
    entries = []
    for number, name in enumerate(names):
        hits = int(counts[number, number])
        mistaken, taken_for = _most_confused(names, counts[number].tolist(), number)
        entries.append(
            {
                "name": name,
                "examples": int(truths[number]),
                "recall": _ratio(hits, truths[number]),
                "precision": _ratio(hits, predicted[number]),
                "f1": _ratio(2 * hits, truths[number] + predicted[number]),
                "most_confused_with": taken_for,
                "count": mistaken,
            }
        )
    return entries


def _most_confused(names: Sequence[str], counts: list[int], own: int) -> tuple[int, str | None]:
    """Returns how many examples of a class went to one other class and to which; of equal counts the first name."""
    others = [(-count, name) for number, (count, name) in enumerate(zip(counts, names, strict=True)) if number != own]
    count, name = min(others, default=(0, ""))
    return -count, name if count else None


def _ratio(numerator: int, denominator: np.int64) -> float | None:
    return numerator / int(denominator) if denominator else None


def _rows(names: Sequence[str], counts: npt.NDArray[np.int64]) -> list[tuple[str, list[int]]]:
    """Returns (true class, counts by predicted class), the unknown ones only when there are any."""
    rows = [(name, row) for name, row in zip([*names, UNKNOWN], counts.tolist(), strict=True)]
    return rows if counts[-1].any() else rows[:-1]


def _csv(names: Sequence[str], counts: npt.NDArray[np.int64]) -> str:
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["truth \\ predicted", *names])
    table.writerows([name, *row] for name, row in _rows(names, counts))
    return stream.getvalue()


def _matrix(names: Sequence[str], counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    return {"labels": list(names), "counts": counts[:-1].tolist(), "unknown_counts": counts[-1].tolist()}
