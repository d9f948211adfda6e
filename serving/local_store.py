"""Versions on a local or network disk: written aside, made durable, then renamed into sight."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.errors import DataError, EnvironmentProblem
from core.files import fsync_directory
from core.manifest import MANIFEST_FILE, FileRecord
from serving import local_disk
from serving.digests import record_of, records_of
from serving.layout import READY_FILE, STAGING_PREFIX, TRASH_PREFIX, Entry, is_hidden
from serving.model_lock import model_lock, try_lock
from serving.store import ChooseVersion, MakeManifest
from serving.target import Target

_CHUNK_BYTES = 1 << 20
# Servers mostly run as another user than pushes. Who may read is the business of the model's own directory.
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755
_CLAIM_SUFFIX = ".lock"


class LocalStore:
    """All versions of one model in a directory."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.directory = Path(target.location)

    def entries(self) -> list[Entry]:
        """Returns the names that are not hidden, by name; an absent directory has none."""
        try:
            with os.scandir(self.directory) as found:
                return sorted(
                    (_entry(item) for item in found if not is_hidden(item.name)), key=lambda entry: entry.name
                )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise local_disk.explain(error, self.directory) from error

    def read(self, version: int, path: str) -> bytes | None:
        """Returns one small file of a version, or None when it is not there.

        Raises:
            DataError: It is there and cannot be read.
        """
        try:
            return (self.directory / str(version) / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(
                f"cannot be read: {error.strerror}",
                place=str(self.directory / str(version) / path),
                hint="Give this user the right to read it, or push the model again.",
            ) from error

    def digests(self, version: int) -> dict[str, FileRecord]:
        """Returns a fresh digest of every file of a version."""
        return records_of(self.directory / str(version))

    @contextlib.contextmanager
    def fetch(self, version: int) -> Iterator[Path]:
        """Gives the version's own directory: nothing needs to be copied."""
        yield self.directory / str(version)

    def check(self, needed_bytes: int, min_free_bytes: int) -> None:
        """Raises EnvironmentProblem when a version of that size cannot be written; touches nothing."""
        local_disk.check_writable(self.directory, needed_bytes, min_free_bytes)

    @contextlib.contextmanager
    def stage(self) -> Iterator[LocalStaging]:
        """Opens a hidden directory beside the versions; it is gone at the end, unless committed.

        A lock file beside it tells a live push from a dead one: the kernel releases it with the process. Both are
        made under the model's lock, so that no sweep can come between them.
        """
        token = f"{STAGING_PREFIX}{secrets.token_hex(6)}"
        claim = self.directory / f"{token}{_CLAIM_SUFFIX}"
        with self._explained():
            self.directory.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            with model_lock(self.directory), self._explained():
                self._sweep()
                descriptor = os.open(claim, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
                stack.callback(os.close, descriptor)
                stack.callback(claim.unlink, missing_ok=True)
                try_lock(descriptor)
                (self.directory / token).mkdir(_DIRECTORY_MODE)
                stack.callback(shutil.rmtree, self.directory / token, ignore_errors=True)
            yield LocalStaging(self, self.directory / token)

    def delete(self, versions: Iterable[int]) -> None:
        """Takes versions out of sight first, then deletes their files, oldest first."""
        doomed = sorted(versions)
        if not doomed:
            return
        with model_lock(self.directory), self._explained():
            for version in doomed:
                trash = self.directory / f"{TRASH_PREFIX}{version}-{secrets.token_hex(4)}"
                with contextlib.suppress(FileNotFoundError):  # Another push has just deleted it.
                    os.rename(self.directory / str(version), trash)
                    shutil.rmtree(trash)
            fsync_directory(self.directory)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise local_disk.explain(error, self.directory) from error

    def _sweep(self) -> None:
        """Deletes what dead pushes and cut-off deletions left. The model's lock is held.

        What another user left may be his to delete: it is out of sight, and no reason to refuse a push.
        """
        for path in list(self.directory.iterdir()):
            if path.name.startswith(TRASH_PREFIX):
                shutil.rmtree(path, ignore_errors=True)
            elif path.name.startswith(STAGING_PREFIX) and path.name.endswith(_CLAIM_SUFFIX):
                _sweep_claim(path)
        for path in self.directory.glob(f"{STAGING_PREFIX}*"):
            if path.is_dir() and not path.with_name(path.name + _CLAIM_SUFFIX).exists():
                shutil.rmtree(path, ignore_errors=True)


class LocalStaging:
    """A version being written in a hidden directory."""

    def __init__(self, store: LocalStore, directory: Path) -> None:
        self._store = store
        self._directory = directory

    def add(self, path: str, source: Path) -> FileRecord:
        """Copies one file in, makes it durable and returns what arrived, read back."""
        copy = self._directory / path
        try:
            _make_parents(copy.parent, self._directory)
            with open(source, "rb") as incoming, open(copy, "xb") as outgoing:
                shutil.copyfileobj(incoming, outgoing, _CHUNK_BYTES)
                _settle(outgoing.fileno())
        except OSError as error:
            raise local_disk.explain(error, self._store.directory) from error
        return record_of(copy)

    def add_bytes(self, path: str, content: bytes) -> FileRecord:
        """Writes one file, makes it durable and returns its record."""
        copy = self._directory / path
        try:
            _make_parents(copy.parent, self._directory)
            with open(copy, "xb") as outgoing:
                outgoing.write(content)
                outgoing.flush()
                _settle(outgoing.fileno())
        except OSError as error:
            raise local_disk.explain(error, self._store.directory) from error
        return record_of(copy)

    def commit(self, choose: ChooseVersion, manifest: MakeManifest) -> int:
        """Renames the hidden directory to the next number, which is the one moment when it comes into sight."""
        with model_lock(self._store.directory):
            version = choose(self._store.entries())
            self.add_bytes(MANIFEST_FILE, manifest(version))
            target = self._store.directory / str(version)
            if os.path.lexists(target):  # rename() would replace an empty directory without a word.
                raise EnvironmentProblem(
                    "another program has just made this version", place=str(target), hint="Push again."
                )
            try:
                for directory, _, _ in os.walk(self._directory, topdown=False):
                    fsync_directory(directory)
                os.rename(self._directory, target)
                fsync_directory(self._store.directory)
            except OSError as error:
                raise local_disk.explain(error, self._store.directory) from error
        return version


def _entry(item: os.DirEntry[str]) -> Entry:
    is_directory = item.is_dir()
    return Entry(
        name=item.name,
        is_directory=is_directory,
        # A link is somebody else's arrangement: never counted as ours, so never deleted.
        has_manifest=is_directory and not item.is_symlink() and os.path.isfile(os.path.join(item.path, MANIFEST_FILE)),
        is_complete=is_directory and os.path.isfile(os.path.join(item.path, READY_FILE)),
    )


def _make_parents(directory: Path, top: Path) -> None:
    """Makes the folders between `top` and `directory`, readable by servers whatever the umask."""
    for folder in [*reversed(directory.relative_to(top).parents), directory.relative_to(top)]:
        (top / folder).mkdir(exist_ok=True)
        (top / folder).chmod(_DIRECTORY_MODE)


def _settle(descriptor: int) -> None:
    os.fchmod(descriptor, _FILE_MODE)
    os.fsync(descriptor)


def _sweep_claim(claim: Path) -> None:
    """Deletes a push's hidden directory when the push is dead."""
    try:
        descriptor = os.open(claim, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):  # That push has just cleaned up after itself, or is another user's.
        return
    try:
        if try_lock(descriptor):
            staging = claim.with_name(claim.name.removesuffix(_CLAIM_SUFFIX))
            shutil.rmtree(staging, ignore_errors=True)
            if not staging.exists():
                claim.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
