"""The Pusher executor: reads artifacts, publishes through plain modules, writes the standard properties."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from components.pusher import receipt
from components.pusher.push import PushSpec, push_model

_EVAL = "eval"


class Executor(base_executor.BaseExecutor):
    """Writes `pushed_model` with TFX's own custom properties (pushed, pushed_destination, pushed_version)."""

    def Do(  # noqa: N802 (TFX's name)
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """Pushes the model when it is blessed; its output directory gets push.json either way.

        Raises:
            ForebayError: The target cannot take the model, or a server could not use it.
        """
        spec = PushSpec.parse(exec_properties["spec"])
        if not spec.run_id and self._context is not None:
            spec = dataclasses.replace(spec, run_id=self._context.pipeline_run_id or "")
        output = artifact_utils.get_single_instance(output_dict["pushed_model"])
        blessing = artifact_utils.get_single_instance(input_dict["model_blessing"])
        if blessing.get_int_custom_property("blessed") != 1:
            output.set_int_custom_property("pushed", 0)
            receipt.write(output.uri, receipt.not_pushed("the model is not blessed"))
            return
        model = artifact_utils.get_single_instance(input_dict["model"])
        result = push_model(
            spec,
            Path(path_utils.serving_model_path(model.uri, path_utils.is_old_model_artifact(model))),
            _examples_dir(input_dict.get("examples") or []),
            _single_dir(input_dict.get("evaluation") or []),
        )
        output.set_int_custom_property("pushed", 1)
        output.set_string_custom_property("pushed_destination", result.location)
        output.set_string_custom_property("pushed_version", str(result.version))
        receipt.write(output.uri, receipt.pushed(result))


def _single_dir(artifacts: list[Any]) -> Path | None:
    return Path(artifact_utils.get_single_uri(artifacts)) if artifacts else None


def _examples_dir(artifacts: list[Any]) -> Path | None:
    """Returns the eval split's directory, or the last split's when none is called eval."""
    if not artifacts:
        return None
    splits = artifact_utils.decode_split_names(artifact_utils.get_single_instance(artifacts).split_names)
    if not splits:
        return None
    return Path(artifact_utils.get_split_uri(artifacts, _EVAL if _EVAL in splits else splits[-1]))
