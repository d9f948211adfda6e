"""Walks a folder through links, and never through the same folder twice."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Walk:
    """What lies below a folder.

    Attributes:
        folders: (folder, names of what it holds besides folders, sorted), the root first, parents before children.
        passed_over: (folder, reason) of folders that were not entered.
    """

    folders: tuple[tuple[str, tuple[str, ...]], ...]
    passed_over: tuple[tuple[str, str], ...]


def walk(root: str, *, why_not: Callable[[str], str]) -> Walk:
    """Returns every folder at and below `root` with its files.

    Args:
        root: Existing folder.
        why_not: Returns why a folder of that name is not entered; empty when it is.
    """
    folders: list[tuple[str, tuple[str, ...]]] = []
    passed_over: list[tuple[str, str]] = []
    real_root = os.path.realpath(root)
    entered = {real_root}
    for directory, below, names in os.walk(root, followlinks=True):
        chosen = []
        for name in sorted(below):
            folder = os.path.join(directory, name)
            real = os.path.realpath(folder)
            if reason := why_not(name):
                passed_over.append((folder, reason))
            elif real in entered:
                passed_over.append((folder, f"the same folder as {real}, which is read already"))
            elif os.path.join(real_root, "").startswith(os.path.join(real, "")):
                passed_over.append((folder, f"a link to {real}, which holds the folder that is read already"))
            else:
                entered.add(real)
                chosen.append(name)
        below[:] = chosen
        folders.append((directory, tuple(sorted(names))))
    return Walk(tuple(folders), tuple(passed_over))
