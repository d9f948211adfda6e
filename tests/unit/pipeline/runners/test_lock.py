"""One run at a time; a killed run's lock is taken over."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.errors import LockedError
from pipeline.runners import lock

pytestmark = pytest.mark.unit

HOLDER = """
import sys, time
from pathlib import Path
from pipeline.runners import lock
with lock.hold(Path(sys.argv[1]), "20240101-000000"):
    print("held", flush=True)
    time.sleep(60)
"""


def start_holder(path: Path) -> subprocess.Popen[str]:
    """Returns a real process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_refused_with_the_owners_run_and_pid(tmp_path: Path) -> None:
    """R04: the refusal names run, pid and host of the owner."""
    holder = start_holder(tmp_path / "_lock")
    try:
        with pytest.raises(LockedError) as caught, lock.hold(tmp_path / "_lock", "20240101-000001"):
            pass
        assert "20240101-000000" in str(caught.value)
        assert f"pid {holder.pid}" in str(caught.value)
        found = lock.owner(tmp_path / "_lock")
        assert found is not None
        assert found.pid == holder.pid
    finally:
        holder.kill()
        holder.communicate()


def test_a_killed_owner_is_taken_over_and_named(tmp_path: Path) -> None:
    """R04: after kill -9 the next run gets the lock and learns whose it was."""
    holder = start_holder(tmp_path / "_lock")
    holder.kill()
    holder.communicate()
    assert lock.owner(tmp_path / "_lock") is None
    with lock.hold(tmp_path / "_lock", "20240101-000001") as previous:
        assert previous is not None
        assert (previous.run_id, previous.pid) == ("20240101-000000", holder.pid)
    with lock.hold(tmp_path / "_lock", "20240101-000002") as previous:
        assert previous is None


def test_a_waiting_run_starts_when_the_owner_ends(tmp_path: Path) -> None:
    """With a wait the second run is told for whom it waits, and then goes on."""
    holder = start_holder(tmp_path / "_lock")
    told: list[lock.Owner | None] = []

    def waiting(owner: lock.Owner | None) -> None:
        told.append(owner)
        holder.kill()

    started = time.monotonic()
    with lock.hold(tmp_path / "_lock", "20240101-000001", wait_s=30, on_wait=waiting):
        assert time.monotonic() - started < 20
    holder.communicate()
    assert len(told) == 1
    assert told[0] is not None
    assert told[0].pid == holder.pid
