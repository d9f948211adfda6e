"""The verdict as text (a table) and as a record (verdict.json)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.evaluator.measures import OVERALL, Measures, finite
from core.gates import GateResult, Status, blocking

FORMAT_VERSION = 1
FILE_NAME = "verdict.json"
_HEADER = ("metric", "slice", "value", "baseline", "limit", "verdict")
_LIMITS = {"min": ">= {:g}", "max": "<= {:g}", "max_drop": "drop <= {:g}", "max_relative_drop": "drop <= {:g} of it"}


def verdict_record(
    gates: Sequence[GateResult], measures: Measures, baseline: Mapping[str, Any] | None, accepted: str | None
) -> dict[str, Any]:
    """Returns the record that is written as verdict.json.

    Args:
        gates: Every result of the verdict.
        measures: What was measured.
        baseline: Facts of the baseline model (uri, id, compatible); None without one.
        accepted: Reason why a missing or incompatible baseline is passed over; None without one.
    """
    overall = measures.overall
    before = None if baseline is None else {**baseline, "metrics": _numbers(overall.baseline or {})}
    slices = [
        {"slice": item.name, "examples": item.examples, "metrics": _numbers(item.candidate)}
        for item in measures.slices[1:]
    ]
    return {
        **_of_classes(measures),
        "format_version": FORMAT_VERSION,
        "blessed": not blocking(gates),
        "metrics": _numbers(overall.candidate),
        "examples": overall.examples,
        "unlabelled": measures.unlabelled,
        "slices": slices,
        "gates": [gate.to_dict() for gate in gates],
        "baseline": before,
        "accepted_new_baseline": accepted,
    }


def _of_classes(measures: Measures) -> dict[str, Any]:
    """Returns what the record holds for many classes besides; nothing for two."""
    if measures.classes is None:
        return {}
    # NumPy is behind it, and a table that is only printed needs none.
    from components.evaluator.classes import reports

    return reports.record(measures, measures.classes)


def render_table(gates: Sequence[GateResult], collapse: bool = False) -> str:
    """Returns the verdict as aligned plain text: metric, slice, value, baseline, limit, verdict.

    Args:
        gates: Results of the verdict, or read back with GateResult.from_dict.
        collapse: Show the slices of one column that passed one bound as a single line.
    """
    rows: list[tuple[str, ...]] = []
    passed: dict[tuple[str, str, str], list[GateResult]] = {}
    for gate in gates:
        column = gate.details.get("column")
        if collapse and column and gate.status is Status.PASSED:
            passed.setdefault((gate.details["metric"], column, gate.details["kind"]), []).append(gate)
        else:
            rows.append(_row(gate))
    for (metric, column, kind), group in passed.items():
        values = [gate.details["value"] for gate in group]
        span = f"{min(values):.4f} to {max(values):.4f}" if len(group) > 1 else _text(values[0])
        rows.append((metric, f"{column}: {len(group)} of its values", span, "", _limit(kind, group[0].bound), "passed"))
    widths = [max(len(row[index]) for row in (_HEADER, *rows)) for index in range(len(_HEADER))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (_HEADER, *rows)
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _row(gate: GateResult) -> tuple[str, ...]:
    verdict = gate.status.value + ("" if gate.blocks or gate.status is Status.PASSED else " (warning)")
    details = gate.details
    if "metric" not in details:
        return (gate.name.partition(".")[2], OVERALL, "", "", "", f"{verdict}: {gate.reason}")
    explained = (
        verdict if gate.status in (Status.PASSED, Status.FAILED) else f"{verdict}: {gate.reason.partition(': ')[2]}"
    )
    if details.get("worst_class"):
        explained += f": {details['worst_class']}, {details['worst_class_examples']} examples"
    limit = _limit(details["kind"], gate.bound)
    return (
        details["metric"],
        details["slice"] or OVERALL,
        _text(details["value"]),
        _text(details["baseline"]),
        limit,
        explained,
    )


def _limit(kind: str, bound: float | str | None) -> str:
    return _LIMITS[kind].format(bound)


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _numbers(values: Mapping[str, float]) -> dict[str, float | None]:
    """Returns metrics as JSON values: None where a metric is undefined."""
    return {metric: finite(value) for metric, value in values.items()}
