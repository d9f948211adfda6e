"""Reads a manifest: which file is of which class, one a line, as CSV with a header or as JSONL."""

from __future__ import annotations

import csv
import difflib
import json
import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from components.ingest.images import names
from components.ingest.images.listing import Entry, Listing, why_unreadable
from components.ingest.rows import Reject
from core.errors import DataError

_NEEDED = ("path", "label")
_KNOWN = (*_NEEDED, "group")
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")


def read(root: str, manifest: str) -> Listing:
    """Returns the photos that a manifest lists.

    A file that is not there, or is listed a second time, is set aside with its line. One that is listed under two
    classes is set aside as a whole.

    Args:
        root: `data.path`; paths in the manifest are relative to it.
        manifest: The manifest, relative to `root` or absolute.

    Raises:
        DataError: The manifest cannot be read, lacks a column or has an unknown one, a label is unusable, or a path
            leads out of `root`; names the line.
    """
    location = os.path.join(root, os.path.expanduser(manifest))
    by_name: dict[str, list[Entry]] = defaultdict(list)
    spellings = []
    for line, row in _rows(location):
        entry = _entry(root, row, f"{location}:{line}", line)
        by_name[entry.name].append(entry)
        spellings.append((entry.label, row["label"]))
    entries: list[Entry] = []
    rejects: list[Reject] = []
    for name, listed in sorted(by_name.items()):
        first, again = listed[0], listed[1:]
        other = next((entry for entry in again if entry.label != first.label), None)
        if other is not None:
            reason = f"listed as {first.label!r} on line {first.line} and as {other.label!r} on line {other.line}"
            rejects += [Reject(names.shown(name), entry.line, reason, "") for entry in listed]
            continue
        rejects += [
            Reject(names.shown(name), entry.line, f"listed already on line {first.line}", "") for entry in again
        ]
        if reason := why_unreadable(first.path, name):
            rejects.append(Reject(names.shown(name), first.line, f"{reason} (line {first.line} of the manifest)", ""))
        else:
            entries.append(first)
    warnings = tuple(names.spelling_warnings(spellings))
    return Listing(root, tuple(entries), tuple(rejects), (), (), warnings, manifest=location)


def _entry(root: str, row: Mapping[str, str], place: str, line: int) -> Entry:
    path = PurePosixPath(row["path"].replace("\\", "/"))
    target = os.path.normpath(os.path.join(root, *path.parts))
    relative = os.path.relpath(target, root)
    if path.is_absolute() or relative.split(os.sep)[0] == os.pardir or relative == os.curdir:
        raise DataError(
            f"the path {row['path']!r} leads out of data.path", place=place, hint="write paths relative to data.path"
        )
    label = names.label_of(row["label"].split("/"), place=place)
    return Entry(target, relative.replace(os.sep, "/"), label, row.get("group", ""), line)


def _rows(location: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line, the three columns as text) of a manifest."""
    try:
        if location.lower().endswith(_JSON_ENDINGS):
            yield from _json_rows(location)
        else:
            yield from _csv_rows(location)
    except FileNotFoundError:
        raise DataError("there is no such manifest", place=location, hint="check data.images.manifest") from None
    except OSError as error:
        raise DataError(f"the manifest cannot be read: {error.strerror}", place=location) from error
    except UnicodeDecodeError as error:
        raise DataError("the manifest is not UTF-8 text", place=location, hint="save it as UTF-8") from error


def _csv_rows(location: str) -> Iterator[tuple[int, dict[str, str]]]:
    with open(location, encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_columns(header, f"{location}:1")
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise DataError(
                        f"{len(cells)} cells, but the header has {len(header)}", place=f"{location}:{reader.line_num}"
                    )
                yield reader.line_num, _checked(dict(zip(header, cells, strict=True)), f"{location}:{reader.line_num}")
        except csv.Error as error:
            raise DataError(f"this is not CSV: {error}", place=f"{location}:{reader.line_num}") from error


def _json_rows(location: str) -> Iterator[tuple[int, dict[str, str]]]:
    with open(location, encoding="utf-8-sig") as stream:
        for line, text in enumerate(stream, start=1):
            if not text.strip():
                continue
            place = f"{location}:{line}"
            try:
                record = json.loads(text)
            except ValueError as error:
                raise DataError(f"this line is not JSON: {error}", place=place) from error
            if not isinstance(record, dict):
                raise DataError("this line is not a JSON object", place=place, hint='write {"path": …, "label": …}')
            _check_columns(list(record), place)
            yield line, _checked(record, place)


def _check_columns(columns: list[str], place: str) -> None:
    for column in columns:
        if column not in _KNOWN:
            near = difflib.get_close_matches(column.lower(), _KNOWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_KNOWN)}; cells are split by commas"
            raise DataError(f"unknown column {column!r} in the manifest", place=place, hint=hint)
    missing = [column for column in _NEEDED if column not in columns]
    if missing or len(set(columns)) != len(columns):
        what = f"has no column {missing[0]!r}" if missing else "names a column twice"
        raise DataError(f"the manifest {what}", place=place, hint=f"needed: {', '.join(_NEEDED)}; may have: group")


def _checked(row: Mapping[str, object], place: str) -> dict[str, str]:
    """Returns a row as text without blanks around it; a group may be a number, or missing."""
    texts = {}
    for column, value in row.items():
        text = value
        if column == "group" and (value is None or isinstance(value, int)):
            text = "" if value is None else str(value)
        if not isinstance(text, str) or (column in _NEEDED and not text.strip()):
            raise DataError(f"no text under {column!r}", place=place)
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in text.strip()):
            raise DataError(f"a control character or half a letter under {column!r}", place=place)
        texts[column] = text.strip()
    return texts
