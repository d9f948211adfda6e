"""Artifact types of the ingestion, and what its examples say of themselves."""

from __future__ import annotations

from tfx import types
from tfx import v1 as tfx
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2

from components.ingest.sources import Source


class IngestReport(tfx.dsl.Artifact):
    """Holds ingest_report.json (the counts) and quarantine.jsonl (the rows that were set aside)."""

    TYPE_NAME = "IngestReport"


def describe_examples(examples: types.Artifact, source: Source, digest: str) -> None:
    """Sets the properties that TFX's readers and resolvers look for."""
    examples_utils.set_payload_format(examples, example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    examples.set_string_custom_property("input_fingerprint", digest)
    # TFX's own ExampleGen says span 0 when the pattern has none: resolvers sort by it.
    examples.set_int_custom_property("span", source.span or 0)
    if source.version is not None:
        examples.set_int_custom_property("version", source.version)
