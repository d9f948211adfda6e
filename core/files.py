"""Files that readers never see by halves, and digests of what is in them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CHUNK_BYTES = 1 << 20


def fsync_directory(path: str | os.PathLike[str]) -> None:
    """Makes the names in a directory durable, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Writes a file so that a reader sees the old content or the new one, never a part.

    Args:
        path: Target; its directory is created when missing.
        content: Bytes, or text that is written as UTF-8.

    Raises:
        OSError: The directory cannot be written or the disk is full; the old file is intact.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    payload = content.encode("utf-8") if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(payload)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    fsync_directory(target.parent)


def write_json_atomic(path: str | os.PathLike[str], value: Any) -> None:
    """Writes a JSON document atomically, with sorted keys so that equal values give equal bytes."""
    write_atomic(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def sha256_file(path: str | os.PathLike[str]) -> str:
    """Returns the hex SHA-256 of a file's bytes, read in constant memory."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_json(value: Any) -> str:
    """Returns the hex SHA-256 of a JSON-serializable value, independent of key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def iter_files(root: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields every regular file below a directory (or the file itself), in a stable order."""
    base = Path(root)
    if base.is_file():
        yield base
        return
    for directory, folders, names in os.walk(base):
        folders.sort()
        for name in sorted(names):
            yield Path(directory) / name


def sha256_tree(root: str | os.PathLike[str]) -> dict[str, str]:
    """Returns {relative posix path: hex SHA-256} of every file below a directory."""
    base = Path(root)
    return {
        (path.relative_to(base).as_posix() if path != base else path.name): sha256_file(path)
        for path in iter_files(base)
    }
