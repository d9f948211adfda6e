"""What can be known to fail before anything runs: files, columns and code that the settings name."""

from __future__ import annotations

import difflib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ConfigError

if TYPE_CHECKING:
    from core.settings import Settings

_FEATURE_NAME = re.compile(r'^\s*name:\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)


def check(settings: Settings) -> None:
    """Refuses settings that name what is not there.

    Raises:
        ConfigError: The schema file, a column or the user code does not exist (names the nearest that does), or the
            serving root is of a kind that cannot be pushed to.
        DataError: There is no input data.
    """
    from components.ingest import sources
    from serving.target import is_s3

    is_s3(settings.serving.root)
    _check_user_code(settings.user_code)
    columns = _schema_columns(settings.schema_.path)
    _check_columns(settings, columns)
    sources.resolve(settings.data.path, kind=settings.data.kind, run_date=settings.run.date)


def _check_user_code(package: str) -> None:
    for module in ("preprocessing", "trainer"):
        name = f"{package}.{module}"
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            hint = "It must hold preprocessing.py and trainer.py and be importable from the current folder."
            raise ConfigError(f"there is no module {name}", place=f"user_code {package}", hint=hint)


def _schema_columns(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = f"Paths are relative to {Path.cwd()}. Propose one from the data: forebay schema infer."
        raise ConfigError("no such schema file", place=f"schema.path {path}", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the schema cannot be read: {error}", place=f"schema.path {path}") from None
    return _FEATURE_NAME.findall(text)


def _check_columns(settings: Settings, known: list[str]) -> None:
    label = settings.label
    wanted = [(f"features: {name}", name) for name in settings.features.columns()]
    wanted.append(("label.column", label.column))
    if label.above_share_of is not None:
        wanted.append(("label.above_share_of", label.above_share_of))
    wanted += [(f"evaluate.slices: {name}", name) for name in settings.evaluate.slices]
    for place, name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"Its columns: {', '.join(known[:12])}."
            raise ConfigError(f"the schema {settings.schema_.path} has no column {name!r}", place=place, hint=hint)
