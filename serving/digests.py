"""Fresh digests of a version's files: the manifest's own entry is left out, since no file can hold its own hash."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from core.errors import DataError
from core.files import iter_files, sha256_file
from core.manifest import MANIFEST_FILE, FileRecord
from serving.layout import READY_FILE


def record_of(path: Path) -> FileRecord:
    """Returns the digest and size of one file, read in constant memory."""
    return FileRecord(sha256=sha256_file(path), size_bytes=path.stat().st_size)


def record_of_bytes(content: bytes) -> FileRecord:
    """Returns the digest and size of what a file with this content would have."""
    return FileRecord(sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content))


def records_of(directory: Path) -> dict[str, FileRecord]:
    """Returns {relative posix path: record} of every file below a version directory but its manifest.

    Raises:
        DataError: A folder inside is a symbolic link: what it points at would be served from elsewhere.
    """
    records = {}
    for path in iter_files(directory):
        relative = path.relative_to(directory).as_posix()
        if relative != MANIFEST_FILE:
            records[relative] = record_of(path)
    _refuse_linked_folders(directory)
    return records


def records_of_model(directory: Path) -> dict[str, FileRecord]:
    """Returns the records of a SavedModel that is about to be pushed.

    Raises:
        DataError: The directory is no SavedModel that a server could load.
    """
    if not (directory / READY_FILE).is_file():
        raise DataError(f"no {READY_FILE} here: not a SavedModel", place=str(directory), hint="Run the Trainer again.")
    records = records_of(directory)
    index = "variables/variables.index"
    shards = [path for path in records if path.startswith("variables/variables.data-")]
    if (index in records) != bool(shards):
        absent = "variables/variables.data-*" if index in records else index
        raise DataError(
            f"the SavedModel is cut short: {absent} is missing", place=str(directory), hint="Run the Trainer again."
        )
    return records


def _refuse_linked_folders(directory: Path) -> None:
    for parent, folders, _ in os.walk(directory):
        for folder in folders:
            if os.path.islink(os.path.join(parent, folder)):
                raise DataError(
                    f"{folder!r} is a symbolic link to a folder",
                    place=parent,
                    hint="Replace the link by the files it points at.",
                )
