"""Pusher: a blessed model becomes a version that a server may load."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.stages.stage import Channels, RunFacts, Stage
from serving.target import Target, is_s3

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


def _receipt(outputs: Mapping[str, str]) -> dict[str, Any]:
    from components.pusher import receipt

    return receipt.read(outputs["pushed_model"])


def _target(settings: Settings) -> Target:
    """Returns where the model is served from; a local root is absolute, so that the answer outlives this folder."""
    serving = settings.serving
    root = serving.root if is_s3(serving.root) else os.path.abspath(serving.root)
    return Target(root, settings.project, settings.recipe, serving.s3_endpoint)


def _still_good(settings: Settings, outputs: Mapping[str, str]) -> str:
    """A push may stand while its version is there and no other run has pushed another model since.

    Rollbacks do not count: a repeated run must not undo what an operator did in the night. An object store is not
    asked: a run in which nothing changed should need no network.
    """
    from serving import history
    from serving.stores import open_store

    pushed, target = _receipt(outputs), _target(settings)
    if target.is_s3 or not pushed["pushed"]:
        return ""
    known = history.manifests(open_store(target))
    if pushed["version"] not in {manifest.version for manifest in known}:
        return f"version {pushed['version']} is gone from {target.location}"
    by_runs = [manifest for manifest in known if manifest.pushed_by == "run"]
    newest = max(by_runs, key=lambda manifest: manifest.version, default=None)
    if newest is not None and newest.model_digest != pushed["model_digest"]:
        return f"another run has pushed version {newest.version} since"
    return ""


def _summary(outputs: Mapping[str, str]) -> str:
    pushed = _receipt(outputs)
    return f"version {pushed['version']}" if pushed["pushed"] else str(pushed["reason"])


def _publication(settings: Settings, outputs: Mapping[str, str]) -> Mapping[str, Any]:
    pushed = _receipt(outputs)
    if not pushed["pushed"]:
        return {}
    version = pushed["version"]
    path = _target(settings).version_location(version)
    return {"version": version, "path": path, "reused": pushed["reused"], "warnings": pushed["warnings"]}


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
    summary=_summary,
    publication=_publication,
    still_good=_still_good,
)
