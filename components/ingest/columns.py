"""Column names: what the settings call them, and whether files agree on them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from core.errors import ConfigError, DataError


def check_named(named: Iterable[str], columns: Sequence[str], place: str) -> None:
    """Refuses settings that name a column which the data does not have.

    Raises:
        ConfigError: Names the nearest column.
    """
    for name in named:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(columns[:20])}"
            raise ConfigError(f"the data has no column {name!r}", place=place, hint=hint)


def same_columns(names: Sequence[str], expected: Sequence[str], path: str, first_path: str) -> None:
    """Refuses a file that has other columns than the first one; their order may differ.

    Raises:
        DataError: Columns are missing or new.
    """
    if set(names) == set(expected):
        return
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    parts = [f"lacks {_quoted(missing)}"] if missing else []
    parts += [f"adds {_quoted(extra)}"] if extra else []
    raise DataError(
        f"the columns differ from those of {first_path}: it {' and '.join(parts)}",
        place=path,
        hint="give every file the same columns, or narrow data.path",
    )


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
