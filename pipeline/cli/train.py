"""`forebay train`: what a training costs, and what bounds it."""

from __future__ import annotations

import click

from pipeline.cli.options import config_options
from pipeline.cli.output import emit, output_option


@click.group()
def command() -> None:
    """What a training costs, and what bounds it."""


@command.command()
@click.argument("run", default="latest")
@click.option("--steps", default=30, show_default=True, type=click.IntRange(1, 10_000), help="Steps a phase.")
@config_options
@output_option
def profile(run: str, steps: int, config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> None:
    """Print step time, the input pipeline's share, and the bound: a step on data already in memory.

    Trains on the transformed examples of RUN (a run id, the start of one, or "latest") with that run's settings, and
    throws the model away. run.root says where runs are; any other --set changes a setting of the training.
    """
    from core.settings.load import load_section
    from core.settings.schema import RunSettings
    from pipeline.runners import profiling, records

    root, record = records.find(load_section(config, assignments, "run", RunSettings).root, run)
    changes = [flag for flag in assignments if flag.partition("=")[0].strip() != "run.root"]
    measured = profiling.profile(root, record, steps, changes)
    emit(output, {"run": record.run_id, **measured.to_dict()}, measured.table())
