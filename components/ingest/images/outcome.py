"""Refuses an ingestion of photos that nothing can be trained on."""

from __future__ import annotations

from collections.abc import Sequence

from components.ingest.images.report import PhotoReport
from components.ingest.rows import Reject
from core.errors import DataError
from core.settings.data import DataSettings

_SHARED = (
    ("groups_shared", "products"),
    ("duplicates_shared", "exact copies"),
    ("near_duplicates_shared", "pairs of photos that look alike"),
)


def check(data: DataSettings, report: PhotoReport, rejects: Sequence[Reject], quarantine: str) -> None:
    """Refuses too many bad files, splits that share something, and empty splits.

    Args:
        data: The ingestion's settings.
        report: What became of the files.
        rejects: What was set aside, by name.
        quarantine: Path of quarantine.jsonl, for the hint.

    Raises:
        DataError: The photos cannot be used.
    """
    if not report.balances():
        raise AssertionError(f"files went missing: {report.summary}")
    if rejects:
        _check_rejects(data, report, rejects[0], quarantine)
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


def _check_rejects(data: DataSettings, report: PhotoReport, first: Reject, quarantine: str) -> None:
    count, found = report.rows_set_aside, report.rows_read
    hint = f"all of them with their reasons: {quarantine}"
    if count == found:
        raise DataError(
            f"every file was set aside, {count} of {found}; the first: {first.reason}", place=first.place, hint=hint
        )
    if count / found > data.max_bad_share:
        raise DataError(
            f"{count} of {found} files ({count / found:.2%}) were set aside and data.max_bad_share allows "
            f"{data.max_bad_share:.2%}; the first: {first.reason}",
            place=first.place,
            hint=hint,
        )
