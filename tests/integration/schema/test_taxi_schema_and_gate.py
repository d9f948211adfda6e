"""The curated taxi schema, the DataGate and `forebay schema` on the real table and on broken copies of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).parents[3]
Ran = tuple[dict[str, Any], Any, Path]


@pytest.fixture(scope="module")
def table() -> list[dict[str, str]]:
    """The taxi table that ships inside the tfx package, as texts."""
    import importlib.util

    package = Path(importlib.util.find_spec("tfx").origin).parent
    with open(package / "examples/chicago_taxi_pipeline/data/simple/data.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def schema() -> Any:
    """The curated schema of this repository."""
    from core.schema import read

    return read(PROJECT / "data" / "schemas" / "taxi.pbtxt")


@pytest.fixture(scope="module")
def statistics_of(schema: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[str, str]]:
    """Ingests rows and writes their statistics; returns the URIs of Examples and ExampleStatistics."""
    import tensorflow_data_validation as tfdv
    from tensorflow_data_validation.statistics import stats_impl

    from components.ingest import sources
    from components.ingest.ingestion import ingest
    from core.settings import load

    settings = load([str(PROJECT / "configs" / "taxi.yaml")], []).settings

    def make(rows: list[dict[str, str]], name: str) -> tuple[str, str]:
        root = tmp_path_factory.mktemp(name)
        with open(root / "rows.csv", "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        source = sources.resolve(str(root / "rows.csv"), kind="csv", run_date=None)
        splits = {split: str(root / "examples" / f"Split-{split}") for split in ("train", "eval")}
        ingest(settings.data, source, split_uris=splits, report_dir=str(root / "report"))
        options = tfdv.StatsOptions(schema=schema, num_quantiles_histogram_buckets=64)
        for split, folder in splits.items():
            statistics = stats_impl.generate_statistics_in_memory(_record_batch(folder), options)
            target = root / "statistics" / f"Split-{split}"
            target.mkdir(parents=True)
            (target / "FeatureStats.pb").write_bytes(statistics.SerializeToString())
        return str(root / "examples"), str(root / "statistics")

    return make


@pytest.fixture(scope="module")
def clean(table: list[dict[str, str]], statistics_of: Callable[..., tuple[str, str]]) -> tuple[str, str]:
    """Examples and statistics of the table as it is."""
    return statistics_of(table, "clean")


@pytest.fixture(scope="module")
def damaged(table: list[dict[str, str]], statistics_of: Callable[..., tuple[str, str]]) -> tuple[str, str]:
    """Every second row, fares in another currency, a third of the hours at noon, and 90 rows that break the schema."""
    rows = [dict(row) for row in table[::2]]
    for index, row in enumerate(rows):
        row["fare"] = str(float(row["fare"]) * 2.5)
        if index % 3 == 0:
            row["trip_start_hour"] = "12"
    for row in rows[:40]:
        row["trip_start_hour"] = "25"
    for row in rows[40:70]:
        row["fare"] = "-3.5"
    for row in rows[70:90]:
        row["payment_type"] = "Seashells"
    return statistics_of(rows, "damaged")


@pytest.fixture
def gate(schema: Any, tmp_path: Path) -> Callable[..., Ran]:
    """Runs the DataGate executor and returns (report, gate_report artifact, anomalies directory)."""
    from google.protobuf import text_format
    from tfx.types import standard_artifacts

    from components.data_gate.component import DataGateReport
    from components.data_gate.executor import Executor
    from core.settings import load

    settings = load([str(PROJECT / "configs" / "taxi.yaml")], []).settings

    def run(data: tuple[str, str], baseline: tuple[str, str] | None = None) -> Ran:
        (tmp_path / "schema").mkdir(exist_ok=True)
        (tmp_path / "schema" / "schema.pbtxt").write_text(text_format.MessageToString(schema), encoding="utf-8")
        inputs = {
            "examples": [_artifact(standard_artifacts.Examples, data[0])],
            "statistics": [_artifact(standard_artifacts.ExampleStatistics, data[1])],
            "baseline_statistics": [_artifact(standard_artifacts.ExampleStatistics, baseline[1])] if baseline else [],
            "schema": [_artifact(standard_artifacts.Schema, str(tmp_path / "schema"), splits=False)],
        }
        outputs = {
            "anomalies": [_artifact(standard_artifacts.ExampleAnomalies, str(tmp_path / "anomalies"), splits=False)],
            "gate_report": [_artifact(DataGateReport, str(tmp_path / "gate_report"), splits=False)],
        }
        spec = json.dumps({"data_gate": settings.data_gate.model_dump(mode="json")})
        Executor().Do(inputs, outputs, {"spec": spec})
        report = json.loads((tmp_path / "gate_report" / "report.json").read_text(encoding="utf-8"))
        return report, outputs["gate_report"][0], tmp_path / "anomalies"

    return run


def _record_batch(folder: str) -> Any:
    """Returns the examples of a split as one Arrow batch, which TFDV reads without a Beam pipeline."""
    import tensorflow as tf
    from tfx_bsl.coders import example_coder

    files = sorted(str(path) for path in Path(folder).iterdir())
    records = [record for batch in tf.data.TFRecordDataset(files, "GZIP").batch(4096) for record in batch.numpy()]
    return example_coder.ExamplesToRecordBatchDecoder().DecodeBatch(records)


def _artifact(kind: Any, uri: str, splits: bool = True) -> Any:
    artifact = kind()
    artifact.uri = uri
    if splits:
        artifact.split_names = '["train", "eval"]'
        # As a store gives it back; without it TFX looks for statistics in the format of its first versions.
    return artifact


def test_the_real_table_passes(gate: Callable[..., Ran], clean: tuple[str, str]) -> None:
    """15,002 real rows fit the curated schema without any anomaly, and their splits do not differ."""
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    report, artifact, anomalies = gate(clean)
    assert [item for item in report["gates"] if item["status"] == "failed"] == []
    assert (report["blocked"], artifact.get_int_custom_property("blocked")) == (False, 0)
    assert next(item for item in report["gates"] if item["name"] == "data.drift")["status"] == "skipped"
    for split in ("train", "eval"):
        found = anomalies_pb2.Anomalies.FromString((anomalies / f"Split-{split}" / "SchemaDiff.pb").read_bytes())
        assert not found.anomaly_info


def test_broken_rows_are_refused_by_name_and_number(gate: Callable[..., Ran], damaged: tuple[str, str]) -> None:
    """An hour of 25, a negative fare and a new payment type are each counted to the row over both splits."""
    from core.gates import GateResult, refusal_line

    report, artifact, _ = gate(damaged)
    assert (report["blocked"], artifact.get_int_custom_property("blocked")) == (True, 1)
    counted: dict[str, int] = {}
    for item in report["gates"]:
        if item["name"].startswith("data.schema:"):
            assert item["details"]["rows_exact"] is True
            counted[item["details"]["feature"]] = counted.get(item["details"]["feature"], 0) + item["details"]["rows"]
    assert counted == {"trip_start_hour": 40, "fare": 30, "payment_type": 20}
    line = refusal_line(GateResult.from_dict(item) for item in report["gates"])
    assert "\n" not in line
    assert line.startswith("fare: -3.5 in ")


def test_drift_against_the_last_accepted_run_is_measured_by_type(
    gate: Callable[..., Ran], clean: tuple[str, str], damaged: tuple[str, str]
) -> None:
    """Fares in another currency and hours moved to noon drift; what did not change does not."""
    report, _, _ = gate(damaged, baseline=clean)
    drift = {item["details"]["feature"]: item for item in report["gates"] if item["name"].startswith("data.drift:")}
    failed = {name for name, item in drift.items() if item["status"] == "failed"}
    assert failed == {"fare", "trip_start_hour"}
    assert drift["fare"]["details"]["metric"] == "Jensen-Shannon"
    assert drift["trip_start_hour"]["details"]["metric"] == "L-infinity"
    assert drift["fare"]["details"]["histogram"]["buckets"]
    assert drift["fare"]["details"]["reference_histogram"]["buckets"]
    assert drift["trip_miles"]["observed"] < 0.02


def test_statistics_are_never_their_own_baseline(gate: Callable[..., Ran], clean: tuple[str, str]) -> None:
    """The run's own statistics as baseline count as none."""
    report, _, _ = gate(clean, baseline=clean)
    drift = [item["status"] for item in report["gates"] if item["name"].startswith("data.drift")]
    assert drift == ["skipped"]


def test_infer_review_accept_on_the_real_table(tmp_path: Path) -> None:
    """A schema with a limit that the data breaks is proposed wider, reviewed, and accepted with a backup."""
    from core.schema import read
    from pipeline.cli.schema import command
    from pipeline.schema_tools import schema_file

    curated = tmp_path / "taxi.pbtxt"
    text = (PROJECT / "data" / "schemas" / "taxi.pbtxt").read_text(encoding="utf-8")
    narrow = text.replace(
        "int_domain { min: 0 max: 23 is_categorical: true }", "int_domain { min: 0 max: 20 is_categorical: true }"
    )
    narrow = narrow.replace('  value: "Prcard"\n', "")
    assert narrow != text
    curated.write_text(narrow, encoding="utf-8")
    options = ["-c", str(PROJECT / "configs" / "taxi.yaml"), "--set", f"schema.path={curated}", "--output", "json"]
    runner = CliRunner()
    proposed = runner.invoke(command, ["infer", *options], catch_exceptions=False)
    changes = json.loads(proposed.stdout)["changes"]
    assert {(item["action"], item["feature"], item["aspect"]) for item in changes} == {
        ("changed", "trip_start_hour", "domain"),
        ("changed", "payment_type", "domain"),
    }
    assert curated.read_text(encoding="utf-8") == narrow
    reviewed = runner.invoke(command, ["review", *options], catch_exceptions=False)
    assert json.loads(reviewed.stdout)["changes"] == changes
    accepted = json.loads(runner.invoke(command, ["accept", *options], catch_exceptions=False).stdout)
    assert Path(accepted["backup"]).read_text(encoding="utf-8") == narrow
    domains = {item.name: item for item in read(curated).feature}
    assert domains["trip_start_hour"].int_domain.max == 23
    assert not schema_file.proposed_path(curated).exists()
