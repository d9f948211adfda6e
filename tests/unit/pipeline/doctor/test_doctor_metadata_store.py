"""Whether the metadata store can be reached."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from pipeline.doctor import metadata_store
from pipeline.doctor.finding import Level

pytestmark = pytest.mark.unit


def test_sqlite_needs_a_folder_that_can_be_written(tmp_path: Path) -> None:
    """The default works wherever a run can write, and a file in the way is found."""
    assert metadata_store.check_metadata("sqlite", str(tmp_path / "runs")).level is Level.OK
    (tmp_path / "file").touch()
    assert metadata_store.check_metadata("sqlite", str(tmp_path / "file" / "runs")).level is Level.BLOCKER


def test_a_server_that_is_not_there_is_a_blocker_with_a_fix() -> None:
    """A refused connection names the place and the way out."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    finding = metadata_store.check_metadata(f"mysql://someone@127.0.0.1:{port}/forebay", "unused")
    assert (finding.level, finding.found) == (Level.BLOCKER, f"mysql://someone@127.0.0.1:{port}/forebay: no answer")
    assert finding.fix == f"start the server at 127.0.0.1:{port}, or set run.metadata=sqlite"


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that accepts and stays silent costs the time limit, not more."""
    monkeypatch.setattr(metadata_store, "_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = time.monotonic()
        finding = metadata_store.check_metadata(f"mysql://u@127.0.0.1:{server.getsockname()[1]}/d", "unused")
    assert finding.level is Level.BLOCKER
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("url", ["mysql://host/db", "mysql://user@host", "postgres", "mysql://u@h:99999999/db"])
def test_an_incomplete_url_is_a_blocker(url: str) -> None:
    """The form that is wanted stands in the fix."""
    finding = metadata_store.check_metadata(url, "unused")
    assert finding.level is Level.BLOCKER
    assert finding.fix == "write run.metadata as mysql://USER@HOST:PORT/DATABASE"


def test_a_password_in_the_url_is_not_shown() -> None:
    """Doctors' reports are pasted into issues."""
    assert "s3cret" not in metadata_store.check_metadata("mysql://user:s3cret@host", "unused").found
