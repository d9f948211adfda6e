"""`forebay runs`: what ran, what it made, why a node was reused, and how to go on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from pipeline.cli.options import config_options
from pipeline.cli.output import emit, output_option

if TYPE_CHECKING:
    from pipeline.runners.records import NodeRecord


@click.group()
def command() -> None:
    """What ran, what it made, why a node was reused, and how to go on.

    RUN is a run id, the start of one, or "latest".
    """


@command.command("list")
@config_options
@click.option("--limit", default=20, show_default=True, help="Most runs to show.")
@output_option
def list_runs(config: tuple[str, ...], assignments: tuple[str, ...], limit: int, output: str) -> None:
    """List runs, newest first."""
    from pipeline.runners import records
    from pipeline.runners.layout import existing_roots

    runs = [record for root in existing_roots(_root(config, assignments)) for record in records.all_runs(root)]
    runs.sort(key=lambda run: (run.started, run.run_id), reverse=True)
    rows = [
        {
            "run": run.run_id,
            "pipeline": run.pipeline,
            "state": run.state,
            "started": run.started,
            "exit_code": run.exit_code,
            "pushed": run.pushed["version"] if run.pushed else None,
            "reused": sum(node.state == records.CACHED for node in run.nodes),
            "ran": sum(node.state == records.DONE for node in run.nodes),
        }
        for run in runs[:limit]
    ]
    keys = ("run", "pipeline", "state", "started", "pushed")
    cells = [keys, *(tuple(str(row[key] or "-") for key in keys) for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(keys))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    emit(output, rows, "\n".join(lines) if rows else "no run yet")


@command.command()
@click.argument("run", default="latest")
@config_options
@output_option
def show(run: str, config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> None:
    """Show a run: its nodes, every check with its value and limit, and where its log is."""
    from pipeline.runners import records, verdict

    root, record = records.find(_root(config, assignments), run)
    gates = verdict.gates_of(record)
    lines = [f"run {record.run_id} of {record.pipeline}: {record.state}, started {record.started}"]
    lines += [_node_line(node) for node in record.nodes]
    lines += verdict.every_gate(gates)
    if record.error:
        lines += ["", f"ended: {record.error['message']}"]
    if record.pushed:
        lines += ["", f"pushed version {record.pushed['version']} to {record.pushed['path']}"]
    lines.append(f"log: {root.run(record.run_id) / 'run.log'}")
    emit(output, {**record.to_dict(), "gates": gates}, "\n".join(lines))


@command.command()
@click.argument("run")
@click.argument("node", required=False)
@config_options
@output_option
def why(run: str, node: str | None, config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> None:
    """Print why NODE (or every node) of RUN ran or was reused."""
    from pipeline.runners import records

    _, record = records.find(_root(config, assignments), run)
    nodes = [record.node(node)] if node else record.nodes
    rows = [{"node": item.id, "state": item.state, "reason": item.reason, "key": item.key} for item in nodes]
    lines = [f"{row['node']:<36}{row['state']:<10}{row['reason']}" for row in rows]
    emit(output, rows[0] if node else rows, "\n".join(lines))


@command.command()
@click.argument("run", default="latest")
@config_options
@output_option
def resume(run: str, config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> int:
    """Go on with a run's own settings; finished nodes are reused."""
    from core.settings.load import load_values
    from pipeline.cli.run import start
    from pipeline.runners import records

    root, record = records.find(_root(config, assignments), run)
    file = root.run(record.run_id) / "settings.json"
    loaded = load_values(json.loads(file.read_text(encoding="utf-8")), str(file))
    return start(loaded, record.first, record.last, False, record.accept_new_baseline, output)


def _root(config: tuple[str, ...], assignments: tuple[str, ...]) -> str:
    """Returns run.root, which needs no whole recipe."""
    from core.settings.load import load_section
    from core.settings.schema import RunSettings

    return load_section(config, assignments, "run", RunSettings).root


def _node_line(node: NodeRecord) -> str:
    return f"  {node.id:<36}{node.state:<12}{node.seconds:7.1f} s  {node.number}".rstrip()
