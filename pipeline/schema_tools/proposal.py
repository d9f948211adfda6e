"""Proposes a schema from the data: ingest into a temporary folder, statistics, then TFDV's inference."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        DataError: The data cannot be ingested.
        ConfigError: A setting does not fit the data.
    """
    import tensorflow_data_validation as tfdv

    with tempfile.TemporaryDirectory(prefix="forebay-schema-") as folder:
        statistics = _statistics(settings, Path(folder))
    if curated is None:
        return tfdv.infer_schema(statistics, infer_feature_shape=False, max_string_domain_size=_MOST_VALUES)
    proposal = type(curated)()
    proposal.CopyFrom(curated)
    return tfdv.update_schema(proposal, statistics, infer_feature_shape=False, max_string_domain_size=_MOST_VALUES)


def _statistics(settings: Settings, folder: Path) -> Any:
    """Returns the statistics of all splits together: a schema holds for each of them."""
    import tensorflow_data_validation as tfdv

    from components.ingest import sources
    from components.ingest.ingestion import ingest

    names = list(settings.data.split.shares)
    splits = {name: str(folder / f"Split-{name}") for name in names}
    source = sources.resolve(settings.data.path, kind=settings.data.kind, run_date=settings.run.date)
    ingest(settings.data, source, split_uris=splits, report_dir=str(folder / "report"), progress=None)
    return tfdv.generate_statistics_from_tfrecord(str(folder / "Split-*" / "*"))
