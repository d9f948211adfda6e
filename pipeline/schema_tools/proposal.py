"""Proposes a schema from the data: ingest into a temporary folder, statistics, then TFDV's inference."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import DataError, UsageError
from pipeline.schema_tools.schema_file import refused_path

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2

    from core.settings import Settings

# A text column with more values than this gets no list of allowed values.
_MOST_VALUES = 50


def propose(settings: Settings, curated: schema_pb2.Schema | None) -> schema_pb2.Schema:
    """Returns a schema that the data of these settings fits.

    Args:
        settings: `data` says what is read; `run.date` chooses the span.
        curated: The schema in force. The proposal is then that schema, relaxed where the data breaks it and with the
            new columns added; limits that hold stay as a person set them. None infers everything from the data.

    Raises:
        DataError: The data cannot be ingested; report and quarantine are kept beside the schema file.
        ConfigError: A setting does not fit the data.
        UsageError: The recipe reads photos, whose features are given.
    """
    if settings.is_images:
        hint = "Name the shipped one: schema.path: data/schemas/clothing.pbtxt; it fits any classes."
        raise UsageError("every set of photos has the same schema: there is nothing to infer", hint=hint)
    with tempfile.TemporaryDirectory(prefix="forebay-schema-") as folder:
        examples = _ingested(settings, Path(folder))
        # Only now: TensorFlow takes seconds to load, and data that is refused needs none of it.
        import tensorflow_data_validation as tfdv

        statistics = tfdv.generate_statistics_from_tfrecord(examples)
    if curated is None:
        return tfdv.infer_schema(statistics, infer_feature_shape=False, max_string_domain_size=_MOST_VALUES)
    proposal = type(curated)()
    proposal.CopyFrom(curated)
    return tfdv.update_schema(proposal, statistics, infer_feature_shape=False, max_string_domain_size=_MOST_VALUES)


def _ingested(settings: Settings, folder: Path) -> str:
    """Returns a glob of the examples of all splits together: a schema holds for each of them."""
    from components.ingest import sources
    from components.ingest.ingestion import ingest
    from components.ingest.report import keep_refused

    names = list(settings.data.split.shares)
    splits = {name: str(folder / f"Split-{name}") for name in names}
    source = sources.resolve(settings.data.path, kind=settings.data.kind, run_date=settings.run.date)
    report = str(folder / "report")
    try:
        ingest(settings.data, source, split_uris=splits, report_dir=report, progress=None)
    except DataError as error:
        raise keep_refused(error, report, str(refused_path(Path(settings.schema_.path)))) from error
    return str(folder / "Split-*" / "*")
