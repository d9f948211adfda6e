"""Bad data, a bad model, bad code: each ends with its exit code, one line, and nothing pushed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

PROJECT = Path(__file__).resolve().parents[2]


def test_values_outside_the_schema_block_and_are_counted(new_copy: Any) -> None:
    """Forty rows with hour 31: the DataGate refuses with exit 4 and names feature, value, limit and rows."""
    header, *rows = new_copy.csv.read_text(encoding="utf-8").splitlines()
    column = header.split(",").index("trip_start_hour")
    for index in range(100, 140):
        cells = rows[index].split(",")
        cells[column] = "31"
        rows[index] = ",".join(cells)
    new_copy.csv.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    before = new_copy.versions()
    done = new_copy.run()
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    for said in ("trip_start_hour", "31 in ", " of ", "0 to 23"):
        assert said in done.stderr
    assert new_copy.states()["DataGate"] == "refused"
    assert new_copy.states()["Transform"] == "skipped"
    assert new_copy.versions() == before
    shown = json.loads(new_copy.call("runs", "show", "--set", "run.root=runs", "--output", "json").stdout)
    failed = [gate for gate in shown["gates"] if gate["name"] == "data.schema:trip_start_hour"]
    assert sum(gate["details"]["rows"] for gate in failed) == 40


def test_too_many_broken_rows_are_refused_and_kept(new_copy: Any) -> None:
    """Above the configured share the ingestion refuses: counts, first bad line, and a quarantine file that is there."""
    lines = new_copy.csv.read_text(encoding="utf-8").splitlines()
    for index in range(50, 450):
        lines[index] += ",surplus"
    new_copy.csv.write_text("\n".join([*lines, ""]), encoding="utf-8")
    done = new_copy.run()
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert "400" in done.stderr
    assert "trips.csv:51" in done.stderr
    assert new_copy.states()["ExampleGen"] == "failed"
    assert [path for path in new_copy.root.rglob("quarantine.jsonl") if "refused" in path.parts]


def test_an_error_in_user_code_names_its_line_and_how_to_go_on(new_copy: Any) -> None:
    """A recipe whose preprocessing raises: exit 1, file and line of the user's code, and the command to resume."""
    package = new_copy.path / "my_model"
    shutil.copytree(PROJECT / "pipeline" / "models" / "tabular", package, ignore=shutil.ignore_patterns("__pycache__"))
    module = package / "preprocessing.py"
    text = module.read_text(encoding="utf-8").replace("pipeline.models.tabular", "my_model")
    broken = text.replace("    outputs = _scaled(", "    raise LookupError('no such table')\n    outputs = _scaled(")
    module.write_text(broken, encoding="utf-8")
    line = broken.splitlines().index("    raise LookupError('no such table')") + 1
    done = new_copy.run("--set", "user_code=my_model")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert f"my_model/preprocessing.py:{line}" in done.stderr
    assert "LookupError: no such table" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert f"runs resume {new_copy.latest()['run_id']}" in done.stdout


def test_metadata_on_a_real_mariadb(new_copy: Any, mariadb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting moves the metadata to a server: nodes run against it, and a second run reuses them from it."""
    monkeypatch.setenv("FOREBAY_MYSQL_PASSWORD", "pass word")
    flags = ("--set", f"run.metadata={mariadb}", "--set", "run.root=other", "--to", "StatisticsGen")
    first = new_copy.run(*flags)
    assert first.returncode == 0, first.stdout + first.stderr
    assert not list(new_copy.path.glob("other/*/_metadata.sqlite"))
    second = new_copy.run(*flags)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "StatisticsGen                       cached" in second.stdout
