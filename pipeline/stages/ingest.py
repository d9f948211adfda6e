"""ExampleGen: rows of tables, or photos, become tf.Examples, and every one of them is accounted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.stages.stage import Channels, RunFacts, Stage, dump

if TYPE_CHECKING:
    from core.settings import Settings


NODE_ID = "ExampleGen"
# Settings of `data` that only one kind of input reads.
_ONLY_TABLES = {"csv", "types", "non_finite", "empty_string", "empty_columns"}
_ONLY_IMAGES = {"images"}


def _settings(settings: Settings) -> Mapping[str, Any]:
    # The path itself does not count: the content of the files does (RunFacts.source_digest).
    unread = {"path"} | (_ONLY_TABLES if settings.is_images else _ONLY_IMAGES)
    return {key: value for key, value in dump(settings.data).items() if key not in unread}


def _build(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from components.ingest import spec

    text = spec.dump(settings.data, settings.run.date)
    if settings.is_images:
        from components.ingest.images.component import ImageExampleGen

        return ImageExampleGen(spec=text, source_digest=facts.source_digest).with_id(NODE_ID)
    from components.ingest.component import ExampleGen

    return ExampleGen(spec=text, source_digest=facts.source_digest)


def _summary(outputs: Mapping[str, str]) -> str:
    report = json.loads((Path(outputs["ingest_report"]) / "ingest_report.json").read_text(encoding="utf-8"))
    set_aside = report["rows_set_aside"]
    what = "photos" if report["kind"] == "images" else "rows"
    rows = f"{sum(report['rows_written'].values()):,} {what}"
    return f"{rows}, {set_aside:,} set aside" if set_aside else rows


def stage(settings: Settings) -> Stage:
    """Returns the stage; photos and tables are read by different executors under one node id."""
    executor = "components.ingest.images.executor" if settings.is_images else "components.ingest.executor"
    return Stage(
        id=NODE_ID,
        inputs={},
        build=_build,
        settings=_settings,
        facts=("source_digest",),
        code=(executor,),
        summary=_summary,
    )
