"""Our ingestion against TFX's CsvExampleGen on the same table: rows a second, peak memory, distance to the floor.

    .venv/bin/python -m benchmarks.ingest --rows 1500000 --rounds 3 --json result.json

The taxi table is repeated to the wanted number of rows. Each round runs every side once in a child process of its
own, in alternating order, and only the ingestion itself is timed, not the imports. The floor is pyarrow parsing the
same file and throwing the result away. CsvExampleGen keeps everything in memory: `--peer-rows` gives it a smaller
table where the machine is small; its rows a second are then those of the smaller table, and the output says so.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from components.ingest import sources

ROOT = Path(__file__).resolve().parents[1]
TAXI = "package:tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"
SPEED_TARGET = 8.0
MEMORY_TARGET_MIB = 1536
# Peak memory of ten times the rows may differ by this share and still count as flat.
FLAT_SHARE = 0.15


def repeat_table(path: Path, rows: int) -> int:
    """Writes the taxi table, repeated and cut to `rows` rows, and returns the number of rows."""
    (taxi,) = sources.resolve(TAXI, kind="csv", run_date=None).files
    header, *lines = Path(taxi).read_bytes().splitlines(keepends=True)
    with path.open("wb") as stream:
        stream.write(header)
        left = rows
        while left > 0:
            stream.write(b"".join(lines[:left]))
            left -= min(left, len(lines))
    return rows


def ingest_ours(table: Path, folder: Path) -> int:
    """Ingests the table with our ExampleGen's own function; returns the rows written."""
    import yaml

    from components.ingest.ingestion import ingest
    from core.settings.data import DataSettings

    record = yaml.safe_load((ROOT / "configs" / "base.yaml").read_text(encoding="utf-8"))["data"]
    data = DataSettings.model_validate({**record, "path": str(table)})
    source = sources.resolve(data.path, kind=data.kind, run_date=None)
    uris = {name: str(folder / f"Split-{name}") for name in data.split.shares}
    report = ingest(data, source, split_uris=uris, report_dir=str(folder / "report"))
    return sum(report.rows_written.values())


def ingest_tfx(table: Path, folder: Path) -> int:
    """Ingests the table with CsvExampleGen's executor on the in-memory DirectRunner; returns the rows written."""
    from tfx.components.example_gen import utils
    from tfx.components.example_gen.csv_example_gen import executor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    inputs = folder / "in"
    inputs.mkdir(parents=True)
    (inputs / "data.csv").symlink_to(table)
    examples = standard_artifacts.Examples()
    examples.uri = str(folder / "examples")
    input_config = utils.make_default_input_config()
    context = executor.Executor.Context(
        beam_pipeline_args=["--direct_running_mode=in_memory"], tmp_dir=str(folder / "tmp"), unique_id="benchmark"
    )
    properties = {
        "input_base": str(inputs),
        "input_config": proto_utils.proto_to_json(input_config),
        "output_config": proto_utils.proto_to_json(utils.make_default_output_config(input_config)),
        "output_data_format": example_gen_pb2.FORMAT_TF_EXAMPLE,
    }
    executor.Executor(context).Do({}, {"examples": [examples]}, properties)
    with table.open("rb") as stream:
        return sum(1 for _ in stream) - 1


def parse_only(table: Path, folder: Path) -> int:
    """Parses the table with pyarrow, block by block on one thread, and drops it; returns the rows seen."""
    from pyarrow import csv

    del folder
    with csv.open_csv(table, read_options=csv.ReadOptions(use_threads=False, block_size=4 << 20)) as reader:
        return sum(batch.num_rows for batch in reader)


SIDES: dict[str, Callable[[Path, Path], int]] = {"ours": ingest_ours, "tfx": ingest_tfx, "floor": parse_only}


def measure(side: str, table: Path) -> dict[str, Any]:
    """Runs one side in a child process; returns rows, seconds, rows_per_s and peak_mib."""
    command = [sys.executable, "-m", "benchmarks.ingest", "--child", side, "--table", str(table)]
    variables = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{side} failed with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def run_child(side: str, table: Path) -> None:
    """Runs one side in this process and prints its measurement as JSON."""
    with tempfile.TemporaryDirectory(prefix="ingest-") as folder:
        # What has to be loaded before the first row is not what is measured.
        _warm(side)
        started = time.monotonic()
        rows = SIDES[side](table, Path(folder))
        seconds = time.monotonic() - started
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds": seconds, "rows_per_s": rows / seconds, "peak_mib": peak_mib}))


def _warm(side: str) -> None:
    if side == "tfx":
        from tfx.components.example_gen.csv_example_gen import executor

        del executor
    else:
        import pyarrow.compute
        import pyarrow.csv

        del pyarrow


def compare(rows: int, peer_rows: int, rounds: int) -> dict[str, Any]:
    """Runs all sides `rounds` times and returns every measurement and the ratios of the medians."""
    with tempfile.TemporaryDirectory(prefix="ingest-tables-") as folder:
        large, small, peer = (Path(folder) / name for name in ("large.csv", "small.csv", "peer.csv"))
        repeat_table(large, rows)
        repeat_table(small, max(rows // 10, 1))
        repeat_table(peer, peer_rows)
        runs: dict[str, list[dict[str, Any]]] = {"ours": [], "tfx": [], "floor": [], "ours_tenth": []}
        order = [
            ("ours", "ours", large),
            ("tfx", "tfx", peer),
            ("floor", "floor", large),
            ("ours_tenth", "ours", small),
        ]
        for number in range(rounds):
            for label, side, table in order if number % 2 == 0 else reversed(order):
                runs[label].append(measure(side, table))
                print(f"round {number + 1} {label}: {_line(runs[label][-1])}", file=sys.stderr)
    speed = {label: statistics.median(run["rows_per_s"] for run in each) for label, each in runs.items()}
    peak = {label: max(run["peak_mib"] for run in each) for label, each in runs.items()}
    return {
        "rows": rows,
        "peer_rows": peer_rows,
        "rounds": rounds,
        "rows_per_s": speed,
        "peak_mib": peak,
        "speed_ratio": speed["ours"] / speed["tfx"],
        "floor_ratio": speed["floor"] / speed["ours"],
        "memory_growth": peak["ours"] / peak["ours_tenth"] - 1,
        "runs": runs,
    }


def _line(run: dict[str, Any]) -> str:
    return f"{run['rows_per_s']:,.0f} rows/s, {run['peak_mib']:,.0f} MiB"


def table_of(result: dict[str, Any]) -> str:
    """Returns the result as a table for people."""
    labels = {
        "ours": f"Forebay, {result['rows']:,} rows",
        "ours_tenth": f"Forebay, {result['rows'] // 10:,} rows",
        "tfx": f"CsvExampleGen, {result['peer_rows']:,} rows",
        "floor": "pyarrow parses and drops",
    }
    lines = [f"{'':34} {'rows/s':>12} {'peak MiB':>10}"]
    for label, text in labels.items():
        lines.append(f"{text:34} {result['rows_per_s'][label]:12,.0f} {result['peak_mib'][label]:10,.0f}")
    ratio, growth, peak = result["speed_ratio"], result["memory_growth"], result["peak_mib"]["ours"]
    fast = "met" if ratio >= SPEED_TARGET else "missed"
    small = "met" if peak < MEMORY_TARGET_MIB and abs(growth) < FLAT_SHARE else "missed"
    lines.append(f"speed    {ratio:.1f} times CsvExampleGen (wanted {SPEED_TARGET:g}): {fast}")
    lines.append(f"memory   {peak:,.0f} MiB (wanted under {MEMORY_TARGET_MIB:,}), {growth:+.0%} for 10x rows: {small}")
    lines.append(f"floor    parsing alone is {result['floor_ratio']:.1f} times as fast")
    return "\n".join(lines)


def main() -> None:
    """Parses the command line and prints the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_500_000, help="rows of the table")
    parser.add_argument("--peer-rows", type=int, help="rows for CsvExampleGen (default: the same)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    parser.add_argument("--child", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(arguments.child, arguments.table)
        return
    result = compare(arguments.rows, arguments.peer_rows or arguments.rows, arguments.rounds)
    print(table_of(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
