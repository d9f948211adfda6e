"""The index of reusable outputs: what a node made, from exactly what, and whether it is still there.

A key is the digest of everything that decides a node's result: the content of its inputs, of the code it calls,
its settings, and the lock file. Times, paths and ids are not in it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from core.files import iter_files, sha256_file, sha256_json, sha256_tree, write_json_atomic
from pipeline.runners.code_digest import PROJECT

FORMAT_VERSION = 1
LOCK_FILE = PROJECT / "requirements" / "lock.txt"


@dataclasses.dataclass(frozen=True)
class Parts:
    """What decides a node's result, kept apart so that a miss can name what changed.

    Attributes:
        inputs: Input key to content digest; "" where an optional input is absent.
        settings: Flat dotted setting to JSON value.
        code: Module or file name to content digest.
        environment: Digest of the lock file.
    """

    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    code: Mapping[str, str]
    environment: str

    def key(self) -> str:
        """Returns the cache key: hex SHA-256."""
        return sha256_json(dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class Output:
    """One artifact that a node made.

    Attributes:
        artifact_id: Its id in ML Metadata.
        path: Relative to the directory of artifacts, so that a copied project still finds it.
        digest: Hex SHA-256 over the names and bytes of its files.
        sizes: Relative file name to bytes.
    """

    artifact_id: int
    path: str
    digest: str
    sizes: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Entry:
    """What one execution of a node made."""

    key: str
    run_id: str
    execution_id: int
    created: str
    parts: Parts
    outputs: Mapping[str, list[Output]]

    def digest(self, output: str) -> str:
        """Returns the content digest of an output; "" when it holds no artifact."""
        made = self.outputs.get(output, [])
        return sha256_json([item.digest for item in made]) if made else ""


@functools.lru_cache(maxsize=1)
def environment_digest() -> str:
    """Returns the digest of the lock file, or, when Forebay is installed without it, of what is installed."""
    if LOCK_FILE.is_file():
        return sha256_file(LOCK_FILE)
    installed = sorted(f"{item.metadata['Name']}=={item.version}" for item in metadata.distributions())
    return sha256_json(installed)


def flat(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Returns nested settings as {dotted key: value}."""
    if not isinstance(settings, Mapping) or not settings:
        return {prefix: settings} if prefix else {}
    merged: dict[str, Any] = {}
    for key, value in settings.items():
        merged.update(flat(value, f"{prefix}.{key}" if prefix else str(key)))
    return merged


def describe(base: Path, artifact_id: int, uri: str) -> Output:
    """Returns the index form of an artifact that lies on disk.

    Args:
        base: The directory of artifacts.
        artifact_id: Its id in ML Metadata.
        uri: Its local path.
    """
    place = Path(uri).absolute()
    path = place.relative_to(base).as_posix() if base in place.parents else str(place)
    if not place.exists():
        return Output(artifact_id, path, sha256_json({}), {})
    files = list(iter_files(place))
    sizes = {(file.relative_to(place).as_posix() if file != place else ""): file.stat().st_size for file in files}
    return Output(artifact_id, path, sha256_json(sha256_tree(place)), sizes)


def missing(base: Path, entry: Entry) -> str:
    """Returns what is gone from an entry's artifacts, or "" when everything is there in its recorded size."""
    for made in entry.outputs.values():
        for output in made:
            place = base / output.path
            for name, size in output.sizes.items():
                path = place / name if name else place
                shown = f"{output.path}/{name}".rstrip("/")
                if not path.is_file():
                    return f"{shown} is gone"
                if path.stat().st_size != size:
                    return f"{shown} has another size than when it was made"
    return ""


def store(base: Path, node_id: str, entry: Entry) -> None:
    """Adds an entry to the index; an earlier one of the same key is replaced."""
    record = {"format_version": FORMAT_VERSION, **dataclasses.asdict(entry)}
    write_json_atomic(_folder(base, node_id) / f"{entry.key}.json", record)


def lookup(base: Path, node_id: str, key: str) -> Entry | None:
    """Returns the entry of a key, or None."""
    return _read(_folder(base, node_id) / f"{key}.json")


def newest(base: Path, node_id: str) -> Entry | None:
    """Returns the entry that was made last, whatever its key; None when the node never finished."""
    entries = [entry for path in _folder(base, node_id).glob("*.json") if (entry := _read(path)) is not None]
    return max(entries, key=lambda entry: (entry.created, entry.execution_id), default=None)


def _folder(base: Path, node_id: str) -> Path:
    return base / "_cache" / node_id


def difference(old: Parts, new: Parts) -> str:
    """Returns in words what changed between two sets of parts: first inputs, then code, settings, environment."""
    names = sorted({*old.inputs, *new.inputs})
    changed = [name for name in names if old.inputs.get(name, "") != new.inputs.get(name, "")]
    changes = [f"input {name} has other content" for name in changed]
    changes += _changed_code(old.code, new.code)
    for name in sorted({*old.settings, *new.settings}):
        before, after = old.settings.get(name), new.settings.get(name)
        if before != after:
            changes.append(f"setting {name} went from {_short(before)} to {_short(after)}")
    if old.environment != new.environment:
        changes.append("the locked environment changed")
    shown = "; ".join(changes[:4])
    return f"{shown}; and {len(changes) - 4} more" if len(changes) > 4 else shown


def _changed_code(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    changes = []
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            verb = "is new" if name not in old else "is gone" if name not in new else "changed"
            changes.append(f"code {name.removeprefix('file:')} {verb}")
    return changes


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _read(path: Path) -> Entry | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record.pop("format_version") != FORMAT_VERSION:
            return None
        outputs = {name: [Output(**item) for item in made] for name, made in record["outputs"].items()}
        return Entry(**{**record, "parts": Parts(**record["parts"]), "outputs": outputs})
    except (OSError, ValueError, KeyError, TypeError):
        return None  # Not ours, or of another format: the node runs again.
