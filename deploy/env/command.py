"""Runs installers quietly: a few lines of progress on the screen, all of it in a log file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from deploy.env.problem import explain

# The lines of uv that tell a person how far it is.
_PROGRESS = ("Resolved", "Prepared", "Installed", "Uninstalled", "Bytecode compiled")
# Variables that would make an installer work on another environment than ours, or leave out bytecode:
# importing TFX takes three times as long without it.
_DROPPED = ("CONDA_PREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTHONPATH", "UV_PYTHON", "VIRTUAL_ENV")


class Failed(Exception):
    """A command ended with another code than 0; `output` is all that it printed."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output


def environment() -> dict[str, str]:
    """Returns the variables that installers run with."""
    variables = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    # One wheel is 590 MB; the default of 30 s between two reads is short on a slow line.
    variables.setdefault("UV_HTTP_TIMEOUT", "180")
    if "PIP_INDEX_URL" in os.environ:
        # Somebody who points pip at a mirror means every installer.
        variables.setdefault("UV_DEFAULT_INDEX", os.environ["PIP_INDEX_URL"])
    return variables


def run(arguments: list[str], log: Path, *, cwd: Path, variables: dict[str, str] | None = None) -> None:
    """Runs a command, appends its output to the log and echoes the lines that show progress.

    Raises:
        Failed: It ended with another code than 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with open(log, "a", encoding="utf-8") as stream:
        stream.write(f"$ {' '.join(arguments)}\n")
        with subprocess.Popen(
            arguments,
            cwd=cwd,
            env=variables or environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                stream.write(line)
                if line.startswith(_PROGRESS):
                    print(f"env: {line.strip()}", flush=True)
    if process.returncode != 0:
        raise Failed("".join(lines))


def run_or_explain(
    what: str, arguments: list[str], log: Path, *, cwd: Path, variables: dict[str, str] | None = None
) -> None:
    """Like `run`, for a command that nothing can be tried after.

    Raises:
        EnvironmentProblem: It failed; the error says why in one line.
    """
    try:
        run(arguments, log, cwd=cwd, variables=variables)
    except Failed as failure:
        raise explain(what, failure.output, log) from failure
