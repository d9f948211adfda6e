"""One writer at a time in a model's directory. The kernel drops the lock of a process that dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from core.errors import LockedError
from serving.local_disk import explain

LOCK_FILE = ".lock"
_POLL_S = 0.02


@contextlib.contextmanager
def model_lock(directory: Path, wait_s: float = 60.0) -> Iterator[None]:
    """Holds the lock of a model's directory.

    It covers listing, the rename of one directory and deletions, never the copying of files: waits are short.

    Args:
        directory: The model's directory; it exists.
        wait_s: Seconds to wait for another holder.

    Raises:
        LockedError: Another process held it all that time; names it.
        EnvironmentProblem: The lock file cannot be opened.
    """
    try:
        # The umask decides: users who share the directory through a group share the lock as well.
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise explain(error, directory / LOCK_FILE) from error
    try:
        _acquire(descriptor, directory, wait_s)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Takes the exclusive lock of an open file if nobody alive holds it; returns whether it did."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _acquire(descriptor: int, directory: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while not try_lock(descriptor):
        if time.monotonic() >= deadline:
            owner = os.pread(descriptor, 256, 0).decode("utf-8", "replace") or "another process"
            raise LockedError(
                f"{owner} has been changing this model for more than {wait_s:g} s",
                place=str(directory),
                hint="Try again later.",
            )
        time.sleep(_POLL_S)
