"""Makes photos of every kind, trees of them, and their ingestion."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from components.ingest import sources, tfrecord
from components.ingest.images.decode import Rules
from components.ingest.images.ingestion import ingest_photos
from components.ingest.images.report import PhotoReport
from core.settings.data import DataSettings

_BASE = yaml.safe_load((Path(__file__).parents[4] / "configs" / "base.yaml").read_text(encoding="utf-8"))["data"]


def _picture(seed: str | int, size: tuple[int, int] = (96, 64)) -> Image.Image:
    generator = np.random.default_rng(zlib.crc32(str(seed).encode()))
    coarse = generator.integers(30, 226, (6, 6, 3)).astype(np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def _encoded(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


@pytest.fixture(scope="session")
def picture() -> Callable[..., Image.Image]:
    """Returns a function: seed, (width, height) -> a smooth coloured picture that looks like no other seed's."""
    return _picture


@pytest.fixture(scope="session")
def encoded() -> Callable[..., bytes]:
    """Returns a function: picture, Pillow's name of a format, its options -> the bytes of a file."""
    return _encoded


@pytest.fixture(scope="session")
def photo() -> Callable[..., bytes]:
    """Returns a function: seed, (width, height) -> a JPEG that looks like no other seed's."""
    return lambda seed, size=(96, 64): _encoded(_picture(seed, size), quality=95)


@pytest.fixture
def rules() -> Rules:
    """Returns rules that keep small pictures as they are: white behind transparency, a million pixels at most."""
    return Rules(max_side_px=512, jpeg_quality=95, max_pixels=1_000_000)


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """Returns a function: {relative path: bytes, or None for a folder} -> the folder that holds them."""

    def make(files: dict[str, bytes | None], folder: str = "photos") -> Path:
        root = tmp_path / folder
        for name, content in files.items():
            path = root / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return root

    return make


@pytest.fixture
def settings() -> Callable[..., DataSettings]:
    """Returns a function: folder, overrides of data.images, and of data by key -> DataSettings."""

    def make(path: Path, images: dict[str, Any] | None = None, **overrides: Any) -> DataSettings:
        record = copy.deepcopy(_BASE)
        record.update(kind="images", path=str(path), **overrides)
        record["images"].update(images or {})
        record["split"].update(method="stratified", shares={"train": 0.8, "eval": 0.2})
        return DataSettings.model_validate(record)

    return make


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What an ingestion left behind."""

    report: PhotoReport
    records: dict[str, list[bytes]]
    quarantine: dict[str, str]
    folder: Path

    def shards(self) -> dict[str, bytes]:
        """Returns the bytes of every file of the splits."""
        return {path.name + path.parent.name: path.read_bytes() for path in sorted(self.folder.glob("Split-*/*"))}


@pytest.fixture
def ingested(tmp_path: Path) -> Callable[..., Outcome]:
    """Returns a function: settings -> what their ingestion left behind, with the quarantine's reason by file."""

    def run(data: DataSettings, folder: str = "out") -> Outcome:
        target = tmp_path / folder
        target.mkdir()
        source = sources.resolve(data.path, kind="images", run_date=None, manifest=data.images.manifest)
        report = ingest_photos(
            data,
            source,
            source_digest=sources.content_digest(source),
            split_uris={name: str(target / f"Split-{name}") for name in data.split.shares},
            report_dir=str(target / "report"),
            work_dir=str(target),
        )
        records = {
            name: [data for path in sorted((target / f"Split-{name}").glob("*.gz")) for _, data in tfrecord.read(path)]
            for name in data.split.shares
        }
        lines = (target / "report" / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
        quarantine = {record["file"]: record["reason"] for record in map(json.loads, lines)}
        assert not list(target.glob(".photos-*"))
        return Outcome(report, records, quarantine, target)

    return run
