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

from components.ingest import spans
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
    """

    files: tuple[str, ...]
    span: int | None
    version: int | None
    skipped: tuple[tuple[str, str], ...]
    date: datetime.date | None

    @property
    def root(self) -> str:
        """The deepest folder that holds every file."""
        return os.path.commonpath([os.path.dirname(path) or "." for path in self.files])

    def name_of(self, path: str) -> str:
        """Returns a file's name relative to `root`, with forward slashes: equal on every machine."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")


def resolve(path: str, *, kind: str, run_date: datetime.date | None) -> Source:
    """Returns the files that a path stands for.

    Args:
        path: File, folder (searched to any depth), glob, or a pattern with {SPAN}, {VERSION} or {YYYY} {MM} {DD};
            `package:NAME/rest` is a file inside an installed package, which is not imported.
        kind: csv, parquet or tfrecord; only names what was looked for in errors.
        run_date: The day of a scheduled run; a dated pattern needs it, and a span must match it.

    Raises:
        ConfigError: The path cannot mean anything here: remote, unknown package, dated pattern without a date.
        DataError: Nothing is there, or there is no data for that day.
    """
    location = _inside_package(path) if path.startswith(_PACKAGE_PREFIX) else os.path.expanduser(path)
    if _REMOTE.match(location):
        raise ConfigError(
            f"input is read from this machine's file system, not from {location.split('://')[0]}://",
            place="data.path",
            hint="copy or mount the data and point data.path at the local folder",
        )
    chosen = spans.choose(location, run_date=run_date)
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

    Names are relative to the files' common folder and times are not looked at: touching files or moving the
    project changes nothing, one other byte changes everything.
    """
    digest = hashlib.sha256()
    for path in source.files:
        digest.update(f"{source.name_of(path)}\0{sha256_file(path)}\n".encode("utf-8", "surrogateescape"))
    digest.update(f"span={source.span} version={source.version}".encode())
    return digest.hexdigest()


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
    candidates, passed_over = _walk(path)
    files, skipped = _sort_out(candidates, judge_names=True)
    return files, skipped + passed_over


def _walk(root: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns every file below a folder, through links as well, and the folders that were not entered."""
    files: list[str] = []
    passed_over: list[tuple[str, str]] = []
    real_root = os.path.realpath(root)
    entered = {real_root}
    for directory, folders, names in os.walk(root, followlinks=True):
        chosen = []
        for name in sorted(folders):
            folder = os.path.join(directory, name)
            real = os.path.realpath(folder)
            if _is_marker(name):
                passed_over.append((folder, "hidden or marker folder"))
            elif real in entered:
                passed_over.append((folder, f"the same folder as {real}, which is read already"))
            elif os.path.join(real_root, "").startswith(os.path.join(real, "")):
                passed_over.append((folder, f"a link to {real}, which holds the folder that is read already"))
            else:
                entered.add(real)
                chosen.append(name)
        folders[:] = chosen
        files += [os.path.join(directory, name) for name in sorted(names)]
    return files, passed_over


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
