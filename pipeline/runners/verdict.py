"""The end of a run in a few lines: what was pushed where, or why not, and what to type next."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.runners import records
from pipeline.runners.records import RunRecord

if TYPE_CHECKING:
    from core.gates import GateResult
    from core.settings import Settings

_MOST_ROWS = 12
# As configs/base.yaml has them: a verb finds these without being told.
_RUN_ROOT, _SERVING_ROOT = "var/runs", "var/serving"
_EVALUATOR = "evaluate."
_DISTANCES = ("data.drift", "data.skew")


def block(record: RunRecord, settings: Settings) -> list[str]:
    """Returns the lines that end a run on the screen, the most important last."""
    lines = [*_table(record, settings), *_warnings(record)]
    if record.state == records.DONE and record.pushed is not None:
        lines += _pushed(record, settings)
    elif record.state == records.DONE:
        lines.append(f"VERDICT  nothing pushed: the run was asked to stop after {record.last}")
    elif record.state == records.REFUSED:
        lines += [f"VERDICT  refused, nothing pushed: {(record.error or {}).get('headline', '')}"]
        lines += [f"next     {_call(settings, 'runs show', record.run_id)}    # every check with its value and limit"]
    else:
        lines += [f"VERDICT  {record.state}, nothing pushed"]
        call = _call(settings, "runs resume", record.run_id)
        lines += [f"next     {call}    # after mending the cause; finished nodes are reused"]
    return lines


def gates_of(record: RunRecord) -> list[dict[str, Any]]:
    """Returns the gate records of a run: the data gate's, then the evaluator's."""
    found: list[dict[str, Any]] = []
    for node_id, output, name in (
        ("DataGate", "gate_report", "report.json"),
        ("Evaluator", "evaluation", "verdict.json"),
    ):
        for node in record.nodes:
            paths = node.outputs.get(output, []) if node.id == node_id else []
            for path in paths:
                file = Path(path) / name
                if file.is_file():
                    found += json.loads(file.read_text(encoding="utf-8"))["gates"]
    return found


def every_gate(records_of_gates: list[dict[str, Any]]) -> list[str]:
    """Returns all gates of a run as lines: the data gate's, one line each, then the evaluator's table."""
    from components.evaluator.verdict import render_table
    from core.gates import GateResult

    gates = [GateResult.from_dict(record) for record in records_of_gates]
    data = [gate for gate in gates if not gate.name.startswith(_EVALUATOR)]
    model = [gate for gate in gates if gate.name.startswith(_EVALUATOR)]
    lines = [f"  {gate.name:<44}{gate.status.value:<9}{_measured(gate)}".rstrip() for gate in data]
    lines = ["", *lines] if lines else []
    return [*lines, "", *render_table(model).splitlines()] if model else lines


def _measured(gate: GateResult) -> str:
    numbers = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in (gate.observed, gate.bound)]
    if gate.observed is None:
        return gate.reason
    against = f" of at most {numbers[1]}" if gate.bound is not None and gate.name.startswith(_DISTANCES) else ""
    return f"{numbers[0]}{against}  {gate.reason if gate.status.value != 'passed' else ''}".rstrip()


def _table(record: RunRecord, settings: Settings) -> list[str]:
    """Returns the evaluator's table: refusals first, then the overall rows; slices that passed are one line a bound."""
    from components.evaluator.verdict import render_table
    from core.gates import GateResult, Status

    gates = [GateResult.from_dict(gate) for gate in gates_of(record) if gate["name"].startswith(_EVALUATOR)]
    if not gates:
        return []
    gates.sort(key=lambda gate: (not gate.blocks, bool(gate.details.get("column")), gate.status is Status.PASSED))
    header, rule, *rows = render_table(gates, collapse=True).splitlines()
    lines = ["", header, rule, *rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines.append(f"({len(rows) - _MOST_ROWS} more rows: {_call(settings, 'runs show', record.run_id)})")
    return lines


def _warnings(record: RunRecord) -> list[str]:
    warned = [gate for gate in gates_of(record) if gate["status"] == "failed" and gate["severity"] == "warn"]
    lines = [f"warning  {gate['reason']}" for gate in warned[:3]]
    return lines + ([f"warning  and {len(warned) - 3} more"] if len(warned) > 3 else [])


def _pushed(record: RunRecord, settings: Settings) -> list[str]:
    pushed = record.pushed or {}
    word = "unchanged, already pushed" if pushed.get("reused") else "blessed and pushed"
    return [
        *(f"warning  {text}" for text in pushed.get("warnings", [])[:3]),
        "",
        f"VERDICT  {word}: {settings.recipe} version {pushed['version']}",
        f"pushed   {pushed['path']}",
        f"next     {_call(settings, 'models show', settings.recipe)}",
    ]


def _call(settings: Settings, verb: str, name: str) -> str:
    """Returns a command that works when it is typed here: the program as it was called, and where to look."""
    program = Path(sys.argv[0])
    if program.name != "forebay" or shutil.which("forebay") == str(program):
        spoken = "forebay"
    else:
        spoken = shlex.quote(os.path.relpath(program) if Path.cwd() in program.absolute().parents else str(program))
    key, value, default = (
        ("serving.root", settings.serving.root, _SERVING_ROOT)
        if verb.startswith("models")
        else ("run.root", settings.run.root, _RUN_ROOT)
    )
    where = "" if value == default else f" --set {shlex.quote(f'{key}={value}')}"
    return f"{spoken} {verb} {name}{where}"
