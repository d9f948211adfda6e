"""Merge the layers, validate the result, and say exactly which key is wrong and where it was set."""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from core.errors import ConfigError
from core.settings.layers import KeyPath, Layer, merge, read_assignments, read_file
from core.settings.schema import Settings

BASE_FILE = Path(__file__).resolve().parents[2] / "configs" / "base.yaml"

Model = TypeVar("Model", bound=pydantic.BaseModel)


@dataclasses.dataclass(frozen=True)
class Loaded:
    """Validated settings and where each value came from.

    Attributes:
        settings: The frozen settings.
        values: The same as plain nested values.
        places: Key path to `file:line` or flag.
    """

    settings: Settings
    values: dict[str, Any]
    places: dict[KeyPath, str]

    def origins(self) -> list[tuple[str, Any, str]]:
        """Returns (dotted key, value, place) of every leaf, in the order of configs/base.yaml."""
        return [(".".join(path), value, place_of(path, self.places)) for path, value in _leaves(self.values, ())]


def load(files: Sequence[str], assignments: Sequence[str] = ()) -> Loaded:
    """Returns the validated settings: base.yaml, then each file in order, then each `--set`.

    Args:
        files: YAML overlays, later ones win.
        assignments: `a.b=c` flags; they win over every file.

    Raises:
        ConfigError: An unknown key, a wrong type or an impossible combination; names file, line and key path.
        UsageError: A flag that is not `key=value`.
    """
    values, places = _merged(files, assignments)
    return Loaded(_validated(Settings, values, places, ()), values, places)


def load_values(values: dict[str, Any], origin: str, assignments: Sequence[str] = ()) -> Loaded:
    """Returns the settings that an earlier run kept as plain values, changed by flags.

    Args:
        values: All settings, as `Loaded.values` held them.
        origin: The file they come from, for error messages.
        assignments: `a.b=c` flags; they win over what was kept.

    Raises:
        ConfigError: They do not fit this version of Forebay, or a flag is wrong.
        UsageError: A flag that is not `key=value`.
    """
    kept = Layer(origin, values, {(key,): origin for key in values})
    changed, places = merge([kept, *read_assignments(assignments)])
    return Loaded(_validated(Settings, changed, places, ()), changed, places)


def load_section(files: Sequence[str], assignments: Sequence[str], name: str, model: type[Model]) -> Model:
    """Returns one validated section, for verbs that need no whole recipe.

    Raises:
        ConfigError: As for `load`, but only for keys of this section.
    """
    values, places = _merged(files, assignments)
    return _validated(model, values[name], places, (name,))


def place_of(path: KeyPath, places: dict[KeyPath, str]) -> str:
    """Returns where a key path was set: its own place, or its nearest parent's."""
    for length in range(len(path), 0, -1):
        if path[:length] in places:
            return places[path[:length]]
    return ""


def _deciding_place(path: KeyPath, places: dict[KeyPath, str]) -> str:
    """Returns the place that most likely made a combination impossible: a flag, else an overlay, else the key's own."""
    below = [place for key, place in places.items() if key[: len(path)] == path]
    flags = [place for place in below if place.startswith("--set")]
    overlays = [place for place in below if not place.startswith("configs/base.yaml")]
    return (flags or overlays or [place_of(path, places)])[-1]


def _merged(files: Sequence[str], assignments: Sequence[str]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    base = read_file(str(BASE_FILE))
    short = dataclasses.replace(
        base, places={path: place.replace(str(BASE_FILE), "configs/base.yaml") for path, place in base.places.items()}
    )
    return merge([short, *(read_file(name) for name in files), *read_assignments(assignments)])


def _validated(model: type[Model], values: dict[str, Any], places: dict[KeyPath, str], prefix: KeyPath) -> Model:
    try:
        # Through JSON: there, strict types still take a list for a tuple and a text for a date.
        return model.model_validate_json(json.dumps(values, default=str))
    except pydantic.ValidationError as error:
        found = [_explained(model, item, places, prefix) for item in error.errors(include_url=False)]
        first, problems = found[0], [item.to_dict() for item in found]
        more = f"{len(found) - 1} more: `forebay config check` lists them." if len(found) > 1 else ""
        hint = f"{first.hint} {more}".strip()
        raise ConfigError(first.headline, place=first.place, hint=hint, problems=problems) from None


def _explained(root: type, problem: Any, places: dict[KeyPath, str], prefix: KeyPath) -> ConfigError:
    """Turns one pydantic problem into a line: file, key path, what, nearest valid key."""
    location = tuple(str(part) for part in problem["loc"])
    location, owner = _real_location(root, location)
    path = (*prefix, *location)
    dotted = ".".join(path)
    place = f"{place_of(path, places)} {dotted}".strip()
    if problem["type"] == "extra_forbidden":
        valid = _keys(owner)
        near = difflib.get_close_matches(location[-1], valid, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"Valid here: {', '.join(valid)}."
        return ConfigError(f"unknown key {location[-1]!r}", place=place, hint=hint)
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        return ConfigError("a required key is missing", place=place)
    if problem["type"] == "value_error":
        return ConfigError(message, place=f"{_deciding_place(path, places)} {dotted}".strip())
    given = problem.get("input")
    shown = json.dumps(given, default=str, ensure_ascii=False)
    return ConfigError(f"{shown[:60]} is not valid: {message[0].lower()}{message[1:]}", place=place)


def _real_location(root: type, location: KeyPath) -> tuple[KeyPath, Any]:
    """Drops pydantic's union tags from a location; returns it with the type that owns its last key."""
    kept: list[str] = []
    owner: Any = root
    current: Any = root
    for part in location:
        current = _unwrapped(current)
        step = _step(current, part)
        if step is None and not (isinstance(current, type) and issubclass(current, pydantic.BaseModel)):
            continue
        kept.append(part)
        owner, current = current, step
    return tuple(kept), owner


def _unwrapped(annotation: Any) -> Any:
    """Returns the type inside Annotated and Optional."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, types.UnionType):
            annotation = next(arg for arg in typing.get_args(annotation) if arg is not type(None))
        else:
            return annotation


def _step(owner: Any, key: str) -> Any:
    """Returns the type below `key`, or None when the owner has no such key."""
    if isinstance(owner, type) and issubclass(owner, pydantic.BaseModel):
        for name, field in owner.model_fields.items():
            if key in (name, field.alias):
                return field.annotation
        return None
    if typing.get_origin(owner) is dict:
        return typing.get_args(owner)[1]
    if typing.get_origin(owner) is list and key.isdigit():
        return typing.get_args(owner)[0]
    return None


def _keys(owner: Any) -> list[str]:
    if isinstance(owner, type) and issubclass(owner, pydantic.BaseModel):
        return [field.alias or name for name, field in owner.model_fields.items()]
    return []


def _leaves(values: Any, path: KeyPath) -> list[tuple[KeyPath, Any]]:
    if not isinstance(values, dict) or not values:
        return [(path, values)]
    return [leaf for key, value in values.items() for leaf in _leaves(value, (*path, key))]
