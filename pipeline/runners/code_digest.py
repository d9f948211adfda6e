"""Content digests of the code a node calls: its module, the project modules that it imports, the files that it names."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from core.files import sha256_file

PROJECT = Path(__file__).resolve().parents[2]
_LONGEST_NAME = 255


def search_path() -> list[Path]:
    """Returns the folders whose modules count as the project's: where we stand, Forebay itself, and PYTHONPATH."""
    installed = (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
    wanted = [Path.cwd(), PROJECT, *(Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)]
    kept: list[Path] = []
    for folder in (item.resolve() for item in wanted):
        inside = any(folder == base / "lib" or base / "lib" in folder.parents for base in installed)
        if folder.is_dir() and not inside and folder not in kept:
            kept.append(folder)
    return kept


def digests(modules: Sequence[str], folders: Sequence[Path] | None = None) -> dict[str, str]:
    """Returns {module or file name: hex SHA-256} of all the code that the modules stand on.

    Imports are read from the source, also those inside functions, so nothing is executed. Files count when a
    module names them in a string (relative to its folder or to the current one), and when they lie beside the
    first modules as package data: a vocabulary or a lookup table changes a result as much as a line of code.

    Args:
        modules: Dotted names; one that cannot be found in the project is passed over (it is installed, and the
            lock file's hash stands for it).
        folders: Where to look; `search_path()` by default.
    """
    places = list(folders) if folders is not None else search_path()
    found: dict[str, str] = {}
    waiting = list(modules)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = locate(name, places)
        if path is None:
            continue
        found[name] = sha256_file(path)
        waiting.extend(_parents(name))
        tree = _parsed(path)
        if tree is not None:
            waiting.extend(_imports(tree, name, is_package=path.name == "__init__.py"))
            found.update(_named_files(tree, path.parent))
    for name in modules:
        path = locate(name, places)
        if path is not None:
            found.update(_package_data(name, path.parent))
    return dict(sorted(found.items()))


def locate(name: str, folders: Iterable[Path]) -> Path | None:
    """Returns the source file of a dotted module below one of the folders; None when it is not there."""
    relative = Path(*name.split("."))
    for folder in folders:
        for candidate in (folder / relative / "__init__.py", folder / relative.with_suffix(".py")):
            if candidate.is_file():
                return candidate
    return None


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _parsed(path: Path) -> ast.AST | None:
    try:
        return ast.parse(path.read_bytes())
    except SyntaxError:
        return None  # The node that runs it will say so, with the line.


def _imports(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package=is_package)
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    drop = node.level - 1 if is_package else node.level
    kept = parts[: len(parts) - drop] if drop else parts
    return ".".join([*kept, *(node.module.split(".") if node.module else [])])


def _named_files(tree: ast.AST, folder: Path) -> dict[str, str]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if not text.strip() or len(text) > _LONGEST_NAME or "\n" in text or "\0" in text:
                continue
            for candidate in (folder / text, Path.cwd() / text):
                if candidate.is_file():
                    found[f"file:{text}"] = sha256_file(candidate)
                    break
    return found


def _package_data(module: str, folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inner.parts)
        if path.is_file() and not hidden and path.suffix not in (".py", ".pyc"):
            found[f"file:{module.rpartition('.')[0]}/{inner.as_posix()}"] = sha256_file(path)
    return found
