"""Makes ingestions of small files: the settings, the run, and the examples that came out."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.ingest import sources, tfrecord
from components.ingest.ingestion import ingest
from components.ingest.report import IngestReport
from core.settings.data import DataSettings

_BASE = yaml.safe_load((Path(__file__).parents[4] / "configs" / "base.yaml").read_text(encoding="utf-8"))["data"]


@pytest.fixture
def settings() -> Callable[..., DataSettings]:
    """Returns a function: overrides by key, nested keys with two underscores -> DataSettings."""

    def make(**overrides: Any) -> DataSettings:
        record = copy.deepcopy(_BASE)
        # Few rows make a split of a third empty by chance; half is enough of a chance for both.
        record["split"]["shares"] = {"train": 0.5, "eval": 0.5}
        for key, value in overrides.items():
            *path, last = key.split("__")
            target = record
            for part in path:
                target = target[part]
            target[last] = value
        return DataSettings.model_validate(record)

    return make


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What an ingestion left behind."""

    report: IngestReport
    rows: dict[str, list[dict[str, Any]]]
    quarantine: list[dict[str, Any]]
    folder: Path

    def all_rows(self) -> list[dict[str, Any]]:
        """Returns the rows of every split."""
        return [row for split in self.rows.values() for row in split]

    def values(self, name: str) -> list[Any]:
        """Returns one feature of every row, sorted, missing ones left out."""
        return sorted(row[name] for row in self.all_rows() if name in row)


@pytest.fixture
def run(tmp_path: Path, settings: Callable[..., DataSettings]) -> Callable[..., Outcome]:
    """Returns a function: path, run date and setting overrides -> Outcome."""
    counter = iter(range(100))

    def go(path: Path | str, *, run_date: datetime.date | None = None, **overrides: Any) -> Outcome:
        data = settings(path=str(path), **overrides)
        folder = tmp_path / f"out-{next(counter)}"
        source = sources.resolve(data.path, kind=data.kind, run_date=run_date)
        uris = {name: str(folder / f"Split-{name}") for name in data.split.shares}
        report = ingest(data, source, split_uris=uris, report_dir=str(folder / "report"))
        lines = (folder / "report" / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
        rows = {name: read_split(Path(uri)) for name, uri in uris.items()}
        return Outcome(report, rows, [json.loads(line) for line in lines], folder)

    return go


def read_split(folder: Path) -> list[dict[str, Any]]:
    """Returns the rows of a split: {feature: value, or list when there is not exactly one}."""
    from tfx_bsl.coders import example_coder

    decoder = example_coder.ExamplesToRecordBatchDecoder()
    records = [data for path in sorted(folder.glob("data_tfrecord-*.gz")) for _, data in tfrecord.read(str(path))]
    rows = decoder.DecodeBatch(records).to_pylist() if records else []
    return [{name: v[0] if len(v) == 1 else v for name, v in row.items() if v is not None} for row in rows]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Returns a function: text or bytes, and a file name -> its path."""

    def make(content: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    return make


@pytest.fixture
def write_gzip(write: Callable[..., Path]) -> Callable[..., Path]:
    """Returns a function: bytes and a file name -> path of the gzip file."""
    return lambda content, name: write(gzip.compress(content), name)
