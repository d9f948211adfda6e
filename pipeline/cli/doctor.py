"""`forebay doctor`: what this machine has, what is wanted, and the fix for each difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from core.errors import EXIT_DONE, EXIT_ENVIRONMENT
from pipeline.cli.options import config_options
from pipeline.cli.output import emit, output_option

if TYPE_CHECKING:
    from pipeline.doctor import Finding, Target


@click.command()
@config_options
@output_option
def command(config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> int:
    """Check this machine: found against wanted, and the fix for each.

    With -c, the roots and the metadata store of that recipe are checked. Exit 5 when something would stop a run.
    """
    from core.fingerprint import collect
    from pipeline.doctor import Level, examine

    findings = examine(_target(config, assignments))
    blockers = [finding for finding in findings if finding.level is Level.BLOCKER]
    record: dict[str, Any] = {
        "ok": not blockers,
        "findings": [finding.to_dict() for finding in findings],
        "fingerprint": collect(),
    }
    emit(output, record, render(findings))
    return EXIT_ENVIRONMENT if blockers else EXIT_DONE


def render(findings: list[Finding]) -> str:
    """Returns the findings as text: a line each, the fix below what is not ok, and a verdict at the end."""
    from pipeline.doctor import Level

    widths = [max(len(getattr(finding, column)) for finding in findings) for column in ("area", "name")]
    lines = []
    for finding in findings:
        wanted = f"  (wanted {finding.wanted})" if finding.wanted and finding.level is not Level.OK else ""
        head = f"{finding.level.value:<7}  {finding.area:<{widths[0]}}  {finding.name:<{widths[1]}}"
        lines.append(f"{head}  {finding.found}{wanted}")
        if finding.fix:
            lines.append(f"{'':<7}  {'':<{widths[0]}}  {'':<{widths[1]}}  fix: {finding.fix}")
    count = {level: sum(finding.level is level for finding in findings) for level in Level}
    verdict = "this machine cannot run Forebay yet" if count[Level.BLOCKER] else "this machine can run Forebay"
    summary = ", ".join(f"{number} {level.value}" for level, number in count.items() if number)
    return "\n".join([*lines, f"{verdict}: {summary}"])


def _target(config: tuple[str, ...], assignments: tuple[str, ...]) -> Target:
    from core.settings.load import load_section
    from core.settings.schema import RunSettings, ServingSettings
    from pipeline.doctor import Target

    run = load_section(config, assignments, "run", RunSettings)
    serving = load_section(config, assignments, "serving", ServingSettings)
    return Target(run.root, run.metadata, serving.root, serving.min_free_mib)
