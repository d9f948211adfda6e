"""TFX's own Chicago-taxi example, run exactly as it ships, as the baseline of our pipeline benchmark.

The example has its paths under HOME and builds a wheel of its user code with pip at run time. It is given a fresh HOME
with the layout that it wants, and the pip that Python carries for ensurepip, on PYTHONPATH: nothing is added to .venv.
Its one departure from "as shipped" is TF_USE_LEGACY_KERAS=1, without which it fails on TensorFlow 2.16.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.timing import Measured
from core.errors import EnvironmentProblem

# What the example asks of its Trainer and Evaluator; ours is given the same.
STEPS = 1000
BATCH_SIZE = 40
EVAL_STEPS = 150
_NAME = "chicago_taxi_native_keras"


def folder() -> Path:
    """Returns the example's folder inside the installed tfx package, without importing tfx.

    Raises:
        EnvironmentProblem: tfx is not installed.
    """
    spec = importlib.util.find_spec("tfx")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentProblem("tfx is not installed", hint="Run make env.")
    return Path(next(iter(spec.submodule_search_locations))) / "examples" / "chicago_taxi_pipeline"


def run(home: Path) -> Measured:
    """Runs the example once in a fresh home and returns what it took.

    Raises:
        EnvironmentProblem: It failed; names its log.
    """
    example = folder()
    data = home / "taxi" / "data" / "simple"
    data.mkdir(parents=True)
    shutil.copy(example / "data" / "simple" / "data.csv", data)
    shutil.copy(example / "taxi_utils_native_keras.py", home / "taxi")
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables |= {"HOME": str(home), "PYTHONPATH": str(_pip_wheel()), "TF_USE_LEGACY_KERAS": "1"}
    log = home / "log.txt"
    started = time.monotonic()
    with open(log, "wb") as stream:
        done = subprocess.run(
            [sys.executable, str(example / "taxi_pipeline_native_keras.py")],
            cwd=home,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        )
    seconds = time.monotonic() - started
    models = sorted((home / "taxi" / "serving_model" / _NAME).glob("*"))
    if done.returncode != 0 or not models:
        raise EnvironmentProblem(f"TFX's example ended with code {done.returncode} and no pushed model", place=str(log))
    (examples,) = (home / "tfx" / "pipelines" / _NAME / "CsvExampleGen" / "examples").iterdir()
    lines = log.read_bytes().count(b"\n")
    return Measured(
        seconds, _node_seconds(home / "tfx" / "metadata" / _NAME / "metadata.db"), lines, models[-1], examples
    )


def _pip_wheel() -> Path:
    """Returns the pip that this Python carries for making virtual environments."""
    bundled = (
        Path(sys.base_prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "ensurepip" / "_bundled"
    )
    for place in (bundled, Path("/usr/share/python-wheels")):
        wheels = sorted(place.glob("pip-*.whl"))
        if wheels:
            return wheels[-1]
    raise EnvironmentProblem(
        "TFX's example needs pip at run time, and this Python carries none", hint="apt-get install python3-pip-whl"
    )


def _node_seconds(database: Path) -> dict[str, float]:
    """Returns {node: wall seconds} from the times that ML Metadata keeps of each execution."""
    query = """
        SELECT Type.name, (last_update_time_since_epoch - create_time_since_epoch) / 1000.0
        FROM Execution JOIN Type ON Type.id = Execution.type_id ORDER BY Execution.id
    """
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return {name.rpartition(".")[2]: seconds for name, seconds in connection.execute(query)}
