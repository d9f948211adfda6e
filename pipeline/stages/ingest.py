"""ExampleGen: files become tf.Examples, and every row is accounted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.stages.stage import Channels, RunFacts, Stage, dump

if TYPE_CHECKING:
    from core.settings import Settings


def _settings(settings: Settings) -> Mapping[str, Any]:
    # The path itself does not count: the content of the files does (RunFacts.source_digest).
    return {key: value for key, value in dump(settings.data).items() if key != "path"}


def _build(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from components.ingest import spec
    from components.ingest.component import ExampleGen

    return ExampleGen(spec=spec.dump(settings.data, settings.run.date), source_digest=facts.source_digest)


def _summary(outputs: Mapping[str, str]) -> str:
    report = json.loads((Path(outputs["ingest_report"]) / "ingest_report.json").read_text(encoding="utf-8"))
    set_aside = report["rows_set_aside"]
    rows = f"{sum(report['rows_written'].values()):,} rows"
    return f"{rows}, {set_aside:,} set aside" if set_aside else rows


STAGE = Stage(
    id="ExampleGen",
    inputs={},
    build=_build,
    settings=_settings,
    facts=("source_digest",),
    code=("components.ingest.executor",),
    summary=_summary,
)
