"""Evaluator: metrics, slices and the verdict, against absolute bounds and the newest blessed model."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ConfigError
from core.gates import GateResult, refusal_line
from pipeline.stages.stage import Channels, RunFacts, Stage, dump

if TYPE_CHECKING:
    from core.settings import Settings


def check(settings: Settings) -> None:
    """Refuses a threshold on a metric that does not exist, and thresholds that every model meets.

    Raises:
        ConfigError: Names the metric and the nearest one, or asks for a bound that can refuse.
    """
    from components.evaluator.metrics import can_refuse, known_metrics

    known = known_metrics(_task(settings))
    for name in settings.evaluate.thresholds:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(known)}."
            raise ConfigError(f"unknown metric {name!r}", place=f"evaluate.thresholds.{name}", hint=hint)
    if not any(can_refuse(name, bound.min, bound.max) for name, bound in settings.evaluate.thresholds.items()):
        raise ConfigError(
            "no bound that a bad model could miss",
            place="evaluate.thresholds",
            hint=f"Bound one metric on the side on which it gets worse, for example {known[0]}: {{min: 0.7}}.",
        )


def _task(settings: Settings) -> str:
    from components.evaluator.metrics import BINARY, CLASSIFICATION

    return CLASSIFICATION if settings.is_images else BINARY


def _settings(settings: Settings) -> Mapping[str, Any]:
    decides = {"task": _task(settings), "evaluate": dump(settings.evaluate)}
    # Photos carry their class as text; a table's label is made by the recipe.
    return decides if settings.is_images else {**decides, "label": dump(settings.label)}


def _build_blessed(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.types import standard_artifacts
    from tfx.types.channel import Channel

    from components.baselines.strategies import LatestBlessedModel

    return Resolver(
        strategy_class=LatestBlessedModel,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
        candidate=channels["candidate"],
    ).with_id(BLESSED_MODEL.id)


def _build_evaluator(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from components.evaluator.component import Evaluator

    spec = {**_settings(settings), "accept_new_baseline": facts.accept_new_baseline}
    return Evaluator(
        examples=channels["examples"],
        model=channels["model"],
        baseline_model=channels["baseline_model"],
        schema=channels["schema"],
        spec=json.dumps(spec, sort_keys=True),
    )


def _verdict(outputs: Mapping[str, str]) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads((Path(outputs["evaluation"]) / "verdict.json").read_text(encoding="utf-8"))
    return verdict


def _summary(outputs: Mapping[str, str]) -> str:
    verdict = _verdict(outputs)
    name, value = next(iter(verdict["metrics"].items()), ("", None))
    measured = f"{name} {value:.4f}, " if isinstance(value, float) else ""
    return measured + ("blessed" if verdict["blessed"] else "not blessed")


def _refusal(outputs: Mapping[str, str]) -> str:
    return refusal_line(GateResult.from_dict(gate) for gate in _verdict(outputs)["gates"])


BLESSED_MODEL = Stage(
    id="latest_blessed_model_resolver",
    inputs={"candidate": "Trainer.model"},
    build=_build_blessed,
    resolves="model",
)

EVALUATOR = Stage(
    id="Evaluator",
    inputs={
        "examples": "ExampleGen.examples",
        "model": "Trainer.model",
        "baseline_model": "latest_blessed_model_resolver.model",
        "schema": "ImportSchemaGen.schema",
    },
    build=_build_evaluator,
    settings=_settings,
    code=("components.evaluator.executor",),
    facts=("accept_new_baseline",),
    summary=_summary,
    refusal=_refusal,
)
