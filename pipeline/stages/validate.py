"""StatisticsGen, the curated schema and the DataGate: what the data is, what it should be, and whether it may pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.files import sha256_file
from core.gates import GateResult, Status, blocking, refusal_line
from pipeline.stages.stage import Channels, RunFacts, Stage, dump

if TYPE_CHECKING:
    from core.settings import Settings

_QUANTILE_BUCKETS = 64


def _build_statistics(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from tensorflow_data_validation import StatsOptions
    from tfx.components.statistics_gen.component import StatisticsGen

    # The schema tells codes from quantities; drift is measured on quantile buckets, and ten of them are too coarse.
    options = StatsOptions(num_quantiles_histogram_buckets=_QUANTILE_BUCKETS)
    return StatisticsGen(examples=channels["examples"], schema=channels["schema"], stats_options=options)


def _build_schema(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen

    return ImportSchemaGen(schema_file=settings.schema_.path)


def _build_accepted(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.types import standard_artifacts
    from tfx.types.channel import Channel

    from components.baselines.strategies import LatestAcceptedStatistics
    from components.data_gate.component import DataGateReport

    return Resolver(
        strategy_class=LatestAcceptedStatistics,
        statistics=Channel(type=standard_artifacts.ExampleStatistics),
        gate_report=Channel(type=DataGateReport),
        candidate=channels["candidate"],
    ).with_id(ACCEPTED_STATISTICS.id)


def _build_gate(settings: Settings, facts: RunFacts, channels: Channels) -> Any:
    from components.data_gate.component import DataGate

    return DataGate(
        statistics=channels["statistics"],
        schema=channels["schema"],
        baseline_statistics=channels["baseline_statistics"],
        examples=channels["examples"],
        spec=json.dumps({"data_gate": dump(settings.data_gate)}, sort_keys=True),
    )


def _report(outputs: Mapping[str, str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((Path(outputs["gate_report"]) / "report.json").read_text(encoding="utf-8"))
    return report


def _gate_summary(outputs: Mapping[str, str]) -> str:
    gates = [GateResult.from_dict(gate) for gate in _report(outputs)["gates"]]
    blocked = len(blocking(gates))
    warned = sum(gate.status is Status.FAILED and not gate.blocks for gate in gates)
    passed = sum(gate.status is Status.PASSED for gate in gates)
    return f"{passed} checks passed, {warned} warned, {blocked} blocked"


def _gate_refusal(outputs: Mapping[str, str]) -> str:
    return refusal_line(GateResult.from_dict(gate) for gate in _report(outputs)["gates"])


SCHEMA = Stage(
    id="ImportSchemaGen",
    inputs={},
    build=_build_schema,
    settings=lambda settings: {"schema_sha256": sha256_file(settings.schema_.path)},
    summary=lambda outputs: "curated",
)

STATISTICS = Stage(
    id="StatisticsGen",
    inputs={"examples": "ExampleGen.examples", "schema": "ImportSchemaGen.schema"},
    build=_build_statistics,
    settings=lambda settings: {"quantile_buckets": _QUANTILE_BUCKETS},
)

ACCEPTED_STATISTICS = Stage(
    id="latest_accepted_statistics_resolver",
    inputs={"candidate": "StatisticsGen.statistics"},
    build=_build_accepted,
    resolves="statistics",
)

DATA_GATE = Stage(
    id="DataGate",
    inputs={
        "statistics": "StatisticsGen.statistics",
        "schema": "ImportSchemaGen.schema",
        "baseline_statistics": "latest_accepted_statistics_resolver.statistics",
        "examples": "ExampleGen.examples",
    },
    build=_build_gate,
    settings=lambda settings: {"data_gate": dump(settings.data_gate)},
    code=("components.data_gate.executor",),
    summary=_gate_summary,
    refusal=_gate_refusal,
)
