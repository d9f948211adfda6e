"""Artifact types of the ingestion."""

from __future__ import annotations

from tfx import v1 as tfx


class IngestReport(tfx.dsl.Artifact):
    """Holds ingest_report.json (the counts) and quarantine.jsonl (the rows that were set aside)."""

    TYPE_NAME = "IngestReport"
