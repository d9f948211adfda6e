"""The DataGate node: its TFX types."""

from __future__ import annotations

from typing import ClassVar

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import artifact, component_spec, standard_artifacts

from components.data_gate.executor import Executor


class DataGateReport(artifact.Artifact):
    """Every check of the data, its measured value, its limit and both histograms: one file, report.json."""

    TYPE_NAME = "DataGateReport"


class DataGateSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the DataGate."""

    PARAMETERS: ClassVar = {"spec": component_spec.ExecutionParameter(type=str)}
    INPUTS: ClassVar = {
        "statistics": component_spec.ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
        "baseline_statistics": component_spec.ChannelParameter(
            type=standard_artifacts.ExampleStatistics, optional=True
        ),
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples, optional=True),
    }
    OUTPUTS: ClassVar = {
        "anomalies": component_spec.ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "gate_report": component_spec.ChannelParameter(type=DataGateReport),
    }


class DataGate(base_component.BaseComponent):
    """Judges the data of a run; node id `DataGate`.

    It never fails for a refusal: it records it, and the runner stops the run, so that the report survives.
    """

    SPEC_CLASS = DataGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        statistics: types.BaseChannel,
        schema: types.BaseChannel,
        spec: str,
        baseline_statistics: types.BaseChannel | None = None,
        examples: types.BaseChannel | None = None,
    ) -> None:
        """Makes the node.

        Args:
            statistics: ExampleStatistics of this run, one file a split.
            schema: The curated Schema.
            spec: JSON object {"data_gate": dumped data_gate section}.
            baseline_statistics: ExampleStatistics of the last accepted run.
            examples: The Examples behind `statistics`; with them the rows outside a numeric domain are counted,
                without them they are estimated from a histogram.
        """
        super().__init__(
            DataGateSpec(
                statistics=statistics,
                schema=schema,
                baseline_statistics=baseline_statistics,
                examples=examples,
                spec=spec,
                anomalies=types.Channel(type=standard_artifacts.ExampleAnomalies),
                gate_report=types.Channel(type=DataGateReport),
            )
        )
