"""Content digests of the code a node calls: its module, the project modules it imports, the files it names."""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from core.files import sha256_file

PROJECT = Path(__file__).resolve().parents[2]
_LONGEST_NAME = 255
# The files that `core` names are settings and facts of the host; settings enter a key by their values.
_CORE = "core"
# Absolute names below these are the system's: they differ between machines and boots.
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/run/", "/usr/", "/lib/", "/bin/")


@dataclasses.dataclass(frozen=True)
class _Module:
    """What a source file says: its digest, `import a.b`, `from ..a import b` and the texts that could name a file."""

    digest: str
    imports: tuple[str, ...]
    members: tuple[tuple[int, str, tuple[str, ...]], ...]
    texts: tuple[str, ...]


def search_path() -> list[Path]:
    """Returns the folders whose modules count as the project's, in the order in which Python imports from them."""
    installed = (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
    kept: list[Path] = []
    for folder in (Path(entry or ".").resolve() for entry in [*sys.path, str(PROJECT)]):
        inside = any(base / "lib" in (folder, *folder.parents) for base in installed)
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
        module = _read(path)
        found[name] = module.digest
        waiting.extend(_parents(name))
        waiting.extend(_imported(module, name, is_package=path.name == "__init__.py"))
        if name.partition(".")[0] != _CORE:
            found.update(_named_files(module, path.parent))
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


@functools.cache
def _read(path: Path) -> _Module:
    """Reads a source file once; the nodes of a graph share most of their modules."""
    source = path.read_bytes()
    digest = hashlib.sha256(source).hexdigest()
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return _Module(digest, (), (), ())  # The node that runs it will say so, with the line.
    plain = tuple(alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names)
    members = tuple(
        (node.level, node.module or "", tuple(alias.name for alias in node.names if alias.name != "*"))
        for node in nodes
        if isinstance(node, ast.ImportFrom)
    )
    texts = tuple(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return _Module(digest, plain, members, tuple(text for text in texts if _could_be_a_path(text)))


def _could_be_a_path(text: str) -> bool:
    if not text.strip() or len(text) > _LONGEST_NAME or "\n" in text or "\0" in text:
        return False
    return not text.startswith(_SYSTEM)


def _imported(module: _Module, name: str, *, is_package: bool) -> Iterator[str]:
    """Yields the dotted names that a module may import: each module, and each name taken from it."""
    yield from module.imports
    parts = name.split(".")
    for level, stated, members in module.members:
        drop = level - 1 if is_package else level
        around = parts[: len(parts) - drop] if level else []
        base = ".".join([*around, *([stated] if stated else [])])
        if base:
            yield base
            yield from (f"{base}.{member}" for member in members)


def _named_files(module: _Module, folder: Path) -> dict[str, str]:
    found = {}
    for text in module.texts:
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
