"""The cells of a text column, counted over all files, and the type that follows.

The rules are made so that a type cannot flip unseen: a column that is mostly numbers but not all is refused with
the first cell that is not, instead of becoming text.
"""

from __future__ import annotations

import re
from typing import Any

from components.ingest import cell_bytes
from components.ingest.kinds import MAX_DIGITS, Kind, Place, patterns
from components.ingest.rows import Column, Lines
from core.errors import DataError
from core.settings.data import ColumnType, CsvSettings

# float32 holds every whole number of up to 16,777,216: from nine digits on they are rounded.
_ROUNDED_DIGITS = 9
# Fewer fractions than this among whole numbers are rather a slip, such as a code 12E45, than measurements.
_RARE_SHARE = 0.01
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}([.,][0-9]{3})+")


class ColumnProfile:
    """Counts the kinds of one column's cells, block by block.

    Args:
        name: Column name.
        settings: How the files are written: decimal mark and null tokens.
    """

    def __init__(self, name: str, settings: CsvSettings) -> None:
        self.name = name
        self.counts: dict[Kind, int] = dict.fromkeys(Kind, 0)
        self.first: dict[Kind, Place] = {}
        self._settings = settings
        self._patterns = patterns(settings)
        self._compiled = [(kind, re.compile(pattern)) for kind, pattern in self._patterns]
        self._widest_integer = 0
        # Cells with a fraction or an exponent; a block that is cast at once counts them all as FLOAT.
        self._fractions = 0
        self._only_grouped = True

    def observe(self, cells: Any, lines: Lines, file: str) -> None:
        """Counts a block of cells.

        Args:
            cells: pyarrow string array; null is missing.
            lines: int64[cells], 1-based lines.
            file: Path of the file.
        """
        filled = len(cells) - cells.null_count
        if not filled:
            return
        plain = self._plain_kind(cells)
        if plain is None:
            self._classify(cells, lines, file)
            return
        self.counts[plain] += filled
        self._fractions += cell_bytes.fractions(cells) if plain is Kind.FLOAT else 0
        self._widest_integer = max(self._widest_integer, cell_bytes.widest_integer(cells, _ROUNDED_DIGITS))
        if plain not in self.first:
            self._remember(plain, cells, lines, file, int(cells.is_valid().index(True).as_py()))

    def decide(self) -> Column | None:
        """Returns the column with its inferred type; None when it has no value at all.

        Raises:
            DataError: The cells do not agree on a type; names the first one that disagrees.
        """
        count = self.counts
        total = sum(number for kind, number in count.items() if kind not in (Kind.BLANK, Kind.NON_FINITE))
        if not total:
            return None
        numbers = count[Kind.INTEGER] + count[Kind.FLOAT]
        if numbers == total:
            return self._as("float" if count[Kind.FLOAT] else "integer", self._precision_note())
        if count[Kind.BOOLEAN] == total:
            return self._as("boolean")
        if count[Kind.IDENTIFIER]:
            return self._as("text", self._because(Kind.IDENTIFIER))
        if count[Kind.OTHER_NOTATION] * 2 > total:
            raise self._other_notation(total)
        for wanted, kinds in (("numbers", (Kind.INTEGER, Kind.FLOAT)), ("true or false", (Kind.BOOLEAN,))):
            if sum(count[kind] for kind in kinds) * 2 > total:
                raise self._disagreement(wanted, kinds, total)
        return self._as("text", self._because(Kind.LONG) if count[Kind.LONG] else "")

    def _as(self, type_: ColumnType, note: str = "") -> Column:
        return Column(self.name, type_, declared=False, note=note)

    def _because(self, kind: Kind) -> str:
        place = self.first[kind]
        return f"text because {place.file}:{place.line} holds {kind.value}: {place.cell!r}"

    def _precision_note(self) -> str:
        if not self.counts[Kind.FLOAT]:
            return ""
        place = self.first[Kind.FLOAT]
        because = f"float because {place.file}:{place.line} holds {place.cell!r}"
        if self._widest_integer >= _ROUNDED_DIGITS:
            return (
                f"{because}; its whole numbers of up to {self._widest_integer} digits are rounded to 7: "
                "declare text if they are identifiers"
            )
        numbers = self.counts[Kind.INTEGER] + self.counts[Kind.FLOAT]
        if self._fractions < numbers * _RARE_SHARE:
            return (
                f"{because}, and {self._fractions} of {numbers} numbers have a fraction or exponent: "
                f"set data.types.{self.name}: text if they are codes"
            )
        return ""

    def _plain_kind(self, cells: Any) -> Kind | None:
        """Returns INTEGER or FLOAT when every cell is one without a doubt, by one C++ cast.

        The first cell says which cast to try: one that fails costs more than all else here.
        """
        import pyarrow
        from pyarrow import compute

        if (
            not cell_bytes.is_plain(cells)
            or cell_bytes.has_leading_zero(cells)
            or cell_bytes.max_bytes(cells) > MAX_DIGITS
        ):
            return None
        first = self._kind(cells[int(cells.is_valid().index(True).as_py())].as_py())
        if first not in (Kind.INTEGER, Kind.FLOAT):
            return None
        try:
            if first is Kind.INTEGER and not self.counts[Kind.FLOAT]:
                compute.cast(cells, pyarrow.int64())
                return Kind.INTEGER
            # Whole numbers may come first in a block only once the place of a fraction is known.
            if self._settings.decimal == "." and (first is Kind.FLOAT or self.counts[Kind.FLOAT]):
                numbers = compute.cast(cells, pyarrow.float64())
                return Kind.FLOAT if compute.all(compute.is_finite(numbers)).as_py() else None
        except pyarrow.ArrowInvalid:
            pass
        return None

    def _kind(self, cell: str) -> Kind:
        return next((kind for kind, pattern in self._compiled if pattern.search(cell)), Kind.TEXT)

    def _classify(self, cells: Any, lines: Lines, file: str) -> None:
        """Counts a block by its distinct cells."""
        import numpy as np
        import pyarrow
        from pyarrow import compute

        coded = cells.dictionary_encode()
        trimmed = compute.utf8_trim_whitespace(coded.dictionary)
        kinds = np.full(len(trimmed), Kind.TEXT, dtype=object)
        open_ = np.ones(len(trimmed), bool)
        tokens = compute.is_in(trimmed, value_set=_strings(self._settings.null_tokens)).to_numpy(zero_copy_only=False)
        kinds[tokens] = Kind.BLANK
        open_ &= ~tokens
        for kind, pattern in self._patterns:
            if not open_.any():
                break
            hits = compute.match_substring_regex(trimmed, pattern).to_numpy(zero_copy_only=False) & open_
            kinds[hits] = kind
            open_ &= ~hits
        codes = coded.indices.fill_null(-1).to_numpy()
        frequency = np.bincount(codes[codes >= 0], minlength=len(kinds))
        firsts: list[tuple[int, Kind]] = []
        for kind in Kind:
            chosen = kinds == kind
            if not chosen.any():
                continue
            self.counts[kind] += int(frequency[chosen].sum())
            if kind is Kind.INTEGER:
                digits = compute.binary_length(trimmed).to_numpy()[chosen]
                self._widest_integer = max(self._widest_integer, int(digits.max()))
            if kind is Kind.FLOAT:
                self._fractions += int(frequency[chosen].sum())
            if kind is Kind.OTHER_NOTATION and self._only_grouped:
                odd = trimmed.take(pyarrow.array(np.flatnonzero(chosen))).to_pylist()
                self._only_grouped = all(_GROUPED.fullmatch(cell) for cell in odd)
            if kind not in self.first:
                firsts.append((int(np.flatnonzero(np.isin(codes, np.flatnonzero(chosen)))[0]), kind))
        # In the order of the rows, so that "the first cell that is not" is the first whatever its kind.
        for row, kind in sorted(firsts, key=lambda item: item[0]):
            self._remember(kind, cells, lines, file, row)

    def _remember(self, kind: Kind, cells: Any, lines: Lines, file: str, row: int) -> None:
        self.first[kind] = Place(file, int(lines[row]), cells[row].as_py()[:80])

    def _disagreement(self, wanted: str, agreeing: tuple[Kind, ...], total: int) -> DataError:
        neutral = (Kind.BLANK, Kind.NON_FINITE)
        odd = {kind: place for kind, place in self.first.items() if kind not in (*agreeing, *neutral)}
        kind, place = next(iter(odd.items()))
        others = sum(self.counts[each] for each in odd)
        number_type = "float" if self.counts[Kind.FLOAT] else "integer"
        keep = "boolean" if wanted != "numbers" else number_type
        fix = f"set data.types.{self.name}: text, or {keep} to set such rows aside"
        if kind is Kind.TEXT:
            fix = f"if it means 'no value' add it to data.csv.null_tokens; otherwise {fix}"
        elif kind is Kind.OTHER_NOTATION:
            fix = f"check data.csv.decimal and thousands separators; otherwise {fix}"
        return DataError(
            f"column {self.name!r} holds {wanted} but for {others} of {total} cells; "
            f"the first is {kind.value}: {place.cell!r}",
            place=f"{place.file}:{place.line}",
            hint=fix,
        )

    def _other_notation(self, total: int) -> DataError:
        place = self.first[Kind.OTHER_NOTATION]
        other = "," if self._settings.decimal == "." else "."
        found = f"as {place.cell!r} in {self.counts[Kind.OTHER_NOTATION]} of {total} cells"
        as_text = f"data.types.{self.name}: text"
        if self._only_grouped:
            problem = f"could hold thousands separators or decimals, {found}: that is ambiguous"
            fix = f"take the separators out of the file, or set {as_text}"
        else:
            problem = f"looks like numbers with another decimal mark or thousands separators, {found}"
            fix = f"set data.csv.decimal: {other!r}, or {as_text}"
            if other == self._settings.delimiter:
                fix = f"write {self._settings.decimal!r} as the decimal mark and no separators, or set {as_text}"
        return DataError(f"column {self.name!r} {problem}", place=f"{place.file}:{place.line}", hint=fix)


def _strings(values: list[str]) -> Any:
    import pyarrow

    return pyarrow.array(values, pyarrow.string())
