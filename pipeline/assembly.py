"""The table of contents: from settings to one graph. What each stage is stands in pipeline/stages/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.stages import evaluate, ingest, push, train, transform, validate
from pipeline.stages.stage import RunFacts, Stage

if TYPE_CHECKING:
    from core.settings import Settings

BEAM_FLAGS = (
    # One process: on few cores, starting workers costs more than they bring.
    "--direct_running_mode=in_memory",
    "--direct_num_workers=1",
    # Beam pickles every function of a graph, and cloudpickle is the faster of its picklers; the types between steps
    # are TFX's own and need no check in every run.
    "--pickle_library=cloudpickle",
    "--no_pipeline_type_check",
    # Nothing runs in a container here. Without a name for one, TFX builds a source package of itself for remote
    # workers at the start of every node, which takes seconds.
    "--sdk_container_image=none",
)


def stages(settings: Settings) -> list[Stage]:
    """Returns the stages in the order in which they run. Imports no TFX."""
    return [
        ingest.stage(settings),
        validate.SCHEMA,
        validate.STATISTICS,
        validate.ACCEPTED_STATISTICS,
        validate.DATA_GATE,
        transform.stage(settings),
        train.stage(settings),
        evaluate.BLESSED_MODEL,
        evaluate.EVALUATOR,
        push.STAGE,
    ]


def pipeline_name(settings: Settings) -> str:
    """Returns the name of the pipeline in ML Metadata and on disk."""
    return f"{settings.project}.{settings.recipe}"


def assemble(settings: Settings, facts: RunFacts, *, pipeline_root: str, metadata_config: Any = None) -> Any:
    """Returns the `tfx` Pipeline, the same for every runner.

    Args:
        settings: Validated settings.
        facts: What is known of this run.
        pipeline_root: Where artifacts go.
        metadata_config: MLMD connection; None where the runner brings its own.
    """
    from tfx.orchestration.pipeline import Pipeline

    nodes: dict[str, Any] = {}
    for stage in stages(settings):
        channels = {}
        for key, source in stage.inputs.items():
            producer, _, output = source.partition(".")
            channels[key] = nodes[producer].outputs[output]
        node = stage.build(settings, facts, channels)
        for upstream in stage.after:
            node.add_upstream_node(nodes[upstream])
        nodes[stage.id] = node
    return Pipeline(
        pipeline_name=pipeline_name(settings),
        pipeline_root=pipeline_root,
        metadata_connection_config=metadata_config,
        components=list(nodes.values()),
        enable_cache=False,
        beam_pipeline_args=list(BEAM_FLAGS),
    )


def check_settings(settings: Settings) -> None:
    """Refuses what can be known to fail before anything runs.

    Raises:
        ConfigError: A file that does not exist, a metric or a name that no stage knows.
        DataError: No input data for the run's date.
    """
    from pipeline.stages import checks

    checks.check(settings)
    evaluate.check(settings)
