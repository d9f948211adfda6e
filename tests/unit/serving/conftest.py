"""A small SavedModel-shaped directory and a target to push it to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.manifest import Provenance
from serving.publish import Published, publish
from serving.target import Target

NOON = 1_800_000_000.0

MakeModel = Callable[..., Path]
Push = Callable[..., Published]


@pytest.fixture
def make_model(tmp_path: Path) -> MakeModel:
    """Returns a factory of directories with the files of a SavedModel; `content` makes models differ."""

    def make(content: str = "a", size_bytes: int = 2048) -> Path:
        directory = tmp_path / "models" / content
        (directory / "variables").mkdir(parents=True, exist_ok=True)
        (directory / "assets").mkdir(exist_ok=True)
        (directory / "saved_model.pb").write_bytes(f"graph {content}".encode())
        (directory / "variables" / "variables.index").write_bytes(b"index")
        (directory / "variables" / "variables.data-00000-of-00001").write_bytes(content.encode() * size_bytes)
        (directory / "assets" / "vocabulary").write_text(f"cash\ncard\n{content}\n", encoding="utf-8")
        return directory

    return make


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """Returns a target below the test's own directory; nothing is there yet."""
    return Target(str(tmp_path / "serving"), "forebay", "taxi")


@pytest.fixture
def push(make_model: MakeModel, target: Target) -> Push:
    """Returns a function that pushes the model made of `content` at second `at` of the test's clock."""

    def do(content: str = "a", at: float = NOON, keep: int = 10, size_bytes: int = 2048, **more: Any) -> Published:
        provenance = more.pop("provenance", Provenance(metrics={"auc": 0.9}, digests={"data": "d1"}))
        model = make_model(content, size_bytes)
        return publish(model, target, provenance, keep=keep, min_free_bytes=0, now=lambda: at, **more)

    return do
