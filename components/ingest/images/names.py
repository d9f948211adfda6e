"""Names in a tree of photos: which are a system's own, and what class a folder path stands for."""

from __future__ import annotations

import fnmatch
import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence

from core.errors import DataError
from core.label_map import SEPARATOR

# What operating systems, file servers, browsers and notebooks leave beside photos; matched without regard to case.
# A leading underscore is no mark: cameras name photos _DSC0001.JPG.
_SYSTEM_FOLDERS = (
    ".*",
    "__macosx",
    "__pycache__",
    "@eadir",
    "#recycle",
    "$recycle.bin",
    "lost+found",
    "system volume information",
)
_SYSTEM_FILES = (
    ".*",
    "thumbs.db",
    "ehthumbs.db",
    "desktop.ini",
    "icon\r",
    "*~",
    "*.tmp",
    "*.part",
    "*.crdownload",
)


def why_not_folder(name: str) -> str:
    """Returns why a folder of that name is left out; empty when it is not."""
    return "hidden or system folder" if _matches(name, _SYSTEM_FOLDERS) else ""


def why_not_file(name: str) -> str:
    """Returns why a file of that name is left out; empty when it is not."""
    return "hidden or system file" if _matches(name, _SYSTEM_FILES) else ""


def shown(path: str) -> str:
    """Returns a path that can be written as UTF-8, with backslashes where its bytes are no text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_text(path: str) -> bool:
    """Returns False for a path whose bytes are not UTF-8."""
    return shown(path) == path


def with_line(reason: str, line: int) -> str:
    """Returns why a file is set aside with the manifest's line that names it; without one (0) just why."""
    return f"{reason} (line {line} of the manifest)" if line else reason


def label_of(levels: Sequence[str], *, place: str) -> str:
    """Returns the class of a folder path: its levels in Unicode's composed form (NFC), joined by " > ".

    Args:
        levels: Folder names from the outermost on, at least one.
        place: Where they were found, for errors.

    Raises:
        DataError: A level is empty, holds " > " or a control character, or is not UTF-8: it could not be told apart
            from other classes, or not be shown.
    """
    for level in levels:
        problem = ""
        if not level.strip():
            problem = "is empty"
        elif SEPARATOR in f" {level} ":
            # At an end of a name too: "a >" above "b" would read like "a" above "> b".
            problem = f"holds {SEPARATOR.strip()!r} as a word, which stands between the levels of a class"
        elif any(unicodedata.category(character) == "Cc" for character in level):
            problem = "holds a control character"
        elif not is_text(level):
            problem = "is not UTF-8 text"
        if problem:
            raise DataError(f"the class name {shown(level)!r} {problem}", place=shown(place), hint="rename it")
    return unicodedata.normalize("NFC", SEPARATOR.join(levels))


def spelling_warnings(spellings: Iterable[tuple[str, str]]) -> list[str]:
    """Returns what to warn of in the names of classes.

    Args:
        spellings: (class, its name as written) of every class folder or manifest row.
    """
    written: dict[str, set[str]] = defaultdict(set)
    for label, spelling in spellings:
        written[label].add(spelling)
    warnings = [
        f"class {label!r} is written with composed and with decomposed letters (NFC, NFD): both are one class"
        for label, ways in sorted(written.items())
        if len(ways) > 1
    ]
    alike: dict[str, list[str]] = defaultdict(list)
    for label in sorted(written):
        alike[SEPARATOR.join(level.strip() for level in label.split(SEPARATOR)).casefold()].append(label)
    for labels in alike.values():
        if len(labels) > 1:
            names = ", ".join(repr(label) for label in labels)
            warnings.append(f"classes {names} differ only in case or in blanks around a name: they stay apart")
    return warnings


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in patterns)
