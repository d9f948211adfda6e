"""The ExampleGen node: tables on disk become splits of tf.Example."""

from __future__ import annotations

from typing import Any, ClassVar

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import channel_utils, component_spec, standard_artifacts

from components.ingest import spec as spec_text
from components.ingest.artifacts import IngestReport
from components.ingest.executor import Executor


class ExampleGenSpec(component_spec.ComponentSpec):
    """Parameters and outputs of ExampleGen."""

    PARAMETERS: ClassVar[dict[str, Any]] = {
        "spec": component_spec.ExecutionParameter(type=str),
        "source_digest": component_spec.ExecutionParameter(type=str),
    }
    INPUTS: ClassVar[dict[str, Any]] = {}
    OUTPUTS: ClassVar[dict[str, Any]] = {
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "ingest_report": component_spec.ChannelParameter(type=IngestReport),
    }


class ExampleGen(base_component.BaseComponent):
    """Reads CSV, Parquet or TFRecord files into splits.

    Outputs: `examples` (gzip TFRecord of tf.Example in Split-<name>/) and `ingest_report`.

    Args:
        spec: The settings, as `components.ingest.spec.dump` writes them.
        source_digest: Digest of the files' content (`sources.content_digest`): a changed byte makes it another
            execution for ML Metadata's cache; the executor itself refuses files that changed since.
    """

    SPEC_CLASS = ExampleGenSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(self, spec: str, source_digest: str) -> None:
        # Invalid settings fail here, while the graph is built, and not in the middle of a run.
        spec_text.parse(spec)
        outputs = {
            "examples": channel_utils.as_channel([standard_artifacts.Examples()]),
            "ingest_report": channel_utils.as_channel([IngestReport()]),
        }
        super().__init__(spec=ExampleGenSpec(spec=spec, source_digest=source_digest, **outputs))
