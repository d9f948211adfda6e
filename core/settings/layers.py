"""One source of settings: a YAML file or a `--set` flag, with the place of every key in it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from core.errors import ConfigError, UsageError

KeyPath = tuple[str, ...]


class _Loader(yaml.SafeLoader):
    """YAML 1.1 as people write it: 1e-3 is a number, and Yes, No, on and off are texts, as in YAML 1.2."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+[eE][-+]?\d+$"), list("-+0123456789"))


@dataclasses.dataclass(frozen=True)
class Layer:
    """Settings from one source.

    Attributes:
        name: The file as the user named it, or `--set`.
        values: Nested mappings, as YAML gives them.
        places: `file:line` (or the flag as typed) of every key path in `values`.
        target: The key path that a flag names: its value replaces what was there. Empty for files, which merge.
    """

    name: str
    values: dict[str, Any]
    places: dict[KeyPath, str]
    target: KeyPath = ()


def read_file(path: str) -> Layer:
    """Returns the layer of a YAML file.

    Raises:
        ConfigError: The file is missing, is not UTF-8 YAML, is not a mapping, or names a key twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("no such config file", place=path, hint=_files_beside(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 at byte {error.start}", place=path, hint="Save the file as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", place=path) from None
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"not valid YAML: {error.problem or error.context}", place=f"{path}{line}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not valid YAML: {str(error).splitlines()[0]}", place=path) from None
    if node is None:
        return Layer(path, {}, {})
    places: dict[KeyPath, str] = {}
    try:
        values = _build(node, (), path, places)
    except RecursionError:
        raise ConfigError("an alias stands inside what it names", place=path, hint="Write the value out.") from None
    if not isinstance(values, dict):
        raise ConfigError("the top level must be a mapping of keys", place=f"{path}:{node.start_mark.line + 1}")
    return Layer(path, values, places)


def read_assignments(assignments: Sequence[str]) -> list[Layer]:
    """Returns one layer for each `a.b=value` flag; the value is YAML.

    Raises:
        UsageError: A flag has no '=' or an empty key, or its value is not YAML.
    """
    layers = []
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        parts = tuple(key.strip().split("."))
        place = f"--set {assignment}"
        if not separator or not all(parts):
            raise UsageError("expected key.path=value", place=place, hint="For example --set training.epochs=2.")
        try:
            value = yaml.load(text, Loader=_Loader)  # noqa: S506  Derived from the safe one.
        except yaml.YAMLError:
            raise UsageError("the value is not valid YAML", place=place, hint="Quote it.") from None
        except ValueError as error:  # A date such as 2024-02-30.
            raise ConfigError(f"not a usable value: {error}", place=place) from None
        nested: Any = value
        for part in reversed(parts):
            nested = {part: nested}
        places = {parts[: depth + 1]: place for depth in range(len(parts))}
        layers.append(Layer("--set", nested, places, parts))
    return layers


def merge(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """Returns the merged values and the place that set each key path.

    Mappings of files merge key by key; everything else replaces. An empty mapping replaces too, so that `{}`
    clears, and so does the value of a flag: `--set a.b={...}` means exactly that.
    """
    values: dict[str, Any] = {}
    places: dict[KeyPath, str] = {}
    for layer in layers:
        _merge_into(values, layer.values, (), layer, places)
    return values, places


def _merge_into(
    target: dict[str, Any], source: dict[str, Any], path: KeyPath, layer: Layer, places: dict[KeyPath, str]
) -> None:
    for key, value in source.items():
        here = (*path, key)
        current = target.get(key)
        merges = isinstance(value, dict) and value and here != layer.target
        if merges and isinstance(current, dict):
            _merge_into(current, value, here, layer, places)
            continue
        for old in [place for place in places if place[: len(here)] == here]:
            del places[old]
        target[key] = _copied(value)
        place = layer.places.get(here) or _nearest_place(here, layer)
        places[here] = place
        places.update({inner: line for inner, line in layer.places.items() if inner[: len(here)] == here})


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return list(value) if isinstance(value, list) else value


def _nearest_place(path: KeyPath, layer: Layer) -> str:
    for length in range(len(path), 0, -1):
        if path[:length] in layer.places:
            return layer.places[path[:length]]
    return layer.name


def _build(node: yaml.Node, path: KeyPath, name: str, places: dict[KeyPath, str]) -> Any:
    """Turns a YAML node into plain values and records the line of every key."""
    if path:
        places.setdefault(path, f"{name}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            here = (*path, key)
            place = f"{name}:{key_node.start_mark.line + 1}"
            if key in result:
                raise ConfigError(f"key {key!r} stands twice", place=f"{place} {'.'.join(here)}", hint="Keep one.")
            places[here] = place
            result[key] = _build(value_node, here, name, places)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, str(index)), name, places) for index, item in enumerate(node.value)]
    loader = _Loader("")
    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError) as error:
        place = f"{name}:{node.start_mark.line + 1} {'.'.join(path)}"
        raise ConfigError(f"not a usable value: {str(error).splitlines()[0]}", place=place) from None
    finally:
        loader.dispose()


def _files_beside(path: str) -> str:
    folder = Path(path).parent
    names = sorted(item.name for item in folder.glob("*.yaml")) if folder.is_dir() else []
    return f"In {folder} there are: {', '.join(names)}." if names else "Name a file that exists with -c."
