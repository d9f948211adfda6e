"""Settings: merged in order, frozen, and every mistake named with file, line, key path and nearest key."""

from __future__ import annotations

from pathlib import Path

import pydantic
import pytest

from core.errors import ConfigError, UsageError
from core.settings import load
from core.settings.load import BASE_FILE, load_values

pytestmark = pytest.mark.unit

TAXI = str(BASE_FILE.parent / "taxi.yaml")


def overlay(tmp_path: Path, text: str) -> str:
    """Returns the path of an overlay file with this text."""
    path = tmp_path / "over.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_taxi_recipe_is_valid_and_frozen() -> None:
    """The shipped recipe loads, and nothing in it can be changed afterwards."""
    settings = load([TAXI]).settings
    assert settings.recipe == "taxi"
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        settings.training.epochs = 9


def test_every_key_of_the_schema_stands_in_base_yaml() -> None:
    """base.yaml alone gives every key, so that no default hides in code; what it lacks is only a recipe's own."""
    with pytest.raises(ConfigError) as caught:
        load([])
    complaints = {problem["place"].split()[-1] for problem in caught.value.problems}
    assert complaints == {"evaluate"}


def test_later_layers_win_and_origins_are_kept(tmp_path: Path) -> None:
    """An overlay beats the recipe, a flag beats the overlay, and each value knows who set it."""
    path = overlay(tmp_path, "training:\n  epochs: 7\n  batch_size: 16\n")
    loaded = load([TAXI, path], ["training.epochs=2"])
    assert (loaded.settings.training.epochs, loaded.settings.training.batch_size) == (2, 16)
    origins = {key: place for key, _, place in loaded.origins()}
    assert origins["training.epochs"] == "--set training.epochs=2"
    assert origins["training.batch_size"] == f"{path}:3"
    assert origins["training.seed"].startswith("configs/base.yaml:")


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ("traning: {epochs: 2}\n", 1, "traning", "'training'"),
        ("training:\n  epoch: 2\n", 2, "training.epoch", "'epochs'"),
        ("evaluate:\n  thresholds:\n    auc:\n      mni: 0.5\n", 4, "evaluate.thresholds.auc.mni", "'min'"),
        ("training:\n  epochs: two\n", 2, "training.epochs", "integer"),
        ("training:\n  epochs: 2.5\n", 2, "training.epochs", "integer"),
        ("training:\n  steps: 0\n", 2, "training.steps", "greater than 0"),
        ("training:\n  eval_steps: 0\n", 2, "training.eval_steps", "greater than 0"),
        ("data:\n  csv: {delimiter: ',', decimal: ','}\n", 2, "data.csv", "both ','"),
        ("data:\n  split: {method: group}\n", 2, "data.split", "needs split.column"),
        ("features:\n  numeric: [tips]\n", 2, "", "label column"),
        ("run:\n  date: 2024-13-01\n", 2, "run.date", "date"),
        ("- a\n", 1, "", "mapping"),
        ("a: [1\n", 2, "", "not valid YAML"),
        ("training:\n  epochs: 1\n  epochs: 2\n", 3, "training.epochs", "twice"),
    ],
    ids=lambda value: str(value)[:30].replace("\n", " "),
)
def test_a_mistake_is_named_with_file_line_key_and_fix(
    tmp_path: Path, text: str, line: int, key: str, says: str
) -> None:
    """R11: each kind of mistake gets one line with where it stands and what would be right."""
    path = overlay(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load([TAXI, path])
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}")
    assert key in message
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "thresholds",
    ["{}", "{auc: {max_drop: 0.01}}", "{auc: {max_relative_drop: 0.1}, recall: {max_drop: 0.5}}"],
    ids=["none", "change-only", "two-changes"],
)
def test_a_run_without_an_absolute_gate_is_refused(thresholds: str) -> None:
    """R06 and R07: no threshold, or only change thresholds, would let a constant model through."""
    with pytest.raises(ConfigError, match="no absolute quality gate") as caught:
        load([TAXI], [f"evaluate.thresholds={thresholds}"])
    assert caught.value.exit_code == 3
    assert "--set evaluate.thresholds=" in caught.value.place


@pytest.mark.parametrize(
    "flag", ["training", "=3", ".=1", "training.epochs=[1"], ids=["no-equals", "no-key", "dot", "yaml"]
)
def test_a_flag_that_is_no_assignment_is_a_usage_error(flag: str) -> None:
    """A malformed --set is exit 2, not a setting."""
    with pytest.raises(UsageError):
        load([TAXI], [flag])


def test_a_missing_file_names_the_files_beside_it(tmp_path: Path) -> None:
    """A typo in a config's name shows what there is."""
    overlay(tmp_path, "{}")
    with pytest.raises(ConfigError, match=r"over\.yaml"):
        load([str(tmp_path / "ovre.yaml")])


def test_kept_values_load_to_equal_settings() -> None:
    """A run's stored settings give back exactly the settings it ran with."""
    loaded = load([TAXI], ["run.date=2024-02-29"])
    assert load_values(loaded.values, "settings.json").settings == loaded.settings


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("evaluate.thresholds={auc: {min: .nan}}", "finite"),
        ("evaluate.thresholds={auc: {min: -.inf}}", "finite"),
        ("training.learning_rate=.inf", "finite"),
        ("run.metadata=postgres://a@b/c", "mysql://USER@HOST:PORT/DATABASE"),
        ("run.metadata=mysql://host/db", "mysql://USER@HOST:PORT/DATABASE"),
        ("run.metadata=mysql://user@host", "mysql://USER@HOST:PORT/DATABASE"),
        ("run.metadata=mysql://u@h:abc/db", "mysql://USER@HOST:PORT/DATABASE"),
        ("run.metadata=mysql://user:secret@host/db", "a password does not belong into settings"),
        ("run.root=gs://bucket/x", "serving.root"),
        ("run.root=a:b", "':'"),
        ("run.date=2024-02-30", "out of range"),
        ("features.numeric=[fare, fare]", "'fare' twice"),
        ("data.split.shares={train: .5, eval: .3, ../x: .2}", "../x"),
        ("label={name: l, column: tips, positive: Yes, above_share_of: fare, share: 0.2}", "two rules"),
    ],
    ids=[
        "nan",
        "minus-infinity",
        "infinity",
        "kind",
        "no-user",
        "no-database",
        "port",
        "password",
        "remote",
        "colon",
        "day",
        "twice",
        "split",
        "rules",
    ],
)
def test_values_that_could_never_work_are_refused_at_once(flag: str, says: str) -> None:
    """A bound that every model passes, a store that is none, a root that TFX takes for a scheme: exit 3 at once."""
    with pytest.raises(ConfigError) as caught:
        load([TAXI], [flag])
    assert says in str(caught.value)
    assert "secret" not in caught.value.headline


def test_yaml_is_read_as_people_write_it() -> None:
    """1e-3 is a number, Yes is a text and true is a boolean, in files and in flags alike."""
    flags = ["training.learning_rate=1e-3", "label={name: l, column: tips, positive: Yes}", "run.cache=false"]
    settings = load([TAXI], flags).settings
    assert settings.training.learning_rate == 0.001
    assert settings.label.positive == "Yes"
    assert settings.run.cache is False


def test_an_alias_inside_itself_is_named(tmp_path: Path) -> None:
    """A YAML file that contains itself is a mistake of the file, not a crash."""
    with pytest.raises(ConfigError, match="alias"):
        load([TAXI, overlay(tmp_path, "data: &x\n  csv: *x\n")])


def test_a_leading_tilde_is_the_home_folder() -> None:
    """Paths that we make follow ~, so that no folder of that name appears."""
    settings = load([TAXI], ["run.root=~/r", "serving.root=~/s"]).settings
    assert settings.run.root == str(Path.home() / "r")
    assert settings.serving.root == str(Path.home() / "s")
