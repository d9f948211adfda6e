"""Runs the graph on this machine: what can be reused is reused before TFX is even imported."""

from __future__ import annotations

import datetime

from core.settings import metadata
from pipeline import assembly
from pipeline.runners import lock, mlmd
from pipeline.runners.layout import PipelineRoot, locate, new_run_id, open_root
from pipeline.runners.plan import Decision, Planner, checked
from pipeline.runners.records import RunRecord
from pipeline.runners.request import Request, facts_of
from pipeline.runners.screen import Screen
from pipeline.runners.walk import Walk


def run(request: Request, screen: Screen) -> RunRecord:
    """Runs the pipeline and returns its record; a refused or failed node is in the record, not raised.

    Raises:
        LockedError: Another run is using the pipeline root.
        ConfigError: The settings cannot work.
        DataError: There is no input data.
        EnvironmentProblem: The pipeline root cannot be used.
    """
    settings = request.loaded.settings
    assembly.check_settings(settings)
    root = open_root(settings.run.root, assembly.pipeline_name(settings))
    run_id = new_run_id(datetime.datetime.now(datetime.timezone.utc))

    def waiting(owner: lock.Owner | None) -> None:
        who = f"run {owner.run_id} (pid {owner.pid} on {owner.host})" if owner else "another run"
        screen.line(f"waiting up to {settings.run.wait_s} s for {who}")

    with lock.hold(root.lock, run_id, wait_s=settings.run.wait_s, on_wait=waiting) as previous:
        if previous is not None:
            screen.line(f"run {previous.run_id} (pid {previous.pid}) was killed; its lock is taken over")
        return Walk(request, root, run_id, screen).execute()


def preview(request: Request) -> list[Decision]:
    """Returns what a run would do with each node, and why, without running or recording anything.

    Nodes behind one that would run cannot be decided yet; their reason says for whom they wait.
    """
    settings, stages = request.loaded.settings, assembly.stages(request.loaded.settings)
    assembly.check_settings(settings)
    name = assembly.pipeline_name(settings)
    root = PipelineRoot(locate(settings.run.root) / name)
    facts = facts_of(request, "")
    if settings.run.metadata == metadata.SQLITE and not root.sqlite.is_file():
        checked(request.span, [stage.id for stage in stages])
        return [Decision(stage, None, "it never ran to its end here", None) for stage in stages]
    lineage = mlmd.Lineage(mlmd.connection(settings.run.metadata, root), name, root)
    planner = Planner(settings, facts, stages, lineage, request.span)
    decisions: list[Decision] = []
    for stage in stages:
        if stage.resolves:
            if all(node.entry for node in decisions if node.stage.id in stage.upstream()):
                planner.record(stage.id, planner.resolve(stage))
            continue
        decision = planner.decide(stage)
        if decision.entry is not None:
            planner.record(stage.id, decision.entry.outputs)
        decisions.append(decision)
    return decisions
