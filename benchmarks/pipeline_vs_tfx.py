"""Our first run of the taxi recipe against TFX's own taxi example: same rows, steps, batch size and environment.

    .venv/bin/python benchmarks/pipeline_vs_tfx.py --rounds 3 --json result.json

Each round runs both once, alternating which goes first, then our second (cached) run. Prints wall seconds of whole
processes, ratios of the medians, where each side's time goes, and both models' quality on trips that neither saw.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import taxi_peer
from benchmarks.timing import Measured
from core.errors import EnvironmentProblem, ForebayError
from core.fingerprint import collect

ROOT = Path(__file__).resolve().parents[1]
FIRST_RUN_TARGET = 0.40
CACHED_RUN_TARGET = 0.20
QUALITY_TARGET = -0.005
# What neither side can go below: loading the libraries that both stand on.
_FLOOR = "import tfx.v1, tensorflow_model_analysis"


def run_ours(root: Path) -> Measured:
    """Runs the recipe through the command and returns what it took. A second call on the same root is the cached run.

    Raises:
        EnvironmentProblem: It did not end with a pushed model.
    """
    settings = {
        "run.root": root / "runs",
        "serving.root": root / "serving",
        "training.steps": taxi_peer.STEPS,
        "training.batch_size": taxi_peer.BATCH_SIZE,
        "training.eval_steps": taxi_peer.EVAL_STEPS,
    }
    flags = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]
    command = [str(Path(sys.executable).with_name("forebay")), "run", "-c", str(ROOT / "configs" / "taxi.yaml"), *flags]
    root.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--output", "json"], cwd=ROOT, env=_variables(), capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - started
    if done.returncode != 0:
        (root / "stderr.txt").write_text(done.stderr, encoding="utf-8")
        raise EnvironmentProblem(f"forebay run ended with code {done.returncode}", place=str(root / "stderr.txt"))
    record = json.loads(done.stdout)
    nodes = {node["id"]: node["seconds"] for node in record["nodes"]}
    (examples,) = next(node for node in record["nodes"] if node["id"] == "ExampleGen")["outputs"]["examples"]
    return Measured(seconds, nodes, done.stderr.count("\n"), Path(record["pushed"]["path"]), Path(examples))


def measure_floor() -> float:
    """Returns the wall seconds of a process that only imports what both sides import."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", _FLOOR], env=_variables(), capture_output=True, check=True)
    return time.monotonic() - started


def measure_round(work: Path, ours_first: bool) -> dict[str, Any]:
    """Runs both sides and our cached run once, in a fresh folder, and scores both models."""
    order = ("ours", "peer") if ours_first else ("peer", "ours")
    found = {side: run_ours(work / "ours") if side == "ours" else taxi_peer.run(work / "home") for side in order}
    cached = run_ours(work / "ours")
    peer, ours = found["peer"], found["ours"]
    arguments = [str(path) for path in (peer.model, peer.examples, ours.model, ours.examples)]
    scored = subprocess.run(
        [sys.executable, "-m", "benchmarks.taxi_scores", *arguments],
        cwd=ROOT,
        env=_variables() | {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {
        "order": order,
        "peer": {"seconds": peer.seconds, "nodes": peer.nodes, "lines": peer.lines},
        "ours": {"seconds": ours.seconds, "nodes": ours.nodes, "lines": ours.lines},
        "cached": {"seconds": cached.seconds},
        "floor": {"seconds": measure_floor()},
        "quality": json.loads(scored.stdout),
    }


def summarize(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns medians over the rounds, their ratios, and the mean quality of both models."""

    def median(side: str) -> float:
        return statistics.median(one[side]["seconds"] for one in rounds)

    def quality(side: str, metric: str) -> float:
        return statistics.fmean(one["quality"][side][metric] for one in rounds)

    seconds = {side: median(side) for side in ("peer", "ours", "cached", "floor")}
    gain = {metric: quality("ours", metric) - quality("peer", metric) for metric in ("auc", "accuracy")}
    return {
        "rounds": len(rounds),
        "seconds": seconds,
        "first_run_ratio": seconds["ours"] / seconds["peer"],
        "cached_run_ratio": seconds["cached"] / seconds["ours"],
        "quality": {side: {metric: quality(side, metric) for metric in gain} for side in ("peer", "ours")},
        "quality_gain": gain,
        "held_out_rows": rounds[0]["quality"]["rows"],
    }


def render(summary: dict[str, Any], last: dict[str, Any]) -> str:
    """Returns the result as text."""
    seconds = summary["seconds"]
    lines = [
        f"{'TFX example, as shipped':<32}{seconds['peer']:8.1f} s   {last['peer']['lines']} lines printed",
        f"{'forebay run, first':<32}{seconds['ours']:8.1f} s   {last['ours']['lines']} lines printed",
        f"{'forebay run, nothing changed':<32}{seconds['cached']:8.1f} s",
        f"{'floor: imports alone':<32}{seconds['floor']:8.1f} s",
        _verdict("first run / TFX example", summary["first_run_ratio"], FIRST_RUN_TARGET, at_most=True),
        _verdict("cached run / first run", summary["cached_run_ratio"], CACHED_RUN_TARGET, at_most=True),
    ]
    for side, title in (("peer", "TFX example"), ("ours", "forebay")):
        nodes = {name: value for name, value in last[side]["nodes"].items() if value >= 0.05}
        rest = last[side]["seconds"] - sum(nodes.values())
        split = ", ".join(f"{name} {value:.1f}" for name, value in nodes.items())
        lines.append(f"where {title}'s seconds go (last round): {split}, between and around nodes {rest:.1f}")
    for metric, gain in summary["quality_gain"].items():
        peer, ours = (summary["quality"][side][metric] for side in ("peer", "ours"))
        lines.append(f"{metric}: TFX example {peer:.4f}, forebay {ours:.4f}")
        lines.append(_verdict(f"{metric}, forebay - TFX example", gain, QUALITY_TARGET, at_most=False))
    rows = summary["held_out_rows"]
    lines.append(
        f"quality: mean of {summary['rounds']} round(s), {rows} trips in both eval splits and in neither train split"
    )
    return "\n".join(lines)


def _verdict(name: str, value: float, target: float, *, at_most: bool) -> str:
    met = value <= target if at_most else value >= target
    bound = "at most" if at_most else "at least"
    return f"{name:<32}{value:8.3f}     target {bound} {target:g}: {'met' if met else 'MISSED'}"


def _variables() -> dict[str, str]:
    """Returns the environment of both sides: bytecode is on, nothing of the caller's PYTHONPATH leaks in."""
    dropped = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name not in dropped}


@contextlib.contextmanager
def _work_folder(keep: Path | None) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix="forebay-bench-")) if keep is None else keep
    work.mkdir(parents=True, exist_ok=True)
    try:
        yield work
    finally:
        if keep is None:
            shutil.rmtree(work, ignore_errors=True)


def main() -> int:
    """Measures, prints, and returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1, help="how often both sides run (default: 1)")
    parser.add_argument("--json", type=Path, help="also write everything measured into this file")
    parser.add_argument("--keep", type=Path, help="work in this new folder and leave it for a look")
    options = parser.parse_args()
    rounds = []
    try:
        with _work_folder(options.keep) as work:
            for number in range(options.rounds):
                rounds.append(measure_round(work / f"round-{number}", ours_first=number % 2 == 1))
                print(f"round {number + 1} of {options.rounds} done", file=sys.stderr, flush=True)
    except ForebayError as error:
        print(f"pipeline_vs_tfx: {error}", file=sys.stderr)
        return error.exit_code
    summary = summarize(rounds)
    print(render(summary, rounds[-1]))
    if options.json:
        options.json.write_text(
            json.dumps({"summary": summary, "rounds": rounds, "machine": collect()}, indent=2), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
