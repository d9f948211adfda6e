"""What importing TFX costs, plainly and the way our runner does it, alternating in one run.

    .venv/bin/python -m benchmarks.imports --rounds 5

Prints CPU seconds of processes that import tfx.v1 and do nothing else, and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TIMED = "import time; started = time.process_time(); {}; print(time.process_time() - started)"
SIDES = {
    "plain": _TIMED.format("import tfx.v1"),
    "large_import": "from pipeline.runners.imports import large_import\nwith large_import():\n    "
    + _TIMED.format("import tfx.v1"),
}


def measure(code: str) -> float:
    """Returns the CPU seconds that a fresh process prints last."""
    variables = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    found: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(rounds):
        for side in sorted(SIDES, reverse=bool(number % 2)):
            found[side].append(measure(SIDES[side]))
    medians = {side: statistics.median(values) for side, values in found.items()}
    for side, seconds in medians.items():
        print(f"{side:<14}{seconds:6.2f} CPU s")
    print(f"ratio         {medians['large_import'] / medians['plain']:6.2f}")


if __name__ == "__main__":
    main()
