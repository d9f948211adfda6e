"""Which files a `data.path` means today, and a digest of what is in them.

Light on purpose: the cache planner asks for digests before anything heavy is imported.
"""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from components.ingest import spans
from components.ingest.folders import walk
from core.errors import ConfigError, DataError
from core.files import sha256_file

_PACKAGE_PREFIX = "package:"
_REMOTE = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# Names that tools leave beside data: success markers, checksums, half-written and desktop files.
_MARKERS = ("_*", ".*", "*.crc", "*.md5", "*.sha1", "*.sha256", "*~", "*.tmp", "*.part", "Thumbs.db", "desktop.ini")


@dataclasses.dataclass(frozen=True)
class Source:
    """The input files of one run.

    Attributes:
        files: Paths, sorted, at least one; relative when `data.path` is.
        span: Number of the span that was chosen; None without {SPAN} or date tokens.
        version: Number of the version that was chosen; None without {VERSION}.
        skipped: (path, reason) of what lies beside the data and is not read.
        date: The run date that chose the span; None for a run without a date.
        folder: For photos, the folder whose sub-folders are the classes; None for tables.
        manifest: For photos, the file that names their classes; None without one.
        unread: For photos, relative names that decide the result although no bytes are read: files that are set aside
            by their name, and empty class folders.
    """

    files: tuple[str, ...]
    span: int | None
    version: int | None
    skipped: tuple[tuple[str, str], ...]
    date: datetime.date | None
    folder: str | None = None
    manifest: str | None = None
    unread: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The folder that names are relative to: of photos the folder of the classes, else the deepest that fits."""
        if self.folder is not None:
            return self.folder
        return os.path.commonpath([os.path.dirname(path) or "." for path in self.files])

    def name_of(self, path: str) -> str:
        """Returns a file's name relative to `root`, with forward slashes: equal on every machine."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")


def resolve(path: str, *, kind: str, run_date: datetime.date | None, manifest: str | None = None) -> Source:
    """Returns the files that a path stands for.

    Args:
        path: File, folder (searched to any depth), glob, or a pattern with {SPAN}, {VERSION} or {YYYY} {MM} {DD};
            `package:NAME/rest` is a file inside an installed package, which is not imported.
        kind: csv, parquet or tfrecord, which only names what was looked for in errors; or images.
        run_date: The day of a scheduled run; a dated pattern needs it, and a span must match it.
        manifest: `data.images.manifest`; for images only.

    Raises:
        ConfigError: The path cannot mean anything here: remote, unknown package, dated pattern without a date.
        DataError: Nothing is there, there is no data for that day, or no file among the photos begins like one.
    """
    location = _inside_package(path) if path.startswith(_PACKAGE_PREFIX) else os.path.expanduser(path)
    if _REMOTE.match(location):
        raise ConfigError(
            f"input is read from this machine's file system, not from {location.split('://')[0]}://",
            place="data.path",
            hint="copy or mount the data and point data.path at the local folder",
        )
    chosen = spans.choose(location, run_date=run_date)
    if kind == "images":
        return _photos(chosen, path, manifest, run_date)
    files: list[str] = []
    skipped: list[tuple[str, str]] = []
    for match in chosen.paths:
        found, ignored = _expand(match, named=not chosen.is_glob)
        files += found
        skipped += ignored
    if not files:
        raise DataError(f"no {kind} file with content in data.path{_why_nothing(skipped)}", place=path)
    files, twins = _without_twins(files)
    skipped += twins
    return Source(tuple(files), chosen.span, chosen.version, tuple(sorted(set(skipped))), run_date)


def content_digest(source: Source) -> str:
    """Returns a hex SHA-256 over every file's bytes and name.

    Names are relative to `Source.root` and times are not looked at: touching files or moving the project changes
    nothing, one other byte changes everything.
    """
    # Hashing runs outside of Python's lock, so threads use every core.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="digest") as pool:
        return digest_of(source, pool.map(sha256_file if source.folder is None else _sha256_or_nothing, source.files))


def digest_of(source: Source, hashes: Iterable[str]) -> str:
    """Returns what `content_digest` does, from hashes that are known already.

    Args:
        source: The files.
        hashes: Hex SHA-256 of each file of `source.files`; empty for a photo that cannot be read.
    """
    digest = hashlib.sha256()
    for path, file_hash in zip(source.files, hashes, strict=True):
        digest.update(f"{source.name_of(path)}\0{file_hash}\n".encode("utf-8", "surrogateescape"))
    for name in source.unread:
        digest.update(f"{name}\0\n".encode())
    if source.manifest is not None:
        digest.update(f"manifest\0{sha256_file(source.manifest)}\n".encode())
    digest.update(f"span={source.span} version={source.version}".encode())
    return digest.hexdigest()


def _sha256_or_nothing(path: str) -> str:
    """Returns a photo's hash; empty when it cannot be read, which sets one photo aside and does not stop a run."""
    try:
        return sha256_file(path)
    except OSError:
        return ""


def _photos(chosen: spans.Choice, path: str, manifest: str | None, run_date: datetime.date | None) -> Source:
    from components.ingest.images import listing

    if len(chosen.paths) != 1:
        raise DataError(f"photos are read from one folder, and {len(chosen.paths)} match data.path", place=path)
    (folder,) = chosen.paths
    found = listing.read(folder, manifest=manifest)
    return Source(
        files=tuple(entry.path for entry in found.entries),
        span=chosen.span,
        version=chosen.version,
        skipped=tuple((os.path.join(folder, name), reason) for name, reason in found.ignored),
        date=run_date,
        folder=folder,
        manifest=found.manifest,
        unread=(*(reject.file for reject in found.rejects), *(f"{name}/" for name, _ in found.empty)),
    )


def _inside_package(path: str) -> str:
    name, _, rest = path[len(_PACKAGE_PREFIX) :].partition("/")
    # A dotted name would import the parent package, and that can be TensorFlow.
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"there is no installed package {name!r}", place="data.path", hint="write package:NAME/folder/file.csv"
        )
    return os.path.join(next(iter(spec.submodule_search_locations)), *rest.split("/"))


def _expand(path: str, *, named: bool) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the data files at or below a path, and what was left out with its reason."""
    if not os.path.isdir(path):
        # A file that the user names outright is data whatever it is called.
        return _sort_out([path], judge_names=not named)
    below = walk(path, why_not=lambda name: "hidden or marker folder" if _is_marker(name) else "")
    candidates = [os.path.join(folder, name) for folder, names in below.folders for name in names]
    files, skipped = _sort_out(candidates, judge_names=True)
    return files, [*skipped, *below.passed_over]


def _without_twins(paths: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns files of which none is another one under a second name; links give way to what they point to."""
    own: dict[str, str] = {}
    twins: list[tuple[str, str]] = []
    for path in sorted(set(paths), key=lambda path: (os.path.realpath(path) != os.path.abspath(path), path)):
        first = own.setdefault(os.path.realpath(path), path)
        if first != path:
            twins.append((path, f"the same file as {first}"))
    return sorted(own.values()), twins


def _sort_out(paths: list[str], *, judge_names: bool) -> tuple[list[str], list[tuple[str, str]]]:
    files: list[str] = []
    skipped: list[tuple[str, str]] = []
    for path in paths:
        if judge_names and _is_marker(os.path.basename(path)):
            skipped.append((path, "hidden or marker file"))
        elif not os.path.isfile(path):
            raise DataError("not a file, a folder or a readable link", place=path)
        elif os.path.getsize(path) == 0:
            skipped.append((path, "empty file (0 bytes)"))
        else:
            files.append(path)
    return files, skipped


def _is_marker(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _MARKERS)


def _why_nothing(skipped: list[tuple[str, str]]) -> str:
    if not skipped:
        return ""
    shown = ", ".join(f"{os.path.basename(path)}: {reason}" for path, reason in skipped[:3])
    return f" ({len(skipped)} skipped: {shown})"
