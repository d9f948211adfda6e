"""Schema files: the proposed one beside the curated one, and the backups."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core import schema
from core.errors import UsageError
from core.files import write_atomic

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2


def proposed_path(curated: Path) -> Path:
    """Returns where the proposal for a curated schema lies: `taxi.pbtxt` has `taxi.pbtxt.proposed.pbtxt`."""
    return curated.with_name(f"{curated.name}.proposed.pbtxt")


def refused_path(curated: Path) -> Path:
    """Returns the folder for what is known of data that no schema could be proposed from: `taxi.pbtxt.refused`."""
    return curated.with_name(f"{curated.name}.refused")


def read_proposed(curated: Path) -> schema_pb2.Schema:
    """Returns the proposed schema.

    Raises:
        UsageError: Nothing is proposed.
        ConfigError: The proposal is not a schema.
    """
    path = proposed_path(curated)
    if not path.exists():
        raise UsageError("no schema is proposed", place=str(path), hint="Run `forebay schema infer` first.")
    return schema.read(path)


def write(path: Path, content: schema_pb2.Schema, head: str) -> None:
    """Writes a schema as text, atomically.

    Args:
        path: Target.
        content: The schema.
        head: First lines, without comment signs.
    """
    from google.protobuf import text_format

    comment = "".join(f"# {line}\n" for line in head.splitlines())
    write_atomic(path, f"{comment}\n{text_format.MessageToString(content, as_utf8=True)}")


def accept(curated: Path) -> Path | None:
    """Makes the proposed file the curated one, byte for byte, and removes the proposal.

    Returns:
        The backup of the file that was replaced; None when there was none.

    Raises:
        UsageError: Nothing is proposed.
        ConfigError: The proposal is not a schema; the curated file is untouched.
    """
    read_proposed(curated)
    proposal = proposed_path(curated)
    backup = None
    if curated.exists():
        backup = _free_backup(curated)
        write_atomic(backup, curated.read_bytes())
    write_atomic(curated, proposal.read_bytes())
    proposal.unlink()
    return backup


def _free_backup(curated: Path) -> Path:
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    names = (f"{curated.name}.{stamp}{suffix}.bak" for suffix in ["", *(f"-{number}" for number in range(2, 1000))])
    return next(path for path in map(curated.with_name, names) if not path.exists())
