"""Pusher: a blessed model becomes a version that a server may load."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.stages.stage import Channels, RunFacts, Stage

if TYPE_CHECKING:
    from core.settings import Settings


def _settings(settings: Settings) -> Mapping[str, Any]:
    # Retention and free space do not change what is pushed.
    serving = settings.serving
    return {
        "root": serving.root,
        "project": settings.project,
        "model": settings.recipe,
        "warmup_records": serving.warmup_records,
        "s3_endpoint": serving.s3_endpoint,
    }


def _build(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from components.pusher.component import Pusher

    spec = {
        **_settings(settings),
        "keep_versions": settings.serving.keep_versions,
        "min_free_mib": settings.serving.min_free_mib,
        "run_id": facts.run_id,
        "digests": dict(facts.digests),
    }
    return Pusher(
        model=channels["model"],
        model_blessing=channels["model_blessing"],
        examples=channels["examples"],
        evaluation=channels["evaluation"],
        spec=json.dumps(spec, sort_keys=True),
    )


STAGE = Stage(
    id="Pusher",
    inputs={
        "model": "Trainer.model",
        "model_blessing": "Evaluator.blessing",
        "examples": "ExampleGen.examples",
        "evaluation": "Evaluator.evaluation",
    },
    build=_build,
    settings=_settings,
    code=("components.pusher.executor",),
)
