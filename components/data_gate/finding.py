"""What is wrong with a feature, in numbers: the value, the limit, and how many rows.

The numbers are our own: TFDV names the kind of an anomaly and describes it, but counts no rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from components.data_gate.dataset import Dataset, type_name
from components.data_gate.distributions import categorical_counts, numeric_histogram

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

# (split, feature, low, high) -> number of examples with a NaN, an infinity or a value outside [low, high];
# None when the examples are not at hand.
CountOutside = Callable[[str, str, float, float], "int | None"]

_PRESENCE_KINDS = (
    "feature_type_low_fraction_present",
    "feature_type_low_number_present",
    "feature_type_not_present",
    "schema_missing_column",
)
_RANGE_KINDS = ("int_type_big_int", "int_type_small_int", "float_type_big_float", "float_type_small_float")
# Values outside a domain that a sentence lists; the number of the others follows.
_LISTED_VALUES = 3


@dataclasses.dataclass(frozen=True)
class Finding:
    """One anomaly in numbers.

    Attributes:
        value: What was measured; None when the anomaly has no number of its own.
        limit: What the schema allows.
        rows: Number of examples concerned; None when it is not known.
        exact: False when `rows` is estimated from a histogram.
    """

    value: float | str | None = None
    limit: float | str | None = None
    rows: int | None = None
    exact: bool = True


def describe(kind: str, feature: str, schema: schema_pb2.Schema, data: Dataset, count_outside: CountOutside) -> Finding:
    """Returns an anomaly in numbers.

    Args:
        kind: TFDV's anomaly type in lower case.
        feature: Name of the feature; empty for an anomaly of the whole data set.
        schema: The schema that was broken.
        data: Statistics of the split.
        count_outside: Counts examples outside a range where the statistics only hold a histogram.
    """
    statistics = data.features.get(feature)
    wanted = next((item for item in schema.feature if item.name == feature), None)
    if kind in _PRESENCE_KINDS and wanted is not None:
        return _presence(wanted, data)
    if statistics is None:
        return Finding()
    if kind == "schema_new_column":
        return Finding(f"values of type {type_name(statistics)}", "not in the schema", data.filled(feature))
    if wanted is None:
        return Finding()
    if kind == "unexpected_data_type":
        expected = type(wanted).DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[wanted.type].name
        return Finding(f"values of type {type_name(statistics)}", f"type {expected}", data.filled(feature))
    if kind == "enum_type_unexpected_string_values":
        return _outside_domain(wanted, schema, statistics)
    if kind in _RANGE_KINDS:
        return _outside_range(kind, wanted, statistics, data, count_outside)
    return Finding()


def _presence(wanted: schema_pb2.Feature, data: Dataset) -> Finding:
    filled = data.filled(wanted.name)
    share = filled / data.examples if data.examples else 0.0
    needed = wanted.presence.min_fraction
    limit = f"at least {needed:g}" if needed else f"at least {max(1, wanted.presence.min_count)} filled rows"
    return Finding(f"no value (share filled {share:.4g})", limit, data.examples - filled)


def _outside_domain(
    wanted: schema_pb2.Feature, schema: schema_pb2.Schema, statistics: statistics_pb2.FeatureNameStatistics
) -> Finding:
    domain = next((item for item in schema.string_domain if item.name == wanted.domain), wanted.string_domain)
    counts = categorical_counts(statistics.string_stats)
    foreign = {value: count for value, count in counts.items() if value not in domain.value}
    if not foreign:
        return Finding()
    listed = ", ".join(repr(value) for value in list(foreign)[:_LISTED_VALUES])
    more = f" and {len(foreign) - _LISTED_VALUES} more values" if len(foreign) > _LISTED_VALUES else ""
    # The rank histogram keeps the most frequent values only; when it is cut, the count is a lower bound.
    complete = len(counts) >= statistics.string_stats.unique
    return Finding(listed + more, _shortened(list(domain.value)), round(sum(foreign.values())), complete)


def _shortened(values: list[str], most: int = 8) -> str:
    text = ", ".join(repr(value) for value in values[:most])
    return f"one of {text}" + (f" and {len(values) - most} more" if len(values) > most else "")


def _outside_range(
    kind: str,
    wanted: schema_pb2.Feature,
    statistics: statistics_pb2.FeatureNameStatistics,
    data: Dataset,
    count_outside: CountOutside,
) -> Finding:
    low, high = domain_range(wanted)
    limit = (
        f"{low:.10g} to {high:.10g}"
        if math.isfinite(low + high)
        else (f"at most {high:.10g}" if math.isfinite(high) else f"at least {low:.10g}")
    )
    too_big = kind.startswith(("int_type_big", "float_type_big"))
    if statistics.WhichOneof("stats") == "string_stats":
        counts = {float(value): count for value, count in categorical_counts(statistics.string_stats).items()}
        foreign = {value: count for value, count in counts.items() if not low <= value <= high}
        if not foreign:
            return Finding()
        extreme = max(foreign) if too_big else min(foreign)
        return Finding(extreme, limit, round(sum(foreign.values())), len(counts) >= statistics.string_stats.unique)
    numeric = statistics.num_stats
    extreme = numeric.max if too_big else numeric.min
    counted = count_outside(data.split, wanted.name, low, high)
    if counted is not None:
        return Finding(extreme, limit, counted)
    histogram = numeric_histogram(numeric)
    if histogram is None:
        return Finding(extreme, limit, None, False)
    inside = histogram.at_most(high) - histogram.at_most(math.nextafter(low, -math.inf))
    return Finding(extreme, limit, max(1, round(histogram.total - inside)), False)


def domain_range(wanted: schema_pb2.Feature) -> tuple[float, float]:
    """Returns the smallest and largest value that a feature's numeric domain allows; infinite where it is open."""
    kind = wanted.WhichOneof("domain_info")
    if kind not in ("int_domain", "float_domain"):
        return -math.inf, math.inf
    domain = wanted.int_domain if kind == "int_domain" else wanted.float_domain
    low = float(domain.min) if domain.HasField("min") else -math.inf
    high = float(domain.max) if domain.HasField("max") else math.inf
    return low, high
