"""Decides for each node, in order, whether its earlier outputs can be reused, and says why."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from components.baselines.selection import CONTENT_DIGEST
from core.errors import UsageError
from core.files import sha256_json
from pipeline.runners import cache, code_digest
from pipeline.runners.cache import Entry, Output, Parts
from pipeline.stages.stage import RunFacts, Stage

if TYPE_CHECKING:
    from core.settings import Settings
    from pipeline.runners.mlmd import Lineage

# Output key to artifacts, for one finished node.
Made = Mapping[str, Sequence[Output]]


@dataclasses.dataclass(frozen=True)
class Span:
    """Which nodes a run was asked for.

    Attributes:
        first: Node that runs again even where it could be reused; None: no such wish.
        last: Node after which the run stops; None: none.
    """

    first: str | None = None
    last: str | None = None


@dataclasses.dataclass(frozen=True)
class Decision:
    """What happens to one node.

    Attributes:
        stage: The node.
        entry: What is reused; None: the node runs (or is skipped).
        reason: Why, in one sentence.
        parts: What the key is made of; None while an input is still to be made.
        skipped: True for a node outside the asked span.
    """

    stage: Stage
    entry: Entry | None
    reason: str
    parts: Parts | None
    skipped: bool = False

    @property
    def key(self) -> str:
        """The cache key; "" while it cannot be known."""
        return self.parts.key() if self.parts else ""


class Planner:
    """Decides node by node; the outputs of the nodes before are told to it as they become known."""

    def __init__(
        self,
        settings: Settings,
        facts: RunFacts,
        stages: Sequence[Stage],
        lineage: Lineage,
        span: Span,
    ) -> None:
        """Keeps what the decisions depend on.

        Raises:
            UsageError: The span names a node that the graph lacks, or ends before it starts.
        """
        self._settings = settings
        self._facts = facts
        self._lineage = lineage
        self._base = lineage.artifacts
        self._order = [stage.id for stage in stages]
        self._span = checked(span, self._order)
        self._made: dict[str, Made] = {}
        self._code: dict[tuple[str, ...], dict[str, str]] = {}

    def record(self, node_id: str, made: Made) -> None:
        """Tells the planner what a node's outputs are, reused or new."""
        self._made[node_id] = made

    def inputs_of(self, stage: Stage) -> dict[str, list[int]]:
        """Returns {input key: artifact ids} of a node whose upstream nodes are finished."""
        ids = {}
        for key, source in stage.inputs.items():
            producer, _, output = source.partition(".")
            ids[key] = [item.artifact_id for item in self._made[producer].get(output, [])]
        return ids

    def facts_for(self, stage: Stage) -> RunFacts:
        """Returns the facts that a node is built with.

        A consent to pass over the baseline holds for the model that it was given for: when an earlier run's consent
        blessed a model with the same content, a repeated run must not refuse it.
        """
        if "accept_new_baseline" not in stage.facts or self._facts.accept_new_baseline:
            return self._facts
        candidates = self.inputs_of(stage).get("model", [])
        consent = self._lineage.consent(candidates[0]) if candidates else None
        return dataclasses.replace(self._facts, accept_new_baseline=consent)

    def skips(self, stage: Stage) -> bool:
        """True for a node behind the last one asked for."""
        last = self._span.last
        return last is not None and self._order.index(stage.id) > self._order.index(last)

    def resolve(self, stage: Stage) -> dict[str, list[Output]]:
        """Returns what a resolver node picks now; its candidate must be known."""
        candidates = self.inputs_of(stage).get("candidate", [])
        picked = self._lineage.baseline(str(stage.resolves), candidates[0] if candidates else None)
        return {key: [self._as_output(artifact)] for key, artifact in picked.items()}

    def decide(self, stage: Stage) -> Decision:
        """Returns the decision for a node, as far as it can be known now."""
        if self.skips(stage):
            return Decision(stage, None, f"not asked for: after --to {self._span.last}", None, skipped=True)
        parts = self._parts(stage)
        if parts is None:
            waiting = [node for node in stage.upstream() if node not in self._made]
            return self._must_run(stage, f"{waiting[0]} runs first", None)
        if stage.id == self._span.first:
            return Decision(stage, None, "asked for with --from", parts)
        if not self._settings.run.cache:
            return Decision(stage, None, "run.cache is off", parts)
        entry = cache.lookup(self._base, stage.id, parts.key())
        if entry is None:
            earlier = cache.newest(self._base, stage.id)
            reason = cache.difference(earlier.parts, parts) if earlier else "it never ran to its end here"
            return self._must_run(stage, reason, parts)
        obstacle = self._obstacle(stage, entry)
        if obstacle:
            return self._must_run(stage, obstacle, parts)
        return Decision(stage, entry, f"same inputs, code and settings as in run {entry.run_id}", parts)

    def _must_run(self, stage: Stage, reason: str, parts: Parts | None) -> Decision:
        first = self._span.first
        if first is not None and self._order.index(stage.id) < self._order.index(first):
            raise UsageError(
                f"{stage.id} comes before --from {first} and cannot be reused: {reason}",
                hint=f"Use --from {stage.id}, or leave --from out.",
            )
        return Decision(stage, None, reason, parts)

    def _obstacle(self, stage: Stage, entry: Entry) -> str:
        gone = cache.missing(self._base, entry)
        if gone:
            return gone
        if not self._lineage.knows(entry):
            return "ML Metadata has no record of its outputs"
        paths = {key: str(self._base / made[0].path) for key, made in entry.outputs.items() if made}
        return stage.still_good(self._settings, paths)

    def _parts(self, stage: Stage) -> Parts | None:
        """Returns what the key is made of; None while a node upstream is not finished."""
        if any(node not in self._made for node in stage.upstream()):
            return None
        inputs = {}
        for key, source in stage.inputs.items():
            producer, _, output = source.partition(".")
            made = self._made[producer].get(output, [])
            inputs[key] = sha256_json([item.digest for item in made]) if made else ""
        for name in stage.facts:
            inputs[name] = getattr(self.facts_for(stage), name) or ""
        return Parts(
            inputs, cache.flat(stage.settings(self._settings)), self._digests(stage), cache.environment_digest()
        )

    def _digests(self, stage: Stage) -> dict[str, str]:
        if stage.code not in self._code:
            self._code[stage.code] = code_digest.digests(stage.code)
        # How the node is built decides its result too: its arguments stand there.
        build = hashlib.sha256(inspect.getsource(stage.build).encode("utf-8")).hexdigest()
        return {**self._code[stage.code], f"{stage.build.__module__}.{stage.build.__name__}": build}

    def _as_output(self, artifact: Any) -> Output:
        known = (
            artifact.custom_properties[CONTENT_DIGEST].string_value
            if CONTENT_DIGEST in artifact.custom_properties
            else ""
        )
        if known:
            return Output(artifact.id, artifact.uri, known, {})
        return cache.describe(self._base, artifact.id, artifact.uri)


def checked(span: Span, order: Sequence[str]) -> Span:
    """Returns the span with the nodes' own spelling.

    Raises:
        UsageError: It names a node that the graph lacks, or ends before it starts.
    """
    names = {name.lower(): name for name in order}
    found = {}
    for flag, name in (("--from", span.first), ("--to", span.last)):
        if name is not None and name.lower() not in names:
            near = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=0.4)
            hint = f"Did you mean {names[near[0]]}?" if near else f"Nodes: {', '.join(order)}."
            raise UsageError(f"no node {name!r}", place=flag, hint=hint)
        found[flag] = names[name.lower()] if name is not None else None
    first, last = found["--from"], found["--to"]
    if first and last and order.index(first) > order.index(last):
        raise UsageError(f"--from {first} comes after --to {last}", hint="Swap them.")
    return Span(first, last)
