"""`forebay models`: what is pushed, how versions differ, whether they are intact, and the way back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli import models_view as view
from pipeline.cli.options import config_options
from pipeline.cli.output import emit, output_option

if TYPE_CHECKING:
    from core.settings.schema import ServingSettings
    from serving.store import Store
    from serving.target import Target
    from serving.verify import Verification

_MIB = 1 << 20


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say which serving root is meant (parameter `serving`) and in which form to answer."""

    @functools.wraps(function)
    def resolved(config: tuple[str, ...], assignments: tuple[str, ...], root: str | None, **others: Any) -> Any:
        return function(serving=_serving(config, assignments, root), **others)

    named = click.option("--root", metavar="DIR|S3URL", help="Serving root, instead of the setting serving.root.")
    return config_options(named(output_option(resolved)))


@click.group()
def command() -> None:
    """Pushed versions: list, show, compare, verify, roll back.

    MODEL is a name such as taxi, or project/name. Without -c or --root, the root is that of configs/base.yaml.
    """


@command.command("list")
@place_options
def list_models(serving: ServingSettings, output: str) -> None:
    """List every model under the serving root with its versions, newest first."""
    from serving import catalog, layout
    from serving.stores import find_targets, open_store

    models = []
    for target in find_targets(serving.root, serving.s3_endpoint):
        store = open_store(target)
        rows = catalog.rows(store)
        models.append(
            {
                "project": target.project,
                "model": target.model,
                "location": target.location,
                "versions": [row.to_dict() for row in rows],
                "warnings": [*(row.problem for row in rows if row.problem), *layout.odd_names(store.entries())],
            }
        )
    emit(output, {"root": serving.root, "models": models}, view.listing(serving.root, models))


@command.command()
@click.argument("model")
@click.argument("version", type=int, required=False)
@place_options
def show(
    model: str,
    version: int | None,
    serving: ServingSettings,
    output: str,
) -> int:
    """Show one version, by default the newest: origin, metrics, gates, files.

    Exit 4 when its manifest cannot be read: then there is no more to show than where it is and what it is to servers.
    """
    from core.errors import EXIT_DONE, EXIT_REFUSED
    from serving import catalog

    row = catalog.require_row(_store(serving, model), version)
    record = {**row.to_dict(), "manifest": row.manifest.to_dict() if row.manifest else None}
    emit(output, record, view.version(record))
    return EXIT_REFUSED if row.problem else EXIT_DONE


@command.command()
@click.argument("model")
@click.argument("before", type=int, metavar="A")
@click.argument("after", type=int, metavar="B")
@place_options
def diff(
    model: str,
    before: int,
    after: int,
    serving: ServingSettings,
    output: str,
) -> None:
    """Show what changed from version A to version B."""
    from serving import catalog

    store = _store(serving, model)
    changes = catalog.differences(catalog.require_manifest(store, before), catalog.require_manifest(store, after))
    record = {"project": store.target.project, "model": store.target.model, "before": before, "after": after, **changes}
    emit(output, record, view.changes(record))


@command.command()
@click.argument("model")
@click.option("--to", type=int, metavar="VERSION", help="Go back to this version instead of the last known good.")
@click.option("--reason", required=True, help="Why; it is kept in the new version's manifest.")
@place_options
def rollback(
    model: str,
    to: int | None,
    reason: str,
    serving: ServingSettings,
    output: str,
) -> None:
    """Push the last known good version again, as a new and higher version."""
    from serving.rollback import roll_back

    result = roll_back(
        _store(serving, model),
        reason,
        to=to,
        keep=serving.keep_versions,
        min_free_bytes=serving.min_free_mib * _MIB,
    )
    link = result.manifest.rollback
    record = {
        "project": result.manifest.project,
        "model": result.manifest.model,
        "version": result.version,
        "location": result.location,
        "source_version": link.source_version if link else None,
        "left_version": link.left_version if link else None,
        "reason": link.reason if link else "",
        "removed": list(result.removed),
        "warnings": list(result.warnings),
    }
    emit(output, record, view.rolled_back(record))


@command.command()
@click.argument("model", metavar="MODEL|DIR")
@click.argument("version", type=int, required=False)
@place_options
def verify(
    model: str,
    version: int | None,
    serving: ServingSettings,
    output: str,
) -> int:
    """Hash every file of a version again and compare it, and this host, with the manifest.

    Exit 4 when a file differs, is missing or was added. A different host is reported and is no failure.
    """
    from core.errors import EXIT_DONE, EXIT_REFUSED

    result = _verification(serving, model, version)
    record = result.to_dict()
    emit(output, record, view.verification(record))
    return EXIT_DONE if result.is_intact else EXIT_REFUSED


def _verification(serving: ServingSettings, model: str, version: int | None) -> Verification:
    from core import fingerprint
    from core.manifest import MANIFEST_FILE
    from serving import catalog
    from serving.verify import verify as compare
    from serving.verify import verify_directory

    here = fingerprint.collect()
    directory = Path(model)
    if version is None and (directory / MANIFEST_FILE).is_file():
        return verify_directory(directory, here)
    store = _store_of_directory(directory) if directory.is_dir() else _store(serving, model)
    manifest = catalog.require_manifest(store, version)
    return compare(store.target.version_location(manifest.version), manifest, store.digests(manifest.version), here)


def _store(serving: ServingSettings, name: str) -> Store:
    from serving.catalog import find_model
    from serving.stores import find_targets, open_store

    return open_store(find_model(find_targets(serving.root, serving.s3_endpoint), name))


def _store_of_directory(directory: Path) -> Store:
    """Returns the store of a model's own directory: its two last levels are project and model."""
    from serving.stores import open_store

    return open_store(_target_of(directory.resolve()))


def _target_of(directory: Path) -> Target:
    from serving.target import Target

    return Target(str(directory.parent.parent), directory.parent.name, directory.name)


def _serving(config: tuple[str, ...], assignments: tuple[str, ...], root: str | None) -> ServingSettings:
    """Returns the serving settings; no recipe is needed to look at what is pushed."""
    from core.settings.load import load_section
    from core.settings.schema import ServingSettings

    serving = load_section(config, assignments, "serving", ServingSettings)
    return serving if root is None else serving.model_copy(update={"root": root})
