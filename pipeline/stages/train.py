"""Trainer: steps over the transformed examples, and one export with every signature."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.stages.stage import Channels, RunFacts, Stage, dump

if TYPE_CHECKING:
    from core.settings import Settings


def _settings(settings: Settings) -> Mapping[str, Any]:
    sections = ("classifier", "training") if settings.is_images else ("features", "label", "network", "training")
    return {name: dump(getattr(settings, name)) for name in sections} | {"user_code": settings.user_code}


def _build(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from tfx.components.trainer.component import Trainer
    from tfx.proto import trainer_pb2

    return Trainer(
        examples=channels["examples"],
        transform_graph=channels["transform_graph"],
        schema=channels["schema"],
        run_fn=f"{settings.user_code}.trainer.run_fn",
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        custom_config={"settings": json.dumps(_settings(settings), sort_keys=True)},
    )


def _summary(outputs: Mapping[str, str]) -> str:
    path = Path(outputs["model_run"]) / "training_summary.json"
    if not path.is_file():
        return ""
    summary = json.loads(path.read_text(encoding="utf-8"))
    return f"{summary['steps']:,} steps, loss {summary['loss']:.4f}"


def stage(settings: Settings) -> Stage:
    """Returns the stage; its code is the recipe's own."""
    return Stage(
        id="Trainer",
        inputs={
            "examples": "Transform.transformed_examples",
            "transform_graph": "Transform.transform_graph",
            "schema": "ImportSchemaGen.schema",
        },
        build=_build,
        settings=_settings,
        code=(f"{settings.user_code}.trainer",),
        summary=_summary,
    )
