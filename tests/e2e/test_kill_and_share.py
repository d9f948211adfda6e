"""Killed runs are finished by the same command; two runs never share a root."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

NODES = ["ExampleGen", "StatisticsGen", "DataGate", "Transform", "Trainer", "Evaluator", "Pusher"]
WAIT_S = 300


def wait_until_running(place: Any, node: str, process: subprocess.Popen[str], known: set[Path]) -> None:
    """Returns when the new run's record says that the node is running."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        for path in set((place.root / "_runs").glob("*/run.json")) - known:
            states = {item["id"]: item["state"] for item in json.loads(path.read_text(encoding="utf-8"))["nodes"]}
            if states[node] == "running":
                return
        assert process.poll() is None, f"the run ended before {node} was seen running"
        time.sleep(0.01)
    raise AssertionError(f"{node} did not start within {WAIT_S} s")


def test_a_kill_in_each_node_in_turn_costs_only_that_node(empty_workplace: Any) -> None:
    """R04: kill -9 in every node, one after the other; the same command then finishes, with one whole version."""
    place = empty_workplace
    for index, node in enumerate(NODES):
        known = set((place.root / "_runs").glob("*/run.json"))
        process = place.start()
        try:
            wait_until_running(place, node, process, known)
            if node == "ExampleGen":
                second = place.run()
                assert second.returncode == 5
                assert f"pid {process.pid}" in second.stderr
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert not [name for name in place.versions() if name.isdigit()]
        killed = place.latest()
        done = [item["id"] for item in killed["nodes"] if item["state"] in ("done", "cached")]
        assert set(NODES[:index]) <= set(done)
    final = place.run()
    assert final.returncode == 0, final.stdout + final.stderr
    assert "was killed; its lock is taken over" in final.stdout
    states = place.states()
    assert all(states[node] == "cached" for node in NODES[:-1])
    assert states["Pusher"] == "done"
    [version] = [name for name in place.versions() if not name.startswith(".")]
    verified = place.call("models", "verify", "taxi", "--set", "serving.root=serving")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert version in verified.stdout


def test_an_interrupted_run_is_recorded_and_resumed(empty_workplace: Any) -> None:
    """SIGTERM ends with 130 and a record; `runs resume` goes on with the same settings."""
    place = empty_workplace
    known = set((place.root / "_runs").glob("*/run.json"))
    process = place.start("--set", "training.steps=61")
    wait_until_running(place, "Trainer", process, known)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    record = place.latest()
    assert record["state"] == "interrupted"
    assert f"runs resume {record['run_id']}" in out
    done = place.call("runs", "resume", record["run_id"], "--set", "run.root=runs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([name for name in place.versions() if name.isdigit()]) == 2
