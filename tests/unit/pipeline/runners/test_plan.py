"""What is reused, what runs, and the reason that is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import UsageError
from core.files import write_atomic
from pipeline.runners import cache, mlmd
from pipeline.runners.cache import Entry, Output
from pipeline.runners.layout import PipelineRoot
from pipeline.runners.plan import Decision, Planner, Span
from pipeline.stages.stage import RunFacts, Stage

pytestmark = pytest.mark.unit


def no_build(*arguments: Any) -> None:
    """Planning must never build a node."""
    raise AssertionError("planning built a node")


def stages(training: int = 1) -> list[Stage]:
    """Returns a chain of three nodes, the second with a setting of its own."""
    return [
        Stage("Read", {}, no_build, facts=("source_digest",)),
        Stage("Train", {"rows": "Read.rows"}, no_build, settings=lambda settings: {"epochs": training}),
        Stage("Push", {"model": "Train.model"}, no_build),
    ]


@dataclasses.dataclass
class Bench:
    """A pipeline root with a real metadata store, on which plans are made and nodes are made up."""

    root: PipelineRoot
    lineage: mlmd.Lineage

    def planner(
        self, graph: list[Stage], *, source: str = "s1", cached: bool = True, span: Span | None = None
    ) -> Planner:
        """Returns a planner for a run that reads data with this digest."""
        settings: Any = SimpleNamespace(run=SimpleNamespace(cache=cached))
        return Planner(settings, RunFacts("r", source), graph, self.lineage, span or Span())

    def decide_all(self, planner: Planner, graph: list[Stage], make: Mapping[str, str]) -> list[Decision]:
        """Decides every node; one that runs "makes" the given content, one that would wait ends the walk."""
        decisions = []
        for stage in graph:
            decision = planner.decide(stage)
            decisions.append(decision)
            if decision.entry is not None:
                planner.record(stage.id, decision.entry.outputs)
            elif not decision.skipped:
                planner.record(stage.id, self._make(decision, make[stage.id]))
        return decisions

    def _make(self, decision: Decision, content: str) -> dict[str, list[Output]]:
        from ml_metadata.proto import metadata_store_pb2 as pb

        key = {"Read": "rows", "Train": "model", "Push": "pushed"}[decision.stage.id]
        folder = self.lineage.artifacts / decision.stage.id / key / decision.key[:8]
        write_atomic(folder / "file", content)
        store = self.lineage.store
        type_id = store.put_artifact_type(pb.ArtifactType(name="Any"))
        [artifact_id] = store.put_artifacts([pb.Artifact(type_id=type_id, uri=str(folder))])
        outputs = {key: [cache.describe(self.lineage.artifacts, artifact_id, str(folder))]}
        assert decision.parts is not None
        created = f"2024-01-01T00:00:{artifact_id:02d}"
        cache.store(
            self.lineage.artifacts,
            decision.stage.id,
            Entry(decision.key, "r1", artifact_id, created, decision.parts, outputs),
        )
        return outputs


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench on which all three nodes ran once."""
    root = PipelineRoot(tmp_path / "root")
    root.path.mkdir()
    bench = Bench(root, mlmd.Lineage(mlmd.connection("sqlite", root), "p", root))
    first = bench.decide_all(bench.planner(stages()), stages(), {"Read": "a", "Train": "m", "Push": "v"})
    assert [decision.reason for decision in first] == ["it never ran to its end here"] * 3
    return bench


def test_nothing_changed_and_everything_is_reused(bench: Bench) -> None:
    """Equal content gives the earlier run's outputs, and the reason names that run."""
    decisions = bench.decide_all(bench.planner(stages()), stages(), {})
    assert all(decision.entry is not None for decision in decisions)
    assert "run r1" in decisions[0].reason


def test_a_node_that_makes_the_same_bytes_stops_the_wave(bench: Bench) -> None:
    """New data runs the reader; when what it writes is byte for byte the same, the nodes behind it are reused."""
    planner = bench.planner(stages(), source="s2")
    decisions = bench.decide_all(planner, stages(), {"Read": "a"})
    assert [decision.entry is not None for decision in decisions] == [False, True, True]
    assert decisions[0].reason == "input source_digest has other content"


def test_a_setting_runs_its_node_and_those_that_read_it(bench: Bench) -> None:
    """Another number of epochs runs the Trainer and the push of its new model, not the reader."""
    graph = stages(training=2)
    decisions = bench.decide_all(bench.planner(graph), graph, {"Train": "m2", "Push": "v2"})
    assert [decision.entry is not None for decision in decisions] == [True, False, False]
    assert decisions[1].reason == "setting epochs went from 1 to 2"
    assert decisions[2].reason == "input model has other content"


def test_behind_a_node_that_runs_nothing_is_promised(bench: Bench) -> None:
    """Before a node has run, its readers' keys are unknown: the plan says for whom they wait."""
    planner = bench.planner(stages(), source="s2")
    planner.decide(stages()[0])
    waiting = planner.decide(stages()[1])
    assert (waiting.entry, waiting.key, waiting.reason) == (None, "", "Read runs first")


def test_the_switch_runs_everything(bench: Bench) -> None:
    """run.cache=false reuses nothing and says so."""
    planner = bench.planner(stages(), cached=False)
    assert planner.decide(stages()[0]).reason == "run.cache is off"


def test_a_span_forces_its_first_node_and_skips_behind_its_last(bench: Bench) -> None:
    """--from runs a node that could be reused; --to leaves the later ones alone; case does not matter."""
    planner = bench.planner(stages(), span=Span("train", "TRAIN"))
    decisions = bench.decide_all(planner, stages(), {"Train": "m"})
    assert decisions[0].entry is not None
    assert (decisions[1].entry, decisions[1].reason) == (None, "asked for with --from")
    assert decisions[2].skipped


def test_a_span_cannot_start_behind_what_is_missing(bench: Bench) -> None:
    """--from refuses when a node before it would have to run, and names it with the reason."""
    planner = bench.planner(stages(), source="s2", span=Span("Push"))
    with pytest.raises(UsageError, match="Read comes before --from Push and cannot be reused: input source_digest"):
        planner.decide(stages()[0])


@pytest.mark.parametrize(
    ("span", "says"),
    [
        (Span("Trian"), "Did you mean Train"),
        (Span(None, "nothing at all"), "Nodes: Read, Train, Push"),
        (Span("Push", "Read"), "comes after"),
    ],
    ids=["typo", "unknown", "order"],
)
def test_a_span_of_unknown_nodes_is_refused(bench: Bench, span: Span, says: str) -> None:
    """A wrong node name gets the nearest one, or the list."""
    with pytest.raises(UsageError, match=says):
        bench.planner(stages(), span=span)


def test_another_metadata_store_begins_anew_beside_the_old_artifacts(bench: Bench) -> None:
    """Ids begin anew in a new store: it gets a directory of its own, and reuses and overwrites nothing."""
    before = bench.lineage.artifacts
    bench.root.sqlite.unlink()
    bench.lineage = mlmd.Lineage(mlmd.connection("sqlite", bench.root), "p", bench.root)
    assert bench.lineage.artifacts != before
    assert before.is_dir()
    assert bench.planner(stages()).decide(stages()[0]).reason == "it never ran to its end here"


def test_an_artifact_that_metadata_forgot_is_not_reused(bench: Bench) -> None:
    """The files are there, but their record points elsewhere: the node runs."""
    [artifact] = bench.lineage.store.get_artifacts_by_id([1])
    artifact.uri = "/elsewhere"
    bench.lineage.store.put_artifacts([artifact])
    assert bench.planner(stages()).decide(stages()[0]).reason == "ML Metadata has no record of its outputs"
