"""What each kind of finding does to the run, as data_gate.default and data_gate.severity say."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Mapping

from core.errors import ConfigError
from core.gates import Severity

# Findings that are our own; every other kind is one of TFDV's anomaly types in lower case.
MIN_EXAMPLES = "min_examples"
EMPTY_SPLIT = "empty_split"
NON_FINITE = "non_finite_values"
DRIFT = "drift"
SKEW = "skew"
OWN_KINDS = (MIN_EXAMPLES, EMPTY_SPLIT, NON_FINITE, DRIFT, SKEW)


@dataclasses.dataclass(frozen=True)
class Policy:
    """Severity by feature name, else by kind, else the default: the narrower rule wins."""

    default: Severity
    rules: Mapping[str, Severity]

    @classmethod
    def from_settings(cls, data_gate: Mapping[str, object]) -> Policy:
        """Returns the policy of a dumped data_gate section."""
        rules = data_gate["severity"]
        assert isinstance(rules, Mapping)
        return cls(Severity(data_gate["default"]), {key: Severity(value) for key, value in rules.items()})

    def severity(self, kind: str, feature: str = "") -> Severity:
        """Returns what a finding of this kind on this feature does to the run."""
        return self.rules.get(feature) or self.rules.get(kind) or self.default


def known_kinds() -> list[str]:
    """Returns every kind that data_gate.severity may name: ours and TFDV's anomaly types in lower case."""
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    return [*OWN_KINDS, *(name.lower() for name in anomalies_pb2.AnomalyInfo.Type.DESCRIPTOR.values_by_name)]


def check_names(data_gate: Mapping[str, object], features: Collection[str]) -> None:
    """Refuses a rule for something that does not exist: it would silently never apply.

    Args:
        data_gate: Dumped data_gate section.
        features: Names of the features in the schema and in the data.

    Raises:
        ConfigError: Names the key path and the nearest legal name.
    """
    severities = data_gate["severity"]
    assert isinstance(severities, Mapping)
    _refuse_unknown("data_gate.severity", severities, [*known_kinds(), *features])
    for scope in (DRIFT, SKEW):
        limits = data_gate[scope]
        assert isinstance(limits, Mapping)
        _refuse_unknown(f"data_gate.{scope}.per_feature", limits["per_feature"], list(features))


def _refuse_unknown(place: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = (
                f"Did you mean {near[0]!r}?" if near else "Name a feature of the schema or a kind from docs/gates.md."
            )
            raise ConfigError(
                f"{name!r} is neither a feature nor a kind of finding", place=f"{place}.{name}", hint=hint
            )
