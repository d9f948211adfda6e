"""The ingest report: everything that went in equals what came out plus what was set aside."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from components.ingest.rows import Plan
from components.ingest.sources import Source
from core.errors import DataError
from core.settings.data import DataSettings

FILE_NAME = "ingest_report.json"
FORMAT_VERSION = 2


@dataclasses.dataclass(frozen=True)
class IngestReport:
    """What one ingestion read, wrote and set aside.

    Attributes:
        path: `data.path` as configured.
        kind: csv, parquet or tfrecord.
        span: Span that was read; None without one.
        version: Version that was read; None without one.
        date: Run date, ISO 8601; None for a run without one.
        files: For each file: name, rows_read, rows_set_aside.
        skipped: For each file or folder that was not read: name and reason.
        rows_read: Rows found in the files.
        rows_written: Rows of each split.
        rows_set_aside: Rows in quarantine.jsonl.
        columns: For each feature: name, type, declared, missing, non_finite, note.
        excluded: Columns without any value.
        split: Method, column, shares, seed and the leakage check.
        warnings: What the user should know.
    """

    path: str
    kind: str
    span: int | None
    version: int | None
    date: str | None
    files: Sequence[Mapping[str, Any]]
    skipped: Sequence[Mapping[str, str]]
    rows_read: int
    rows_written: Mapping[str, int]
    rows_set_aside: int
    columns: Sequence[Mapping[str, Any]]
    excluded: Sequence[str]
    split: Mapping[str, Any]
    warnings: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form, with its format version."""
        return {"format_version": FORMAT_VERSION, **dataclasses.asdict(self)}

    def balances(self) -> bool:
        """Returns True when every row that was read is accounted for."""
        return self.rows_read == sum(self.rows_written.values()) + self.rows_set_aside

    @property
    def summary(self) -> str:
        """One line for a person."""
        splits = ", ".join(f"{name} {count:,}" for name, count in self.rows_written.items())
        return f"{self.rows_read:,} rows read: {splits}; {self.rows_set_aside:,} set aside"


class Tally:
    """Counts while rows pass by, and makes the report of them.

    Args:
        data: The ingestion's settings.
        source: The files.
        plan: Columns and warnings of the first pass.
    """

    def __init__(self, data: DataSettings, source: Source, plan: Plan) -> None:
        self._data = data
        self._source = source
        self._plan = plan
        self._read: dict[str, int] = {}
        self._missing = {column.name: 0 for column in plan.columns}
        self._non_finite = {column.name: 0 for column in plan.columns}

    @property
    def rows_read(self) -> int:
        """Rows found so far."""
        return sum(self._read.values())

    def add_rows(self, file: str, count: int) -> None:
        """Counts rows of a file as read."""
        self._read[file] = self._read.get(file, 0) + count

    def add_values(self, missing: Mapping[str, int], non_finite: Mapping[str, int]) -> None:
        """Counts missing values, and nan and inf that became missing, by column."""
        for name, count in missing.items():
            self._missing[name] += count
        for name, count in non_finite.items():
            self._non_finite[name] += count

    def report(
        self, written: Mapping[str, int], set_aside: Mapping[str, int], leakage: Mapping[str, Any]
    ) -> IngestReport:
        """Returns the report.

        Args:
            written: Rows by split.
            set_aside: Rows in quarantine by file.
            leakage: What the leakage check found.
        """
        source, split = self._source, self._data.split
        return IngestReport(
            path=self._data.path,
            kind=self._data.kind,
            span=source.span,
            version=source.version,
            date=source.date.isoformat() if source.date else None,
            files=[
                {"name": source.name_of(f), "rows_read": self._read.get(f, 0), "rows_set_aside": set_aside.get(f, 0)}
                for f in source.files
            ],
            skipped=[{"name": source.name_of(f), "reason": why} for f, why in (*source.skipped, *self._plan.skipped)],
            rows_read=self.rows_read,
            rows_written=dict(written),
            rows_set_aside=sum(set_aside.values()),
            columns=[self._column(column) for column in self._plan.columns],
            excluded=list(self._plan.excluded),
            split={**split.model_dump(), "leakage": dict(leakage)},
            warnings=self._warnings(leakage),
        )

    def _column(self, column: Any) -> dict[str, Any]:
        counts = {"missing": self._missing[column.name], "non_finite": self._non_finite[column.name]}
        return {**dataclasses.asdict(column), **counts}

    def _warnings(self, leakage: Mapping[str, Any]) -> list[str]:
        name_of = self._source.name_of
        skipped = [f"{name_of(f)} was skipped: {why}" for f, why in (*self._source.skipped, *self._plan.skipped)]
        empty = [f"column {name!r} has no values and was left out" for name in self._plan.excluded]
        odd = [
            f"column {name!r}: {count} cells were nan or inf (or beyond float32) and are missing"
            for name, count in self._non_finite.items()
            if count
        ]
        twice = leakage["duplicate_rows_shared"]
        what = f"{twice} of {leakage['rows_checked']} different {leakage['checked']} are in more than one split"
        shared = [f"{what}: remove them from the data if they are copies of one another"] if twice else []
        return [*skipped, *empty, *self._plan.warnings, *odd, *shared]


def keep_refused(error: DataError, report_dir: str, kept: str) -> DataError:
    """Copies the report and the quarantine of a refused ingestion to where they outlive it.

    Args:
        error: The refusal.
        report_dir: Folder that the ingestion was given; it may be missing.
        kept: Folder for the copy; what an earlier refusal left there is replaced.

    Returns:
        The error, with its hint pointing to the copy.
    """
    if not os.path.isdir(report_dir):
        return error
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(report_dir, kept)
    return DataError(error.headline, place=error.place, hint=error.hint.replace(report_dir, kept))


def refused_dir(report_dir: str) -> str:
    """Returns where a refused execution's report is kept, outside of the artifact, which TFX deletes then.

    It is <node directory>/refused/<execution>/.
    """
    return os.path.join(os.path.dirname(os.path.dirname(report_dir)), "refused", os.path.basename(report_dir))
