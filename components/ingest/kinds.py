"""What the cell of a text column can look like, and the expressions that tell."""

from __future__ import annotations

import dataclasses
import enum

from core.settings.data import CsvSettings

MAX_DIGITS = 18


class Kind(enum.Enum):
    """What one cell looks like; the value is how messages name it."""

    BLANK = "blank"
    NON_FINITE = "nan or inf"
    IDENTIFIER = "digits with a leading zero"
    LONG = f"a whole number of more than {MAX_DIGITS} digits"
    INTEGER = "a whole number"
    FLOAT = "a number with a fraction"
    OTHER_NOTATION = "a number in another notation"
    BOOLEAN = "true or false"
    TEXT = "text"


@dataclasses.dataclass(frozen=True)
class Place:
    """The first cell of a kind: file, 1-based line, and its text."""

    file: str
    line: int
    cell: str


def patterns(settings: CsvSettings) -> list[tuple[Kind, str]]:
    """Returns a regular expression for each kind, to be tried in this order on a trimmed cell; the rest is text.

    The expressions mean the same in RE2 (pyarrow) and in Python's `re`.
    """
    mark = "[.]" if settings.decimal == "." else ","
    other = "[.]" if settings.decimal == "," else ","
    return [
        (Kind.BLANK, r"^$"),
        (Kind.NON_FINITE, r"^[+-]?(?i:nan|inf|infinity)$"),
        (Kind.BOOLEAN, r"^(?i:true|false)$"),
        (Kind.IDENTIFIER, r"^[+-]?0[0-9]+([.,][0-9]+)?$"),
        (Kind.LONG, rf"^[+-]?[1-9][0-9]{{{MAX_DIGITS},}}$"),
        (Kind.INTEGER, r"^[+-]?[0-9]+$"),
        (Kind.FLOAT, rf"^[+-]?([0-9]+({mark}[0-9]*)?|{mark}[0-9]+)([eE][+-]?[0-9]+)?$"),
        (Kind.OTHER_NOTATION, rf"^[+-]?([0-9]*{other}[0-9]+|[0-9]{{1,3}}([., '][0-9]{{3}})+([.,][0-9]+)?)$"),
    ]
