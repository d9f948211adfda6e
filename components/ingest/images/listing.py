"""Which photos there are and what class each belongs to, by folder or by manifest; nothing is decoded."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Mapping

from components.ingest.folders import walk
from components.ingest.images import names, sniff
from components.ingest.rows import Reject
from core.errors import DataError

# Folders that the error about a tree without photos names.
_SHOWN_FOLDERS = 5


@dataclasses.dataclass(frozen=True)
class Entry:
    """One file that should be a photo.

    Attributes:
        path: Where it is.
        name: Path relative to `data.path`, with forward slashes.
        label: Its class.
        group: Product id that a manifest gives; empty without one.
        line: Its line in the manifest; 0 without one.
    """

    path: str
    name: str
    label: str
    group: str = ""
    line: int = 0


@dataclasses.dataclass(frozen=True)
class Listing:
    """Everything below `data.path`, sorted out.

    Attributes:
        root: The folder that names are relative to.
        entries: Files to decode, sorted by name, each name once.
        rejects: What is set aside without being decoded, by relative name.
        ignored: (relative name, reason) of hidden and system files and folders.
        empty: Relative names of class folders that hold no file, with the class of each.
        classes: For each class that a folder or the manifest names, a place that does: the folder, or file and line.
        warnings: What the user should know.
        manifest: Path of the manifest; None when the folders name the classes.
    """

    root: str
    entries: tuple[Entry, ...]
    rejects: tuple[Reject, ...]
    ignored: tuple[tuple[str, str], ...]
    empty: tuple[tuple[str, str], ...]
    classes: Mapping[str, str]
    warnings: tuple[str, ...]
    manifest: str | None = None

    @property
    def found(self) -> int:
        """Number of files that must be accounted for."""
        return len(self.entries) + len(self.rejects)


def read(root: str, *, manifest: str | None) -> Listing:
    """Returns the photos of a folder.

    Args:
        root: The folder, `data.path`.
        manifest: CSV or JSONL of paths and labels, relative to `root`; None: the folders name the classes.

    Raises:
        DataError: It is no folder, no file in it begins like a photo or none of those that do can be used, a class
            name cannot be used, or the manifest cannot be read.
    """
    if not os.path.isdir(root):
        raise DataError("photos need a folder of class folders, and this is none", place=root, hint="check data.path")
    if manifest is not None:
        from components.ingest.images import manifest as manifests

        listing = manifests.read(root, manifest)
    else:
        listing = _read_tree(root)
    if not any(_begins_like_a_photo(entry.path) for entry in listing.entries):
        raise _nothing_usable(listing)
    return listing


def _nothing_usable(listing: Listing) -> DataError:
    """Returns the error of a listing without photos, which tells photos in the wrong place from none at all."""
    root, listed = listing.root, listing.manifest is not None
    misplaced = (
        reject
        for reject in listing.rejects
        if (listed and not listing.entries) or _begins_like_a_photo(os.path.join(root, reject.file))
    )
    first = next(misplaced, None)
    if first is None:
        return DataError(
            f"no file begins like a photo; what is there: {_outline(root)}",
            place=root,
            hint="point data.path at the folder that holds the class folders",
        )
    return DataError(
        f"no photo can be used: {len(listing.rejects)} of {listing.found} files are set aside; the first: "
        f"{first.reason}",
        place=os.path.join(root, first.file),
        hint="write the manifest's paths relative to data.path, each once" if listed else "move photos to CLASS/PHOTO",
    )


def _read_tree(root: str) -> Listing:
    tree = walk(root, why_not=names.why_not_folder)
    parents = {os.path.dirname(folder) for folder, _ in tree.folders}
    entries: list[Entry] = []
    rejects: list[Reject] = []
    ignored = [(names.shown(_relative(root, folder)), reason) for folder, reason in tree.passed_over]
    empty: list[tuple[str, str]] = []
    warnings: list[str] = []
    spellings: list[tuple[str, str]] = []
    classes: dict[str, str] = {}
    for folder, files in tree.folders:
        kept = []
        for name in files:
            reason = names.why_not_file(name)
            if reason:
                ignored.append((names.shown(_relative(root, os.path.join(folder, name))), reason))
            else:
                kept.append(os.path.join(folder, name))
        relative = _relative(root, folder)
        if folder == root:
            rejects += [Reject(names.shown(_relative(root, path)), 0, "no class folder", "") for path in kept]
            continue
        if not kept and folder in parents:
            continue
        label = names.label_of(relative.split("/"), place=folder)
        classes.setdefault(label, folder)
        if not kept:
            empty.append((relative, label))
            continue
        spellings.append((label, relative))
        if folder in parents:
            warnings.append(
                f"folder {relative!r} holds photos beside class folders: {label!r} is a class of its own too"
            )
        good, bad = _sort_out(root, kept, label)
        entries += good
        rejects += bad
    warnings = [*names.spelling_warnings(spellings), *warnings]
    entries.sort(key=lambda entry: entry.name)
    return Listing(root, tuple(entries), tuple(rejects), tuple(sorted(ignored)), tuple(empty), classes, tuple(warnings))


def _sort_out(root: str, paths: Iterable[str], label: str) -> tuple[list[Entry], list[Reject]]:
    entries, rejects = [], []
    for path in paths:
        name = _relative(root, path)
        if reason := why_unreadable(path, name):
            rejects.append(Reject(names.shown(name), 0, reason, ""))
        else:
            entries.append(Entry(path, name, label))
    return entries, rejects


def why_unreadable(path: str, name: str) -> str:
    """Returns why a file cannot even be opened as a photo; empty when it can be tried."""
    if not names.is_text(name):
        return "its name is not UTF-8 text"
    if not os.path.exists(path):
        return "a link to nothing" if os.path.islink(path) else "there is no such file"
    return "" if os.path.isfile(path) else "not a regular file"


def _begins_like_a_photo(path: str) -> bool:
    return sniff.photo_format(_head(path)) is not None


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(sniff.HEAD_BYTES)
    except OSError:
        return b""


def _outline(root: str) -> str:
    """Returns the first folders of a tree with their files counted by extension, on one line."""
    lines = []
    held = [(folder, files) for folder, files in walk(root, why_not=names.why_not_folder).folders if files]
    for folder, files in held[:_SHOWN_FOLDERS]:
        kinds = Counter(os.path.splitext(name)[1].lower() or "no extension" for name in files)
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        lines.append(f"{names.shown(_relative(root, folder))}/ ({counts})")
    more = len(held) - _SHOWN_FOLDERS
    if more > 0:
        lines.append(f"and {more} more folders")
    return "; ".join(lines) or "no file at all"


def _relative(root: str, path: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")
