"""The first run: data in, a gated and versioned model out, and a screen of text about it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

FRESH = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
raw = model.signatures["serving_raw"]
rows = {}
for name, spec in raw.structured_input_signature[1].items():
    value = {tf.string: b"", tf.float32: 1.0, tf.int64: 3}[spec.dtype]
    shape = [2 if size is None else size for size in spec.shape.as_list()]
    rows[name] = tf.fill(shape, tf.constant(value, spec.dtype))
answer = raw(**rows)
assert not [name for name in sys.modules if name.split(".")[0] in ("pipeline", "components", "core", "tfx")]
numbers = {name: value.numpy() for name, value in answer.items() if value.dtype.is_floating}
print(json.dumps({name: value.astype("float64").ravel().tolist() for name, value in numbers.items()}))
"""


def test_it_pushes_and_says_so_in_a_screen_of_text(first_run: Any) -> None:
    """Exit 0, at most 60 lines, the last of them name the verdict and a directory that exists."""
    place, done = first_run
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 60
    assert done.stderr == ""
    tail = lines[-4:]
    assert any("VERDICT" in line and "pushed" in line for line in tail)
    pushed = next(line.split(maxsplit=1)[1] for line in tail if line.startswith("pushed"))
    assert (Path(pushed) / "saved_model.pb").is_file()
    assert Path(pushed).parent == place.path / "serving" / "forebay" / "taxi"


def test_every_row_is_accounted_for(first_run: Any) -> None:
    """The ingest report of the real table: 15,002 rows in, as many out, none set aside."""
    place, _ = first_run
    report = json.loads(
        next(place.root.glob("*/ExampleGen/ingest_report/*/ingest_report.json")).read_text(encoding="utf-8")
    )
    assert (report["rows_read"], sum(report["rows_written"].values()), report["rows_set_aside"]) == (15002, 15002, 0)


def test_the_pushed_version_has_the_four_signatures(first_run: Any) -> None:
    """saved_model_cli, which knows nothing of us, lists the contract's signatures."""
    place, _ = first_run
    [version] = [name for name in place.versions() if name.isdigit()]
    path = place.path / "serving" / "forebay" / "taxi" / version
    command = [str(Path(sys.executable).parent / "saved_model_cli"), "show", "--dir", str(path), "--all"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in ("serving_default", "serving_raw", "transform_features", "dense"):
        assert f"signature_def['{name}']" in shown


def test_a_fresh_process_with_only_tensorflow_predicts_from_raw_rows(first_run: Any, tmp_path: Path) -> None:
    """No project code and no variable of ours is needed to load the pushed model and get probabilities."""
    place, _ = first_run
    [version] = [name for name in place.versions() if name.isdigit()]
    path = place.path / "serving" / "forebay" / "taxi" / version
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outputs = json.loads(done.stdout.splitlines()[-1])
    assert outputs
    assert all(0.0 <= value <= 1.0 for value in outputs["probability"])


def test_the_manifest_holds_the_run_and_its_metrics(first_run: Any) -> None:
    """The pushed version names the run that made it, the digests and the metrics that let it pass."""
    place, _ = first_run
    [version] = [name for name in place.versions() if name.isdigit()]
    file = place.path / "serving" / "forebay" / "taxi" / version / "assets.extra" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    first = min((place.root / "_runs").iterdir()).name
    assert manifest["run_id"] == first
    assert set(manifest["digests"]) == {"data", "code", "settings", "environment"}
    assert all(len(digest) == 64 for digest in manifest["digests"].values())
    assert manifest["metrics"]["auc"] > 0.6
    assert manifest["files"]["saved_model.pb"]


def test_the_runs_verbs_tell_of_it(first_run: Any) -> None:
    """list, show and why answer as JSON and as text from the same record."""
    place, _ = first_run
    where = ("--set", "run.root=runs")
    listed = json.loads(place.call("runs", "list", *where, "--output", "json").stdout)
    assert listed[-1]["state"] == "done"
    shown = place.call("runs", "show", listed[-1]["run"], *where)
    assert "Evaluator" in shown.stdout
    assert "auc" in shown.stdout
    told = json.loads(place.call("runs", "why", listed[-1]["run"], "Trainer", *where, "--output", "json").stdout)
    assert told["state"] == "done"
    unknown = place.call("runs", "why", listed[-1]["run"], "Trainr", *where)
    assert unknown.returncode == 2
    assert "Did you mean Trainer" in unknown.stderr
