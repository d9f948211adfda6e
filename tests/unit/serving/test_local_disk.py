"""What is said when a directory cannot be written, and the lock of a model's directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from core.errors import LockedError
from serving.local_disk import describe, explain, nearest_existing
from serving.model_lock import model_lock

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("number", "words"),
    [
        pytest.param(errno.ENOSPC, "bytes free", id="full"),
        pytest.param(errno.EDQUOT, "bytes free", id="quota"),
        pytest.param(errno.EACCES, "mode 0750, owner", id="not allowed"),
        pytest.param(errno.EIO, "mode 0750, owner", id="broken"),
    ],
)
def test_a_write_error_names_what_decides(tmp_path: Path, number: int, words: str) -> None:
    """Full disks are told in bytes, refusals in mode and owner; all exit with 5 and name the place."""
    tmp_path.chmod(0o750)
    error = explain(OSError(number, os.strerror(number)), tmp_path / "not" / "there")
    assert words in error.headline
    assert error.place == str(tmp_path)
    assert error.exit_code == 5


def test_a_description_names_mode_owner_and_who_asks(tmp_path: Path) -> None:
    """Owner and asker appear with their numbers, since names differ between hosts and containers."""
    tmp_path.chmod(0o700)
    text = describe(tmp_path)
    assert text.startswith("mode 0700, owner ")
    assert f"uid {os.stat(tmp_path).st_uid}" in text
    assert f"uid {os.geteuid()}" in text.partition("this process")[2]


def test_an_owner_without_a_name_is_a_number(tmp_path: Path) -> None:
    """A uid that no user has is shown as a number."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(tmp_path, 54321, 54321)
    assert "owner uid 54321;" in describe(tmp_path)


def test_the_nearest_existing_ancestor_is_found(tmp_path: Path) -> None:
    """The place to ask about is the path itself or what is there above it."""
    assert nearest_existing(tmp_path / "a" / "b") == tmp_path
    assert nearest_existing(tmp_path) == tmp_path


def test_a_held_lock_names_its_holder(tmp_path: Path) -> None:
    """Whoever waits too long learns which process on which host holds the lock; after release it can be had."""
    with (
        model_lock(tmp_path),
        pytest.raises(LockedError, match=f"process {os.getpid()} on "),
        model_lock(tmp_path, 0.05),
    ):
        pytest.fail("the lock was given twice")
    with model_lock(tmp_path, 0.05):
        assert (tmp_path / ".lock").exists()
