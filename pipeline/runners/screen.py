"""What the user sees of a run: one line a node; everything else goes to the run's log file."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.runners.records import NodeRecord

_HEARTBEAT_S = 60.0
_STYLES = {"done": "green", "cached": "cyan", "running": "yellow", "refused": "red", "failed": "red", "skipped": "dim"}


class Screen:
    """Writes progress to the user's terminal or pipe, whatever happens to stdout meanwhile.

    On a terminal the running node's line is live; elsewhere each node gets one line when it ends, and a line a
    minute while it works, so that a log stays short and a watcher sees life.
    """

    def __init__(self, stream: Any) -> None:
        """Writes to a copy of the stream's file descriptor."""
        from rich.console import Console

        class _Console(Console):
            def on_broken_pipe(self) -> None:
                # The reader has gone (`| head`, a lost connection); the run goes on.
                self.quiet = True

        self._copy = os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8", errors="replace", buffering=1)
        self._console = _Console(file=self._copy, highlight=False, soft_wrap=True)

    def line(self, text: str, style: str = "") -> None:
        """Prints one line."""
        self._print(text, style=style or None, markup=False)

    @contextlib.contextmanager
    def working(self, name: str) -> Iterator[None]:
        """Shows that a node works, for the length of the block."""
        stop = threading.Event()
        with self._live(name) as spinner:
            thread = threading.Thread(target=self._tick, args=(name, time.monotonic(), stop, spinner), daemon=True)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()

    def node(self, record: NodeRecord) -> None:
        """Prints a finished node's line: name, state, seconds, the number that matters or the reason."""
        from rich.text import Text

        told = record.number or record.reason
        if record.state == "cached":
            told = record.number
        text = Text(f"  {record.id:<36}")
        text.append(f"{record.state:<9}", style=_STYLES.get(record.state, ""))
        text.append(f"{record.seconds:7.1f} s  {told}".rstrip())
        self._print(text)

    def close(self) -> None:
        """Flushes and closes the copy."""
        with contextlib.suppress(OSError):
            self._copy.close()

    def _print(self, text: Any, **style: Any) -> None:
        with contextlib.suppress(OSError):
            self._console.print(text, **style)

    @contextlib.contextmanager
    def _live(self, name: str) -> Iterator[Any]:
        """Gives the running node's spinner on a terminal, None elsewhere."""
        if not self._console.is_terminal:
            yield None
            return
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots", f"{name} ...")
        # What nodes print belongs to the log: stdout and stderr stay where they were turned.
        with Live(spinner, console=self._console, redirect_stdout=False, redirect_stderr=False, transient=True):
            yield spinner

    def _tick(self, name: str, started: float, stop: threading.Event, spinner: Any) -> None:
        while not stop.wait(_HEARTBEAT_S if spinner is None else 0.5):
            elapsed = time.monotonic() - started
            if spinner is None:
                self.line(f"  {name:<36}{'running':<9}{elapsed:7.1f} s")
            else:
                spinner.update(text=f"{name} running {elapsed:.0f} s")


@contextlib.contextmanager
def noise_to(log_file: Path, run_id: str) -> Iterator[None]:
    """Sends stdout, stderr, warnings and all logging of this process to a file, for the length of the block.

    The file descriptors are turned, so that C++ libraries and child processes are quiet too.

    Args:
        log_file: Appended to.
        run_id: Stands in every log record.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    handler = _log_handler(log_file, run_id)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    with open(log_file, "ab", buffering=0) as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    root.handlers[:], root.level = [handler], logging.INFO
    logging.captureWarnings(True)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        logging.captureWarnings(False)
        root.handlers[:], root.level = before
        handler.close()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        os.close(saved[0])
        os.close(saved[1])


def _log_handler(log_file: Path, run_id: str) -> logging.Handler:
    handler = logging.FileHandler(log_file, encoding="utf-8")
    handler.setFormatter(logging.Formatter(f"%(asctime)s {run_id} %(levelname).1s %(name)s: %(message)s"))
    return handler
