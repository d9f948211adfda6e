"""The gate's report: every check of a run in one record, and the one line that says why a run was refused."""

from __future__ import annotations

from collections.abc import Sequence
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
