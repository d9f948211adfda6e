"""Equal size and time, other content: the content decides."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]


def test_one_changed_byte_runs_ingest_and_everything_behind_it(new_copy: Any) -> None:
    """R01: one byte of the CSV changes, its size and mtime do not: every node but the schema runs, and says why."""
    before = new_copy.csv.read_bytes()
    stat = new_copy.csv.stat()
    changed = before.replace(b"12.45", b"12.46", 1)
    assert len(changed) == len(before)
    assert changed != before
    new_copy.csv.write_bytes(changed)
    os.utime(new_copy.csv, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    done = new_copy.run()
    assert done.returncode == 0, done.stdout + done.stderr
    states = new_copy.states()
    assert states.pop("ImportSchemaGen") == "cached"
    assert set(states.values()) == {"done"}
    told = json.loads(new_copy.call("runs", "why", "latest", "--set", "run.root=runs", "--output", "json").stdout)
    reasons = {row["node"]: row["reason"] for row in told}
    assert "source_digest has other content" in reasons["ExampleGen"]
    assert "input examples has other content" in reasons["Transform"]
    assert "input model has other content" in reasons["Pusher"]
    assert len([name for name in new_copy.versions() if name.isdigit()]) == 2
