"""The command: fast help, one-line errors, exit codes, stable JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.settings.load import BASE_FILE
from pipeline.cli import main

pytestmark = pytest.mark.unit

TAXI = str(BASE_FILE.parent / "taxi.yaml")
HEAVY = ("tensorflow", "tfx", "apache_beam", "pandas", "numpy", "pyarrow", "pydantic", "rich", "ml_metadata")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["runs", "--help"], ["config", "show", "--help"]], ids=" ".join
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """Help is answered without importing TensorFlow, TFX, Beam or anything else that is slow."""
    code = (
        "import sys\nfrom pipeline.cli import main\n"
        f"code = main.run({arguments!r})\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not heavy, heavy\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: forebay" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["rnu"], 2, "Did you mean 'run'"),
        (["run", "--frmo", "x"], 2, "--frmo"),
        (["run"], 2, "-c configs/taxi.yaml"),
        (["run", "-c", "nowhere.yaml"], 3, "no such config file"),
        (["config", "show", "-c", TAXI, "--set", "run.rot=x"], 3, "Did you mean 'root'"),
        (["run", "-c", TAXI, "--set", "evaluate.thresholds={}"], 3, "no absolute quality gate"),
        (["run", "-c", TAXI, "--accept-new-baseline"], 2, "--reason"),
    ],
    ids=["verb", "option", "no-config", "no-file", "key", "no-gate", "no-reason"],
)
def test_mistakes_get_one_line_and_their_exit_code(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every mistake prints exactly one line on stderr and returns its branch's code."""
    assert main.run(arguments) == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_errors_are_json_when_json_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """With --output json a program reads the error from stdout."""
    assert main.run(["config", "show", "-c", TAXI, "--set", "training.epoch=1", "--output", "json"]) == 3
    record = json.loads(capsys.readouterr().out)
    assert record["exit_code"] == 3
    assert "training.epoch" in record["place"]


def test_an_unexpected_error_hides_its_trace_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug of ours is one line too; the trace is in the file that the line names."""
    from pipeline.cli import config

    def broken(*arguments: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(config, "load_all", broken)
    assert main.run(["config", "show", "-c", TAXI]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "unexpected RuntimeError: boom" in error
    trace = Path(error.split("The trace is in ")[1].split(";")[0])
    assert "Traceback" in trace.read_text(encoding="utf-8")
    trace.unlink()


def test_origins_are_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Config show --origin gives value and place of every key."""
    assert main.run(["config", "show", "-c", TAXI, "--origin", "--output", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["recipe"] == {"value": "taxi", "origin": f"{TAXI}:2"}
    assert record["training.epochs"]["origin"].startswith("configs/base.yaml:")
