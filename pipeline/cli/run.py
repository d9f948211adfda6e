"""`forebay run`: data in, a gated and versioned model out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pipeline.cli.options import config_options, load_all
from pipeline.cli.output import emit, output_option

if TYPE_CHECKING:
    from core.settings import Loaded
    from pipeline.runners.plan import Decision


@click.command()
@config_options
@click.option("--from", "first", metavar="NODE", help="Run NODE again even where its outputs could be reused.")
@click.option("--to", "last", metavar="NODE", help="Stop after NODE.")
@click.option("--dry-run", is_flag=True, help="Print what would run and why; run nothing.")
@click.option("--accept-new-baseline", is_flag=True, help="Let a model pass without a usable baseline; needs --reason.")
@click.option("--reason", help="Why the new baseline is accepted; kept in the metadata and the manifest.")
@output_option
def command(
    config: tuple[str, ...],
    assignments: tuple[str, ...],
    first: str | None,
    last: str | None,
    dry_run: bool,
    accept_new_baseline: bool,
    reason: str | None,
    output: str,
) -> int:
    """Run the pipeline: data in, a gated and versioned model out.

    Nodes whose inputs, code and settings have the same content as before are reused. Exit codes: 0 pushed (or
    nothing new to push), 3 settings, 4 a gate or the data refused, 5 environment, 6 remote service, 130 interrupted.
    """
    from core.errors import UsageError

    if accept_new_baseline != bool(reason and reason.strip()):
        raise UsageError("--accept-new-baseline and --reason go together", hint='Add --reason "why".')
    loaded = load_all(config, assignments)
    return start(loaded, first, last, dry_run, reason, output)


def start(loaded: Loaded, first: str | None, last: str | None, dry_run: bool, reason: str | None, output: str) -> int:
    """Runs (or previews) with loaded settings and returns the exit code."""
    from pipeline.runners import local, verdict
    from pipeline.runners.plan import Span
    from pipeline.runners.request import Request
    from pipeline.runners.screen import Screen

    request = Request(loaded, Span(first, last), sys.argv[1:], reason)
    if dry_run:
        _show_preview(local.preview(request), output)
        return 0
    screen = Screen(sys.stderr if output == "json" else sys.stdout)
    try:
        record = local.run(request, screen)
        if output != "json":
            for line in verdict.block(record, loaded.settings):
                screen.line(line)
    finally:
        screen.close()
    if output == "json":
        emit(output, record.to_dict(), "")
    if record.error is not None:
        click.echo(f"forebay: {record.error['message']}", err=True)
    return int(record.exit_code or 0)


def _show_preview(decisions: list[Decision], output: str) -> None:
    rows = []
    for decision in decisions:
        if decision.stage.resolves:
            continue
        state = "skipped" if decision.skipped else "cached" if decision.entry else "would run"
        rows.append({"node": decision.stage.id, "state": state, "reason": decision.reason, "key": decision.key})
    lines = [f"  {row['node']:<20}{row['state']:<11}{row['reason']}" for row in rows]
    emit(output, {"dry_run": True, "nodes": rows}, "\n".join(lines))
