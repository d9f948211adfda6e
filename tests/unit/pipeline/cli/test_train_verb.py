"""`forebay train profile` from the outside: which run it measures, with which settings, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.files import write_json_atomic
from core.settings import load
from core.settings.load import BASE_FILE
from pipeline.cli.main import run
from pipeline.runners import records
from pipeline.runners.layout import PipelineRoot
from pipeline.runners.records import NodeRecord, RunRecord

pytestmark = pytest.mark.unit

CLOTHING = str(BASE_FILE.parent / "clothing.yaml")
RUN_ID = "20260102-030405-abcd"
OUTPUTS = ("transformed_examples", "transform_graph")

# Code of a recipe whose profile is what it was asked for: the real ones need TensorFlow.
TRAINER = """
import json
from pipeline.training.profile import PhaseProfile, Profile

def profile_training(custom_config, files, transform_dir, steps):
    settings = json.loads(custom_config["settings"])
    side_px, batch_size = settings["classifier"]["image_px"], settings["training"]["batch_size"]
    return Profile((PhaseProfile(f"at {side_px} px", batch_size, steps, 3.0, 2.0, 500.0),))
"""


@pytest.fixture
def record_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, list[str]]], None]:
    """Returns a function that records a run whose Transform has these outputs; its recipe is TRAINER."""
    package = tmp_path / "code" / "echoing_recipe"
    package.mkdir(parents=True)
    (package / "trainer.py").write_text(TRAINER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(package.parent))
    root = PipelineRoot(tmp_path / "runs" / "forebay.clothing")

    def do(outputs: dict[str, list[str]]) -> None:
        node = NodeRecord("Transform", records.DONE if outputs else records.FAILED, outputs=outputs)
        record = RunRecord(RUN_ID, "forebay.clothing", records.DONE, "2026-01-02T03:04:05+00:00", nodes=[node])
        records.save(root, record)
        values = load([CLOTHING], ["user_code=echoing_recipe", "training.batch_size=7"]).values
        write_json_atomic(root.run(RUN_ID) / "settings.json", values)

    return do


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Returns a function that runs `forebay train profile`; it returns exit code, stdout, stderr."""

    def do(*arguments: str) -> tuple[int, str, str]:
        code = run(["train", "profile", "--set", f"run.root={tmp_path / 'runs'}", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return do


@pytest.fixture
def transformed(tmp_path: Path) -> dict[str, list[str]]:
    """Returns outputs of a Transform that are there."""
    for name in OUTPUTS:
        (tmp_path / name).mkdir()
    return {name: [str(tmp_path / name)] for name in OUTPUTS}


def test_a_profile_is_of_the_run_s_own_settings_and_of_what_is_set(
    record_run: Callable[..., None], ask: Callable[..., tuple[int, str, str]], transformed: dict[str, list[str]]
) -> None:
    """What the run was told counts, and a flag wins over it; as a table and as JSON."""
    record_run(transformed)
    code, out, _ = ask("--steps", "5")
    assert code == 0
    assert out.splitlines()[1].split() == ["at", "288", "px", "7", "3.000", "2.000", "1.500", "33.3", "%", "500"]
    code, out, _ = ask(RUN_ID[:9], "--set", "classifier.image_px=224", "--output", "json")
    assert code == 0
    document = json.loads(out)
    [phase] = document["phases"]
    assert document["run"] == RUN_ID
    assert (phase["name"], phase["batch_size"], phase["steps"]) == ("at 224 px", 7, 30)


@pytest.mark.parametrize(
    ("flag", "code", "says"),
    [
        ("data.images.max_side_px=99", 2, "classifier, training, and run.root"),
        ("run.cache=false", 2, "run.cache does not change what is profiled"),
        ("classifier.image_pix=64", 3, "Did you mean 'image_px'"),
        ("classifier.views=0", 3, "greater than or equal to 1"),
    ],
    ids=["data", "run", "key", "value"],
)
def test_a_setting_without_effect_is_refused(
    record_run: Callable[..., None],
    ask: Callable[..., tuple[int, str, str]],
    transformed: dict[str, list[str]],
    flag: str,
    code: int,
    says: str,
) -> None:
    """No flag is taken and ignored: it counts, or the line says which do."""
    record_run(transformed)
    got, _, error = ask("--set", flag)
    assert got == code
    assert says in error


def test_examples_that_were_never_made_or_are_gone_are_told_apart(
    record_run: Callable[..., None], ask: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """Exit 2 with the command that makes them, whether Transform never ran or somebody cleaned up after it."""
    record_run({})
    code, _, error = ask()
    assert code == 2
    assert "were never made" in error
    assert "--to Transform" in error
    record_run({name: [str(tmp_path / "nowhere")] for name in OUTPUTS})
    code, _, error = ask()
    assert code == 2
    assert "are gone" in error
