"""The ExampleGen node for photos: a tree of class folders becomes splits of tf.Example."""

from __future__ import annotations

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import channel_utils, standard_artifacts

from components.ingest import spec as spec_text
from components.ingest.artifacts import IngestReport
from components.ingest.component import ExampleGenSpec
from components.ingest.images.executor import Executor


class ImageExampleGen(base_beam_component.BaseBeamComponent):
    """Reads photos into splits; the node's id is ExampleGen, as for tables.

    Outputs: `examples` (gzip TFRecord of tf.Example in Split-<name>/) and `ingest_report`.

    Args:
        spec: The settings, as `components.ingest.spec.dump` writes them.
        source_digest: Digest of the photos' content and names (`sources.content_digest`): a changed byte makes it
            another execution for ML Metadata's cache; the executor itself refuses photos that changed since.
    """

    SPEC_CLASS = ExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(self, spec: str, source_digest: str) -> None:
        # Invalid settings fail here, while the graph is built, and not in the middle of a run.
        spec_text.parse(spec)
        outputs = {
            "examples": channel_utils.as_channel([standard_artifacts.Examples()]),
            "ingest_report": channel_utils.as_channel([IngestReport()]),
        }
        super().__init__(spec=ExampleGenSpec(spec=spec, source_digest=source_digest, **outputs))
        self.with_id("ExampleGen")
