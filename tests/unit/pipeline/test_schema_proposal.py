"""A proposal from data that is refused: what is known of it stays beside the schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import DataError, UsageError
from core.settings import load
from core.settings.load import BASE_FILE
from pipeline.schema_tools import proposal, schema_file

pytestmark = pytest.mark.unit


def test_a_refusal_keeps_report_and_quarantine_beside_the_schema(tmp_path: Path) -> None:
    """The file that the error points to is there after the command, holds each bad row, and replaces an older one."""
    table, curated = tmp_path / "table.csv", tmp_path / "schemas" / "messy.pbtxt"
    settings = load(
        [], [f"data.path={table}", f"schema.path={curated}", "evaluate.thresholds.auc.min=0.5", "features.numeric=[id]"]
    ).settings
    for bad in (3, 1):
        table.write_text("id,name\n" + "1,a\n" * 20 + "2\n" * bad, encoding="utf-8")
        with pytest.raises(DataError, match=f"{bad} of {20 + bad} rows") as caught:
            proposal.propose(settings, None)
        kept = schema_file.refused_path(curated)
        assert caught.value.hint.endswith(str(kept / "quarantine.jsonl"))
        lines = (kept / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["line"] for line in lines] == list(range(22, 22 + bad))
        assert json.loads((kept / "ingest_report.json").read_text(encoding="utf-8"))["rows_set_aside"] == bad


def test_photos_have_one_schema_and_need_no_proposal() -> None:
    """What the ingestion writes of a photo is given; the answer names the file."""
    settings = load([str(BASE_FILE.parent / "clothing.yaml")]).settings
    with pytest.raises(UsageError, match=r"clothing\.pbtxt"):
        proposal.propose(settings, None)
