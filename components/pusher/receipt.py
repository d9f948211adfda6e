"""What the Pusher leaves in its output directory: whether it pushed, what and where."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.files import write_json_atomic
from serving.publish import Published

RECEIPT_FILE = "push.json"
FORMAT_VERSION = 1


def pushed(result: Published) -> dict[str, Any]:
    """Returns the receipt of a push."""
    return {
        "format_version": FORMAT_VERSION,
        "pushed": True,
        "version": result.version,
        "path": result.location,
        "model_digest": result.manifest.model_digest,
        "size_bytes": result.manifest.size_bytes,
        "reused": result.reused,
        "removed": list(result.removed),
        "warnings": list(result.warnings),
        "reason": "the newest version is this very model" if result.reused else "",
    }


def not_pushed(reason: str) -> dict[str, Any]:
    """Returns the receipt of a model that was held back; the same keys, with nulls."""
    nothing = dict.fromkeys(["version", "path", "model_digest", "size_bytes"])
    return {
        "format_version": FORMAT_VERSION,
        "pushed": False,
        **nothing,
        "reused": False,
        "removed": [],
        "warnings": [],
        "reason": reason,
    }


def write(directory: str | os.PathLike[str], receipt: Mapping[str, Any]) -> None:
    """Writes a receipt into the Pusher's output directory."""
    write_json_atomic(Path(directory) / RECEIPT_FILE, receipt)


def read(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the receipt in the Pusher's output directory.

    Raises:
        OSError: There is none.
        ValueError: It is not JSON.
    """
    receipt: dict[str, Any] = json.loads((Path(directory) / RECEIPT_FILE).read_text(encoding="utf-8"))
    return receipt
