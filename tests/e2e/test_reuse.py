"""What is reused and what is not: content decides, and the reason is told."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]


def planned(place: Any, *extra: str) -> dict[str, dict[str, str]]:
    """Returns {node: {state, reason}} of a dry run."""
    done = place.run("--dry-run", "--output", "json", *extra)
    assert done.returncode == 0, done.stderr
    return {row["node"]: row for row in json.loads(done.stdout)["nodes"]}


def test_a_copied_and_touched_project_reuses_everything(copied_run: Any) -> None:
    """R02: another folder and new times are no reason to run anything; nothing is pushed twice."""
    before = copied_run.versions()
    for path in (copied_run.csv, *copied_run.root.rglob("*")):
        os.utime(path)
    assert {row["state"] for row in planned(copied_run).values()} == {"cached"}
    done = copied_run.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(copied_run.states().values()) == {"cached"}
    assert copied_run.versions() == before
    assert "VERDICT" in done.stdout


def test_a_changed_setting_runs_only_what_it_decides(copied_run: Any) -> None:
    """Training settings run the Trainer again, with the setting named, and nothing before it."""
    rows = planned(copied_run, "--set", "training.learning_rate=0.5")
    assert rows["Transform"]["state"] == "cached"
    assert rows["Trainer"]["state"] == "would run"
    assert "training.learning_rate went from 0.001 to 0.5" in rows["Trainer"]["reason"]


def test_a_lost_artifact_runs_its_node_again(copied_run: Any) -> None:
    """A node whose output was deleted is not reused, and the reason names what is gone."""
    lost = next(copied_run.root.glob("*/Trainer/model/*"))
    kept = copied_run.path / "kept"
    shutil.move(lost, kept)
    try:
        assert "is gone" in planned(copied_run)["Trainer"]["reason"]
    finally:
        shutil.move(kept, lost)


def test_an_impossible_gate_refuses_and_pushes_nothing(copied_run: Any) -> None:
    """A bound that cannot be met: exit 4, nothing pushed, the table and the error say which, twice in a row."""
    before = copied_run.versions()
    bound = ("--set", "evaluate.thresholds={auc: {min: 0.99999}}")
    done = copied_run.run(*bound)
    assert done.returncode == 4, done.stdout + done.stderr
    assert copied_run.versions() == before
    assert "auc" in done.stdout
    assert "refused" in done.stdout
    assert "auc" in done.stderr
    assert done.stderr.count("\n") == 1
    assert copied_run.states()["Pusher"] == "skipped"
    again = copied_run.run(*bound)
    assert again.returncode == 4
    assert copied_run.states()["Evaluator"] == "refused"


def test_the_helper_of_user_code_counts(copied_run: Any) -> None:
    """R03: a helper that preprocessing imports changes, then a file that it reads: Transform runs, reason told."""
    package = copied_run.path / "my_model"
    source = Path(__file__).resolve().parents[2] / "pipeline" / "models" / "tabular"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in package.glob("*.py"):
        text = module.read_text(encoding="utf-8")
        module.write_text(text.replace("pipeline.models.tabular", "my_model"), encoding="utf-8")
    (package / "codes.txt").write_text("a\n", encoding="utf-8")
    use = ("--set", "user_code=my_model", "--to", "Transform")
    done = copied_run.run(*use)
    assert done.returncode == 0, done.stdout + done.stderr
    assert planned(copied_run, *use)["Transform"]["state"] == "cached"
    helper = package / "features.py"
    helper.write_text(helper.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert "code my_model.features changed" in planned(copied_run, *use)["Transform"]["reason"]
    (package / "codes.txt").write_text("b\n", encoding="utf-8")
    assert "code my_model/codes.txt changed" in planned(copied_run, *use)["Transform"]["reason"]
    assert planned(copied_run, *use)["StatisticsGen"]["state"] == "cached"


def test_a_consent_lasts_for_its_model(copied_run: Any) -> None:
    """A change bound without a baseline refuses; a consent lets the model pass, and again when the run is repeated."""
    bounds = ("--set", "evaluate.thresholds={auc: {min: 0.6}, recall: {max_drop: 0.5}}")
    refused = copied_run.run(*bounds)
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert "recall" in refused.stderr
    accepted = copied_run.run(*bounds, "--accept-new-baseline", "--reason", "first model of the new label")
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    again = copied_run.run(*bounds)
    assert again.returncode == 0, again.stdout + again.stderr
    assert copied_run.states()["Evaluator"] == "cached"
