"""Is a version still what was pushed, and is this the kind of machine that it was made on?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import DataError
from core.manifest import MANIFEST_FILE, FileRecord, Manifest
from serving.digests import records_of


@dataclasses.dataclass(frozen=True)
class Verification:
    """The outcome for one version.

    Attributes:
        location: Its directory or URL.
        manifest: Its manifest.
        changed: Files with another content than was pushed, sorted.
        missing: Files that are gone.
        unlisted: Files that were not pushed.
        host: Fingerprint entries that differ here: name to {"pushed": ..., "here": ...}.
    """

    location: str
    manifest: Manifest
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    unlisted: tuple[str, ...]
    host: Mapping[str, Mapping[str, Any]]

    @property
    def is_intact(self) -> bool:
        """True when every file is what was pushed and no other is there. Another host is no damage."""
        return not (self.changed or self.missing or self.unlisted)

    def to_dict(self) -> dict[str, Any]:
        """Returns what `models verify --output json` prints."""
        return {
            "project": self.manifest.project,
            "model": self.manifest.model,
            "version": self.manifest.version,
            "location": self.location,
            "intact": self.is_intact,
            "files": len(self.manifest.files),
            "changed": list(self.changed),
            "missing": list(self.missing),
            "unlisted": list(self.unlisted),
            "host": {name: dict(pair) for name, pair in self.host.items()},
        }


def verify(location: str, manifest: Manifest, found: Mapping[str, FileRecord], here: Mapping[str, Any]) -> Verification:
    """Returns how a version differs from its manifest.

    Args:
        location: Where it is.
        manifest: What was pushed.
        found: Fresh digests of what is there.
        here: `core.fingerprint.collect` of this host.
    """
    pushed = manifest.files
    then, now = flat(manifest.provenance.host), flat(here)
    return Verification(
        location=location,
        manifest=manifest,
        changed=tuple(sorted(path for path in pushed.keys() & found.keys() if pushed[path] != found[path])),
        missing=tuple(sorted(pushed.keys() - found.keys())),
        unlisted=tuple(sorted(found.keys() - pushed.keys())),
        host={name: {"pushed": then[name], "here": now.get(name)} for name in then if then[name] != now.get(name)},
    )


def verify_directory(directory: Path, here: Mapping[str, Any]) -> Verification:
    """Returns how one version directory differs from the manifest inside it.

    Raises:
        DataError: There is no readable manifest.
    """
    path = directory / MANIFEST_FILE
    if not path.is_file():
        raise DataError("no manifest here: not a version that Forebay pushed", place=str(path))
    manifest = Manifest.parse(path.read_bytes(), str(path))
    return verify(str(directory), manifest, records_of(directory), here)


def flat(host: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a host fingerprint as {dotted name: value}, sorted; lists become texts, explanations are left out."""
    found: dict[str, Any] = {}
    for name, value in sorted(host.items()):
        if isinstance(value, Mapping):
            found.update({f"{name}.{inner}": deeper for inner, deeper in flat(value).items()})
        elif isinstance(value, list):
            found[name] = "; ".join(json.dumps(item, sort_keys=True) for item in value)
        elif name not in ("reason", "format_version"):
            found[name] = value
    return found
