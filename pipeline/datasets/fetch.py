"""Fetches a public set: download, unpack aside, verify every byte, then show it under its name."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import http.client
import itertools
import lzma
import os
import re
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from core.errors import DataError, EnvironmentProblem, RemoteServiceError, UsageError
from core.files import fsync_directory, sha256_file
from pipeline.datasets.catalog import DataSet

# (bytes so far, bytes in total or None when the server does not say).
Progress = Callable[[int, "int | None"], None]

_CHUNK_BYTES = 1 << 18
# Seconds without a byte after which a server counts as gone.
_SILENCE_S = 30
# No archive of photos that we name is larger; a wrong address must not fill the disk.
_MOST_BYTES = 2 << 30
_OFFLINE = "any folder of class folders will do instead: --set data.path=FOLDER"


@dataclasses.dataclass(frozen=True)
class Fetched:
    """What a fetch did.

    Attributes:
        target: The folder.
        files: Number of files in it.
        was_there: True when the folder already held exactly this set.
    """

    target: Path
    files: int
    was_there: bool


def fetch(wanted: DataSet, target: Path, url: str, progress: Progress) -> Fetched:
    """Puts a set into a folder; a fetch that dies leaves nothing there.

    Args:
        wanted: The set.
        target: The folder; it may not exist, or must already hold exactly this set.
        url: Where the archive is.
        progress: Called while bytes arrive.

    Raises:
        UsageError: The address is none.
        RemoteServiceError: The server cannot be reached, refuses, falls silent or sends too much.
        DataError: What arrived is not the set.
        EnvironmentProblem: The folder holds something else, or cannot be written.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        if target.is_dir() and _holds(target, wanted):
            return Fetched(target, wanted.files, was_there=True)
        hint = "Move it away, or name another folder with --to."
        raise EnvironmentProblem("the folder is there and holds something else", place=str(target), hint=hint)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            archive, files = Path(folder) / "archive.zip", Path(folder) / "files"
            with archive.open("wb") as stream:
                _download(url, stream, progress)
            _unpack(archive, wanted, files, url)
            _verify(files, wanted, url)
            if target.is_dir():
                target.rmdir()
            os.replace(files, target)
            fsync_directory(target.parent)
    except OSError as error:
        raise EnvironmentProblem(
            f"the files cannot be written: {error.strerror or error}",
            place=str(target),
            hint="Name a folder with --to.",
        ) from error
    return Fetched(target, wanted.files, was_there=False)


def content_digest(folder: Path) -> tuple[int, str]:
    """Returns (number of files, SHA-256 over their paths and contents) of a folder, whatever their times are."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path}\0{sha256_file(folder / path)}\n".encode("utf-8", "surrogateescape"))
    return len(paths), digest.hexdigest()


def _holds(folder: Path, wanted: DataSet) -> bool:
    """Returns whether a folder is exactly this set; of a larger folder, such as a home, no file is read."""
    files = (path for path in folder.rglob("*") if path.is_file())
    if sum(1 for _ in itertools.islice(files, wanted.files + 1)) != wanted.files:
        return False
    return content_digest(folder) == (wanted.files, wanted.content_sha256)


def _download(url: str, stream: BinaryIO, progress: Progress) -> None:
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"not a web address: {url}", place="--url", hint="It begins with https:// or http://.")
    done = 0
    for chunk, length in _received(url):
        stream.write(chunk)
        done += len(chunk)
        progress(done, length)


def _received(url: str) -> Iterator[tuple[bytes, int | None]]:
    """Yields what a server sends, in pieces, each with the bytes that it announced, if it did.

    Nothing is written in here, so that every OSError is the network's.
    """
    done = 0
    try:
        with urllib.request.urlopen(url, timeout=_SILENCE_S) as answer:  # noqa: S310 - the scheme was checked
            # Content-Length as a number; None when there is none, or none that can be read.
            length: int | None = answer.length
            while chunk := answer.read(_CHUNK_BYTES):
                done += len(chunk)
                if done > _MOST_BYTES:
                    raise RemoteServiceError(f"the archive is larger than {_MOST_BYTES >> 30} GiB", place=url)
                yield chunk, length
    except urllib.error.HTTPError as error:
        raise RemoteServiceError(f"the server answers {error.code} {error.reason}", place=url, hint=_OFFLINE) from None
    except (http.client.InvalidURL, ValueError) as error:
        raise UsageError(f"not a web address: {error}", place=url) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error) or "no answer"
        what = f"the connection broke after {done} bytes" if done else "the server cannot be reached"
        raise RemoteServiceError(f"{what}: {reason}", place=url, hint=_OFFLINE) from None
    if length is not None and done != length:
        raise RemoteServiceError(f"the connection ended after {done} of {length} bytes", place=url, hint="Try again.")


def _unpack(archive: Path, wanted: DataSet, target: Path, url: str) -> None:
    """Writes the wanted members; a member's own path decides nothing but its class and its plain file name."""
    pattern = re.compile(wanted.members)
    with _reading_archive(url):
        members = zipfile.ZipFile(archive)
    with members:
        for member in members.infolist():
            match = pattern.search(member.filename)
            folder = wanted.folders.get(match["class"]) if match else None
            if match is None or folder is None:
                continue
            path = target / folder / Path(match["name"]).name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                for chunk in _unpacked(members, member, url):
                    stream.write(chunk)


def _unpacked(members: zipfile.ZipFile, member: zipfile.ZipInfo, url: str) -> Iterator[bytes]:
    """Yields a member's content in pieces; nothing is written in here, as in `_received`."""
    with _reading_archive(url), members.open(member) as source:
        while chunk := source.read(_CHUNK_BYTES):
            yield chunk


@contextlib.contextmanager
def _reading_archive(url: str) -> Iterator[None]:
    """Makes one error of all that zipfile and its three decompressors raise for damaged bytes."""
    try:
        yield
    except (
        zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError, OSError
    ) as error:  # fmt: skip
        reason = str(error) or "it ends too early"
        raise DataError(f"what arrived is no usable zip archive: {reason}", place=url) from None


def _verify(files: Path, wanted: DataSet, url: str) -> None:
    count, digest = content_digest(files)
    if count != wanted.files:
        raise DataError(f"the archive holds {count} of the {wanted.files} files", place=url, hint="Nothing was kept.")
    if digest != wanted.content_sha256:
        hint = "Nothing was kept: the archive is not the one that this version of Forebay knows."
        raise DataError(f"the files' digest is {digest[:12]}, not {wanted.content_sha256[:12]}", place=url, hint=hint)
