"""The catalog: finding models and versions by name, and what changed between two versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, UsageError
from core.manifest import Provenance
from serving.catalog import differences, find_model, require_manifest
from serving.stores import find_targets, open_store
from serving.target import Target, is_s3, split_s3

pytestmark = pytest.mark.unit

NOON = 1_800_000_000
TARGETS = [Target("r", "forebay", "taxi"), Target("r", "forebay", "clothing"), Target("r", "other", "taxi")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("clothing", "r/forebay/clothing", id="name"),
        pytest.param("other/taxi", "r/other/taxi", id="project and name"),
    ],
)
def test_a_model_is_found_by_name(name: str, expected: str) -> None:
    """A plain name finds the only model of that name; with its project it finds that one."""
    assert find_model(TARGETS, name).location == expected


@pytest.mark.parametrize(
    ("targets", "name", "words"),
    [
        pytest.param(TARGETS, "taxi", "forebay/taxi, other/taxi", id="several projects"),
        pytest.param(TARGETS, "clohting", "Did you mean clothing", id="typing error"),
        pytest.param(TARGETS, "zzz", "There are: clothing, taxi", id="nothing near"),
        pytest.param([], "taxi", "Nothing has been pushed", id="nothing pushed"),
    ],
)
def test_a_name_that_finds_no_single_model_gets_a_hint(targets: list[Target], name: str, words: str) -> None:
    """Every way to miss a model says what to type instead."""
    with pytest.raises(UsageError) as caught:
        find_model(targets, name)
    assert words in caught.value.hint


def test_models_are_found_two_levels_below_the_root(push: Any, target: Target, tmp_path: Path) -> None:
    """Only project/model directories count; hidden ones, files and an absent root do not."""
    push()
    (Path(target.root) / ".cache" / "x").mkdir(parents=True)
    (Path(target.root) / "README").write_text("x", encoding="utf-8")
    assert find_targets(target.root) == [target]
    assert find_targets(str(tmp_path / "absent")) == []


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        pytest.param(NOON + 1, f"Near: {NOON}", id="a digit off"),
        pytest.param(7, f"Newest: {NOON}", id="far off"),
    ],
)
def test_a_version_that_is_not_there_gets_a_hint(push: Any, target: Target, wanted: int, words: str) -> None:
    """An unknown version names the ones that are near, else the newest."""
    push()
    with pytest.raises(UsageError, match=f"no version {wanted}") as caught:
        require_manifest(open_store(target), wanted)
    assert words in caught.value.hint


def test_without_a_number_the_newest_is_meant(push: Any, target: Target) -> None:
    """The newest version is the default; a model without any is named."""
    with pytest.raises(UsageError, match="no version at all"):
        require_manifest(open_store(target), None)
    push("a", at=NOON)
    push("b", at=NOON + 5)
    assert require_manifest(open_store(target), None).version == NOON + 5


def test_differences_name_files_metrics_digests_and_gates(push: Any) -> None:
    """Every group shows what changed with both values, and nothing that did not."""
    before = push(
        "a",
        provenance=Provenance(
            metrics={"auc": 0.9, "loss": 0.3},
            digests={"data": "d1", "code": "c"},
            gates=({"name": "model.auc", "status": "passed"},),
        ),
    ).manifest
    after = push(
        "b",
        warmup=b"records",
        provenance=Provenance(
            metrics={"auc": 0.92, "loss": 0.3},
            digests={"data": "d2", "code": "c"},
            gates=({"name": "model.auc", "status": "failed"},),
            host={"versions": {"tensorflow": "2.16.2"}, "gpus": []},
        ),
    ).manifest
    found = differences(before, after)
    assert found["same_model"] is False
    assert found["files"] == {
        "added": ["assets.extra/tf_serving_warmup_requests"],
        "removed": [],
        "changed": ["assets/vocabulary", "saved_model.pb", "variables/variables.data-00000-of-00001"],
    }
    assert found["metrics"] == {"auc": {"before": 0.9, "after": 0.92, "delta": pytest.approx(0.02)}}
    assert found["digests"] == {"data": {"before": "d1", "after": "d2"}}
    assert found["gates"] == {"model.auc": {"before": "passed", "after": "failed"}}
    assert found["host"] == {
        "gpus": {"before": None, "after": ""},
        "versions.tensorflow": {"before": None, "after": "2.16.2"},
    }


@pytest.mark.parametrize(
    "names", [("", "taxi"), ("forebay", ".hidden"), ("a/b", "taxi")], ids=["empty", "hidden", "slash"]
)
def test_names_that_are_no_directory_are_refused(names: tuple[str, str]) -> None:
    """A project or model name that would change the level, or hide it from servers, is a config error."""
    with pytest.raises(ConfigError):
        Target("root", *names)


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        pytest.param("s3://bucket", ("bucket", ""), id="bucket"),
        pytest.param("s3://bucket/a/b/", ("bucket", "a/b"), id="prefix"),
    ],
)
def test_an_s3_root_is_taken_apart(root: str, expected: tuple[str, str]) -> None:
    """Bucket and prefix come out without slashes at their ends."""
    assert is_s3(root)
    assert split_s3(root) == expected


@pytest.mark.parametrize("root", ["gs://bucket", "s3:///prefix"], ids=["another scheme", "no bucket"])
def test_an_impossible_root_is_refused(root: str) -> None:
    """A scheme that cannot be pushed to, and an S3 URL without a bucket, are config errors."""
    with pytest.raises(ConfigError) as caught:
        split_s3(root) if is_s3(root) else None
    assert caught.value.exit_code == 3
