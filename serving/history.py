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
from serving.layout import published
from serving.store import Store


def manifests(store: Store) -> list[Manifest]:
    """Returns the manifest of every complete version that Forebay pushed, oldest first.

    A version whose manifest cannot be read is left out: it is neither served again nor deleted.
    """
    found = []
    for version in published(store.entries()):
        try:
            manifest = read_manifest(store, version)
        except DataError:
            continue
        if manifest is not None:
            found.append(manifest)
    return found


def read_manifest(store: Store, version: int) -> Manifest | None:
    """Returns the manifest of one version, or None when the version or its manifest is not there.

    Raises:
        DataError: There is one, and it cannot be read.
    """
    content = store.read(version, MANIFEST_FILE)
    if content is None:
        return None
    return Manifest.parse(content, f"{store.target.version_location(version)}/{MANIFEST_FILE}")


def bad_digests(history: Iterable[Manifest]) -> set[str]:
    """Returns the model digests that were rolled back from and not chosen again later."""
    bad: set[str] = set()
    for manifest in sorted(history, key=lambda manifest: manifest.version):
        if manifest.rollback:
            bad.add(manifest.rollback.left_digest)
            bad.discard(manifest.rollback.source_digest)
    return bad


def candidates(history: Sequence[Manifest]) -> list[Manifest]:
    """Returns the versions that a rollback may choose by itself, best first."""
    if not history:
        return []
    ordered = sorted(history, key=lambda manifest: -manifest.version)
    bad = bad_digests(ordered) | {ordered[0].model_digest}
    return [manifest for manifest in ordered[1:] if manifest.model_digest not in bad]


def expired(history: Sequence[Manifest], keep: int) -> list[int]:
    """Returns the versions that retention deletes, oldest first.

    The newest `keep` stay, so the one that serves always does, and so does the last known good.

    Args:
        history: Manifests of the complete versions.
        keep: How many stay, at least 1.
    """
    stay = {manifest.version for manifest in sorted(history, key=lambda manifest: manifest.version)[-max(keep, 1) :]}
    stay.update(manifest.version for manifest in candidates(history)[:1])
    return sorted(manifest.version for manifest in history if manifest.version not in stay)
