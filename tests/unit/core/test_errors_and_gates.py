"""Errors say what, where and what to do; gate records say what was measured."""

from __future__ import annotations

import pytest

from core import errors
from core.gates import GateResult, Severity, Status, blocking

pytestmark = pytest.mark.unit


def test_an_error_is_one_line_with_place_headline_and_hint() -> None:
    """A message that spans lines still prints as one, in the order place, headline, hint."""
    error = errors.DataError("bad\nrow.", place="a.csv:7", hint="Fix it.")
    assert str(error) == "a.csv:7: bad row. Fix it."


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UsageError, 2),
        (errors.ConfigError, 3),
        (errors.DataError, 4),
        (errors.GateRefusedError, 4),
        (errors.EnvironmentProblem, 5),
        (errors.LockedError, 5),
        (errors.RemoteServiceError, 6),
        (errors.RetryableError, 7),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_each_branch_has_its_exit_code(kind: type[errors.ForebayError], code: int) -> None:
    """An orchestrator can tell the branches apart by the exit code alone."""
    assert kind("x").to_dict()["exit_code"] == code


@pytest.mark.parametrize(
    ("status", "severity", "blocks"),
    [
        (Status.PASSED, Severity.BLOCK, False),
        (Status.SKIPPED, Severity.BLOCK, False),
        (Status.FAILED, Severity.BLOCK, True),
        (Status.FAILED, Severity.WARN, False),
        (Status.NO_DATA, Severity.BLOCK, True),
        (Status.NOT_EVALUATED, Severity.BLOCK, True),
        (Status.NOT_EVALUATED, Severity.WARN, False),
    ],
    ids=lambda value: str(getattr(value, "value", value)),
)
def test_what_could_not_be_judged_blocks_like_a_failure(status: Status, severity: Severity, blocks: bool) -> None:
    """A blocking gate that was not evaluated, or had no data, stops the run."""
    gate = GateResult("evaluate.auc", status, severity=severity)
    assert gate.blocks is blocks
    assert blocking([gate]) == ([gate] if blocks else [])


def test_a_gate_record_survives_json() -> None:
    """What to_dict writes, from_dict reads back equal."""
    gate = GateResult("data.drift:fare", Status.FAILED, 0.3, 0.1, "", "drifted", Severity.WARN, {"rows": 10})
    assert GateResult.from_dict(gate.to_dict()) == gate
