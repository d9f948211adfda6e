"""Reads Parquet files. Types come from their schemas; zero, 0.0 and false are values, not gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from components.ingest import arrow_values
from components.ingest.columns import check_named, same_columns
from components.ingest.rows import Column, Plan, Rows, shorten, without_bad
from core.errors import DataError
from core.settings.data import DataSettings

_BATCH_ROWS = 1 << 14


class ParquetReader:
    """Reads the Parquet files of one run.

    Args:
        data: The ingestion's settings.
        files: Paths, in order.
    """

    def __init__(self, data: DataSettings, files: Sequence[str]) -> None:
        self._data = data
        self._files = files

    def plan(self) -> Plan:
        """Returns the columns by the first file's schema, without those that have no value anywhere.

        Raises:
            DataError: A file is not Parquet or damaged, schemas differ, or a column's type is not supported.
            ConfigError: `data.types` names a column that is not there.
        """
        first = _open(self._files[0]).schema_arrow
        filled = dict.fromkeys(first.names, False)
        skipped = []
        rows = 0
        for path in self._files:
            file = _open(path)
            _same_schema(file.schema_arrow, first, path, self._files[0])
            rows += file.metadata.num_rows
            if not file.metadata.num_rows:
                skipped.append((path, "no rows"))
            for batch in _batches(file, path):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    # An empty text may be missing by policy; whether anything is left is seen value by value.
                    filled[name] = filled[name] or self._has_value(column)
        if len(skipped) == len(self._files):
            raise DataError("there is no row in any file", place=self._files[0])
        check_named(self._data.types, first.names, "data.types")
        columns = [self._column(field) for field in first if filled[field.name]]
        excluded = tuple(name for name in first.names if not filled[name])
        return Plan(rows, tuple(columns), excluded, (), tuple(skipped))

    def rows(self, plan: Plan) -> Iterator[Rows]:
        """Yields every row, typed as planned."""
        for path in self._files:
            before = 0
            for batch in _batches(_open(path), path):
                yield self._typed(path, batch, plan, before)
                before += batch.num_rows

    def _has_value(self, column: Any) -> bool:
        if column.null_count == len(column):
            return False
        if self._data.empty_string == "missing" and arrow_values.is_text(column.type):
            return arrow_values.without_empty(column).null_count < len(column)
        return True

    def _column(self, field: Any) -> Column:
        declared = self._data.types.get(field.name)
        natural = arrow_values.natural_type(field.type)
        if natural is None or (declared and not arrow_values.converts(field.type, declared)):
            wanted = f"cannot become {declared}" if natural else "is not supported"
            raise DataError(
                f"column {field.name!r} has type {field.type}, which {wanted}",
                place=self._files[0],
                hint="write it as numbers, booleans or text, or as lists of these",
            )
        note = "" if declared else arrow_values.conversion_note(field.type)
        return Column(field.name, declared or natural, declared=declared is not None, note=note)

    def _typed(self, path: str, batch: Any, plan: Plan, before: int) -> Rows:
        import pyarrow

        bad: dict[int, str] = {}
        arrays, non_finite = [], {}
        for column in plan.columns:
            source = batch.column(batch.schema.get_field_index(column.name))
            if self._data.empty_string == "missing" and arrow_values.is_text(source.type):
                source = arrow_values.without_empty(source)
            values, problems = arrow_values.convert(source, column.type)
            values, odd = arrow_values.without_non_finite(values)
            if self._data.non_finite == "missing":
                non_finite[column.name] = len(odd)
            else:
                problems = {**problems, **dict.fromkeys(odd, "is not a finite number")}
            arrays.append(values)
            for row, problem in problems.items():
                bad.setdefault(row, f"column {column.name!r}: {shorten(str(source[row].as_py()), 80)} {problem}")
        typed = pyarrow.RecordBatch.from_arrays(arrays, [column.name for column in plan.columns])
        return without_bad(path, typed, before, bad, batch, {k: v for k, v in non_finite.items() if v})


def _open(path: str) -> Any:
    import pyarrow
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            f"this cannot be read as Parquet ({_short(error)})",
            place=path,
            hint="check data.kind, or write the file again",
        ) from error


def _batches(file: Any, path: str) -> Iterator[Any]:
    import pyarrow

    try:
        yield from file.iter_batches(batch_size=_BATCH_ROWS)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"the file is damaged ({_short(error)})", place=path, hint="write the file again") from error


def _short(error: Exception) -> str:
    return shorten(str(error).splitlines()[0] if str(error) else type(error).__name__, 120)


def _same_schema(schema: Any, first: Any, path: str, first_path: str) -> None:
    same_columns(schema.names, first.names, path, first_path)
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise DataError(f"column name {twice[0]!r} occurs twice", place=path, hint="rename one of them")
    for field in first:
        other = schema.field(field.name).type
        if arrow_values.natural_type(other) != arrow_values.natural_type(field.type):
            raise DataError(
                f"column {field.name!r} has type {other} here and {field.type} in {first_path}",
                place=path,
                hint="write all files with one schema",
            )
