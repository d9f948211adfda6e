"""The ExampleGen node for photos as TFX runs it: Beam decodes, and TensorFlow reads what is written."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from components.ingest import sources, spec
from core.errors import DataError
from core.settings.data import DataSettings

pytestmark = pytest.mark.integration

_BASE = Path(__file__).parents[3] / "configs" / "base.yaml"
_LABELS = ("tops/shirt", "tops/t-shirt", "hats")


def data_settings(path: Path | str, **overrides) -> DataSettings:
    """Returns ingestion settings for a folder of photos."""
    record = yaml.safe_load(_BASE.read_text(encoding="utf-8"))["data"]
    record["split"].update(method="stratified", shares={"train": 0.8, "eval": 0.2})
    return DataSettings.model_validate({**record, "kind": "images", "path": str(path), **overrides})


def write_photos(root: Path, number: int, side: int) -> None:
    """Writes `number` different photos, in turn into each class."""
    for index in range(number):
        coarse = np.random.default_rng(index).integers(20, 236, (8, 8, 3)).astype(np.uint8)
        path = root / _LABELS[index % len(_LABELS)] / f"{index:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(coarse).resize((side, side * 3 // 4), Image.Resampling.BICUBIC).save(path, quality=92)


def run_pipeline(folder: Path, data: DataSettings) -> None:
    """Runs ExampleGen and StatisticsGen under TFX's local runner, Beam in one process."""
    from tfx import v1 as tfx

    from components.ingest.images.component import ImageExampleGen

    source = sources.resolve(data.path, kind=data.kind, run_date=None)
    example_gen = ImageExampleGen(spec.dump(data, None), sources.content_digest(source))
    statistics = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
    tfx.orchestration.LocalDagRunner().run(
        tfx.dsl.Pipeline(
            pipeline_name="photos",
            pipeline_root=str(folder / "root"),
            components=[example_gen, statistics],
            enable_cache=False,
            metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
                str(folder / "metadata.sqlite")
            ),
            beam_pipeline_args=["--direct_running_mode=in_memory", "--direct_num_workers=1"],
        )
    )


def only(folder: Path, pattern: str) -> Path:
    """Returns the one path that matches."""
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="module")
def photos_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run over 150 photos and one HTML page."""
    folder = tmp_path_factory.mktemp("photos")
    write_photos(folder / "input", 150, 160)
    (folder / "input" / "hats" / "page.jpg").write_bytes(b"<html>")
    run_pipeline(folder, data_settings(folder / "input"))
    return folder


def records(folder: Path, split: str) -> list:
    """Returns the tf.Examples of a split, read by TensorFlow."""
    import tensorflow as tf

    shard = only(folder, f"root/ExampleGen/examples/*/Split-{split}/*.gz")
    return [
        tf.train.Example.FromString(record)
        for record in tf.data.TFRecordDataset(str(shard), "GZIP").as_numpy_iterator()
    ]


def test_every_photo_is_an_example(photos_root: Path) -> None:
    """TensorFlow reads every record: 150 upright JPEGs with the features of the contract; splits share no product."""
    report = json.loads(only(photos_root, "root/ExampleGen/ingest_report/*/ingest_report.json").read_text())
    assert (report["rows_read"], report["rows_set_aside"]) == (151, 1)
    groups: dict[str, set[bytes]] = {}
    labels: dict[str, Counter[str]] = {}
    for split, count in report["rows_written"].items():
        examples = records(photos_root, split)
        assert len(examples) == count
        groups[split] = {example.features.feature["group"].bytes_list.value[0] for example in examples}
        labels[split] = Counter(e.features.feature["label"].bytes_list.value[0].decode() for e in examples)
    assert not groups["train"] & groups["eval"]
    assert {label: {"train": labels["train"][label], "eval": labels["eval"][label]} for label in labels["train"]} == (
        report["classes"]
    )


def test_features_are_those_of_the_contract(photos_root: Path) -> None:
    """Each feature has its name, its type and a value that can be checked against the file."""
    for example in records(photos_root, "eval"):
        features = {
            name: list(getattr(feature, feature.WhichOneof("kind")).value)
            for name, feature in example.features.feature.items()
        }
        assert {name: len(values) for name, values in features.items()} == dict.fromkeys(
            ["image", "label", "parent", "path", "group", "sha256", "format", "width_px", "height_px", "brightness"], 1
        )
        path = features["path"][0].decode()
        original = (photos_root / "input" / path).read_bytes()
        assert features["label"][0].decode() == " > ".join(path.split("/")[:-1])
        assert features["parent"][0].decode() == path.split("/")[0]
        assert features["sha256"][0].decode() == hashlib.sha256(original).hexdigest()
        assert (features["width_px"][0], features["height_px"][0]) == (160, 120)
        assert features["format"] == [b"jpeg"]
        stored = np.asarray(Image.open(io.BytesIO(features["image"][0])).convert("L"))
        assert features["brightness"][0] == pytest.approx(stored.mean() / 255, abs=0.01)


def test_tensorflow_decodes_the_stored_photos(photos_root: Path) -> None:
    """TensorFlow's own decoder reads the stored JPEGs as three channels of the stored size."""
    import tensorflow as tf

    for example in records(photos_root, "eval")[:5]:
        decoded = tf.io.decode_jpeg(example.features.feature["image"].bytes_list.value[0])
        assert decoded.shape == (120, 160, 3)


def test_statistics_gen_counts_the_photos(photos_root: Path) -> None:
    """TFX's StatisticsGen reads both splits, and the schema of the recipe names every feature that it finds."""
    import tensorflow_data_validation as tfdv

    report = json.loads(only(photos_root, "root/ExampleGen/ingest_report/*/ingest_report.json").read_text())
    schema = tfdv.load_schema_text(str(_BASE.parents[1] / "data" / "schemas" / "clothing.pbtxt"))
    for split, count in report["rows_written"].items():
        path = only(photos_root, f"root/StatisticsGen/statistics/*/Split-{split}/FeatureStats.pb")
        statistics = tfdv.load_stats_binary(str(path))
        assert statistics.datasets[0].num_examples == count
        assert not tfdv.validate_statistics(statistics, schema).anomaly_info


def test_nothing_but_splits_is_left(photos_root: Path) -> None:
    """The work folder is gone: the examples artifact holds the splits and nothing else."""
    examples = only(photos_root, "root/ExampleGen/examples/*")
    assert sorted(os.listdir(examples)) == ["Split-eval", "Split-train"]


def test_refused_photos_keep_their_quarantine(tmp_path: Path) -> None:
    """TFX deletes the outputs of a failed node; the quarantine that the error names is still there."""
    write_photos(tmp_path / "input", 9, 64)
    (tmp_path / "input" / "hats" / "page.jpg").write_bytes(b"<html>")
    with pytest.raises(DataError, match="1 of 10 files") as caught:
        run_pipeline(tmp_path, data_settings(tmp_path / "input"))
    kept = caught.value.hint.split(": ")[-1]
    assert json.loads(Path(kept).read_text())["reason"] == "not a photo: an HTML page"


def test_changed_photos_are_refused(tmp_path: Path) -> None:
    """The node refuses photos whose content is not what the run began with."""
    from tfx.types import standard_artifacts

    from components.ingest.artifacts import IngestReport
    from components.ingest.images.executor import Executor

    write_photos(tmp_path / "input", 6, 64)
    examples, report = standard_artifacts.Examples(), IngestReport()
    examples.uri, report.uri = str(tmp_path / "examples"), str(tmp_path / "report")
    os.makedirs(examples.uri)
    properties = {"spec": spec.dump(data_settings(tmp_path / "input"), None), "source_digest": "0" * 64}
    with pytest.raises(DataError, match="changed after this run began"):
        Executor().Do({}, {"examples": [examples], "ingest_report": [report]}, properties)
    assert os.listdir(examples.uri) == []


def test_real_photos_are_all_accounted_for(tmp_path: Path) -> None:
    """A folder of real photos decodes on Beam without a bad one; every class is in both splits, nothing is shared."""
    folder = os.environ.get("FOREBAY_PHOTOS", "")
    if not os.path.isdir(folder):
        pytest.skip("FOREBAY_PHOTOS names no folder of photos")
    run_pipeline(tmp_path, data_settings(folder))
    report = json.loads(only(tmp_path, "root/ExampleGen/ingest_report/*/ingest_report.json").read_text())
    assert report["rows_read"] == sum(report["rows_written"].values()) + report["duplicates"]
    assert all(count for splits in report["classes"].values() for count in splits.values())
    assert report["split"]["leakage"]["near_duplicates_shared"] == 0
