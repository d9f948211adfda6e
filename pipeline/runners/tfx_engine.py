"""Launches single nodes of the graph with TFX's own launcher, in this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.assembly import assemble
from pipeline.runners.imports import large_import
from pipeline.stages.stage import RunFacts

if TYPE_CHECKING:
    from core.settings import Settings


class TfxEngine:
    """The compiled graph, ready to launch nodes in any order in which their inputs exist.

    Attributes:
        facts: What the graph was built with.
    """

    def __init__(self, settings: Settings, facts: RunFacts, artifacts: Path, connection: Any) -> None:
        """Imports TFX (seconds) and compiles the graph.

        Args:
            settings: Validated settings.
            facts: What is known of this run; its `run_id` names the run in ML Metadata.
            artifacts: Where artifacts go.
            connection: MLMD ConnectionConfig.
        """
        self.facts = facts
        _prepare_process()
        with large_import():
            from tfx.dsl.compiler import compiler, constants
            from tfx.orchestration.local import runner_utils
            from tfx.orchestration.portable import runtime_parameter_utils

            graph = assemble(settings, facts, pipeline_root=str(artifacts), metadata_config=connection)
        self._ir = compiler.Compiler().compile(graph)
        parameters = {constants.PIPELINE_RUN_ID_PARAMETER_NAME: facts.run_id}
        runtime_parameter_utils.substitute_runtime_parameter(self._ir, parameters)
        self._deployment = runner_utils.extract_local_deployment_config(self._ir)
        self._nodes = {node.pipeline_node.node_info.id: node.pipeline_node for node in self._ir.nodes}
        self._connection = connection

    def launch(self, node_id: str) -> int:
        """Runs one node to its end and returns its execution id in ML Metadata.

        Raises:
            Exception: Whatever the node's executor raised; the execution is recorded as failed.
        """
        from tfx.orchestration import metadata
        from tfx.orchestration.local import runner_utils
        from tfx.orchestration.portable import launcher

        info = launcher.Launcher(
            pipeline_node=self._nodes[node_id],
            mlmd_connection=metadata.Metadata(self._connection),
            pipeline_info=self._ir.pipeline_info,
            pipeline_runtime_spec=self._ir.runtime_spec,
            executor_spec=runner_utils.extract_executor_spec(self._deployment, node_id),
            custom_driver_spec=runner_utils.extract_custom_driver_spec(self._deployment, node_id),
        ).launch()
        return int(info.execution_id)


def _prepare_process() -> None:
    """Sets what must be set before TensorFlow is imported."""
    from pipeline.training import legacy_keras  # noqa: F401  Importing it selects tf_keras.

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
