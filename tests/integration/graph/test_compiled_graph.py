"""The table of stages and the graph that TFX compiles from it are one."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.settings import load
from core.settings.load import BASE_FILE
from pipeline import assembly
from pipeline.stages.stage import RunFacts

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("recipe", ["taxi", "clothing"])
def test_tfx_compiles_exactly_the_nodes_and_edges_of_the_table(tmp_path: Path, recipe: str) -> None:
    """Planning reads the table, execution the compiled graph: every node and every edge is in both."""
    from tfx.dsl.compiler import compiler

    settings = load([str(BASE_FILE.parent / f"{recipe}.yaml")]).settings
    graph = compiler.Compiler().compile(assembly.assemble(settings, RunFacts("r", "d"), pipeline_root=str(tmp_path)))
    compiled = {node.pipeline_node.node_info.id: set(node.pipeline_node.upstream_nodes) for node in graph.nodes}
    table = {stage.id: set(stage.upstream()) for stage in assembly.stages(settings)}
    assert compiled == table
    order = [node.pipeline_node.node_info.id for node in graph.nodes]
    assert set(order) == {stage.id for stage in assembly.stages(settings)}
    ours = [stage.id for stage in assembly.stages(settings)]
    assert all(
        ours.index(node) < ours.index(stage.id) for stage in assembly.stages(settings) for node in stage.upstream()
    )
