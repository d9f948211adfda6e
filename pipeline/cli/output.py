"""How verbs answer: text for people, stable JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def output_option(function: Function) -> Function:
    """Adds `--output text|json` (parameter `output`)."""
    option = click.option(
        "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer."
    )
    return option(function)


def emit(output: str, record: Any, text: str) -> None:
    """Prints one answer to stdout.

    Args:
        output: `text` or `json`.
        record: JSON-serializable answer; keys are stable.
        text: The same for a person.
    """
    if output == "json":
        click.echo(json.dumps(record, indent=2, ensure_ascii=False, default=str))
    else:
        click.echo(text.rstrip("\n"))
