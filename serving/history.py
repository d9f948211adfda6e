"""Which versions are good, which were rolled back from, and which are old enough to go.

A rollback writes into its manifest which version it left. From the manifests alone follows what is bad: the model
digest of every version that was left, unless a later rollback chose it again. A copy of a bad model is as bad.

The last known good of a model is the newest version that is older than the newest, is not bad, and holds another
model than the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.errors import DataError
from core.manifest import MANIFEST_FILE, Manifest
from serving.layout import Entry, published
from serving.store import Store


def manifests(store: Store, entries: Iterable[Entry] | None = None) -> list[Manifest]:
    """Returns the manifest of every complete version that Forebay pushed, oldest first.

    A version whose manifest cannot be read is left out: it is neither served again nor deleted.

    Args:
        store: The model's versions.
        entries: What the store has just listed; None lists it.
    """
    known = published(store.entries() if entries is None else entries)
    found = (readable_manifest(store, version) for version in known)
    return [manifest for manifest in found if manifest is not None]


def readable_manifest(store: Store, version: int) -> Manifest | None:
    """Returns the manifest of one version, or None when it is not there or cannot be read."""
    try:
        return read_manifest(store, version)
    except DataError:
        return None


def read_manifest(store: Store, version: int) -> Manifest | None:
    """Returns the manifest of one version, or None when the version or its manifest is not there.

    Raises:
        DataError: There is one, and it cannot be read or is another version's.
    """
    content = store.read(version, MANIFEST_FILE)
    if content is None:
        return None
    place = f"{store.target.version_location(version)}/{MANIFEST_FILE}"
    manifest = Manifest.parse(content, place)
    if manifest.version != version:
        raise DataError(
            f"this is the manifest of version {manifest.version}: the directory was copied or renamed",
            place=place,
            hint="Move the directory away, and use `forebay models rollback` to serve an older version again.",
        )
    return manifest


def bad_digests(history: Iterable[Manifest]) -> set[str]:
    """Returns the model digests that were rolled back from and not chosen again later."""
    bad: set[str] = set()
    for manifest in sorted(history, key=lambda manifest: manifest.version):
        if manifest.rollback:
            bad.add(manifest.rollback.left_digest)
            bad.discard(manifest.rollback.source_digest)
    return bad


def candidates(history: Iterable[Manifest], serving: int) -> list[Manifest]:
    """Returns the versions that a rollback may choose by itself, best first.

    Args:
        history: Manifests of the complete versions.
        serving: The newest version; its own manifest may be unreadable, and so not in the history.
    """
    ordered = sorted(history, key=lambda manifest: -manifest.version)
    bad = bad_digests(ordered) | {manifest.model_digest for manifest in ordered if manifest.version == serving}
    return [manifest for manifest in ordered if manifest.version < serving and manifest.model_digest not in bad]


def expired(history: Sequence[Manifest], keep: int) -> list[int]:
    """Returns the versions that retention deletes, oldest first.

    The newest `keep` stay, so the one that serves always does, and so does the last known good.

    Args:
        history: Manifests of the complete versions.
        keep: How many stay, at least 1.
    """
    ordered = sorted(history, key=lambda manifest: manifest.version)
    stay = {manifest.version for manifest in ordered[-max(keep, 1) :]}
    stay.update(manifest.version for last in ordered[-1:] for manifest in candidates(ordered, last.version)[:1])
    return [manifest.version for manifest in ordered if manifest.version not in stay]
