"""The `forebay` command: finds the verb, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from core.errors import EXIT_INTERRUPTED, EXIT_UNEXPECTED, EXIT_USAGE, ForebayError

# Verb -> one line of help. The module is pipeline.cli.<verb>; it is imported only when the verb is called.
VERBS = {
    "run": "Run the pipeline: data in, a gated and versioned model out.",
    "runs": "What ran, what it made, why a node was reused, and how to go on.",
    "models": "Pushed versions: list, show, compare, verify, roll back.",
    "train": "Profile a training: step time, input pipeline, bound.",
    "data": "Fetch a public set to try a recipe with.",
    "schema": "Propose, review and accept the curated schema.",
    "pipeline": "Show the graph.",
    "config": "Show and check settings.",
    "doctor": "Check this machine: found against wanted, and the fix.",
}


class LazyGroup(click.Group):
    """A group whose verbs are imported when they are called, so that `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the verbs in the order a newcomer meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the verb's command, importing its module."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"pipeline.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of verbs without importing any of them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the verb; an unknown one is answered with the nearest."""
        name = args[0] if args else ""
        if name and name not in VERBS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, VERBS, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Verbs: {', '.join(VERBS)}."
            raise click.UsageError(f"no verb {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="forebay", prog_name="forebay")
def cli() -> None:
    """Data in, a blessed and versioned model out, served at a known cost."""


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command and exits with the code that core.errors gives to what happened."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.exit(run(arguments))


def run(arguments: list[str]) -> int:
    """Runs the command and returns its exit code. No error reaches the user as a traceback."""
    wants_json = _wants_json(arguments)
    # User code is found in the current folder: last, so that it shadows nothing.
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        result = cli.main(args=arguments, prog_name="forebay", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except ForebayError as error:
        _report(error.to_dict(), str(error), wants_json)
        return error.exit_code
    except click.ClickException as error:
        _report(
            {"error": "UsageError", "headline": error.format_message(), "exit_code": EXIT_USAGE},
            _usage(error),
            wants_json,
        )
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        _report(
            {"error": "Interrupted", "headline": "interrupted", "exit_code": EXIT_INTERRUPTED},
            "interrupted",
            wants_json,
        )
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has gone; nothing is wrong with the command.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # The last net: a traceback on the screen helps nobody at 3 a.m.
        return _report_unexpected(error, wants_json)


def _wants_json(arguments: Sequence[str]) -> bool:
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(pair == ("--output", "json") for pair in pairs) or "--output=json" in arguments


def _report(record: dict[str, Any], line: str, wants_json: bool) -> None:
    if wants_json:
        click.echo(json.dumps(record, indent=2, ensure_ascii=False, default=str))
    click.echo(f"forebay: {line}", err=True)


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    where = f" Try '{context.command_path} --help'." if context is not None else ""
    return f"{error.format_message().rstrip('.')}.{where}"


def _report_unexpected(error: Exception, wants_json: bool) -> int:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="forebay-crash-", suffix=".txt", delete=False, encoding="utf-8"
    ) as stream:
        traceback.print_exception(error, file=stream)
    text = str(error).strip().splitlines()
    headline = f"unexpected {type(error).__name__}: {text[0][:200] if text else 'no message'}"
    record = {"error": "Unexpected", "headline": headline, "trace": stream.name, "exit_code": EXIT_UNEXPECTED}
    _report(record, f"{headline}. The trace is in {stream.name}; please report it.", wants_json)
    return EXIT_UNEXPECTED


if __name__ == "__main__":
    main()
