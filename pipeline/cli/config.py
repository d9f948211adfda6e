"""`forebay config`: what the settings are, where each came from, and whether they can work."""

from __future__ import annotations

import json
from typing import Any

import click

from pipeline.cli.options import config_options, load_all
from pipeline.cli.output import emit, output_option


@click.group()
def command() -> None:
    """Show and check settings."""


@command.command()
@config_options
@click.option("--origin", is_flag=True, help="Add the file and line, or the flag, that set each value.")
@output_option
def show(config: tuple[str, ...], assignments: tuple[str, ...], origin: bool, output: str) -> None:
    """Print every setting after merging."""
    loaded = load_all(config, assignments)
    rows = loaded.origins()
    record: Any = {key: {"value": value, "origin": place} for key, value, place in rows} if origin else loaded.values
    emit(output, record, "\n".join(_lines(rows, origin)))


@command.command()
@config_options
@output_option
def check(config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> None:
    """Validate settings, files that they name, and their combinations. Exit 3 when something is wrong."""
    from core.errors import ConfigError
    from pipeline.assembly import check_settings

    try:
        settings = load_all(config, assignments).settings
    except ConfigError as error:
        for problem in error.problems[1:]:
            click.echo(f"forebay: {problem['place']}: {problem['headline']}. {problem['hint']}".rstrip(), err=True)
        raise
    check_settings(settings)
    emit(output, {"ok": True, "recipe": settings.recipe}, f"settings of recipe {settings.recipe!r} are good")


def _lines(rows: list[tuple[str, Any, str]], origin: bool) -> list[str]:
    shown = [(f"{key} = {json.dumps(value, ensure_ascii=False, default=str)}", place) for key, value, place in rows]
    width = min(max(len(text) for text, _ in shown), 72)
    return [f"{text:<{width}}  # {place}" if origin else text for text, place in shown]
