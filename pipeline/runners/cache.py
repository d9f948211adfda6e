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

from core.files import iter_files, sha256_file, sha256_json, write_json_atomic
from pipeline.runners.code_digest import PROJECT
from pipeline.runners.layout import PipelineRoot

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
        path: Relative to the pipeline root, so that a copied project still finds it.
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


def describe(root: PipelineRoot, artifact_id: int, uri: str) -> Output:
    """Returns the index form of an artifact that lies on disk.

    Args:
        root: The pipeline's root.
        artifact_id: Its id in ML Metadata.
        uri: Its local path.
    """
    base = Path(uri)
    files = list(iter_files(base)) if base.exists() else []
    names = {(path.relative_to(base).as_posix() if path != base else ""): path for path in files}
    digest = sha256_json({name: sha256_file(path) for name, path in names.items()})
    sizes = {name: path.stat().st_size for name, path in names.items()}
    return Output(artifact_id, _relative(base, root), digest, sizes)


def absolute(root: PipelineRoot, output: Output) -> Path:
    """Returns where an output lies now."""
    return root.path / output.path


def missing(root: PipelineRoot, entry: Entry) -> str:
    """Returns what is gone from an entry's artifacts, or "" when everything is there in its recorded size."""
    for made in entry.outputs.values():
        for output in made:
            base = absolute(root, output)
            for name, size in output.sizes.items():
                path = base / name if name else base
                if not path.is_file():
                    return f"{output.path}/{name} is gone".replace("/ is", " is")
                if path.stat().st_size != size:
                    return f"{output.path}/{name} has another size than when it was made"
    return ""


def store(root: PipelineRoot, node_id: str, entry: Entry) -> None:
    """Adds an entry to the index; an earlier one of the same key is replaced."""
    record = {"format_version": FORMAT_VERSION, **dataclasses.asdict(entry)}
    write_json_atomic(root.cache / node_id / f"{entry.key}.json", record)


def lookup(root: PipelineRoot, node_id: str, key: str) -> Entry | None:
    """Returns the entry of a key, or None."""
    return _read(root.cache / node_id / f"{key}.json")


def newest(root: PipelineRoot, node_id: str) -> Entry | None:
    """Returns the entry that was made last, whatever its key; None when the node never finished."""
    entries = [entry for path in (root.cache / node_id).glob("*.json") if (entry := _read(path)) is not None]
    return max(entries, key=lambda entry: (entry.created, entry.execution_id), default=None)


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


def _relative(path: Path, root: PipelineRoot) -> str:
    absolute_path = path.absolute()
    return absolute_path.relative_to(root.path).as_posix() if root.path in absolute_path.parents else str(absolute_path)


def _read(path: Path) -> Entry | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record.pop("format_version") != FORMAT_VERSION:
            return None
        outputs = {name: [Output(**item) for item in made] for name, made in record["outputs"].items()}
        return Entry(**{**record, "parts": Parts(**record["parts"]), "outputs": outputs})
    except (OSError, ValueError, KeyError, TypeError):
        return None  # Not ours, or of another format: the node runs again.
