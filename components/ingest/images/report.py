"""The ingest report of photos: every file that was found is written, a copy, or set aside."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from components.ingest.images.facts import Fact
from components.ingest.images.listing import Listing
from components.ingest.report import FORMAT_VERSION
from components.ingest.rows import Reject
from components.ingest.sources import Source
from components.ingest.splitting import split_names
from core.settings.data import DataSettings

CONVERSIONS = ("cmyk", "16bit", "palette", "alpha", "profile", "oriented", "animated", "resized")


@dataclasses.dataclass(frozen=True)
class PhotoReport:
    """What one ingestion of photos read, wrote and set aside.

    Attributes:
        path: `data.path` as configured.
        kind: images.
        manifest: The manifest as configured; None when the folders named the classes.
        span: Span that was read; None without one.
        version: Version that was read; None without one.
        date: Run date, ISO 8601; None for a run without one.
        folders: For each folder: name, rows_read, rows_set_aside, duplicates.
        ignored: For each hidden or system file or folder: name and reason.
        empty_classes: Class folders without any file.
        rows_read: Files found, without the ignored ones.
        rows_written: Photos of each split.
        rows_set_aside: Files in quarantine.jsonl.
        duplicates: Exact copies of a photo of the same class that were left out.
        classes: Photos written by class and split.
        formats: Photos written by the kind of their original file.
        converted: Photos written by what was done to them; a photo counts once for each.
        groups: Products, families and look-alikes.
        split: Method, shares, seed and the leakage check.
        warnings: What the user should know.
    """

    path: str
    kind: str
    manifest: str | None
    span: int | None
    version: int | None
    date: str | None
    folders: Sequence[Mapping[str, Any]]
    ignored: Sequence[Mapping[str, str]]
    empty_classes: Sequence[str]
    rows_read: int
    rows_written: Mapping[str, int]
    rows_set_aside: int
    duplicates: int
    classes: Mapping[str, Mapping[str, int]]
    formats: Mapping[str, int]
    converted: Mapping[str, int]
    groups: Mapping[str, Any]
    split: Mapping[str, Any]
    warnings: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form, with its format version."""
        return {"format_version": FORMAT_VERSION, **dataclasses.asdict(self)}

    def balances(self) -> bool:
        """Returns True when every file that was found is accounted for."""
        return self.rows_read == sum(self.rows_written.values()) + self.rows_set_aside + self.duplicates

    @property
    def summary(self) -> str:
        """One line for a person."""
        splits = ", ".join(f"{name} {count:,}" for name, count in self.rows_written.items())
        copies = f"; {self.duplicates:,} exact copies left out" if self.duplicates else ""
        return f"{self.rows_read:,} files read: {splits}{copies}; {self.rows_set_aside:,} set aside"


@dataclasses.dataclass(frozen=True)
class Accounts:
    """What became of the files.

    Attributes:
        written: (split, photo) in the order of writing.
        copies: Exact copies that were left out.
        rejects: What was set aside.
        groups: What `groups.account` says.
        leakage: What `leakage.count_shared` says.
    """

    written: Sequence[tuple[int, Fact]]
    copies: Sequence[Fact]
    rejects: Sequence[Reject]
    groups: Mapping[str, Any]
    leakage: Mapping[str, Any]


def make(
    data: DataSettings, source: Source, found: Listing, accounts: Accounts, warnings: Sequence[str]
) -> PhotoReport:
    """Returns the report.

    Args:
        data: The ingestion's settings.
        source: The photos.
        found: What lies below `data.path`.
        accounts: What became of each file.
        warnings: What is to be said beside the warnings of the listing.
    """
    names = split_names(data.split)
    classes = _by_class(accounts.written, names)
    per_split = Counter(code for code, _ in accounts.written)
    return PhotoReport(
        path=data.path,
        kind=data.kind,
        manifest=data.images.manifest,
        span=source.span,
        version=source.version,
        date=source.date.isoformat() if source.date else None,
        folders=_by_folder(found, accounts),
        ignored=[{"name": name, "reason": reason} for name, reason in found.ignored],
        empty_classes=[name for name, _ in found.empty],
        rows_read=found.found,
        rows_written={name: per_split[code] for code, name in enumerate(names)},
        rows_set_aside=len(accounts.rejects),
        duplicates=len(accounts.copies),
        classes=classes,
        formats=dict(sorted(Counter(fact.format for _, fact in accounts.written).items())),
        converted=_conversions(accounts.written),
        groups=accounts.groups,
        split={**data.split.model_dump(), "leakage": dict(accounts.leakage)},
        warnings=[*found.warnings, *_class_warnings(found, classes), *warnings],
    )


def lost_classes(found: Listing, classes: Collection[str]) -> list[str]:
    """Returns the classes that a folder or the manifest names and of which no photo is among the written `classes`."""
    return sorted(set(found.classes) - set(classes))


def _class_warnings(found: Listing, classes: Collection[str]) -> list[str]:
    warnings = [
        f"class folder {name!r} holds no photo: "
        + (f"those of {label!r} lie elsewhere" if label in classes else f"{label!r} is no class")
        for name, label in found.empty
    ]
    said = {label for _, label in found.empty}
    lost = [label for label in lost_classes(found, classes) if label not in said]
    return warnings + [f"class {label!r} is gone: every photo of it was set aside" for label in lost]


def _by_class(written: Sequence[tuple[int, Fact]], names: Sequence[str]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for split, fact in written:
        counts[fact.label][split] += 1
    return {label: {name: counts[label][code] for code, name in enumerate(names)} for label in sorted(counts)}


def _by_folder(found: Listing, accounts: Accounts) -> list[dict[str, Any]]:
    unread = [reject.file for reject in found.rejects]
    read = Counter(_folder(name) for name in (*unread, *(entry.name for entry in found.entries)))
    aside = Counter(_folder(reject.file) for reject in accounts.rejects)
    copies = Counter(_folder(fact.name) for fact in accounts.copies)
    return [
        {"name": folder, "rows_read": read[folder], "rows_set_aside": aside[folder], "duplicates": copies[folder]}
        for folder in sorted(read)
    ]


def _conversions(written: Sequence[tuple[int, Fact]]) -> dict[str, int]:
    counts = Counter(change for _, fact in written for change in fact.converted)
    return {change: counts[change] for change in CONVERSIONS}


def _folder(name: str) -> str:
    return name.rpartition("/")[0] or "."
