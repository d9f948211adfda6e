"""The DataGate executor: reads artifacts, asks the plain modules, writes artifacts."""

from __future__ import annotations

import json
import os
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from components.data_gate import gate, report
from components.data_gate.dataset import Dataset, type_name
from components.data_gate.rows import RowCounter
from core.files import write_atomic, write_json_atomic

# Where TFX's ExampleValidator writes, so that TFDV and TFX read our anomalies like theirs.
ANOMALIES_FILE = "SchemaDiff.pb"
_TRAIN = "train"


class Executor(base_executor.BaseExecutor):
    """Writes `anomalies` and `gate_report`; a refusal is recorded, never raised."""

    def Do(  # noqa: N802 (TFX's name)
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """Judges the data.

        Raises:
            ConfigError: data_gate names a feature or a kind that does not exist.
        """
        import tensorflow_data_validation as tfdv

        statistics = artifact_utils.get_single_instance(input_dict["statistics"])
        schema = _load_schema(artifact_utils.get_single_instance(input_dict["schema"]).uri)
        protos = {name: _load(statistics, name) for name in artifact_utils.decode_split_names(statistics.split_names)}
        splits = {name: Dataset.from_proto(name, proto) for name, proto in protos.items()}
        anomalies = {name: tfdv.validate_statistics(proto, schema) for name, proto in protos.items()}
        evidence = gate.Evidence(
            splits=splits,
            anomalies=anomalies,
            schema=schema,
            baseline=_baseline(input_dict.get("baseline_statistics") or [], statistics),
            count_outside=_row_counter(input_dict.get("examples") or [], splits),
        )
        record = report.build(gate.judge(evidence, json.loads(exec_properties["spec"])["data_gate"]))
        _write(output_dict, anomalies, statistics, record)


def _load(statistics: Any, split: str) -> Any:
    from tfx.components.statistics_gen import stats_artifact_utils

    return stats_artifact_utils.load_statistics(statistics, split).proto()


def _load_schema(uri: str) -> Any:
    from tfx.utils import io_utils

    return io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(uri))


def _baseline(artifacts: list[Any], current: Any) -> Dataset | None:
    """Returns the train statistics of the last accepted run; a run is never its own baseline."""
    others = [item for item in artifacts if item.uri != current.uri]
    if not others or _TRAIN not in artifact_utils.decode_split_names(others[0].split_names):
        return None
    return Dataset.from_proto(_TRAIN, _load(others[0], _TRAIN))


def _row_counter(examples: list[Any], splits: dict[str, Dataset]) -> RowCounter:
    from tfx.dsl.io import fileio

    files = {
        split: sorted(
            path for uri in artifact_utils.get_split_uris(examples, split) for path in fileio.glob(f"{uri}/*")
        )
        for split in splits
        if examples
    }
    features = {name: feature for data in splits.values() for name, feature in data.features.items()}
    return RowCounter(files, frozenset(name for name, feature in features.items() if type_name(feature) == "INT"))


def _write(
    output_dict: dict[str, list[Any]], anomalies: dict[str, Any], statistics: Any, record: dict[str, Any]
) -> None:
    target = artifact_utils.get_single_instance(output_dict["anomalies"])
    target.split_names = artifact_utils.encode_split_names(list(anomalies))
    target.span = statistics.span
    for split, found in anomalies.items():
        directory = artifact_utils.get_split_uri(output_dict["anomalies"], split)
        write_atomic(os.path.join(directory, ANOMALIES_FILE), found.SerializeToString())
    gate_report = artifact_utils.get_single_instance(output_dict["gate_report"])
    write_json_atomic(os.path.join(gate_report.uri, report.FILE_NAME), record)
    gate_report.set_int_custom_property("blocked", int(record["blocked"]))
