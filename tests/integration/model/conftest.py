"""A small table, transformed by the real Transform library and trained on by the real run_fn."""

from __future__ import annotations

import dataclasses
import json
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCHEMA = """
feature { name: "fare" type: FLOAT presence { min_fraction: 1 min_count: 1 } shape { dim { size: 1 } } }
feature { name: "tips" type: FLOAT presence { min_fraction: 1 min_count: 1 } shape { dim { size: 1 } } }
feature { name: "miles" type: FLOAT }
feature { name: "started" type: INT }
feature { name: "latitude" type: FLOAT }
feature { name: "company" type: BYTES }
feature { name: "tract" type: INT }
feature { name: "hour of day" type: INT presence { min_fraction: 1 min_count: 1 } shape { dim { size: 1 } } }
feature { name: "area" type: INT }
feature { name: "unused" type: INT presence { min_fraction: 1 min_count: 1 } shape { dim { size: 1 } } }
"""
SECTIONS: dict[str, Any] = {
    "features": {
        "numeric": ["fare", "miles", "started"],
        "bucketized": {"latitude": 4, "miles": 3},
        "categorical": {
            "company": {"top_k": 2, "oov_buckets": 3},
            "tract": {"top_k": 50},
            "hour of day": {"integers": 24},
            "area": {"integers": 10, "oov_buckets": 2},
        },
        "crossed": [{"columns": ["latitude", "area"], "hash_buckets": 20}],
    },
    "label": {"name": "big", "column": "tips", "above_share_of": "fare", "share": 0.2},
    "network": {"hidden_units": [16, 8], "dropout": 0.1, "embedding_dimensions": 3},
    "training": {
        "strategy": "one_device",
        "batch_size": 32,
        "epochs": 6,
        "steps": None,
        "eval_steps": None,
        "learning_rate": 0.01,
        "seed": 5,
        "tensorboard": True,
    },
}
TRAIN_ROWS, EVAL_ROWS = 400, 21
NAMES = ["Alpha", "Beta", "Gamma", "Delta"]


def _row(generator: np.random.Generator) -> dict[str, Any]:
    """Returns one trip: Alpha's customers tip well; many cells have no value."""
    company = str(generator.choice(NAMES, p=[0.5, 0.3, 0.15, 0.05]))
    fare = float(np.float32(generator.uniform(3, 60)))
    tip = generator.uniform(0.21, 0.4) if company == "Alpha" else generator.uniform(0.0, 0.19)
    row: dict[str, Any] = {
        "fare": fare,
        "tips": float(np.float32(fare * tip)),
        "hour of day": int(generator.integers(0, 24)),
        "unused": 1,
    }
    present = generator.random(6) > 0.15
    optional = {
        "miles": float(np.float32(generator.exponential(4))),
        "started": 1_400_000_000 + int(generator.integers(0, 1000)),
        "latitude": float(np.float32(generator.normal(41.9, 0.1))),
        "company": company,
        "tract": 17_031_000_000 + int(generator.integers(0, 5)),
        "area": int(generator.integers(0, 12)),
    }
    return row | {name: value for (name, value), keep in zip(optional.items(), present, strict=True) if keep}


def _example(row: dict[str, Any]) -> bytes:
    """Returns a row as a serialized tf.Example; columns that the row lacks are left out."""
    import tensorflow as tf

    made = tf.train.Example()
    for name, value in row.items():
        feature = made.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif isinstance(value, int):
            feature.int64_list.value.append(value)
        else:
            feature.float_list.value.append(value)
    return made.SerializeToString()


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows, their transformation, and where both are.

    Attributes:
        rows: Raw rows by split; a column without a value is absent.
        examples: The rows as serialized tf.Examples, by split.
        transformed: Transformed columns by split.
        root: Folder with `graph` (Transform's output) and `<split>/*.gz` (transformed examples).
    """

    rows: dict[str, list[dict[str, Any]]]
    examples: dict[str, list[bytes]]
    transformed: dict[str, dict[str, np.ndarray]]
    root: Path

    def fn_args(self, output: Path, **training: Any) -> types.SimpleNamespace:
        """Returns what TFX would hand to run_fn, with some training settings replaced."""
        sections = {**SECTIONS, "training": {**SECTIONS["training"], **training}}
        return types.SimpleNamespace(
            train_files=[f"{self.root}/train/*"],
            eval_files=[f"{self.root}/eval/*"],
            transform_output=f"{self.root}/graph",
            serving_model_dir=str(output / "model"),
            model_run_dir=str(output / "run"),
            custom_config={"settings": json.dumps(sections)},
        )


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The table, transformed by `preprocessing_fn` through Beam as the Transform node does it."""
    import functools

    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tfx_bsl.coders import example_coder
    from tfx_bsl.tfxio import tf_example_record

    from pipeline.models.tabular.preprocessing import preprocessing_fn

    root = tmp_path_factory.mktemp("table")
    generator = np.random.default_rng(11)
    rows = {split: [_row(generator) for _ in range(n)] for split, n in (("train", TRAIN_ROWS), ("eval", EVAL_ROWS))}
    schema = text_format.Parse(SCHEMA, schema_pb2.Schema())
    config = {"settings": json.dumps({key: SECTIONS[key] for key in ("features", "label")})}
    source = tf_example_record.TFExampleBeamRecord("inmem", ["test"], schema=schema)
    import apache_beam as beam

    encoded = {split: [_example(row) for row in rows[split]] for split in rows}
    with beam.Pipeline() as pipeline, tft_beam.Context(temp_dir=str(root / "tmp")):
        batches = {
            split: (pipeline | f"Make{split}" >> beam.Create(encoded[split], reshuffle=False))
            | f"Parse{split}" >> source.BeamSource()
            for split in encoded
        }
        adapter = source.TensorAdapterConfig()
        preprocess = functools.partial(preprocessing_fn, custom_config=config)
        function = (batches["train"], adapter) | tft_beam.AnalyzeDataset(preprocess)
        function | tft_beam.WriteTransformFn(str(root / "graph"))
        tft.DatasetMetadata(schema) | tft_beam.WriteMetadata(str(root / "graph" / "metadata"), pipeline)
        for split, batch in batches.items():
            (data, _) = ((batch, adapter), function) | f"Apply{split}" >> tft_beam.TransformDataset(
                output_record_batches=True
            )
            (
                data
                | f"Encode{split}" >> beam.FlatMapTuple(lambda batch, _: example_coder.RecordBatchToExamples(batch))
                | f"Write{split}"
                >> beam.io.WriteToTFRecord(str(root / split / "part"), file_name_suffix=".gz", num_shards=2)
            )
    output = tft.TFTransformOutput(str(root / "graph"))
    layer = output.transform_features_layer()
    parsed = {s: tf.io.parse_example(encoded[s], output.raw_feature_spec()) for s in encoded}
    transformed = {s: {name: value.numpy() for name, value in layer(parsed[s]).items()} for s in encoded}
    return Table(rows, encoded, transformed, root)


@pytest.fixture(scope="session")
def trained(table: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `model` and `run`, as run_fn leaves them after a training on the table."""
    from pipeline.models.tabular.trainer import run_fn

    output = tmp_path_factory.mktemp("trained")
    run_fn(table.fn_args(output))
    return output
