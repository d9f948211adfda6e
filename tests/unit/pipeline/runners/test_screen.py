"""What the user sees, and what goes to the log instead."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

NOISY = """
import sys
from pathlib import Path
from pipeline.runners.screen import Screen, noise_to
screen = Screen(sys.stdout)
with noise_to(Path(sys.argv[1]), "r1"):
    with screen.working("Trainer"):
        print("from a library", flush=True)
        print("and a warning", file=sys.stderr, flush=True)
    screen.line("one line for the user")
screen.close()
"""


def test_on_a_terminal_the_noise_goes_to_the_log(tmp_path: Path) -> None:
    """With a live spinner, what nodes print still lands in the log, and only our lines on the terminal."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", NOISY, str(tmp_path / "run.log")]
    process = subprocess.Popen(command, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"})
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(leader)
    assert process.wait(timeout=60) == 0
    log = (tmp_path / "run.log").read_text(encoding="utf-8")
    assert "from a library" in log
    assert "and a warning" in log
    assert b"from a library" not in seen
    assert b"one line for the user" in seen


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    """`forebay run | head -1`: the pipe breaks, the work goes on to its end."""
    code = NOISY + "\nPath(sys.argv[1]).with_name('finished').touch()"
    code = code.replace('screen.line("one', 'for _ in range(5000): screen.line("x" * 80)\n    screen.line("one')
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "run.log")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert (tmp_path / "finished").exists()
