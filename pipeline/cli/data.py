"""`forebay data`: public sets to try a recipe with."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli.output import emit, output_option


@click.group()
def command() -> None:
    """Public sets to try a recipe with."""


@command.command("list")
@output_option
def list_sets(output: str) -> None:
    """List the sets that `fetch` knows."""
    from pipeline.datasets import catalog

    shown = {"title", "licence", "target"}
    rows = [{"name": name, **catalog.find(name).model_dump(include=shown)} for name in catalog.names()]
    lines = [f"{row['name']:<12}{row['title']} ({row['licence']}), to {row['target']}" for row in rows]
    emit(output, rows, "\n".join(lines))


@command.command()
@click.argument("name")
@click.option("--to", metavar="DIR", help="Folder for the files; by default where the recipe looks for them.")
@click.option("--url", help="Another place of the same archive; what arrives is verified all the same.")
@output_option
def fetch(name: str, to: str | None, url: str | None, output: str) -> None:
    """Download a public set, verify it and put it where its recipe looks for it.

    Needs a way to the internet. Exit codes: 4 what arrived is another set, 5 the folder is in use, 6 no answer.
    """
    from pipeline.datasets import catalog
    from pipeline.datasets.fetch import fetch as get

    wanted = catalog.find(name)
    shown = -1

    def progress(done: int, total: int | None) -> None:
        nonlocal shown
        share = done * 10 // total if total else done >> 24
        if share != shown:
            shown = share
            of_all = f" of {total / 2**20:.0f}" if total else ""
            click.echo(f"  {done / 2**20:.0f}{of_all} MiB", err=True)

    result = get(wanted, Path(to or wanted.target).expanduser(), url or wanted.url, progress)
    record = {"name": name, "target": str(result.target), "files": result.files, "was_there": result.was_there}
    word = "already there" if result.was_there else "fetched and verified"
    emit(output, record, f"{name}: {result.files:,} files {word}: {result.target}")
