"""The Pusher node: its TFX types."""

from __future__ import annotations

from typing import ClassVar

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components.pusher.executor import Executor


class PusherSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the Pusher."""

    PARAMETERS: ClassVar = {"spec": component_spec.ExecutionParameter(type=str)}
    INPUTS: ClassVar = {
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "model_blessing": component_spec.ChannelParameter(type=standard_artifacts.ModelBlessing),
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples, optional=True),
        "evaluation": component_spec.ChannelParameter(type=standard_artifacts.ModelEvaluation, optional=True),
    }
    OUTPUTS: ClassVar = {
        "pushed_model": component_spec.ChannelParameter(type=standard_artifacts.PushedModel),
    }


class Pusher(base_component.BaseComponent):
    """Publishes a blessed model as the next version under the serving root; node id `Pusher`.

    A model that is not blessed is held back, and the output says so.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: types.BaseChannel,
        model_blessing: types.BaseChannel,
        spec: str,
        examples: types.BaseChannel | None = None,
        evaluation: types.BaseChannel | None = None,
    ) -> None:
        """Makes the node.

        Args:
            model: The Trainer's Model.
            model_blessing: The Evaluator's ModelBlessing; its custom property `blessed` decides.
            spec: JSON object with the fields of `components.pusher.push.PushSpec`.
            examples: Raw Examples; some of its eval split become warm-up requests.
            evaluation: ModelEvaluation whose verdict.json enters the manifest.
        """
        super().__init__(
            PusherSpec(
                model=model,
                model_blessing=model_blessing,
                examples=examples,
                evaluation=evaluation,
                spec=spec,
                pushed_model=types.Channel(type=standard_artifacts.PushedModel),
            )
        )
