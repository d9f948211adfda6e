"""Reads TFRecord files of tf.Example; a feature keeps one type through all records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from components.ingest import arrow_values, tfrecord
from components.ingest.columns import check_named
from components.ingest.rows import Column, Plan, Rows, without_bad
from core.errors import ConfigError, DataError
from core.settings.data import ColumnType, DataSettings

_BATCH_RECORDS = 1 << 13
_NAMES: dict[ColumnType, str] = {"integer": "INT", "float": "FLOAT", "text": "BYTES"}


class TfRecordReader:
    """Reads the TFRecord files of one run.

    Args:
        data: The ingestion's settings.
        files: Paths, in order; each may be gzip or plain.
    """

    def __init__(self, data: DataSettings, files: Sequence[str]) -> None:
        self._data = data
        self._files = files

    def plan(self) -> Plan:
        """Returns the features and their types after decoding every record.

        Raises:
            DataError: A file is damaged or no TFRecord, a record is no tf.Example, or a feature changes its type.
            ConfigError: `data.types` contradicts a type that the records carry.
        """
        types: dict[str, ColumnType] = {}
        where: dict[str, tuple[str, int]] = {}
        empty: dict[str, None] = {}
        skipped = []
        rows = 0
        for path in self._files:
            count = 0
            for before, records in _chunks(path):
                count += len(records)
                batch = _decode(records, path, before)
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    self._note(name, column, path, before, types, where, empty)
            rows += count
            if not count:
                skipped.append((path, "no records"))
        if len(skipped) == len(self._files):
            raise DataError("there is no record in any file", place=self._files[0])
        check_named(self._data.types, [*types, *empty], "data.types")
        self._check_declared(types)
        columns = tuple(Column(name, types[name], declared=name in self._data.types) for name in sorted(types))
        return Plan(rows, columns, tuple(sorted(set(empty) - set(types))), (), tuple(skipped))

    def rows(self, plan: Plan) -> Iterator[Rows]:
        """Yields every record's features, typed as planned."""
        import pyarrow

        for path in self._files:
            for before, records in _chunks(path):
                batch = _decode(records, path, before)
                arrays, bad, non_finite = [], {}, {}
                for column in plan.columns:
                    index = batch.schema.get_field_index(column.name)
                    values = batch.column(index) if index >= 0 else pyarrow.nulls(batch.num_rows)
                    if pyarrow.types.is_null(values.type):
                        values = pyarrow.nulls(batch.num_rows, pyarrow.list_(_value_type(column.type)))
                    values, odd = arrow_values.without_non_finite(values)
                    if self._data.non_finite == "missing":
                        non_finite.update({column.name: len(odd)} if odd else {})
                    else:
                        bad.update(dict.fromkeys(odd, f"feature {column.name!r} is not a finite number"))
                    arrays.append(_scalars(values))
                typed = pyarrow.RecordBatch.from_arrays(arrays, [column.name for column in plan.columns])
                yield without_bad(path, typed, before, bad, batch, non_finite)

    def _note(
        self,
        name: str,
        column: Any,
        path: str,
        before: int,
        types: dict[str, ColumnType],
        where: dict[str, tuple[str, int]],
        empty: dict[str, None],
    ) -> None:
        """Remembers a feature's type, and refuses another one later."""
        import pyarrow

        if pyarrow.types.is_null(column.type) or column.null_count == len(column):
            empty[name] = None
            return
        kind = arrow_values.natural_type(column.type)
        if kind is None:
            raise DataError(f"feature {name!r} decodes to {column.type}", place=path)
        place = (path, before + 1 + int(column.is_valid().index(True).as_py()))
        if name in types and types[name] != kind:
            raise _mixed(name, _NAMES[types[name]], where[name], _NAMES[kind], place)
        types.setdefault(name, kind)
        where.setdefault(name, place)

    def _check_declared(self, types: dict[str, ColumnType]) -> None:
        for name, declared in self._data.types.items():
            found = types.get(name)
            # Records carry their types; booleans travel as integers.
            if found and found != declared and not (declared == "boolean" and found == "integer"):
                raise ConfigError(
                    f"feature {name!r} is declared {declared} but the records hold {_NAMES[found]}",
                    place=f"data.types.{name}",
                    hint=f"declare it {found}, or leave it out",
                )


def _chunks(path: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yields (records before, records) of a file."""
    chunk: list[bytes] = []
    before = 0
    for _, data in tfrecord.read(path):
        chunk.append(data)
        if len(chunk) == _BATCH_RECORDS:
            yield before, chunk
            before += len(chunk)
            chunk = []
    if chunk:
        yield before, chunk


def _decode(records: list[bytes], path: str, before: int) -> Any:
    """Returns the features of serialized examples as a pyarrow.RecordBatch of lists."""
    from tfx_bsl.coders import example_coder

    try:
        return example_coder.ExamplesToRecordBatchDecoder().DecodeBatch(records)
    except Exception as error:  # the C++ coder raises bare RuntimeError
        raise _explain(records, path, before) from error


def _explain(records: list[bytes], path: str, before: int) -> DataError:
    """Returns the error that names the records a batch failed on, found by decoding them one by one."""
    from tfx_bsl.coders import example_coder

    decoder = example_coder.ExamplesToRecordBatchDecoder()
    seen: dict[str, tuple[str, int]] = {}
    for number, record in enumerate(records, start=before + 1):
        try:
            batch = decoder.DecodeBatch([record])
        except Exception as error:
            return DataError(f"record {number} is not a tf.Example ({error})", place=f"{path}:{number}")
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = None if column.null_count else arrow_values.natural_type(column.type)
            if kind is None:
                continue
            known, first = seen.setdefault(name, (_NAMES[kind], number))
            if known != _NAMES[kind]:
                return _mixed(name, known, (path, first), _NAMES[kind], (path, number))
    return DataError(f"records {before + 1} to {before + len(records)} cannot be decoded together", place=path)


def _mixed(name: str, first: str, first_place: tuple[str, int], other: str, place: tuple[str, int]) -> DataError:
    elsewhere = f" of {first_place[0]}" if first_place[0] != place[0] else ""
    return DataError(
        f"feature {name!r} is {first} in record {first_place[1]}{elsewhere}, {other} in record {place[1]}",
        place=f"{place[0]}:{place[1]}",
        hint="write it with one type in every record",
    )


def _value_type(type_: ColumnType) -> Any:
    import pyarrow

    return {"integer": pyarrow.int64(), "float": pyarrow.float32()}.get(type_, pyarrow.binary())


def _scalars(values: Any) -> Any:
    """Returns plain values when every list holds exactly one, so that group and time columns can be read."""
    from pyarrow import compute

    lengths = compute.min_max(values.value_lengths()).as_py()
    if lengths["min"] != 1 or lengths["max"] != 1:
        return values
    flat = values.flatten()
    if not values.null_count:
        return flat
    import numpy as np
    import pyarrow

    position = np.cumsum(values.is_valid().to_numpy(zero_copy_only=False)) - 1
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return flat.take(pyarrow.array(np.maximum(position, 0), mask=missing))
