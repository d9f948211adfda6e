"""How an earlier push stands now: is it still there, does it serve, and what came after it."""

from __future__ import annotations

import dataclasses

from core.manifest import Manifest
from serving import history, layout
from serving.store import Store


@dataclasses.dataclass(frozen=True)
class Standing:
    """What a look at the serving directory says of one pushed version.

    Attributes:
        version: The version's number.
        is_there: Whether it is there, whole enough for a server to load.
        is_readable: Whether its manifest can be read.
        serving: The version that servers take for the newest; None when there is none.
        serving_manifest: That one's manifest; None when Forebay did not push it, or it cannot be read.
        newer_run: A later version with another model that a run pushed; None for none.
        was_left: Whether a rollback has left this version or its model since the last push of a run.
    """

    version: int
    is_there: bool
    is_readable: bool
    serving: int | None
    serving_manifest: Manifest | None
    newer_run: int | None
    was_left: bool

    @property
    def serves(self) -> bool:
        """Whether servers take this very version for the newest."""
        return self.serving == self.version


def look(store: Store, version: int, model_digest: str) -> Standing:
    """Returns how a push stands: one listing, and the manifests from the newest down to the last push of a run.

    Args:
        store: The model's versions.
        version: What the push became.
        model_digest: What was pushed.

    Raises:
        ForebayError: The target cannot be read, or does not answer.
    """
    entries = store.entries()
    known = layout.published(entries)
    read: dict[int, Manifest | None] = {}
    for number in reversed(known):
        read[number] = history.readable_manifest(store, number)
        if (found := read[number]) is not None and found.pushed_by == "run":
            break
    above = [manifest for manifest in read.values() if manifest is not None]
    newest_run = next((manifest for manifest in above if manifest.pushed_by == "run"), None)
    if version in known and version not in read:
        read[version] = history.readable_manifest(store, version)
    is_newer = newest_run is not None and newest_run.version > version and newest_run.model_digest != model_digest
    links = [manifest.rollback for manifest in above if manifest.rollback]
    serving = layout.served(entries)
    return Standing(
        version=version,
        is_there=version in known,
        is_readable=read.get(version) is not None,
        serving=serving,
        serving_manifest=read.get(serving) if serving is not None else None,
        newer_run=newest_run.version if newest_run and is_newer else None,
        was_left=any(version == link.left_version or model_digest == link.left_digest for link in links),
    )
