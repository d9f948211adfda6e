"""What is pushed: versions of a model, their standing, and what changed from one to another."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import DataError, UsageError
from core.manifest import Manifest
from serving import history, layout
from serving.store import Store
from serving.target import Target
from serving.verify import flat

# What a version is to a server and to a rollback.
SERVING = "serving"
GOOD = "good"
LAST_KNOWN_GOOD = "last known good"
ROLLED_BACK = "rolled back"
SAME = "same as serving"
UNREADABLE = "manifest unreadable"
SERVING_UNREADABLE = f"serving, {UNREADABLE}"


@dataclasses.dataclass(frozen=True)
class VersionRow:
    """One version in a list.

    Attributes:
        target: The model.
        version: The version's number.
        standing: serving (the newest complete one, which servers take by default), last known good, good,
            same as serving, or rolled back; with an unreadable manifest it is either that or serving as well.
        manifest: Its manifest; None when it cannot be read.
        problem: Why the manifest cannot be read; empty when it can.
    """

    target: Target
    version: int
    standing: str
    manifest: Manifest | None
    problem: str = ""

    @property
    def location(self) -> str:
        """Its directory or URL."""
        return self.target.version_location(self.version)

    def to_dict(self) -> dict[str, Any]:
        """Returns the row that `models list --output json` prints; what only the manifest knows may be null."""
        return {
            "project": self.target.project,
            "model": self.target.model,
            "version": self.version,
            "standing": self.standing,
            "problem": self.problem,
            **self._from_manifest(),
            "location": self.location,
        }

    def _from_manifest(self) -> dict[str, Any]:
        manifest = self.manifest
        if manifest is None:
            names = ("pushed_at", "pushed_by", "source_version", "run_id", "size_bytes", "model_digest")
            return {**dict.fromkeys(names), "metrics": {}}
        return {
            "pushed_at": manifest.pushed_at,
            "pushed_by": manifest.pushed_by,
            "source_version": manifest.rollback.source_version if manifest.rollback else None,
            "run_id": manifest.provenance.run_id,
            "metrics": dict(manifest.provenance.metrics),
            "size_bytes": manifest.size_bytes,
            "model_digest": manifest.model_digest,
        }


def rows(store: Store) -> list[VersionRow]:
    """Returns every complete version of a model that Forebay pushed, newest first."""
    readable: dict[int, Manifest] = {}
    problems: dict[int, str] = {}
    for version in layout.published(store.entries()):
        try:
            manifest = history.read_manifest(store, version)
        except DataError as error:
            problems[version] = str(error)
        else:
            if manifest is not None:  # None: retention has just deleted it.
                readable[version] = manifest
    newest = max({*readable, *problems}, default=0)
    standing = _standings(readable, newest)
    unreadable = {version: SERVING_UNREADABLE if version == newest else UNREADABLE for version in problems}
    return [
        VersionRow(store.target, version, name, readable.get(version), problems.get(version, ""))
        for version, name in sorted({**standing, **unreadable}.items(), reverse=True)
    ]


def _standings(readable: Mapping[int, Manifest], newest: int) -> dict[int, str]:
    """Returns {version: standing} of the versions whose manifests can be read."""
    past = list(readable.values())
    bad = history.bad_digests(past)
    chosen = next((manifest.version for manifest in history.candidates(past, newest)), None)
    serving = readable[newest].model_digest if newest in readable else ""
    found = {}
    for version, manifest in readable.items():
        if version == newest:
            found[version] = SERVING
        elif manifest.model_digest in bad:
            found[version] = ROLLED_BACK
        elif version == chosen:
            found[version] = LAST_KNOWN_GOOD
        else:
            found[version] = SAME if manifest.model_digest == serving else GOOD
    return found


def find_model(targets: Sequence[Target], name: str) -> Target:
    """Returns the model of that name, or of that `project/model`.

    Raises:
        UsageError: There is none (names near ones), or several projects have one.
    """
    matches = [target for target in targets if name in (target.model, f"{target.project}/{target.model}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        full = [f"{target.project}/{target.model}" for target in matches]
        raise UsageError(f"{name!r} is in several projects", hint=f"Say which: {', '.join(full)}.")
    known = sorted({target.model for target in targets} | {f"{target.project}/{target.model}" for target in targets})
    near = difflib.get_close_matches(name, known, n=3)
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    elif targets:
        hint = f"There are: {', '.join(sorted({target.model for target in targets}))}."
    else:
        hint = "Nothing has been pushed there; `forebay run` pushes, and --root names another serving root."
    raise UsageError(f"no model {name!r}", hint=hint)


def require_manifest(store: Store, version: int | None) -> Manifest:
    """Returns the manifest of a version, or of the newest.

    Raises:
        UsageError: There is no such version; names near ones.
        DataError: Its manifest cannot be read.
    """
    known = layout.published(store.entries())
    wanted = version if version is not None else max(known, default=None)
    manifest = history.read_manifest(store, wanted) if wanted is not None and wanted in known else None
    if manifest is None:
        raise _no_version(store.target, wanted, known)
    return manifest


def require_row(store: Store, version: int | None) -> VersionRow:
    """Returns what is known of a version, or of the newest, whether its manifest can be read or not.

    Raises:
        UsageError: There is no such version; names near ones.
    """
    found = rows(store)
    for row in found:
        if version is None or row.version == version:
            return row
    raise _no_version(store.target, version, sorted(row.version for row in found))


def _no_version(target: Target, wanted: int | None, known: Sequence[int]) -> UsageError:
    near = difflib.get_close_matches(str(wanted), [str(number) for number in known], n=3)
    shown = near or [str(number) for number in reversed(known[-3:])]
    hint = f"{'Near' if near else 'Newest'}: {', '.join(shown)}." if shown else "It has no pushed version."
    what = f"no version {wanted}" if wanted is not None else "no version at all"
    return UsageError(f"{what} of {target.model!r}", place=target.location, hint=hint)


def differences(before: Manifest, after: Manifest) -> dict[str, Any]:
    """Returns what changed between two versions: files, metrics, digests, gates and host.

    Returns:
        `files` with added, removed, changed (sorted paths); the other keys map a name to
        {"before": ..., "after": ...} for those that differ; `metrics` also has `delta` where both are numbers.
    """
    old, new = before.files, after.files
    metrics = _changed(before.provenance.metrics, after.provenance.metrics)
    for change in metrics.values():
        if all(isinstance(change[side], (int, float)) for side in ("before", "after")):
            change["delta"] = change["after"] - change["before"]
    return {
        "same_model": before.model_digest == after.model_digest,
        "files": {
            "added": sorted(set(new) - set(old)),
            "removed": sorted(set(old) - set(new)),
            "changed": sorted(path for path in set(old) & set(new) if old[path] != new[path]),
        },
        "metrics": metrics,
        "digests": _changed(before.provenance.digests, after.provenance.digests),
        "gates": _changed(_gate_status(before), _gate_status(after)),
        "host": _changed(flat(before.provenance.host), flat(after.provenance.host)),
    }


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    names = sorted({*before, *after})
    pairs = {name: {"before": before.get(name), "after": after.get(name)} for name in names}
    return {name: pair for name, pair in pairs.items() if pair["before"] != pair["after"]}


def _gate_status(manifest: Manifest) -> dict[str, Any]:
    return {str(gate.get("name")): gate.get("status") for gate in manifest.provenance.gates}
