"""`forebay doctor` as a person and as a program read it."""

from __future__ import annotations

import json
from pathlib import Path

import click.testing
import pytest

from pipeline.cli.doctor import render
from pipeline.cli.main import run
from pipeline.doctor import Finding, Level

pytestmark = pytest.mark.unit


def test_a_good_machine_exits_0_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The locked environment passes its own doctor."""
    assert run(["doctor", "--set", f"run.root={tmp_path}", "--set", f"serving.root={tmp_path}"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("this machine can run Forebay: ")


def test_a_blocker_exits_5_and_is_in_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run root inside a file: the answer is one JSON document with the fix, the code is the environment's."""
    (tmp_path / "file").touch()
    assert run(["doctor", "--set", f"run.root={tmp_path / 'file' / 'runs'}", "--output", "json"]) == 5
    answer = json.loads(capsys.readouterr().out)
    blockers = {item["name"]: item["fix"] for item in answer["findings"] if item["level"] == "blocker"}
    assert answer["ok"] is False
    assert blockers["run.root"] == "set run.root to a folder"
    assert answer["fingerprint"]["versions"]["tensorflow"] == "2.16.2"


def test_a_wrong_setting_is_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    """The doctor reads the settings of a recipe by the same rules as a run."""
    assert run(["doctor", "--set", "run.rooot=x"]) == 3
    assert "rooot" in capsys.readouterr().err


def test_the_fix_stands_below_what_is_not_ok() -> None:
    """A person reads: level, what, found, wanted, and on the next line what to do."""
    text = render(
        [
            Finding("packages", "tfx", Level.OK, "1.16.0", "1.16.0"),
            Finding("packages", "tensorflow", Level.BLOCKER, "2.17.0", "2.16.2", "make env"),
        ]
    )
    assert text.splitlines() == [
        "ok       packages  tfx         1.16.0",
        "blocker  packages  tensorflow  2.17.0  (wanted 2.16.2)",
        "                               fix: make env",
        "this machine cannot run Forebay yet: 1 ok, 1 blocker",
    ]


def test_help_names_the_exit_code() -> None:
    """An orchestrator's author finds the code without reading source."""
    from pipeline.cli.doctor import command

    assert "Exit 5" in click.testing.CliRunner().invoke(command, ["--help"]).output
