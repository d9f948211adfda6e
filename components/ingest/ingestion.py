"""Ingestion from end to end: plan, read, split, write, account for every row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from components.ingest import examples, tfrecord, times
from components.ingest.columns import check_named
from components.ingest.leakage import LeakageCheck
from components.ingest.prefetch import prefetch
from components.ingest.quarantine import Quarantine
from components.ingest.report import FILE_NAME, IngestReport, Tally
from components.ingest.rows import Plan, Reader, Rows
from components.ingest.sources import Source
from components.ingest.splitting import HashSplitter, Splitter, place_rejects, split_names
from components.ingest.writing import SplitWriters
from core.errors import DataError
from core.files import write_json_atomic
from core.settings.data import DataSettings

Progress = Callable[[int], None]


def ingest(
    data: DataSettings,
    source: Source,
    *,
    split_uris: Mapping[str, str],
    report_dir: str,
    progress: Progress | None = None,
) -> IngestReport:
    """Turns the files of a source into splits of tf.Example and returns what became of every row.

    Memory does not grow with the files: they are read in blocks, once to decide the types and once to write.

    Args:
        data: How the files are written, typed and split.
        source: The files, as `sources.resolve` found them.
        split_uris: Folder for each split that `data.split.shares` names.
        report_dir: Folder for ingest_report.json and quarantine.jsonl.
        progress: Called with the number of rows written so far, after every block.

    Raises:
        DataError: The files cannot be used: unreadable, ill-typed, too many bad rows, or an empty split.
        ConfigError: A setting names a column or an encoding that does not exist.
    """
    reader = open_reader(data, source)
    plan = reader.plan()
    _check_columns(data, plan, source)
    tally = Tally(data, source, plan)
    with Quarantine(report_dir) as quarantine:
        splitter = _splitter(data, plan, reader, source)
        directories = {name: split_uris[name] for name in split_names(data.split)}
        leakage = LeakageCheck(data.split)
        with SplitWriters(directories, data.shards) as writers:
            written = _write(reader.rows(plan), splitter, leakage, writers, quarantine, tally, progress)
            report = tally.report(written, quarantine.by_file, leakage.result())
            write_json_atomic(os.path.join(report_dir, FILE_NAME), report.to_dict())
            _check_outcome(data, report, quarantine, source)
    return report


def open_reader(data: DataSettings, source: Source) -> Reader:
    """Returns the reader of the configured kind of file."""
    if data.kind == "csv":
        from components.ingest.csv_reader import CsvReader

        return CsvReader(data, source.files)
    if data.kind == "parquet":
        from components.ingest.parquet_reader import ParquetReader

        return ParquetReader(data, source.files)
    from components.ingest.tfrecord_reader import TfRecordReader

    return TfRecordReader(data, source.files)


def _check_columns(data: DataSettings, plan: Plan, source: Source) -> None:
    if not plan.rows:
        # Every row is broken. The second pass sets them aside, and the refusal can say why and point to them.
        return
    if plan.excluded and data.empty_columns == "refuse":
        raise DataError(
            f"column {plan.excluded[0]!r} has no values",
            place=source.files[0],
            hint="fill it, or leave such columns out with data.empty_columns: exclude",
        )
    if not plan.columns:
        raise DataError("no column has any value", place=source.files[0])
    column = data.split.column
    if column is not None and column in plan.excluded:
        raise DataError(f"the split column {column!r} has no values", place="data.split.column")


def _splitter(data: DataSettings, plan: Plan, reader: Reader, source: Source) -> Splitter:
    settings = data.split
    if not plan.rows or settings.column is None:
        return HashSplitter(settings)
    column = named_column(plan, settings.column)
    if settings.method != "time":
        return HashSplitter(settings)
    moments = times.TimeColumn(column)
    sample = times.TimeSample()
    # Only the newest rows are held out, so the moments of all rows must be known before the first is written.
    for rows in reader.rows(plan):
        values, missing = moments.values(rows)
        sample.add(values[~missing])
    return times.TimeSplitter(sample.boundaries(settings), moments)


def _write(
    blocks: Iterator[Rows],
    splitter: Splitter,
    leakage: LeakageCheck,
    writers: SplitWriters,
    quarantine: Quarantine,
    tally: Tally,
    progress: Progress | None,
) -> dict[str, int]:
    """Writes every row to its split and returns the rows of each split."""
    names = list(writers.splits)
    for rows in prefetch(blocks):
        tally.add_rows(rows.file, len(rows.lines) + len(rows.rejects))
        quarantine.add(rows.rejects)
        encoded, content = examples.encode_without(rows.batch, leakage.left_out)
        crcs = tfrecord.checksums(encoded)
        assignment = splitter.assign(rows, crcs)
        if assignment.unplaced:
            quarantine.add(place_rejects(rows, assignment))
        for code, name in enumerate(names):
            chosen = np.flatnonzero(assignment.codes == code)
            if len(chosen):
                writers.splits[name].write(encoded.take(_indices(chosen)), crcs[chosen])
        leakage.add(rows, content, assignment.codes)
        placed = rows.batch if not assignment.unplaced else rows.batch.filter(_mask(assignment.codes >= 0))
        missing = {name: column.null_count for name, column in zip(placed.schema.names, placed.columns, strict=True)}
        tally.add_values(missing, rows.non_finite)
        if progress is not None:
            progress(sum(writer.count for writer in writers.splits.values()))
    return {name: writer.count for name, writer in writers.splits.items()}


def _check_outcome(data: DataSettings, report: IngestReport, quarantine: Quarantine, source: Source) -> None:
    """Refuses what cannot be trained on."""
    if not report.balances():
        raise AssertionError(f"rows went missing: {report.summary}")
    if not report.rows_read:
        raise DataError("there is no row in any file", place=source.files[0])
    share = report.rows_set_aside / report.rows_read
    first = quarantine.first
    if first is not None and share > data.max_bad_share:
        raise DataError(
            f"{report.rows_set_aside} of {report.rows_read} rows ({share:.2%}) were set aside and data.max_bad_share "
            f"allows {data.max_bad_share:.2%}; the first: {first.reason}",
            place=f"{first.file}:{first.line}",
            hint=f"all of them with their reasons: {quarantine.path}",
        )
    if first is not None and report.rows_set_aside == report.rows_read:
        raise DataError(
            f"every row was set aside, {report.rows_read} of {report.rows_read}; the first: {first.reason}",
            place=f"{first.file}:{first.line}",
            hint=f"all of them with their reasons: {quarantine.path}",
        )
    leakage = report.split["leakage"]
    shared = leakage["groups_shared"]
    if shared:
        raise DataError(
            f"{shared} of {leakage['groups_checked']} {leakage['checked']} are in more than one split",
            place="data.split.column",
            hint="set data.split.method: group to keep each together, or column: null if it names no groups",
        )
    for name, count in report.rows_written.items():
        if not count:
            raise DataError(
                f"split {name!r} got none of {report.rows_read - report.rows_set_aside} rows",
                place="data.split",
                hint="use more rows, larger shares, or for method group a column with more groups",
            )


def named_column(plan: Plan, name: str) -> Any:
    """Returns a planned column by name.

    Raises:
        ConfigError: The data has no such column.
    """
    check_named([name], [column.name for column in plan.columns], "data.split.column")
    return next(column for column in plan.columns if column.name == name)


def _indices(rows: Any) -> Any:
    import pyarrow

    return pyarrow.array(rows)


def _mask(keep: Any) -> Any:
    import pyarrow

    return pyarrow.array(keep)
