"""`forebay models` from the outside: what it prints, in both forms, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core import fingerprint, label_map
from core.label_map import LabelMap
from core.manifest import MANIFEST_FILE, Provenance
from pipeline.cli.main import run
from serving.publish import Published, publish
from serving.target import Target

pytestmark = pytest.mark.unit

NOON = 1_800_000_000
Push = Callable[..., Published]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Returns a serving root; nothing is there yet."""
    return tmp_path / "serving"


@pytest.fixture
def push(tmp_path: Path, root: Path) -> Push:
    """Returns a function that pushes the model made of `content` at second `at`, to forebay/taxi if not told else."""

    def do(content: str, at: int, project: str = "forebay", auc: float = 0.9) -> Published:
        model = tmp_path / "models" / content
        model.mkdir(parents=True, exist_ok=True)
        (model / "saved_model.pb").write_text(f"graph {content}", encoding="utf-8")
        provenance = Provenance(
            run_id=f"run-{content}",
            digests={"data": content * 64},
            metrics={"auc": auc},
            gates=({"name": "model.auc", "status": "passed"},),
            host=fingerprint.collect(),
        )
        target = Target(str(root), project, "taxi")
        return publish(model, target, provenance, keep=10, min_free_bytes=0, now=lambda: float(at))

    return do


@pytest.fixture
def ask(root: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Returns a function that runs `forebay models ... --root ROOT`; it returns exit code, stdout, stderr."""

    def do(*arguments: str) -> tuple[int, str, str]:
        code = run(["models", *arguments, "--root", str(root)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return do


def test_list_shows_every_version_and_its_standing(push: Push, ask: Any, root: Path) -> None:
    """The table has one line a version, newest first, and warnings for odd names; JSON has the same."""
    push("a", NOON)
    push("b", NOON + 1, auc=0.912345)
    (root / "forebay" / "taxi" / "v0.1").mkdir()
    code, text, _ = ask("list")
    assert code == 0
    lines = text.splitlines()
    assert lines[0].startswith("forebay/taxi")
    assert lines[2].split()[:2] == [str(NOON + 1), "serving"]
    assert "auc 0.9123" in lines[2]
    assert lines[3].split()[:4] == [str(NOON), "last", "known", "good"]
    assert "'v0.1' is no version" in lines[4]
    (model,) = json.loads(ask("list", "--output", "json")[1])["models"]
    assert [version["version"] for version in model["versions"]] == [NOON + 1, NOON]
    assert set(model["versions"][0]) == {
        "project", "model", "version", "standing", "pushed_at", "pushed_by", "source_version", "run_id", "metrics",
        "size_bytes", "model_digest", "location", "problem",
    }  # fmt: skip


def test_list_of_an_empty_root_says_what_to_do(ask: Any) -> None:
    """Nothing pushed is an answer, not an error, and names the command that pushes."""
    code, text, _ = ask("list")
    assert code == 0
    assert "nothing is pushed" in text
    assert "forebay run" in text


def test_show_takes_the_newest_or_a_named_version(push: Push, ask: Any) -> None:
    """Origin, metrics, gates, host and files are shown; without a number those of the newest version."""
    push("a", NOON)
    push("b", NOON + 1)
    code, text, _ = ask("show", "taxi")
    assert code == 0
    assert text.startswith(f"forebay/taxi {NOON + 1}: serving")
    for part in ("run run-b", "auc 0.9000", "model.auc: passed", "saved_model.pb", "TensorFlow", "optimizer  none"):
        assert part in text
    record = json.loads(ask("show", "forebay/taxi", str(NOON), "--output", "json")[1])
    assert record["version"] == NOON
    assert record["manifest"]["run_id"] == "run-a"
    assert record["manifest"]["optimizer"] is None


def test_show_of_a_classifier_names_the_worst_class_and_the_label_map(tmp_path: Path, root: Path, ask: Any) -> None:
    """Accuracy, the class that the model knows worst, and where the names of its outputs are."""
    model = tmp_path / "classifier"
    model.mkdir()
    (model / "saved_model.pb").write_text("graph", encoding="utf-8")
    LabelMap(("tops > shirt", "hat")).write(str(model))
    provenance = Provenance(
        metrics={"accuracy": 0.91, "worst_class_recall": 0.625},
        worst_class={"label": "tops > shirt", "recall": 0.625, "examples": 32, "min_examples": 10},
        host=fingerprint.collect(),
    )
    target = Target(str(root), "forebay", "clothing")
    pushed = publish(model, target, provenance, keep=1, min_free_bytes=0, now=lambda: float(NOON))
    code, text, _ = ask("show", "clothing")
    assert code == 0
    assert "metric     accuracy 0.9100" in text
    assert "worst      tops > shirt: recall 0.6250 of 32 examples" in text
    (place,) = [line.split()[-1] for line in text.splitlines() if line.startswith("  label map")]
    assert label_map.read(str(Path(place).parents[1])) == LabelMap(("tops > shirt", "hat"))
    assert place == f"{pushed.location}/assets.extra/labels.json"


def test_diff_names_what_changed(push: Push, ask: Any) -> None:
    """Two versions differ in a metric, a digest and a file, with both values and the difference."""
    push("a", NOON, auc=0.90)
    push("b", NOON + 1, auc=0.92)
    code, text, _ = ask("diff", "taxi", str(NOON), str(NOON + 1))
    assert code == 0
    assert "auc: 0.9000 -> 0.9200 (+0.0200)" in text
    assert "changed: saved_model.pb" in text
    record = json.loads(ask("diff", "taxi", str(NOON), str(NOON + 1), "--output", "json")[1])
    assert (record["before"], record["after"], record["same_model"]) == (NOON, NOON + 1, False)
    assert list(record["digests"]) == ["data"]


def test_rollback_pushes_the_last_known_good_and_is_seen_in_the_list(push: Push, ask: Any) -> None:
    """The answer names the new version, its source and the reason; the list shows the bad one as rolled back."""
    push("a", NOON)
    push("b", NOON + 1)
    code, text, _ = ask("rollback", "taxi", "--reason", "tips dropped", "--set", "serving.min_free_mib=0")
    assert code == 0
    assert f"the files of {NOON} again" in text
    assert "tips dropped" in text
    (model,) = json.loads(ask("list", "--output", "json")[1])["models"]
    newest = model["versions"][0]
    assert newest["version"] > NOON + 1
    assert (newest["pushed_by"], newest["source_version"]) == ("rollback", NOON)
    assert [version["standing"] for version in model["versions"]] == ["serving", "rolled back", "same as serving"]
    assert "rollback   from" in ask("show", "taxi")[1]


def test_rollback_to_a_named_version_answers_in_json(push: Push, ask: Any) -> None:
    """--to chooses the source; JSON has stable keys."""
    for step, content in enumerate("abc"):
        push(content, NOON + step)
    options = ["--to", str(NOON), "--reason", "r", "--set", "serving.min_free_mib=0", "--output", "json"]
    record = json.loads(ask("rollback", "taxi", *options)[1])
    assert (record["source_version"], record["left_version"]) == (NOON, NOON + 2)
    assert set(record) == {
        "project", "model", "version", "location", "source_version", "left_version", "reason", "removed", "warnings",
    }  # fmt: skip


@pytest.mark.parametrize("form", ["model", "model and version", "version directory", "model directory"])
def test_verify_takes_a_name_or_a_directory(push: Push, ask: Any, form: str) -> None:
    """Every way to name an intact version exits with 0 and says how many files were hashed."""
    result = push("a", NOON)
    arguments = {
        "model": ["taxi"],
        "model and version": ["taxi", str(NOON)],
        "version directory": [result.location],
        "model directory": [str(Path(result.location).parent)],
    }[form]
    code, text, _ = ask("verify", *arguments)
    assert code == 0
    assert "1 file: what was pushed" in text


def test_verify_exits_with_4_when_a_file_differs(push: Push, ask: Any) -> None:
    """One changed byte is named, on stdout in both forms, with exit 4."""
    result = push("a", NOON)
    (Path(result.location) / "saved_model.pb").write_text("graph x", encoding="utf-8")
    code, text, _ = ask("verify", "taxi")
    assert code == 4
    assert "changed: saved_model.pb" in text
    code, text, _ = ask("verify", "taxi", "--output", "json")
    assert code == 4
    assert json.loads(text)["changed"] == ["saved_model.pb"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["show", "taxy"], 2, "Did you mean taxi", id="unknown model"),
        pytest.param(["show", "taxi", "1800000009"], 2, "Near: 1800000000", id="unknown version"),
        pytest.param(["diff", "taxi", "1800000000", "7"], 2, "no version 7", id="unknown second version"),
        pytest.param(["verify", "taxi", "7"], 2, "no version 7", id="verify an unknown version"),
        pytest.param(["rollback", "taxi", "--reason", "r"], 4, "no last known good", id="no way back"),
        pytest.param(["rollback", "taxi"], 2, "--reason", id="no reason"),
        pytest.param(["list", "--set", "serving.keep=1"], 3, "keep_versions", id="unknown setting"),
    ],
)
def test_mistakes_are_one_line_with_a_way_out(
    push: Push, ask: Any, arguments: list[str], code: int, words: str
) -> None:
    """Every mistake has its exit code and one line on stderr that says what to type instead."""
    push("a", NOON)
    found, out, err = ask(*arguments)
    assert found == code
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert words in err


def test_an_ambiguous_name_asks_for_the_project(push: Push, ask: Any) -> None:
    """A model of that name in two projects is not guessed."""
    push("a", NOON)
    push("a", NOON, project="other")
    code, _, err = ask("show", "taxi")
    assert code == 2
    assert "forebay/taxi, other/taxi" in err


@pytest.mark.parametrize("arguments", [["diff", "taxi", str(NOON), str(NOON + 1)], ["verify", "taxi"]])
def test_a_broken_manifest_is_one_line(push: Push, ask: Any, arguments: list[str]) -> None:
    """Where the manifest is needed and cannot be read, its file is named, with exit 4."""
    push("a", NOON)
    result = push("b", NOON + 1)
    (Path(result.location) / MANIFEST_FILE).write_text("{", encoding="utf-8")
    code, _, err = ask(*arguments)
    assert code == 4
    assert "manifest.json" in err
    assert len(err.strip().splitlines()) == 1


def test_a_version_with_a_broken_manifest_is_shown_as_what_serves(push: Push, ask: Any) -> None:
    """It heads the list and has a page: where it is, that it serves, and why no more is known."""
    push("a", NOON)
    result = push("b", NOON + 1)
    (Path(result.location) / MANIFEST_FILE).write_text("{", encoding="utf-8")
    code, text, _ = ask("list")
    assert code == 0
    lines = text.splitlines()
    assert lines[2].split() == [str(NOON + 1), "serving,", "manifest", "unreadable"]
    assert lines[3].split()[:4] == [str(NOON), "last", "known", "good"]
    assert lines[4].startswith(f"  warning: {result.location}/{MANIFEST_FILE}: not a readable manifest")
    (model,) = json.loads(ask("list", "--output", "json")[1])["models"]
    assert set(model["versions"][0]) == set(model["versions"][1])
    for arguments in (["show", "taxi"], ["show", "taxi", str(NOON + 1)]):
        code, text, err = ask(*arguments)
        assert (code, err) == (4, "")
        assert text.startswith(f"forebay/taxi {NOON + 1}: serving, manifest unreadable\n")
        assert result.location in text
        assert "not a readable manifest" in text
    assert json.loads(ask("show", "taxi", "--output", "json")[1])["manifest"] is None
    assert ask("show", "taxi", str(NOON))[0] == 0
