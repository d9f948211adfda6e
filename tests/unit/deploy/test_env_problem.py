"""One line for a person, whatever an installer printed."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from core.errors import EnvironmentProblem
from deploy.env import problem

pytestmark = pytest.mark.unit

LOG = Path("env.log")


@pytest.mark.parametrize(
    ("output", "headline"),
    [
        pytest.param(
            "error: Request failed after 3 retries\n  Caused by: error sending request\n  Caused by: dns error",
            "the package index cannot be reached (installing packages)",
            id="no network, uv",
        ),
        pytest.param(
            "WARNING: Retrying: NewConnectionError: Failed to establish\nERROR: No matching distribution",
            "the package index cannot be reached (installing packages)",
            id="no network, pip",
        ),
        pytest.param(
            "error: Failed to install: a.whl\n  Caused by: No space left on device (os error 28)",
            "the disk filled up while installing packages",
            id="no disk",
        ),
        pytest.param(
            "error: Hash mismatch for `six==1.16.0`\n\nExpected:\n  sha256:00",
            "a package did not have the locked hash while installing packages",
            id="altered package",
        ),
        pytest.param(
            "  x Failed to build `pyfarmhash==0.3.2`\n  ├─▶ The build backend returned an error",
            "compiling a package failed while installing packages",
            id="no compiler",
        ),
        pytest.param(
            "error: failed to open file `x`: Permission denied (os error 13)",
            "a file could not be written while installing packages",
            id="no right",
        ),
        pytest.param(
            "  \u00d7 No solution found when resolving dependencies:\n  ╰─▶ Because a depends on b",
            "installing packages failed: Because a depends on b",
            id="anything else: its last line without the drawing",
        ),
        pytest.param("", "installing packages failed: no output", id="silence"),
    ],
)
def test_what_installers_say_becomes_one_line(output: str, headline: str) -> None:
    """Each cause has its own line, and each line a way on."""
    error = problem.explain("installing packages", output, LOG)
    assert error.headline == headline
    assert error.hint
    assert "\n" not in str(error)
    assert error.exit_code == 5


@pytest.mark.parametrize(
    ("system", "machine", "libc"),
    [
        pytest.param("darwin", "arm64", ("", ""), id="macOS"),
        pytest.param("linux", "aarch64", ("glibc", "2.36"), id="ARM"),
        pytest.param("linux", "x86_64", ("", ""), id="musl"),
        pytest.param("linux", "x86_64", ("glibc", "2.12"), id="old glibc"),
    ],
)
def test_machines_without_wheels_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, libc: tuple[str, str]
) -> None:
    """Nothing is downloaded for a platform on which TFX cannot work."""
    monkeypatch.setattr(problem.sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)
    with pytest.raises(EnvironmentProblem, match=r"TFX 1\.16"):
        problem.check_platform()


def test_a_small_disk_is_refused_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line names the folder, what is free and what is needed."""
    monkeypatch.setattr(problem, "NEEDED_GIB", 1e6)
    with pytest.raises(EnvironmentProblem) as error:
        problem.check_disk(tmp_path)
    assert error.value.place == str(tmp_path)
    assert "GiB free" in error.value.headline
