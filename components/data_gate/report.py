"""The gate's report: every check of a run in one record, and the one line that says why a run was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.gates import GateResult, blocking

FORMAT_VERSION = 1
FILE_NAME = "report.json"


def build(gates: Sequence[GateResult]) -> dict[str, Any]:
    """Returns the record that is written as report.json.

    Args:
        gates: Every result; the blocking ones keep their order in the refusal.
    """
    return {
        "format_version": FORMAT_VERSION,
        "blocked": bool(blocking(gates)),
        "gates": [gate.to_dict() for gate in gates],
    }


def refusal_line(report: Mapping[str, Any]) -> str:
    """Returns why the data was refused, on one line: feature, value, limit, rows; empty when it was not refused.

    Args:
        report: A record that `build` made.
    """
    stopping = blocking(GateResult.from_dict(gate) for gate in report["gates"])
    if not stopping:
        return ""
    more = len(stopping) - 1
    return stopping[0].reason + (f"; and {more} more refused {'check' if more == 1 else 'checks'}" if more else "")
