"""One run at a time on a pipeline root; a killed run's lock is taken over."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from core.errors import LockedError

_POLL_S = 0.2


@dataclasses.dataclass(frozen=True)
class Owner:
    """Who holds, or held, a lock."""

    run_id: str
    pid: int
    host: str


@contextlib.contextmanager
def hold(
    path: Path, run_id: str, *, wait_s: float = 0.0, on_wait: Callable[[Owner | None], None] | None = None
) -> Iterator[Owner | None]:
    """Holds the lock for the length of the block.

    The kernel drops the lock when its process ends, however it ends; the text in the file only says who it was.

    Args:
        path: The lock file.
        run_id: Written into the file for others to read.
        wait_s: Seconds to wait for the present owner; 0 refuses at once.
        on_wait: Called once with the owner when waiting starts.

    Yields:
        The previous owner when it ended without letting go (it was killed); None otherwise.

    Raises:
        LockedError: Another run holds the lock; names its run, pid and host.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, path, wait_s, on_wait)
        previous = _read(descriptor)
        _write(descriptor, Owner(run_id, os.getpid(), socket.gethostname()))
        try:
            yield previous
        finally:
            _write(descriptor, None)
    finally:
        os.close(descriptor)


def owner(path: Path) -> Owner | None:
    """Returns who holds the lock now, or None when nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, wait_s: float, on_wait: Callable[[Owner | None], None] | None) -> None:
    deadline = time.monotonic() + wait_s
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = _read(descriptor)
        if time.monotonic() >= deadline:
            who = f"run {holder.run_id} (pid {holder.pid} on {holder.host})" if holder else "another run"
            raise LockedError(
                f"{who} is using this pipeline root",
                place=str(path.parent),
                hint="Wait for it, or let this run wait with --set run.wait_s=600.",
            )
        if not told and on_wait is not None:
            on_wait(holder)
            told = True
        time.sleep(_POLL_S)


def _read(descriptor: int) -> Owner | None:
    text = os.pread(descriptor, 4096, 0).decode("utf-8", "replace").strip()
    try:
        return Owner(**json.loads(text))
    except (ValueError, TypeError):
        return None


def _write(descriptor: int, holder: Owner | None) -> None:
    text = json.dumps(dataclasses.asdict(holder)) if holder else ""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode("utf-8"), 0)
    os.fsync(descriptor)
