"""The ingestion's settings as one string, the form in which a TFX node carries them."""

from __future__ import annotations

import datetime
import json

from core.settings.data import DataSettings


def dump(data: DataSettings, run_date: datetime.date | None) -> str:
    """Returns the JSON that `parse` reads; equal settings give equal text."""
    record = {"data": data.model_dump(mode="json"), "run_date": run_date.isoformat() if run_date else None}
    return json.dumps(record, sort_keys=True)


def parse(spec: str) -> tuple[DataSettings, datetime.date | None]:
    """Returns the settings and the run date that `dump` wrote.

    Raises:
        ValueError: The text is not JSON, or a value is not a valid setting (pydantic's error is one).
    """
    record = json.loads(spec)
    day = record["run_date"]
    return DataSettings.model_validate(record["data"]), datetime.date.fromisoformat(day) if day else None
