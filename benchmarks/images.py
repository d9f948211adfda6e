"""The recipe for photos against its targets: ingestion, a training step, and accuracy in the time it takes.

    .venv/bin/python -m benchmarks.images --photos FOLDER --rounds 2 --json result.json

Ingestion: our ExampleGen (Beam, all cores) against the same decoding function in one plain Python loop pinned to one
core, each in a child process of its own, in alternating order; imports are not timed. Memory: the peak of that child
for all photos and for the first 1,000. Then one whole `forebay run` of configs/clothing.yaml in an empty root gives
the wall time and the accuracy, and `forebay train profile` on it the time of a training step with the real input
pipeline against a step on data already in memory.
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
from components.ingest.sources import Source
from core.settings import load
from core.settings.data import DataSettings

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "configs" / "clothing.yaml"
INGEST_TARGET, STEP_TARGET, ACCURACY_TARGET, SECONDS_TARGET = 1.6, 1.10, 0.90, 720.0
# Photos of the small set, and what a further photo may add to the peak: its name, hashes and class, not its pixels.
FEW, FLAT_KIB = 1000, 10.0


def ingest_ours(data: DataSettings, source: Source, digest: str, folder: Path) -> None:
    """Ingests the photos as the ExampleGen node does, on Beam."""
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from components.ingest.images.beam_decoding import BeamDecoder
    from components.ingest.images.ingestion import ingest_photos
    from pipeline.assembly import BEAM_FLAGS

    ingest_photos(
        data,
        source,
        source_digest=digest,
        split_uris={name: str(folder / f"Split-{name}") for name in data.split.shares},
        report_dir=str(folder / "report"),
        work_dir=str(folder),
        decoder=BeamDecoder(lambda: beam.Pipeline(options=PipelineOptions(list(BEAM_FLAGS)))),
    )


def decode_plainly(data: DataSettings, source: Source, digest: str, folder: Path) -> None:
    """Decodes every file in one loop on one core, with the same function, and drops it."""
    from components.ingest.images.decode import Rules, decode

    del digest, folder
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rules = Rules.of(data.images)
    for path in source.files:
        decode(Path(path).read_bytes(), rules)


SIDES: dict[str, Callable[[DataSettings, Source, str, Path], None]] = {"ours": ingest_ours, "loop": decode_plainly}


def run_child(side: str, photos: Path) -> None:
    """Runs one side in this process and prints its measurement as JSON."""
    import components.ingest.images.beam_decoding
    import components.ingest.images.ingestion  # noqa: F401 - what has to be loaded first is not what is measured

    data = load([str(RECIPE)], [f"data.path={photos}"]).settings.data
    source = sources.resolve(data.path, kind=data.kind, run_date=None, manifest=data.images.manifest)
    # The run's planner asks for it before any node runs.
    digest = sources.content_digest(source)
    with tempfile.TemporaryDirectory(prefix="photos-") as folder:
        started = time.monotonic()
        SIDES[side](data, source, digest, Path(folder))
        seconds = time.monotonic() - started
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = len(source.files)
    record = {"photos": count, "seconds": seconds, "photos_per_s": count / seconds, "peak_mib": peak_mib}
    print(json.dumps(record))


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python command of the project to its end; a failure ends the benchmark with its words."""
    variables = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments[:4])} failed with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return done


def measure(side: str, photos: Path) -> dict[str, Any]:
    """Returns photos, seconds, photos_per_s and peak_mib of one side, run in a child process."""
    done = call("-m", "benchmarks.images", "--child", side, "--photos", str(photos))
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{side}: {result['photos_per_s']:.0f} photos/s, {result['peak_mib']:.0f} MiB", file=sys.stderr)
    return result


def compare_ingestion(photos: Path, rounds: int) -> dict[str, Any]:
    """Returns every measurement of the ingestion, and the ratios of the medians."""
    with tempfile.TemporaryDirectory(prefix="few-photos-") as folder:
        few = Path(folder)
        files = sorted(path for path in photos.rglob("*") if path.is_file())
        for path in [files[number * len(files) // FEW] for number in range(min(FEW, len(files)))]:
            target = few / path.relative_to(photos)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path)
        runs: dict[str, list[dict[str, Any]]] = {"ours": [], "loop": [], "ours_few": []}
        order = [("ours", "ours", photos), ("loop", "loop", photos), ("ours_few", "ours", few)]
        for number in range(rounds):
            for label, side, place in order if number % 2 == 0 else reversed(order):
                runs[label].append(measure(side, place))
    speed = {label: statistics.median(run["photos_per_s"] for run in each) for label, each in runs.items()}
    peak = {label: max(run["peak_mib"] for run in each) for label, each in runs.items()}
    return {
        "photos": runs["ours"][0]["photos"],
        "few": runs["ours_few"][0]["photos"],
        "photos_per_s": speed,
        "peak_mib": peak,
        "speed_ratio": speed["ours"] / speed["loop"],
        "kib_a_photo": (peak["ours"] - peak["ours_few"]) * 1024 / max(len(files) - FEW, 1),
        "runs": runs,
    }


def whole_run(photos: Path, folder: Path, extra: list[str]) -> dict[str, Any]:
    """Runs the recipe in an empty root; returns its wall time, its metrics, and the profile of its training."""
    roots = ["--set", f"run.root={folder / 'runs'}", "--set", f"serving.root={folder / 'serving'}"]
    changes = [part for change in extra for part in ("--set", change)]
    started = time.monotonic()
    done = call(
        "-m", "pipeline.cli.main", "run", "-c", str(RECIPE), "--set", f"data.path={photos}", *roots, *changes,
        "--output", "json",
    )  # fmt: skip
    seconds = time.monotonic() - started
    record = json.loads(done.stdout)
    outputs = {node["id"]: node["outputs"] for node in record["nodes"]}
    evaluation = Path(outputs["Evaluator"]["evaluation"][0])
    verdict = json.loads((evaluation / "verdict.json").read_text(encoding="utf-8"))
    profiled = call("-m", "pipeline.cli.main", "train", "profile", *roots[:2], "--output", "json")
    return {
        "seconds": seconds,
        "nodes": {node["id"]: node["seconds"] for node in record["nodes"]},
        "metrics": verdict["metrics"],
        "examples": verdict["examples"],
        "worst_class": verdict["worst_class"],
        "confusion_matrix": (evaluation / "confusion_matrix.csv").read_text(encoding="utf-8"),
        "profile": json.loads(profiled.stdout),
    }


def table_of(result: dict[str, Any]) -> str:
    """Returns the result as a table for people."""
    ingest, run = result["ingest"], result["run"]
    lines = [f"{'':34} {'photos/s':>10} {'peak MiB':>10}"]
    for label, text in (
        ("ours", f"Forebay, {ingest['photos']:,} photos"),
        ("ours_few", f"Forebay, {ingest['few']:,} photos"),
        ("loop", "one plain loop on one core"),
    ):
        lines.append(f"{text:34} {ingest['photos_per_s'][label]:10.1f} {ingest['peak_mib'][label]:10,.0f}")
    lines.append(_against("ingest", ingest["speed_ratio"], INGEST_TARGET, "times the loop", higher=True))
    lines.append(_against("memory", ingest["kib_a_photo"], FLAT_KIB, "KiB for each further photo", higher=False))
    for phase in run["profile"]["phases"]:
        what = f"times the step in memory, phase {phase['name']}"
        lines.append(_against("step", phase["ratio"], STEP_TARGET, what, higher=False))
    accuracy = run["metrics"]["accuracy"]
    lines.append(_against("accuracy", accuracy, ACCURACY_TARGET, f"of {run['examples']} held out", higher=True))
    lines.append(_against("run", run["seconds"], SECONDS_TARGET, "seconds, ingestion and all", higher=False))
    worst = run["worst_class"]
    lines.append(f"worst    {worst['label']}: recall {worst['recall']:.3f} of {worst['examples']} examples")
    lines += [
        "nodes    " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in run["nodes"].items() if seconds > 1)
    ]
    return "\n".join([*lines, "", run["confusion_matrix"].rstrip()])


def _against(name: str, value: float, target: float, what: str, *, higher: bool) -> str:
    met = value >= target if higher else value <= target
    return f"{name:<8} {value:.3g} {what} (wanted {'>=' if higher else '<='} {target:g}): {'met' if met else 'missed'}"


def main() -> None:
    """Parses the command line and prints the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--photos", type=Path, required=True, help="folder of class folders")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of the ingestion")
    parser.add_argument("--set", dest="changes", action="append", default=[], help="a setting of the whole run")
    parser.add_argument("--json", type=Path, help="also write every measurement here")
    parser.add_argument("--child", choices=SIDES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    photos = arguments.photos.resolve()
    if arguments.child:
        run_child(arguments.child, photos)
        return
    with tempfile.TemporaryDirectory(prefix="images-benchmark-") as folder:
        ingestion = compare_ingestion(photos, arguments.rounds)
        result = {"ingest": ingestion, "run": whole_run(photos, Path(folder), arguments.changes)}
    print(table_of(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
