"""Refuses an ingestion of photos that nothing can be trained on."""

from __future__ import annotations

import os
from collections.abc import Sequence

from components.ingest.images.listing import Listing
from components.ingest.images.report import PhotoReport, lost_classes
from components.ingest.rows import Reject
from core.errors import DataError
from core.settings.data import DataSettings

_SHARED = (
    ("groups_shared", "products"),
    ("duplicates_shared", "exact copies"),
    ("near_duplicates_shared", "pairs of photos that look alike"),
)


def check(data: DataSettings, found: Listing, report: PhotoReport, rejects: Sequence[Reject], quarantine: str) -> None:
    """Refuses too many bad files, classes that may not be empty, splits that share something, and empty splits.

    Args:
        data: The ingestion's settings.
        found: What lies below `data.path`.
        report: What became of the files.
        rejects: What was set aside, by name.
        quarantine: Path of quarantine.jsonl, for the hint.

    Raises:
        DataError: The photos cannot be used.
    """
    if not report.balances():
        raise AssertionError(f"files went missing: {report.summary}")
    if rejects:
        _check_rejects(data, report, rejects[0].reason, os.path.join(found.root, rejects[0].file), quarantine)
    if data.images.empty_class == "refuse":
        _check_classes(found, report, quarantine)
    for key, what in _SHARED:
        if report.split["leakage"][key]:
            raise DataError(
                f"{report.split['leakage'][key]} {what} are in more than one split",
                place="data.split",
                hint="the split itself is at fault, not the photos: please report it",
            )
    for name, count in report.rows_written.items():
        if not count:
            raise DataError(
                f"split {name!r} got none of {sum(report.rows_written.values())} photos",
                place="data.split",
                hint="use more photos of more products, or larger shares",
            )


def _check_classes(found: Listing, report: PhotoReport, quarantine: str) -> None:
    for label in lost_classes(found, report.classes):
        if any(label == empty for _, empty in found.empty):
            what, hint = "has no photo", "add photos, remove the folder,"
        else:
            what, hint = "has no photo left: every one was set aside", f"see why in {quarantine},"
        raise DataError(
            f"class {label!r} {what}",
            place=found.classes[label],
            hint=f"{hint} or set data.images.empty_class: warn",
        )


def _check_rejects(data: DataSettings, report: PhotoReport, reason: str, place: str, quarantine: str) -> None:
    """Refuses too many files that were set aside, with the reason and the path of the first."""
    count, found = report.rows_set_aside, report.rows_read
    hint = f"all of them with their reasons: {quarantine}"
    if count == found:
        raise DataError(f"every file was set aside, {count} of {found}; the first: {reason}", place=place, hint=hint)
    if count / found > data.max_bad_share:
        raise DataError(
            f"{count} of {found} files ({count / found:.2%}) were set aside and data.max_bad_share allows "
            f"{data.max_bad_share:.2%}; the first: {reason}",
            place=place,
            hint=hint,
        )
