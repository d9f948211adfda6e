"""`forebay schema`: propose, review and accept the curated schema."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli.options import config_options, load_settings
from pipeline.cli.output import emit, output_option


@click.group()
def command() -> None:
    """Propose, review and accept the curated schema."""


@command.command()
@config_options
@click.option(
    "--from-scratch", is_flag=True, help="Infer everything from the data; do not start from the curated schema."
)
@output_option
def infer(config: tuple[str, ...], assignments: tuple[str, ...], from_scratch: bool, output: str) -> None:
    """Propose a schema that the data fits, in a file beside the curated one, which stays as it is."""
    from core.schema import read
    from pipeline.schema_tools import difference, proposal, quiet, schema_file

    settings = load_settings(config, assignments)
    path = Path(settings.schema_.path)
    curated = read(path) if path.exists() else None
    with quiet.libraries():
        proposed = proposal.propose(settings, None if from_scratch else curated)
    if curated is not None and not from_scratch:
        difference.refuse_another_table(curated, proposed, path)
    target = schema_file.proposed_path(path)
    schema_file.write(
        target, proposed, f"Proposed for {path.name}. See `forebay schema review`, then `forebay schema accept`."
    )
    changes = difference.compare(curated if curated is not None else type(proposed)(), proposed)
    record = {"proposed": str(target), "curated": str(path), "changes": [change.to_dict() for change in changes]}
    emit(output, record, f"{difference.render(changes)}\nproposed: {target}")


@command.command()
@config_options
@output_option
def review(config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> None:
    """Show what the proposed schema would change."""
    from core.schema import read
    from pipeline.schema_tools import difference, schema_file

    path = Path(load_settings(config, assignments).schema_.path)
    proposed = schema_file.read_proposed(path)
    curated = read(path) if path.exists() else type(proposed)()
    changes = difference.compare(curated, proposed)
    record = {
        "proposed": str(schema_file.proposed_path(path)),
        "curated": str(path),
        "changes": [change.to_dict() for change in changes],
    }
    emit(output, record, difference.render(changes))


@command.command()
@config_options
@output_option
def accept(config: tuple[str, ...], assignments: tuple[str, ...], output: str) -> None:
    """Make the proposed schema the curated one; the old file is kept as a backup."""
    from pipeline.schema_tools import schema_file

    path = Path(load_settings(config, assignments).schema_.path)
    backup = schema_file.accept(path)
    kept = f"; the old one is {backup}" if backup else ""
    emit(output, {"accepted": str(path), "backup": str(backup) if backup else None}, f"accepted: {path}{kept}")
