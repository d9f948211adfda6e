"""`forebay pipeline show`: the graph as text or as a Mermaid diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.cli.options import config_options, load_settings
from pipeline.cli.output import emit, output_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.stages.stage import Stage


@click.group()
def command() -> None:
    """Show the graph."""


@command.command()
@config_options
@click.option("--format", "form", type=click.Choice(["text", "mermaid"]), default="text", show_default=True)
@output_option
def show(config: tuple[str, ...], assignments: tuple[str, ...], form: str, output: str) -> None:
    """Print the nodes in the order in which they run, with what each reads."""
    from pipeline import assembly

    settings = load_settings(config, assignments)
    stages = assembly.stages(settings)
    record = {
        "pipeline": assembly.pipeline_name(settings),
        "nodes": [{"id": stage.id, "inputs": dict(stage.inputs), "after": list(stage.after)} for stage in stages],
    }
    emit(output, record, mermaid(stages) if form == "mermaid" else as_text(stages))


def as_text(stages: Sequence[Stage]) -> str:
    """Returns one line a node: its id, then `input <- node.output`."""
    lines = []
    for stage in stages:
        reads = [f"{key} <- {source}" for key, source in stage.inputs.items()]
        waits = [f"after {node}" for node in stage.after]
        lines.append(f"{stage.id:<36}{', '.join(reads + waits)}".rstrip())
    return "\n".join(lines)


def mermaid(stages: Sequence[Stage]) -> str:
    """Returns the graph as a Mermaid flowchart; edges carry the output's name, dotted ones carry none."""
    lines = ["flowchart TD"]
    for stage in stages:
        for source in stage.inputs.values():
            producer, _, output = source.partition(".")
            lines.append(f"    {producer} -- {output} --> {stage.id}")
        lines += [f"    {node} -.-> {stage.id}" for node in stage.after]
        if not stage.inputs and not stage.after:
            lines.append(f"    {stage.id}")
    return "\n".join(dict.fromkeys(lines))
