"""What the stages make of a recipe for photos, before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import schema
from core.errors import ConfigError, DataError, EnvironmentProblem
from core.settings import load
from core.settings.load import BASE_FILE
from pipeline import assembly
from pipeline.models.image import weights as weights_of
from pipeline.stages import checks, image_checks, ingest, train, transform

pytestmark = pytest.mark.unit

CLOTHING, TAXI = (str(BASE_FILE.parent / name) for name in ("clothing.yaml", "taxi.yaml"))
SCHEMA = BASE_FILE.parents[1] / "data" / "schemas" / "clothing.pbtxt"


def test_photos_and_tables_have_the_same_graph() -> None:
    """One graph, whatever is read: the same nodes, inputs and order."""
    graphs = [
        [(stage.id, dict(stage.inputs), stage.after) for stage in assembly.stages(load([recipe]).settings)]
        for recipe in (TAXI, CLOTHING)
    ]
    assert graphs[0] == graphs[1]


def test_a_node_depends_on_the_settings_it_reads_and_on_no_others() -> None:
    """A new learning rate leaves ingested and transformed photos alone; a table's setting changes nothing at all."""
    flags = ([], ["classifier.feature_learning_rate=0.5"], ["data.non_finite=refuse"], ["data.images.max_side_px=99"])
    before, rate, table, side = (load([CLOTHING], given).settings for given in flags)
    stages = (ingest.stage(before), transform.stage(before), train.stage(before))
    changed = {
        name: [stage.id for stage in stages if stage.settings(before) != stage.settings(other)]
        for name, other in (("rate", rate), ("table", table), ("side", side))
    }
    assert changed == {"rate": ["Trainer"], "table": [], "side": ["ExampleGen"]}


@pytest.mark.parametrize(
    ("cut", "says"),
    [('name: "parent"', "no feature 'parent'"), ("image_domain {}", "does not say that 'image' holds photos")],
    ids=["feature", "domain"],
)
def test_a_schema_that_is_none_for_photos_is_refused(tmp_path: Path, cut: str, says: str) -> None:
    """The schema of another recipe is noticed before anything runs."""
    path = tmp_path / "schema.pbtxt"
    path.write_text(SCHEMA.read_text(encoding="utf-8").replace(cut, 'name: "other"' if "name" in cut else ""), "utf-8")
    settings = load([CLOTHING], [f"schema.path={path}"]).settings
    with pytest.raises(ConfigError) as caught:
        image_checks.check(settings, schema.read(path))
    assert says in str(caught.value)


def test_a_recipe_of_columns_is_refused_for_photos() -> None:
    """Transform would trip over the features that nobody named; the line names the recipe that reads photos."""
    settings = load([CLOTHING], [f"schema.path={SCHEMA}", "user_code=pipeline.models.tabular"]).settings
    with pytest.raises(ConfigError, match=r"reads columns, not photos.*user_code: pipeline\.models\.image"):
        checks.check(settings)


@pytest.mark.parametrize("weights", ["imagenet", "none"])
def test_more_blocks_than_the_backbone_has_are_refused(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is refused before the photos are read; of the small network, which has no blocks, nothing is asked."""
    monkeypatch.setattr(weights_of, "find", Path)
    curated = schema.read(SCHEMA)
    flags = [f"classifier.weights={weights}", "classifier.fine_tune_blocks=17"]
    with pytest.raises(ConfigError, match="from 0 to 16"):
        image_checks.check(load([CLOTHING], flags).settings, curated)
    image_checks.check(load([CLOTHING], [flags[0], "classifier.fine_tune_blocks=16"]).settings, curated)
    small = ["classifier.weights=none", "classifier.backbone=small_cnn", flags[1]]
    image_checks.check(load([CLOTHING], small).settings, curated)


@pytest.mark.parametrize(
    ("part", "name"), [("_PACKAGE", "no_such_package"), ("_FILE", "models/no_such_file.pth")], ids=["package", "file"]
)
def test_missing_weights_are_named_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, part: str, name: str
) -> None:
    """Exit 5 in the first second, not after the photos were read; without ImageNet weights nothing is missing."""
    monkeypatch.setattr(weights_of, part, name)
    curated = schema.read(SCHEMA)
    with pytest.raises(EnvironmentProblem, match=r"forebay\[pretrained\]"):
        image_checks.check(load([CLOTHING]).settings, curated)
    image_checks.check(load([CLOTHING], ["classifier.weights=none", "classifier.fine_tune_epochs=1"]).settings, curated)


def test_a_newcomer_without_photos_is_told_both_ways_out(tmp_path: Path) -> None:
    """The recipe's own folder is empty at first: the line names the key to set and the command that gets a set."""
    with pytest.raises(DataError, match=r"data\.path=FOLDER.*forebay data fetch clothing"):
        image_checks.check_folder(str(tmp_path / "photos"))
    image_checks.check_folder(str(tmp_path))
    image_checks.check_folder(str(tmp_path / "{YYYY}"))
