"""The Pusher's work without TFX: from its spec and the directories of its inputs to a published version."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core import fingerprint
from core.errors import ConfigError
from core.manifest import Provenance
from serving.publish import Published, publish
from serving.smoke import smoke_test
from serving.target import Target
from serving.warmup import example_input, read_examples, warmup_file

VERDICT_FILE = "verdict.json"
_MIB = 1 << 20
# With no warm-up records wanted, the smoke test still asks the model once.
_SMOKE_EXAMPLES = 1


@dataclasses.dataclass(frozen=True)
class PushSpec:
    """The Pusher's parameter.

    Attributes:
        root: Serving root: a local directory or `s3://bucket/prefix`.
        project: First level under the root.
        model: Name that the model is served under.
        keep_versions: Newest versions that stay.
        min_free_mib: MiB that must stay free on a local target.
        warmup_records: Examples stored for warm-up, 0 to 1000.
        s3_endpoint: URL of an S3-compatible server; None for the client's default.
        run_id: The run, for the manifest; empty takes the orchestrator's own.
        digests: Content digests for the manifest: data, code, settings.
    """

    root: str
    project: str
    model: str
    keep_versions: int
    min_free_mib: int
    warmup_records: int
    s3_endpoint: str | None = None
    run_id: str = ""
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> PushSpec:
        """Returns the spec of a JSON object.

        Raises:
            ConfigError: It is no JSON object, or has missing or unknown keys.
        """
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"the Pusher's spec is wrong: {error}", place="Pusher.spec") from error

    @property
    def target(self) -> Target:
        """Where the model is served from."""
        return Target.lasting(self.root, self.project, self.model, self.s3_endpoint)


def push_model(spec: PushSpec, model_dir: Path, examples_dir: Path | None, evaluation_dir: Path | None) -> Published:
    """Smoke-tests a model as a server would load it, adds warm-up records and publishes it.

    Args:
        spec: The Pusher's parameter.
        model_dir: The SavedModel.
        examples_dir: TFRecord files of raw tf.Examples for warm-up; None pushes without.
        evaluation_dir: May hold the Evaluator's verdict.json, whose metrics and gates enter the manifest.

    Raises:
        GateRefusedError: A server could not load the model or get an answer from it.
        ForebayError: As for `serving.publish.publish`.
    """
    wanted = max(spec.warmup_records, _SMOKE_EXAMPLES)
    examples = read_examples(examples_dir, wanted) if examples_dir is not None else []
    input_name = example_input(model_dir)
    smoke_test(model_dir, input_name, examples)
    records = examples[: spec.warmup_records]
    warmup = warmup_file(spec.model, input_name, records) if records else None
    return publish(
        model_dir,
        spec.target,
        provenance(spec, read_verdict(evaluation_dir)),
        keep=spec.keep_versions,
        min_free_bytes=spec.min_free_mib * _MIB,
        warmup=warmup,
    )


def provenance(spec: PushSpec, verdict: Mapping[str, Any]) -> Provenance:
    """Returns what the manifest says of the model's origin, this machine included."""
    return Provenance(
        run_id=spec.run_id,
        digests=spec.digests,
        metrics=verdict.get("metrics", {}),
        gates=tuple(verdict.get("gates", ())),
        optimizer=None,
        host=fingerprint.collect(),
        worst_class=verdict.get("worst_class"),
    )


def read_verdict(directory: Path | None) -> dict[str, Any]:
    """Returns the Evaluator's verdict, or {} when there is none."""
    if directory is None or not (directory / VERDICT_FILE).is_file():
        return {}
    verdict: dict[str, Any] = json.loads((directory / VERDICT_FILE).read_text(encoding="utf-8"))
    return verdict
