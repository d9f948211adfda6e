"""What every place that versions live in can do. `LocalStore` and `S3Store` are the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from core.manifest import FileRecord
from serving.layout import Entry
from serving.target import Target

# Given what the directory holds at the last moment, says which version to become. May refuse by raising.
ChooseVersion = Callable[[list[Entry]], int]
# Given the version, says what the manifest file holds.
MakeManifest = Callable[[int], bytes]


class Staging(Protocol):
    """A version being written where no server looks."""

    def add(self, path: str, source: Path) -> FileRecord:
        """Copies one file in and returns what arrived, read back."""

    def add_bytes(self, path: str, content: bytes) -> FileRecord:
        """Writes one file and returns its record."""

    def commit(self, choose: ChooseVersion, manifest: MakeManifest) -> int:
        """Shows everything to servers as one new version, and returns its number."""


class Store(Protocol):
    """All versions of one model."""

    target: Target

    def entries(self) -> list[Entry]:
        """Returns the names that are not hidden, by name; an absent directory has none."""

    def read(self, version: int, path: str) -> bytes | None:
        """Returns one small file of a version, or None when it is not there."""

    def digests(self, version: int) -> dict[str, FileRecord]:
        """Returns a fresh digest of every file of a version."""

    def fetch(self, version: int) -> AbstractContextManager[Path]:
        """Gives a local directory with the version's files."""

    def check(self, needed_bytes: int, min_free_bytes: int) -> None:
        """Raises when a version of that size cannot be written; touches nothing."""

    def stage(self) -> AbstractContextManager[Staging]:
        """Opens a hidden place; it is gone at the end, unless committed."""

    def delete(self, versions: Iterable[int]) -> None:
        """Takes versions out of sight first, then deletes their files."""
