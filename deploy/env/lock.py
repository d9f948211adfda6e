"""`python3 -m deploy.env.lock`: resolves requirements/*.in into requirements/lock.txt, hashes included."""

from __future__ import annotations

import sys
from pathlib import Path

from core.errors import EnvironmentProblem
from deploy.env import tools
from deploy.env.command import run_or_explain

# What one environment holds. "gpu" is left out: it adds 3 GB of CUDA libraries to the same versions.
_INPUTS = ("base", "dev", "kfp", "s3", "pretrained")


def main() -> int:
    """Writes the lock file anew; versions that still satisfy the inputs stay as they are."""
    root = Path(__file__).resolve().parents[2]
    log = root / ".tools" / "env.log"
    try:
        uv = tools.find_uv(root, log)
        options = ["--quiet", "--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url"]
        target = ["--python-version", "3.10", "--python-platform", "x86_64-manylinux_2_17"]
        inputs = [f"requirements/{name}.in" for name in _INPUTS]
        arguments = [uv, "pip", "compile", *options, *target, *inputs, "--output-file", "requirements/lock.txt"]
        run_or_explain("resolving requirements", arguments, log, cwd=root)
    except EnvironmentProblem as problem:
        print(f"lock: {problem}", file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
