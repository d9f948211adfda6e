"""Reads a manifest: which file is of which class, one a line, as CSV with a header or as JSONL."""

from __future__ import annotations

import csv
import difflib
import json
import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from components.ingest.images import names
from components.ingest.images.listing import Entry, Listing, why_unreadable
from components.ingest.rows import Reject
from core.errors import DataError
from core.label_map import SEPARATOR

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
    classes: dict[str, str] = {}
    for line, row in _rows(location):
        place = f"{location}:{line}"
        levels = _levels(row["label"])
        name = _name(root, row["path"], place)
        entry = Entry(os.path.join(root, name), name, names.label_of(levels, place=place), row.get("group", ""), line)
        by_name[name].append(entry)
        spellings.append((entry.label, "/".join(levels)))
        classes.setdefault(entry.label, place)
    entries: list[Entry] = []
    rejects: list[Reject] = []
    for name, listed in sorted(by_name.items()):
        good, bad = _sort_out(listed)
        entries += good
        rejects += [Reject(names.shown(name), 0, names.with_line(reason, entry.line), "") for entry, reason in bad]
    warnings = tuple(names.spelling_warnings(spellings))
    return Listing(root, tuple(entries), tuple(rejects), (), (), classes, warnings, manifest=location)


def _sort_out(listed: Sequence[Entry]) -> tuple[list[Entry], list[tuple[Entry, str]]]:
    """Returns, of the lines that name one file, those to decode, and the others with why not."""
    first, again = listed[0], listed[1:]
    other = next((entry for entry in again if entry.label != first.label), None)
    if other is not None:
        reason = f"listed as {first.label!r} on line {first.line} and as {other.label!r} on line {other.line}"
        return [], [(entry, reason) for entry in listed]
    bad = [(entry, f"listed already on line {first.line}") for entry in again]
    if reason := why_unreadable(first.path, first.name):
        return [], [*bad, (first, reason)]
    return [first], bad


def _levels(label: str) -> list[str]:
    """Returns the levels of a class, written as a path or in the form that reports print: tops/shirt, tops > shirt."""
    return label.replace(SEPARATOR, "/").split("/")


def _name(root: str, written: str, place: str) -> str:
    """Returns the name of a photo relative to `root`, in the Unicode form that its file has.

    Args:
        root: `data.path`.
        written: The path as the manifest has it; may be absolute when it lies in `root`.
        place: The manifest's line.
    """
    path = PurePosixPath(written.replace("\\", "/"))
    relative = os.path.relpath(os.path.normpath(os.path.join(root, *path.parts)), root)
    if relative.split(os.sep)[0] == os.pardir or relative == os.curdir:
        raise DataError(
            f"the path {written!r} leads out of data.path", place=place, hint="write paths relative to data.path"
        )
    # Macs write decomposed names (NFD) to disks and archives, and spreadsheets composed ones (NFC).
    forms = [relative, *(unicodedata.normalize(form, relative) for form in ("NFC", "NFD"))]
    found = next((form for form in forms if os.path.lexists(os.path.join(root, form))), relative)
    return found.replace(os.sep, "/")


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
