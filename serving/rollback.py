"""Roll back: push an older version's files again, as a new and higher version."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from core.errors import DataError, RetryableError, UsageError
from core.manifest import FileRecord, Manifest, Rollback
from serving import history, layout
from serving.catalog import require_manifest
from serving.digests import records_of
from serving.publish import Clock, Published, write_version
from serving.store import Store


def roll_back(
    store: Store, reason: str, *, to: int | None = None, keep: int, min_free_bytes: int, now: Clock = time.time
) -> Published:
    """Makes the last known good version, or a named one, the newest again.

    The version that was the newest is bad from then on: no later rollback chooses it by itself. When its manifest
    cannot be read, only that version is left, and the recorded reason says so: its model's digest is not known.

    Args:
        store: The model's versions.
        reason: Why, for the manifest; not empty.
        to: The version to go back to; None for the last known good whose files still have their checksums.
        keep: Newest versions that stay.
        min_free_bytes: What must stay free on a local target.
        now: Seconds since the epoch.

    Raises:
        UsageError: No reason, an unknown version, or one that holds the model that already serves.
        DataError: Nothing to go back to, or the files are not what was pushed.
        EnvironmentProblem: The target cannot take it.
        RetryableError: Another version was pushed meanwhile.
    """
    if not reason.strip():
        raise UsageError("a rollback needs a reason", hint='Add --reason "...": it is kept in the manifest.')
    entries = store.entries()
    newest = layout.newest(entries)
    if newest is None:
        raise DataError("no version to roll back from", place=store.target.location, hint="Push a model first.")
    left = history.readable_manifest(store, newest)
    left_digest = left.model_digest if left else ""
    why = reason.strip() if left else f"{reason.strip()} (the manifest of version {newest} cannot be read)"
    past = history.manifests(store, entries)
    source = _named(store, to, newest, left_digest) if to is not None else _last_known_good(store, past, newest)

    def still_newest(current: list[layout.Entry]) -> None:
        if layout.newest(current) != newest:
            raise RetryableError(
                f"version {layout.newest(current)} was pushed meanwhile",
                place=store.target.location,
                hint="Look at it, then roll back again.",
            )

    def describe(version: int, pushed_at: str, written: Mapping[str, FileRecord]) -> Manifest:
        link = Rollback(source.version, source.model_digest, newest, left_digest, why)
        target = store.target
        return Manifest(
            target.project, target.model, version, pushed_at, "rollback", written, source.provenance, rollback=link
        )

    with store.fetch(source.version) as directory:
        _require_intact(store, source, directory)
        return write_version(
            store,
            directory,
            source.files,
            describe,
            keep=keep,
            min_free_bytes=min_free_bytes,
            now=now,
            still_right=still_newest,
        )


def _named(store: Store, version: int, newest: int, left_digest: str) -> Manifest:
    manifest = require_manifest(store, version)
    if manifest.model_digest == left_digest:
        raise UsageError(
            f"version {version} holds the model that serves now as version {newest}",
            place=store.target.location,
            hint="Nothing to roll back; `forebay models list` shows the others.",
        )
    return manifest


def _last_known_good(store: Store, past: list[Manifest], newest: int) -> Manifest:
    choices = history.candidates(past, newest)
    for manifest in choices:
        if store.digests(manifest.version) == dict(manifest.files):
            return manifest
    why = "their files are not what was pushed" if choices else "none is older, different and not rolled back from"
    raise DataError(
        f"no last known good version: {why}",
        place=store.target.location,
        hint="Name one with --to; `forebay models list` shows them all.",
    )


def _require_intact(store: Store, source: Manifest, directory: Path) -> None:
    found = records_of(directory)
    odd = sorted(path for path in {*found, *source.files} if found.get(path) != source.files.get(path))
    if odd:
        raise DataError(
            f"{odd[0]} is not what was pushed ({len(odd)} of {len(source.files)} files differ)",
            place=store.target.version_location(source.version),
            hint="`forebay models verify` lists them; choose another version with --to.",
        )
