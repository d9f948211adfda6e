"""Pusher: a blessed model becomes a version that a server may load."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.stages.stage import Channels, RunFacts, Stage
from serving.target import Target

if TYPE_CHECKING:
    from core.errors import ForebayError
    from core.settings import Settings
    from serving.standing import Standing

# The target is checked before there is a model whose size could be asked for: no real one is smaller.
_LEAST_MODEL_BYTES = 1 << 16


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
    serving = settings.serving
    return Target.lasting(serving.root, settings.project, settings.recipe, serving.s3_endpoint)


def check_target(settings: Settings) -> None:
    """Raises what would stop the push, as far as it can be known before there is a model; touches nothing.

    Raises:
        ConfigError: The serving root cannot be one.
        EnvironmentProblem: It cannot be written, is nearly full, holds a name that servers would serve for ever, or
            is in S3 without boto3 or credentials.
        RemoteServiceError: The object store does not answer, has no such bucket, or does not allow it.
        RetryableError: The object store is overloaded.
    """
    from serving import layout
    from serving.stores import open_store

    target = _target(settings)
    store = open_store(target)
    store.check(_LEAST_MODEL_BYTES, settings.serving.min_free_mib << 20)
    layout.next_version(store.entries(), time.time(), target.location)


def _look(settings: Settings, pushed: Mapping[str, Any]) -> Standing | ForebayError:
    """Returns how a push stands, or why an object store could not be asked.

    A run in which nothing changed needs no network: it goes on, and its verdict says what was not checked.
    """
    from core.errors import EnvironmentProblem, RemoteServiceError, RetryableError
    from serving import standing
    from serving.stores import open_store

    target = _target(settings)
    try:
        return standing.look(open_store(target), pushed["version"], pushed["model_digest"])
    except (EnvironmentProblem, RemoteServiceError, RetryableError) as error:
        if target.is_s3:
            return error
        raise


def _still_good(settings: Settings, outputs: Mapping[str, str]) -> str:
    """A push may stand while its version is there and no other run has pushed another model since.

    Rollbacks do not count, even when retention has deleted the version that was left: a repeated run must not undo
    what an operator did in the night.
    """
    pushed = _receipt(outputs)
    if not pushed["pushed"]:
        return ""
    found = _look(settings, pushed)
    if isinstance(found, Exception):
        return ""
    if found.newer_run is not None:
        return f"another run has pushed version {found.newer_run} since"
    if found.was_left or found.is_readable:
        return ""
    if found.is_there:
        return f"the manifest of version {found.version} cannot be read"
    return f"version {found.version} is gone from {_target(settings).location}"


def _summary(outputs: Mapping[str, str]) -> str:
    pushed = _receipt(outputs)
    return f"version {pushed['version']}" if pushed["pushed"] else str(pushed["reason"])


def _publication(settings: Settings, outputs: Mapping[str, str]) -> Mapping[str, Any]:
    pushed = _receipt(outputs)
    if not pushed["pushed"]:
        return {}
    version = pushed["version"]
    path = _target(settings).version_location(version)
    published = {"version": version, "path": path, "reused": pushed["reused"], "warnings": pushed["warnings"]}
    found = _look(settings, pushed)
    if isinstance(found, Exception):
        unchecked = f"whether version {version} still serves could not be checked: {found}"
        return {**published, "warnings": [unchecked, *pushed["warnings"]]}
    if found.serves:
        return published
    return {**published, "serving": found.serving, "warnings": [_not_serving(found), *pushed["warnings"]]}


def _not_serving(found: Standing) -> str:
    """Returns which version serves in place of the pushed one, and why."""
    state = "is" if found.is_there else "was"
    ours = f"this run's model {state} version {found.version}{'' if found.is_there else ', which is gone'}"
    if found.serving is None:
        return f"no version serves; {ours}"
    manifest = found.serving_manifest
    if manifest is None:
        return f"version {found.serving} serves, which Forebay did not push or whose manifest cannot be read; {ours}"
    if manifest.rollback:
        return f"version {found.serving} serves since a rollback ({manifest.rollback.reason}); {ours}"
    by = f" by run {manifest.provenance.run_id}" if manifest.provenance.run_id else ""
    return f"version {found.serving} serves, pushed{by}; {ours}"


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
