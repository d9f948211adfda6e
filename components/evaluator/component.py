"""The Evaluator node: its TFX types. Node id, channels and artifacts are those of TFX's own Evaluator."""

from __future__ import annotations

from typing import ClassVar

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components.evaluator.executor import Executor


class EvaluatorSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the Evaluator."""

    PARAMETERS: ClassVar = {"spec": component_spec.ExecutionParameter(type=str)}
    INPUTS: ClassVar = {
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "baseline_model": component_spec.ChannelParameter(type=standard_artifacts.Model, optional=True),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
    }
    OUTPUTS: ClassVar = {
        "evaluation": component_spec.ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "blessing": component_spec.ChannelParameter(type=standard_artifacts.ModelBlessing),
    }


class Evaluator(base_component.BaseComponent):
    """Measures the candidate and the baseline on the eval split and blesses the candidate or not.

    It never fails for a refusal: the blessing says NOT_BLESSED and verdict.json says why.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        model: types.BaseChannel,
        schema: types.BaseChannel,
        spec: str,
        baseline_model: types.BaseChannel | None = None,
    ) -> None:
        """Makes the node.

        Args:
            examples: Raw Examples with a split called eval.
            model: The candidate.
            schema: Schema of the raw examples: types and domains of the slicing columns.
            spec: JSON object {"evaluate": ..., "task": "binary" or "classification", "label": ...,
                "accept_new_baseline": reason or null}; `evaluate` and `label` are dumped settings sections, `task` is
                binary when it is left out, and `label` is for binary only.
            baseline_model: The newest blessed model.
        """
        super().__init__(
            EvaluatorSpec(
                examples=examples,
                model=model,
                baseline_model=baseline_model,
                schema=schema,
                spec=spec,
                evaluation=types.Channel(type=standard_artifacts.ModelEvaluation),
                blessing=types.Channel(type=standard_artifacts.ModelBlessing),
            )
        )
