"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from core.settings import Loaded, Settings

Function = TypeVar("Function", bound=Callable[..., Any])


def config_options(function: Function) -> Function:
    """Adds `-c/--config FILE` (parameter `config`) and `--set a.b=c` (parameter `assignments`), both repeatable."""
    function = click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one setting, such as training.epochs=2.",
    )(function)
    return click.option("-c", "--config", multiple=True, metavar="FILE", help="YAML overlay; later ones win.")(function)


def load_all(config: Sequence[str], assignments: Sequence[str]) -> Loaded:
    """Returns the validated settings with the place of every value.

    Raises:
        UsageError: No config file was named.
        ConfigError: The settings are wrong.
    """
    from core.errors import UsageError
    from core.settings import load

    if not config:
        raise UsageError("no config file named", hint="Name a recipe, for example -c configs/taxi.yaml.")
    return load(config, assignments)


def load_settings(config: Sequence[str], assignments: Sequence[str]) -> Settings:
    """Returns the validated settings; errors as for `load_all`."""
    return load_all(config, assignments).settings
