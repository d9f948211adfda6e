"""Text cells into typed values: one C++ cast a block when all is well, cell by cell only where one is not."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union

from components.ingest import cell_bytes, kinds
from components.ingest.kinds import Kind
from core.settings.data import ColumnType, CsvSettings

FLOAT32_MAX = 3.4028234663852886e38
_INT64 = range(-(1 << 63), 1 << 63)
Value = Union[int, float, None]


@dataclasses.dataclass(frozen=True)
class Converted:
    """One column of a block.

    Attributes:
        values: pyarrow array: int64, float32 or binary; null is missing (or in `bad`).
        bad: {row: reason} of the cells that have no value of this type.
        non_finite: Number of nan and inf cells that became missing.
    """

    values: Any
    bad: Mapping[int, str]
    non_finite: int


class Converter:
    """Converts the cells of CSV columns.

    Args:
        settings: How the files are written.
        non_finite: Whether nan and inf are "missing", or their rows "refuse"d.
    """

    def __init__(self, settings: CsvSettings, non_finite: Literal["missing", "refuse"]) -> None:
        self._settings = settings
        self._non_finite = non_finite
        self._tokens = frozenset(settings.null_tokens)
        self._patterns = [(kind, re.compile(pattern)) for kind, pattern in kinds.patterns(settings)]

    def convert(self, name: str, cells: Any, type_: ColumnType) -> Converted:
        """Returns a column's values.

        Args:
            name: Column name, for reasons.
            cells: pyarrow string array; null is missing.
            type_: The column's type.
        """
        import pyarrow
        from pyarrow import compute

        if type_ == "text":
            return Converted(compute.cast(cells, pyarrow.binary()), {}, 0)
        if type_ == "boolean":
            return self._by_cell(name, cells, self._boolean, pyarrow.int64())
        if type_ == "integer":
            values, parse, arrow_type = _plain_integers(cells), self._integer, pyarrow.int64()
        else:
            values = _plain_floats(cells) if self._settings.decimal == "." else None
            parse, arrow_type = self._float, pyarrow.float32()
        return Converted(values, {}, 0) if values is not None else self._by_cell(name, cells, parse, arrow_type)

    def _by_cell(self, name: str, cells: Any, parse: Callable[[str], Value], type_: Any) -> Converted:
        """Parses each distinct cell in Python; a value that is nan or inf stands for a non-finite cell."""
        import numpy as np
        import pyarrow

        coded = cells.dictionary_encode()
        values: list[Value] = []
        bad: dict[int, str] = {}
        non_finite = []
        for code, text in enumerate(coded.dictionary.to_pylist()):
            value: Value = None
            try:
                value = parse(text.strip())
            except ValueError as error:
                bad[code] = f"column {name!r}: {text[:80]!r} {error}"
            if isinstance(value, float) and not math.isfinite(value):
                value = None
                non_finite.append(code)
                if self._non_finite == "refuse":
                    bad[code] = f"column {name!r}: {text[:80]!r} is not a finite number"
            values.append(value)
        codes = coded.indices.fill_null(-1).to_numpy()
        rows = np.flatnonzero(np.isin(codes, list(bad))).tolist() if bad else []
        missing = 0 if self._non_finite == "refuse" else int(np.isin(codes, non_finite).sum())
        parsed = pyarrow.array(values, type_).take(coded.indices)
        return Converted(parsed, {row: bad[int(codes[row])] for row in rows}, missing)

    def _kind(self, text: str) -> Kind:
        if text in self._tokens:
            return Kind.BLANK
        return next((kind for kind, pattern in self._patterns if pattern.search(text)), Kind.TEXT)

    def _integer(self, text: str) -> Value:
        kind = self._kind(text)
        if kind in (Kind.BLANK, Kind.NON_FINITE):
            return None if kind is Kind.BLANK else math.nan
        if kind not in (Kind.INTEGER, Kind.LONG, Kind.IDENTIFIER) or not text.lstrip("+-").isdigit():
            raise ValueError("is not a whole number")
        value = int(text)
        if value not in _INT64:
            raise ValueError("does not fit into 64 bits")
        return value

    def _float(self, text: str) -> Value:
        kind = self._kind(text)
        if kind is Kind.BLANK:
            return None
        if kind is Kind.NON_FINITE:
            return math.nan
        try:
            # The pattern for text and for other notations would let Python's own extras through, such as 1_000.
            # Digits with a leading zero may have either mark.
            other = "," if self._settings.decimal == "." else "."
            if kind in (Kind.TEXT, Kind.BOOLEAN, Kind.OTHER_NOTATION) or other in text:
                raise ValueError
            value = float(text.replace(",", "."))
        except ValueError:
            raise ValueError("is not a number") from None
        return value if abs(value) <= FLOAT32_MAX else math.inf

    def _boolean(self, text: str) -> Value:
        kind = self._kind(text)
        if kind in (Kind.BLANK, Kind.NON_FINITE):
            return None if kind is Kind.BLANK else math.nan
        meaning = {"true": 1, "1": 1, "false": 0, "0": 0}.get(text.lower())
        if meaning is None:
            raise ValueError("is not true, false, 1 or 0")
        return meaning


def _plain_integers(cells: Any) -> Any | None:
    """Returns the int64 values of cells that are all decimal whole numbers; None when one is not."""
    import pyarrow
    from pyarrow import compute

    try:
        return compute.cast(cells, pyarrow.int64()) if cell_bytes.is_plain(cells) else None
    except pyarrow.ArrowInvalid:
        return None


def _plain_floats(cells: Any) -> Any | None:
    """Returns the float32 values of cells that are all finite numbers; None when one is not."""
    import pyarrow
    from pyarrow import compute

    if not cell_bytes.is_plain(cells):
        return None
    try:
        wide = compute.cast(cells, pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return None
    span = compute.min_max(wide)
    low, high = span["min"].as_py(), span["max"].as_py()
    # min_max skips nan, so ask for finiteness as well.
    if low is not None and (low < -FLOAT32_MAX or high > FLOAT32_MAX):
        return None
    if not compute.all(compute.is_finite(wide), min_count=0).as_py():
        return None
    return compute.cast(wide, pyarrow.float32())
