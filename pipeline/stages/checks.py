"""What can be known to fail before anything runs: files, columns and code that the settings name."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ConfigError

if TYPE_CHECKING:
    from core.settings import Settings


def check(settings: Settings) -> None:
    """Refuses settings that name what is not there.

    Raises:
        ConfigError: The schema file does not exist or is no schema, a column or the user code does not exist (names the
            nearest that does), or the serving root is of a kind that cannot be pushed to.
        DataError: There is no input data.
    """
    from components.ingest import sources
    from core import schema
    from serving.target import is_s3

    is_s3(settings.serving.root)
    _check_user_code(settings.user_code)
    _check_columns(settings, [feature.name for feature in schema.read(Path(settings.schema_.path)).feature])
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
