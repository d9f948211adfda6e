"""The sets that `forebay data fetch` knows: one file each in data/sets/."""

from __future__ import annotations

import difflib
from pathlib import Path

import pydantic
import yaml

from core.errors import UsageError
from core.settings.section import Section

DIRECTORY = Path(__file__).resolve().parents[2] / "data" / "sets"


class DataSet(Section):
    """A public set of files in a zip archive.

    Attributes:
        title: What it is, in a few words.
        licence: Its licence.
        url: Where the archive is.
        members: Regular expression of the members that are taken, with the groups `class` and `name`.
        folders: Folder below the target by class.
        files: Number of files.
        content_sha256: Digest of their paths and contents.
        target: Default folder.
    """

    title: str
    licence: str
    url: str
    members: str
    folders: dict[str, str]
    files: int = pydantic.Field(gt=0)
    content_sha256: str = pydantic.Field(pattern=r"^[0-9a-f]{64}$")
    target: str


def names(directory: Path = DIRECTORY) -> list[str]:
    """Returns the names of the sets."""
    return sorted(path.stem for path in directory.glob("*.yaml"))


def find(name: str, directory: Path = DIRECTORY) -> DataSet:
    """Returns a set by name.

    Raises:
        UsageError: There is no such set; names the nearest.
    """
    known = names(directory)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
        raise UsageError(f"no data set {name!r}", hint=hint)
    return DataSet.model_validate(yaml.safe_load((directory / f"{name}.yaml").read_text(encoding="utf-8")))
