"""What the user asked for, and what is known of the run before its first node."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.files import sha256_json
from pipeline import assembly
from pipeline.runners import cache, code_digest
from pipeline.runners.plan import Span
from pipeline.stages.stage import RunFacts

if TYPE_CHECKING:
    from core.settings import Loaded


@dataclasses.dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        loaded: Settings with their origins.
        span: The nodes asked for.
        command: The command line, for the record.
        accept_new_baseline: Reason to pass over a missing or incompatible baseline; None: no.
    """

    loaded: Loaded
    span: Span = dataclasses.field(default_factory=Span)
    command: Sequence[str] = ()
    accept_new_baseline: str | None = None


def facts_of(request: Request, run_id: str) -> RunFacts:
    """Returns the run's facts; reads the input files once, by content.

    Raises:
        DataError: There is no input data.
    """
    from components.ingest import sources

    settings = request.loaded.settings
    source = sources.resolve(
        settings.data.path,
        kind=settings.data.kind,
        run_date=settings.run.date,
        manifest=settings.data.images.manifest,
    )
    source_digest = sources.content_digest(source)
    modules = [name for stage in assembly.stages(settings) for name in stage.code]
    digests = {
        "data": source_digest,
        "code": sha256_json(code_digest.digests(modules)),
        "settings": sha256_json(settings.model_dump(mode="json", by_alias=True)),
        "environment": cache.environment_digest(),
    }
    return RunFacts(run_id, source_digest, digests, request.accept_new_baseline)
