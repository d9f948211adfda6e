"""Reads CSV files: a first pass over all of them decides the types, a second one delivers typed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from components.ingest.column_profile import ColumnProfile
from components.ingest.columns import check_named
from components.ingest.convert import Converter
from components.ingest.csv_blocks import Block, CsvBlocks
from components.ingest.rows import Column, Plan, Reject, Rows
from core.errors import DataError
from core.settings.data import DataSettings


class CsvReader:
    """Reads the CSV files of one run.

    Args:
        data: The ingestion's settings.
        files: Paths, in order.
    """

    def __init__(self, data: DataSettings, files: Sequence[str]) -> None:
        self._data = data
        self._files = files
        self._converter = Converter(data.csv, data.non_finite)

    def plan(self) -> Plan:
        """Returns the columns and their types after reading every row.

        Raises:
            DataError: See `CsvBlocks.blocks` and `ColumnProfile.decide`.
            ConfigError: `data.types` names a column that is not there.
        """
        blocks = CsvBlocks(self._data.csv, self._files)
        profiles: dict[str, ColumnProfile] = {}
        with_rows: set[str] = set()
        rows = 0
        for block in blocks.blocks():
            with_rows.add(block.file)
            rows += len(block.lines)
            for name, cells in zip(block.cells.schema.names, block.cells.columns, strict=True):
                profile = profiles.get(name) or profiles.setdefault(name, ColumnProfile(name, self._data.csv))
                profile.observe(cells, block.lines, block.file)
        names = blocks.names()
        check_named(self._data.types, names, "data.types")
        skipped = tuple((path, "no rows under the header") for path in self._files if path not in with_rows)
        if not profiles:
            raise DataError("there is no row in any file", place=self._files[0])
        decided = [(name, self._decide(profiles[name])) for name in names]
        columns = tuple(column for _, column in decided if column)
        excluded = tuple(name for name, column in decided if column is None)
        warnings = tuple(f"column {c.name!r}: {c.note}" for c in columns if c.note)
        return Plan(rows, columns, excluded, warnings, skipped)

    def rows(self, plan: Plan) -> Iterator[Rows]:
        """Yields every row, typed as planned."""
        for block in CsvBlocks(self._data.csv, self._files).blocks():
            yield self._typed(block, plan)

    def _decide(self, profile: ColumnProfile) -> Column | None:
        declared = self._data.types.get(profile.name)
        if declared is None:
            return profile.decide()
        return Column(profile.name, declared, declared=True) if any(profile.counts.values()) else None

    def _typed(self, block: Block, plan: Plan) -> Rows:
        import pyarrow

        arrays = []
        bad: dict[int, str] = {}
        non_finite: dict[str, int] = {}
        for column in plan.columns:
            cells = block.cells.column(block.cells.schema.get_field_index(column.name))
            converted = self._converter.convert(column.name, cells, column.type)
            arrays.append(converted.values)
            for row, reason in converted.bad.items():
                bad.setdefault(row, reason)
            if converted.non_finite:
                non_finite[column.name] = converted.non_finite
        batch = pyarrow.RecordBatch.from_arrays(arrays, [column.name for column in plan.columns])
        if not bad:
            return Rows(block.file, batch, block.lines, block.raw, block.rejects, non_finite)
        keep = np.ones(len(block.lines), bool)
        keep[list(bad)] = False
        kept = np.flatnonzero(keep)
        odd = [Reject(block.file, int(block.lines[row]), bad[row], block.raw(row)) for row in bad]
        rejects = sorted([*block.rejects, *odd], key=lambda reject: reject.line)
        batch = batch.filter(pyarrow.array(keep))
        return Rows(block.file, batch, block.lines[keep], lambda row: block.raw(int(kept[row])), rejects, non_finite)
