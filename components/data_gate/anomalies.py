"""Schema anomalies become gate results that name feature, value, limit and rows.

TFDV decides that something is an anomaly, of which kind, and says why. The measured value, the limit and the number
of rows are ours: read from the statistics and the schema, or counted in the examples where statistics only estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.data_gate.dataset import Dataset
from components.data_gate.finding import CountOutside, Finding, describe
from components.data_gate.policy import Policy
from core.gates import GateResult, Status

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2


def schema_results(
    anomalies: anomalies_pb2.Anomalies,
    schema: schema_pb2.Schema,
    data: Dataset,
    policy: Policy,
    count_outside: CountOutside,
) -> list[GateResult]:
    """Returns one result for each reason of each anomaly of a split, or a single pass.

    Args:
        anomalies: What TFDV found in the split.
        schema: The schema that it was held against.
        data: Statistics of the split.
        policy: Severity by feature and kind.
        count_outside: Counts the examples whose value lies outside a range.
    """
    found = [(".".join(info.path.step) or key, info) for key, info in sorted(anomalies.anomaly_info.items())]
    if anomalies.HasField("dataset_anomaly_info"):
        found.append(("", anomalies.dataset_anomaly_info))
    results = []
    for feature, info in found:
        for reason in info.reason:
            kind = type(info).Type.Name(reason.type).lower()
            finding = describe(kind, feature, schema, data, count_outside)
            results.append(_result(kind, feature, finding, " ".join(reason.description.split()), data, policy))
    if results:
        return results
    passed = f"split {data.split}: {data.examples} examples fit the schema"
    return [GateResult("data.schema", Status.PASSED, 0, 0, "anomalies", passed, details={"split": data.split})]


def _result(kind: str, feature: str, finding: Finding, tfdv: str, data: Dataset, policy: Policy) -> GateResult:
    return GateResult(
        name=f"data.schema:{feature}" if feature else "data.schema",
        status=Status.FAILED,
        observed=finding.value,
        bound=finding.limit,
        reason=_sentence(kind, feature, finding, tfdv, data),
        severity=policy.severity(kind, feature),
        details={
            "feature": feature or None,
            "kind": kind,
            "split": data.split,
            "rows": finding.rows,
            "rows_exact": finding.exact,
            "examples": data.examples,
            "tfdv": tfdv,
        },
    )


def _sentence(kind: str, feature: str, finding: Finding, tfdv: str, data: Dataset) -> str:
    subject = feature or "the data set"
    if finding.value is None:
        return f"{subject}: {tfdv.rstrip('.')} ({kind}, split {data.split} of {data.examples} rows)"
    value = finding.value if isinstance(finding.value, str) else f"{finding.value:.10g}"
    rows = "an unknown number" if finding.rows is None else f"{'' if finding.exact else 'about '}{finding.rows}"
    return (
        f"{subject}: {value} in {rows} of {data.examples} rows of split {data.split}, limit: {finding.limit} ({kind})"
    )
