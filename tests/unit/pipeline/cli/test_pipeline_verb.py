"""`forebay pipeline show`: the graph as people read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.settings.load import BASE_FILE
from pipeline.cli import main

pytestmark = pytest.mark.unit

TAXI = str(BASE_FILE.parent / "taxi.yaml")
CLOTHING = str(BASE_FILE.parent / "clothing.yaml")
GOLDEN = Path(__file__).resolve().parents[3] / "golden"


@pytest.mark.parametrize(("form", "file"), [("text", "taxi_graph.txt"), ("mermaid", "taxi_graph.mmd")])
def test_the_taxi_graph_is_as_kept(form: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A change of the graph shows in review as a change of the golden file."""
    assert main.run(["pipeline", "show", "-c", TAXI, "--format", form]) == 0
    assert capsys.readouterr().out == (GOLDEN / file).read_text(encoding="utf-8")


def test_the_clothing_graph_is_as_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Photos go the way of tables, node by node."""
    assert main.run(["pipeline", "show", "-c", CLOTHING]) == 0
    assert capsys.readouterr().out == (GOLDEN / "clothing_graph.txt").read_text(encoding="utf-8")


def test_the_graph_as_json_names_every_edge(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get each node with its inputs and what it waits for."""
    assert main.run(["pipeline", "show", "-c", TAXI, "--output", "json"]) == 0
    nodes = {node["id"]: node for node in json.loads(capsys.readouterr().out)["nodes"]}
    assert nodes["Transform"]["after"] == ["DataGate"]
    assert nodes["Pusher"]["inputs"]["model_blessing"] == "Evaluator.blessing"
