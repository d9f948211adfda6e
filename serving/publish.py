"""Push a model: check the target, write the version aside, verify it, show it, and let old ones go."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.errors import ForebayError, RetryableError
from core.manifest import WARMUP_FILE, FileRecord, Manifest, Provenance, model_digest
from serving import history, layout
from serving.digests import record_of_bytes, records_of_model
from serving.store import Staging, Store
from serving.stores import open_store
from serving.target import Target

logger = logging.getLogger(__name__)

Clock = Callable[[], float]
# Given version and push time (ISO 8601), says what the manifest is.
Describe = Callable[[int, str, Mapping[str, FileRecord]], Manifest]


@dataclasses.dataclass(frozen=True)
class Published:
    """What a push did.

    Attributes:
        version: The version's number.
        location: Its directory or URL.
        manifest: Its manifest.
        warnings: What is odd about the target, one line each.
        removed: Versions that retention deleted.
        reused: True when the newest version holds these very files, pushed by a run: nothing was written.
    """

    version: int
    location: str
    manifest: Manifest
    warnings: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()
    reused: bool = False


def publish(
    model_dir: Path,
    target: Target,
    provenance: Provenance,
    *,
    keep: int,
    min_free_bytes: int,
    warmup: bytes | None = None,
    now: Clock = time.time,
) -> Published:
    """Pushes a SavedModel as the new newest version.

    A poller of the target sees nothing numeric until the version is complete. When a run has pushed these very files
    as the newest version, that version is returned: a push that died after the rename is being repeated, or a run
    came to the same model again. After a rollback the newest version is the rollback's, so the model is pushed.

    Args:
        model_dir: The SavedModel.
        target: Where it is served from.
        provenance: Goes into the manifest.
        keep: Newest versions that stay, at least 1.
        min_free_bytes: What must stay free on a local target.
        warmup: Content of the warm-up file (TFRecord of PredictionLog); None keeps what the model has.
        now: Seconds since the epoch.

    Returns:
        The version, where it is, and its manifest.

    Raises:
        DataError: `model_dir` is no SavedModel.
        EnvironmentProblem: The target cannot take it; no live version was touched.
        RemoteServiceError: The object store refused or did not answer.
        RetryableError: A file changed while it was copied.
    """
    store = open_store(target)
    files = records_of_model(model_dir)
    extra = {} if warmup is None else {WARMUP_FILE: warmup}
    wanted = {**files, **{path: record_of_bytes(content) for path, content in extra.items()}}
    entries = store.entries()
    past = history.manifests(store, entries)
    previous = _same_push(store, entries, past, wanted)
    if previous is not None:
        place = target.version_location(previous.version)
        return Published(previous.version, place, previous, tuple(layout.odd_names(entries)), reused=True)

    def describe(version: int, pushed_at: str, written: Mapping[str, FileRecord]) -> Manifest:
        return Manifest(target.project, target.model, version, pushed_at, "run", written, provenance)

    return write_version(
        store,
        model_dir,
        files,
        describe,
        extra=extra,
        keep=keep,
        min_free_bytes=min_free_bytes,
        now=now,
        warnings=_known_as_bad(past, model_digest(files)),
    )


def write_version(
    store: Store,
    source: Path,
    files: Mapping[str, FileRecord],
    describe: Describe,
    *,
    keep: int,
    min_free_bytes: int,
    extra: Mapping[str, bytes] = {},
    now: Clock = time.time,
    warnings: Sequence[str] = (),
    still_right: Callable[[list[layout.Entry]], None] = lambda entries: None,
) -> Published:
    """Writes files as the next version of a store; what `publish` and `rollback` share.

    Args:
        store: The model's versions.
        source: Directory that holds the files.
        files: What they must be, by relative path; a file that arrives otherwise stops the push.
        describe: Makes the manifest.
        keep: Newest versions that stay.
        min_free_bytes: What must stay free on a local target.
        extra: Files to write from memory, by relative path; they win over `files`.
        now: Seconds since the epoch.
        warnings: What the caller found odd; handed on with what is found here.
        still_right: Raises when what the target holds at the last moment makes this push wrong.

    Raises:
        ForebayError: As for `publish`.
    """
    place = store.target.location
    entries = store.entries()
    layout.next_version(entries, now(), place)
    needed = sum(record.size_bytes for record in files.values()) + sum(len(content) for content in extra.values())
    store.check(needed, min_free_bytes)
    found = [*warnings, *layout.odd_names(entries)]
    shown: list[Manifest] = []

    def choose(current: list[layout.Entry]) -> int:
        still_right(current)
        return layout.next_version(current, now(), place)

    with store.stage() as staging:
        written = _write(staging, source, files, extra)

        def manifest(version: int) -> bytes:
            shown.append(describe(version, _utc(now()), written))
            return shown[-1].to_json()

        version = staging.commit(choose, manifest)
    removed, problems = _retain(store, keep)
    found += problems
    for warning in found:
        logger.warning("%s: %s", place, warning)
    return Published(version, store.target.version_location(version), shown[-1], tuple(found), removed)


def _write(
    staging: Staging, source: Path, files: Mapping[str, FileRecord], extra: Mapping[str, bytes]
) -> dict[str, FileRecord]:
    written = {}
    for path, expected in sorted(files.items()):
        if path in extra:
            continue
        if not (source / path).is_file():
            raise RetryableError(f"{path} vanished during the push", place=str(source), hint="Run the Trainer again.")
        written[path] = staging.add(path, source / path)
        if written[path] != expected:
            raise RetryableError(
                f"{path} arrived with sha256 {written[path].sha256[:12]}, not {expected.sha256[:12]}",
                place=str(source),
                hint="It changed during the copy, or the target lost bytes. No live version was touched: push again.",
            )
    for path, content in extra.items():
        written[path] = staging.add_bytes(path, content)
    return written


def _same_push(
    store: Store, entries: Sequence[layout.Entry], past: Sequence[Manifest], wanted: Mapping[str, FileRecord]
) -> Manifest | None:
    """Returns the newest version's manifest when a run pushed these very files as it, and they are all still there.

    A name that servers rank higher would keep it from being served, and a damaged file would make it another model:
    then the push is done.
    """
    newest = layout.newest(entries)
    if not past or past[-1].version != newest or newest != layout.highest(entries):
        return None
    is_same = past[-1].pushed_by == "run" and past[-1].files == wanted and store.digests(newest) == wanted
    return past[-1] if is_same else None


def _known_as_bad(past: Sequence[Manifest], digest: str) -> list[str]:
    """Returns a warning when the model that is being pushed was rolled back from before."""
    if digest not in history.bad_digests(past):
        return []
    left = [manifest.rollback for manifest in past if manifest.rollback and manifest.rollback.left_digest == digest]
    return [f"this very model was rolled back from as version {left[-1].left_version}: {left[-1].reason}"]


def _retain(store: Store, keep: int) -> tuple[tuple[int, ...], list[str]]:
    """Deletes expired versions; a failure is a warning, since the new version is already in sight."""
    try:
        doomed = history.expired(history.manifests(store), keep)
        store.delete(doomed)
        return tuple(doomed), []
    except ForebayError as error:
        return (), [f"old versions stay: {error}"]


def _utc(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)
    return moment.isoformat(timespec="seconds")
