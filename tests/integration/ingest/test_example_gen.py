"""The ExampleGen node as TFX runs it, and TFX's own readers on what it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from components.ingest import sources, spec
from core.errors import DataError
from core.settings.data import DataSettings

pytestmark = pytest.mark.integration

_CONFIGS = Path(__file__).parents[3] / "configs"
_TAXI_ROWS = 15_002


def data_settings(**overrides) -> DataSettings:
    """Returns the taxi recipe's ingestion settings."""
    record = yaml.safe_load((_CONFIGS / "base.yaml").read_text(encoding="utf-8"))["data"]
    record.update(yaml.safe_load((_CONFIGS / "taxi.yaml").read_text(encoding="utf-8"))["data"])
    return DataSettings.model_validate({**record, **overrides})


def run_pipeline(folder: Path, data: DataSettings, *, with_statistics: bool = False) -> list:
    """Runs ExampleGen (and StatisticsGen) under TFX's local runner; returns the components."""
    from tfx import v1 as tfx

    from components.ingest.component import ExampleGen

    source = sources.resolve(data.path, kind=data.kind, run_date=None)
    example_gen = ExampleGen(spec.dump(data, None), sources.content_digest(source))
    components = [example_gen]
    if with_statistics:
        components.append(tfx.components.StatisticsGen(examples=example_gen.outputs["examples"]))
    tfx.orchestration.LocalDagRunner().run(
        tfx.dsl.Pipeline(
            pipeline_name="ingest",
            pipeline_root=str(folder / "root"),
            components=components,
            enable_cache=False,
            metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
                str(folder / "metadata.sqlite")
            ),
            beam_pipeline_args=["--direct_running_mode=in_memory"],
        )
    )
    return components


@pytest.fixture(scope="module")
def taxi_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run of ExampleGen and StatisticsGen over the taxi trips."""
    folder = tmp_path_factory.mktemp("taxi")
    run_pipeline(folder, data_settings(), with_statistics=True)
    return folder


def only(folder: Path, pattern: str) -> Path:
    """Returns the one path that matches."""
    (found,) = folder.glob(pattern)
    return found


def test_taxi_trips_are_all_accounted_for(taxi_root: Path) -> None:
    """The 15,002 rows of the taxi table are all written, none is set aside."""
    path = only(taxi_root, "root/ExampleGen/ingest_report/*/ingest_report.json")
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["rows_read"] == _TAXI_ROWS
    assert report["rows_set_aside"] == 0
    assert sum(report["rows_written"].values()) == _TAXI_ROWS
    assert report["split"]["leakage"]["checked"].startswith("nothing")


def test_statistics_gen_counts_the_same_rows_and_types(taxi_root: Path) -> None:
    """TFX's StatisticsGen reads both splits: the same row counts, 18 features, the types of the report."""
    import tensorflow_data_validation as tfdv

    report = json.loads(only(taxi_root, "root/ExampleGen/ingest_report/*/ingest_report.json").read_text())
    names = {"integer": "INT", "float": "FLOAT", "text": "STRING"}
    declared = {column["name"]: names[column["type"]] for column in report["columns"]}
    for split, rows in report["rows_written"].items():
        stats = only(taxi_root, f"root/StatisticsGen/statistics/*/Split-{split}/FeatureStats.pb")
        data = tfdv.load_stats_binary(str(stats)).datasets[0]
        assert data.num_examples == rows
        found = {"".join(f.path.step): type(f).Type.Name(f.type) for f in data.features}
        # A feature without a single value in a split is absent from its statistics.
        assert found.items() <= declared.items()
        assert len(declared) - len(found) <= 1


def test_artifact_says_what_tfx_readers_ask(taxi_root: Path) -> None:
    """Splits, payload format, file format, span and fingerprint are recorded in ML Metadata."""
    from tfx import v1 as tfx
    from tfx.components.util import examples_utils
    from tfx.orchestration import metadata
    from tfx.orchestration.portable.mlmd import artifact_lib  # noqa: F401 - registers TFX's types
    from tfx.proto import example_gen_pb2
    from tfx.types import artifact_utils

    config = tfx.orchestration.metadata.sqlite_metadata_connection_config(str(taxi_root / "metadata.sqlite"))
    with metadata.Metadata(config) as handle:
        (record,) = handle.store.get_artifacts_by_type("Examples")
        (kind,) = handle.store.get_artifact_types_by_id([record.type_id])
    examples = artifact_utils.deserialize_artifact(kind, record)
    assert artifact_utils.decode_split_names(examples.split_names) == ["train", "eval"]
    assert examples_utils.get_payload_format(examples) == example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE
    assert examples_utils.get_file_format(examples) == "tfrecords_gzip"
    assert examples.get_int_custom_property("span") == 0
    assert len(examples.get_string_custom_property("input_fingerprint")) == 64


def test_bytes_are_protobufs_deterministic_ones(taxi_root: Path) -> None:
    """TensorFlow reads every record, and serializes it to the same bytes."""
    import tensorflow as tf

    for split in ("train", "eval"):
        shard = only(taxi_root, f"root/ExampleGen/examples/*/Split-{split}/*.gz")
        for record in tf.data.TFRecordDataset(str(shard), "GZIP").take(2000).as_numpy_iterator():
            assert tf.train.Example.FromString(record).SerializeToString(deterministic=True) == record


def test_refused_data_keeps_its_quarantine(tmp_path: Path) -> None:
    """TFX deletes the outputs of a failed node; the quarantine that the error names is still there."""
    path = tmp_path / "table.csv"
    path.write_text("id,name\n1,a\n2\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 of 2 rows") as caught:
        run_pipeline(tmp_path, data_settings(path=str(path), types={}))
    kept = caught.value.hint.split(": ")[-1]
    assert os.path.isfile(kept)
    assert json.loads(Path(kept).read_text())["line"] == 3


def test_files_that_change_during_a_run_are_refused(tmp_path: Path) -> None:
    """The node refuses files whose content is not what the run began with."""
    from tfx.types import standard_artifacts

    from components.ingest.artifacts import IngestReport
    from components.ingest.executor import Executor

    path = tmp_path / "table.csv"
    path.write_text("id,name\n1,a\n", encoding="utf-8")
    data = data_settings(path=str(path), types={})
    examples, report = standard_artifacts.Examples(), IngestReport()
    examples.uri, report.uri = str(tmp_path / "examples"), str(tmp_path / "report")
    properties = {"spec": spec.dump(data, None), "source_digest": "0" * 64}
    with pytest.raises(DataError, match="changed after this run began"):
        Executor().Do({}, {"examples": [examples], "ingest_report": [report]}, properties)
