"""Whole runs of the command, on the real taxi table and on photos that are drawn here, in folders of their own."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Workplace:
    """A folder with its own data, schema, run root and serving root."""

    path: Path
    recipe: ClassVar[str] = "taxi"

    @property
    def csv(self) -> Path:
        """The input file."""
        return self.path / "trips.csv"

    @property
    def root(self) -> Path:
        """The pipeline's root."""
        return self.path / "runs" / f"forebay.{self.recipe}"

    def sets(self) -> dict[str, object]:
        """Returns the settings of a short run: bounds that a few training steps can meet."""
        return {
            "data.path": self.csv.name,
            "training.steps": 60,
            "evaluate.thresholds": "{auc: {min: 0.6, max_drop: 0.5}, binary_accuracy: {min: 0.6}}",
            "evaluate.slices": "[payment_type]",
        }

    def arguments(self, *extra: str) -> list[str]:
        """Returns `forebay run` with paths relative to this folder."""
        schema = PROJECT / "data" / "schemas" / f"{self.recipe}.pbtxt"
        sets = {"run.root": "runs", "serving.root": "serving", "schema.path": schema, **self.sets()}
        flags = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
        return ["run", "-c", str(PROJECT / "configs" / f"{self.recipe}.yaml"), *flags, *extra]

    def command(self, *arguments: str) -> list[str]:
        """Returns the argv of a `forebay` call."""
        return [str(Path(sys.executable).with_name("forebay")), *arguments]

    def start(self, *extra: str) -> subprocess.Popen[str]:
        """Starts a run and returns its process."""
        return subprocess.Popen(
            self.command(*self.arguments(*extra)),
            cwd=self.path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
        """Runs a `forebay` call to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def run(self, *extra: str) -> subprocess.CompletedProcess[str]:
        """Runs the pipeline to its end."""
        return self.call(*self.arguments(*extra))

    def latest(self) -> dict[str, Any]:
        """Returns the record of the newest run."""
        runs = sorted((self.root / "_runs").glob("*/run.json"))
        record: dict[str, Any] = json.loads(runs[-1].read_text(encoding="utf-8"))
        return record

    def states(self) -> dict[str, str]:
        """Returns {node id: state} of the newest run, without the look-ups that happen in every run."""
        nodes = self.latest()["nodes"]
        return {node["id"]: node["state"] for node in nodes if not node["id"].endswith("_resolver")}

    def versions(self) -> list[str]:
        """Returns every name in the model's serving directory."""
        base = self.path / "serving" / "forebay" / self.recipe
        return sorted(os.listdir(base)) if base.is_dir() else []


def environment() -> dict[str, str]:
    """Returns the environment of a `forebay` call: the project on the path, TensorFlow quiet."""
    return {**os.environ, "PYTHONPATH": str(PROJECT), "TF_CPP_MIN_LOG_LEVEL": "2"}


def new_workplace(path: Path) -> Workplace:
    """Returns a folder that holds a copy of the taxi table from the tfx package."""
    package = find_spec("tfx")
    assert package is not None
    assert package.submodule_search_locations is not None
    source = Path(package.submodule_search_locations[0]) / "examples/chicago_taxi_pipeline/data/simple/data.csv"
    place = Workplace(path)
    place.csv.write_bytes(source.read_bytes())
    return place


@pytest.fixture(scope="session")
def empty_workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A workplace without any run."""
    return new_workplace(tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workplace, subprocess.CompletedProcess[str]]:
    """A workplace after one successful run, shared by the tests that only look at it."""
    place = new_workplace(tmp_path_factory.mktemp("é first run"))
    return place, place.run()


@pytest.fixture(scope="session")
def copy_of_first_run(
    first_run: tuple[Workplace, subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Workplace]:
    """Returns a function that copies the first run's project into another folder."""
    place, done = first_run
    assert done.returncode == 0, done.stdout + done.stderr

    def copy() -> Workplace:
        target = tmp_path_factory.mktemp("elsewhere") / "project"
        shutil.copytree(place.path, target)
        return Workplace(target)

    return copy


@pytest.fixture(scope="session")
def copied_run(copy_of_first_run: Callable[[], Workplace]) -> Workplace:
    """A copy that tests share and only reuse from: itself a case of R02."""
    return copy_of_first_run()


@pytest.fixture
def new_copy(copy_of_first_run: Callable[[], Workplace]) -> Workplace:
    """A copy for one test, which may spoil it."""
    return copy_of_first_run()
