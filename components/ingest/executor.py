"""Unpacks an ExampleGen execution, ingests, and describes what was written."""

from __future__ import annotations

import logging
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from components.ingest import sources, spec
from components.ingest.artifacts import describe_examples
from components.ingest.ingestion import ingest
from components.ingest.report import keep_refused, refused_dir
from components.ingest.splitting import split_names
from core.errors import DataError

_LOG = logging.getLogger(__name__)


class Executor(base_executor.BaseExecutor):
    """Runs the ingestion; it needs no Beam."""

    def Do(  # noqa: N802 - TFX's name
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the splits and the report of one execution.

        Args:
            input_dict: Empty: the input are files.
            output_dict: `examples` and `ingest_report`, one artifact each.
            exec_properties: `spec` and `source_digest`.

        Raises:
            DataError: The data cannot be used, or changed since its digest was taken.
            ConfigError: A setting does not fit the data.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        data, run_date = spec.parse(exec_properties["spec"])
        source = sources.resolve(data.path, kind=data.kind, run_date=run_date)
        if sources.content_digest(source) != exec_properties["source_digest"]:
            raise DataError(
                "the input files changed after this run began",
                place=data.path,
                hint="run again once nothing writes to them",
            )
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        report_artifact = artifact_utils.get_single_instance(output_dict["ingest_report"])
        names = split_names(data.split)
        examples.split_names = artifact_utils.encode_split_names(names)
        try:
            report = ingest(
                data,
                source,
                split_uris={name: artifact_utils.get_split_uri([examples], name) for name in names},
                report_dir=report_artifact.uri,
                progress=lambda rows: _LOG.info("%d rows written", rows),
            )
        except DataError as error:
            raise keep_refused(error, report_artifact.uri, refused_dir(report_artifact.uri)) from error
        describe_examples(examples, source, str(exec_properties["source_digest"]))
        _LOG.info("%s", report.summary)
        for warning in report.warnings:
            _LOG.warning("%s", warning)
