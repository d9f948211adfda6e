"""Can a version be written here? Asked before anything is touched, and answered with modes, owners and bytes."""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
from pathlib import Path

from core.errors import EnvironmentProblem


def check_writable(directory: Path, needed_bytes: int, min_free_bytes: int) -> None:
    """Checks mode, owner, mount and free space of the place where a model's directory is or will be.

    Args:
        directory: The model's directory; it need not exist yet.
        needed_bytes: Size of the version to be written.
        min_free_bytes: What must stay free after it.

    Raises:
        EnvironmentProblem: It cannot be written; says why in terms of mode, owner, mount or free bytes.
    """
    place = nearest_existing(directory)
    if not place.is_dir():
        raise EnvironmentProblem(
            "is a file, and a directory of versions is needed",
            place=str(place),
            hint="Move it away, or change serving.root.",
        )
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        raise EnvironmentProblem(
            f"is on a read-only file system ({describe(place)})",
            place=str(place),
            hint="Mount it writable, or change serving.root.",
        )
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        raise _not_permitted(place)
    _check_space(place, needed_bytes, min_free_bytes)


def nearest_existing(path: Path) -> Path:
    """Returns the path itself or its nearest ancestor that exists."""
    current = path.absolute()
    while not os.path.lexists(current):
        current = current.parent
    return current


def describe(path: Path) -> str:
    """Returns `mode 0755, owner app (uid 1000)` of a path, and who is asking."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    return f"mode {mode:04o}, owner {_user(status.st_uid)}; this process is {_user(os.geteuid())}"


def explain(error: OSError, path: Path) -> EnvironmentProblem:
    """Returns the error to raise in place of an OSError that a write below `path` gave."""
    place = nearest_existing(path)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        free = shutil.disk_usage(place).free
        return EnvironmentProblem(
            f"the target is full: {free:,} bytes free ({error.strerror})",
            place=str(place),
            hint="No live version was touched. Free some space, or lower serving.keep_versions.",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return _not_permitted(place)
    hint = "No live version was touched. Look at the disk, or change serving.root."
    return EnvironmentProblem(f"cannot write: {error.strerror} ({describe(place)})", place=str(place), hint=hint)


def _not_permitted(place: Path) -> EnvironmentProblem:
    try:
        found = describe(place)
    except PermissionError:
        found = f"not even its mode can be read; this process is {_user(os.geteuid())}"
    return EnvironmentProblem(
        f"cannot be written ({found})",
        place=str(place),
        hint="Change its owner or mode, run as its owner, or change serving.root.",
    )


def _check_space(place: Path, needed_bytes: int, min_free_bytes: int) -> None:
    free = shutil.disk_usage(place).free
    if free < needed_bytes + min_free_bytes:
        raise EnvironmentProblem(
            f"too little space: {free:,} bytes free, {needed_bytes:,} needed and {min_free_bytes:,} must stay free",
            place=str(place),
            hint="Free some space, or lower serving.min_free_mib or serving.keep_versions.",
        )


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
