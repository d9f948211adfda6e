"""Transform: the only preprocessing there is; its graph travels inside the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.stages.stage import Channels, RunFacts, Stage, dump

if TYPE_CHECKING:
    from core.settings import Settings


def _settings(settings: Settings) -> Mapping[str, Any]:
    if settings.is_images:
        # Photos pass as they are, and the label map is learned from the data.
        return {"user_code": settings.user_code}
    return {"features": dump(settings.features), "label": dump(settings.label), "user_code": settings.user_code}


def _build(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from tfx.components.transform.component import Transform

    return Transform(
        examples=channels["examples"],
        schema=channels["schema"],
        preprocessing_fn=f"{settings.user_code}.preprocessing.preprocessing_fn",
        custom_config={"settings": json.dumps(_settings(settings), sort_keys=True)},
        disable_statistics=True,
        disable_analyzer_cache=True,
    )


def stage(settings: Settings) -> Stage:
    """Returns the stage; its code is the recipe's own."""
    return Stage(
        id="Transform",
        inputs={"examples": "ExampleGen.examples", "schema": "ImportSchemaGen.schema"},
        build=_build,
        settings=_settings,
        code=(f"{settings.user_code}.preprocessing",),
        after=("DataGate",),
    )
