"""How far apart one feature is in two sets of examples, measured by its type."""

from __future__ import annotations

import dataclasses
from typing import Any

from components.data_gate.dataset import Dataset
from components.data_gate.distributions import (
    Histogram,
    categorical_counts,
    jensen_shannon,
    l_infinity,
    numeric_histogram,
    rebin,
)

L_INFINITY = "L-infinity"
JENSEN_SHANNON = "Jensen-Shannon"

# With fewer values on one side, sampling alone moves shares by about the default limit of 0.1.
FEWEST_VALUES = 100
# Values of a categorical feature that the report keeps, the most frequent first.
_KEPT_VALUES = 50


@dataclasses.dataclass(frozen=True)
class Distance:
    """One feature, measured on both sides.

    Attributes:
        metric: L_INFINITY, JENSEN_SHANNON, or empty when the feature has no comparable histogram.
        of_values: Distance between the distributions of the values, 0 to 1; None when it was not measured.
        of_presence: The same metric on {filled, not filled}, 0 to 1: a feature that vanishes has moved.
        why_not: Why `of_values` is None; empty otherwise.
        at: Where the distance is largest: a value of a categorical feature; empty for numeric ones.
        left: Histogram of the left side in JSON form; None when there is none.
        right: The same of the right side.
    """

    metric: str
    of_values: float | None
    of_presence: float
    why_not: str = ""
    at: str = ""
    left: dict[str, Any] | None = None
    right: dict[str, Any] | None = None

    @property
    def largest(self) -> float:
        """The larger of the two distances: what is held against the limit."""
        return max(self.of_values or 0.0, self.of_presence)


def measure(feature: str, left: Dataset, right: Dataset) -> Distance:
    """Returns how far apart a feature is in two data sets that both hold examples.

    The metric follows from what the statistics hold: value counts (text, and integers that the schema marks as
    categorical) give L-infinity, numeric histograms give Jensen-Shannon. A type that differs between the sides, or
    one without a histogram, is not measured; its presence still is.
    """
    sides = [_distribution(feature, data) for data in (left, right)]
    kinds = {kind for kind, _ in sides if kind}
    metric = kinds.pop() if len(kinds) == 1 else ""
    presence = _presence_distance(metric, feature, left, right)
    records = [_record(value) for _, value in sides]
    missing = f"{metric or 'distance'} not measured: "
    if not metric:
        why = "the type differs between the two sides" if kinds else "its type has no histogram"
        return Distance(metric, None, presence, missing + why, "", *records)
    counts = [_size(value) for _, value in sides]
    if min(counts) < FEWEST_VALUES:
        why = f"{counts[0]:.0f} and {counts[1]:.0f} values, fewer than {FEWEST_VALUES} on one side"
        return Distance(metric, None, presence, missing + why, "", *records)
    first, second = sides[0][1], sides[1][1]
    if isinstance(first, Histogram) and isinstance(second, Histogram):
        return Distance(metric, jensen_shannon(*rebin(first, second)), presence, "", "", *records)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    value, at = l_infinity(first, second)
    return Distance(metric, value, presence, "", at, *records)


def _distribution(feature: str, data: Dataset) -> tuple[str, Histogram | dict[str, float] | None]:
    """Returns the metric that a side's statistics allow (empty: none) and its distribution."""
    statistics = data.features.get(feature)
    if statistics is None:
        return "", None
    kind = statistics.WhichOneof("stats")
    if kind == "num_stats":
        return JENSEN_SHANNON, numeric_histogram(statistics.num_stats)
    if kind == "string_stats":
        return L_INFINITY, categorical_counts(statistics.string_stats)
    return "", None


def _presence_distance(metric: str, feature: str, left: Dataset, right: Dataset) -> float:
    """Returns the distance between the shares of examples that hold the feature, 0 to 1."""
    counts = [(float(data.filled(feature)), float(data.examples - data.filled(feature))) for data in (left, right)]
    if metric == JENSEN_SHANNON:
        return jensen_shannon(*counts)
    shares = [filled / (filled + empty) for filled, empty in counts]
    return abs(shares[0] - shares[1])


def _size(distribution: Histogram | dict[str, float] | None) -> float:
    if distribution is None:
        return 0.0
    return distribution.total if isinstance(distribution, Histogram) else sum(distribution.values())


def _record(distribution: Histogram | dict[str, float] | None) -> dict[str, Any] | None:
    if distribution is None or isinstance(distribution, Histogram):
        return distribution.to_dict() if distribution else None
    kept = dict(list(distribution.items())[:_KEPT_VALUES])
    rest = sum(distribution.values()) - sum(kept.values())
    return {"kind": "categorical", "counts": kept, "other": rest}
