"""Distributions read from feature statistics, and the distances between two of them.

Everything here is our own arithmetic on the histograms that TFDV computed; no number is TFDV's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import statistics_pb2

_MOST_BINS = 20


@dataclasses.dataclass(frozen=True)
class Histogram:
    """Counts of a numeric feature between edges, values uniform inside a bucket.

    Attributes:
        buckets: (low, high, count), ascending; low == high is a bucket of one repeated value. Edges are finite.
        nan: Number of NaN values.
        below: Number of values in buckets that start at minus infinity.
        above: Number of values in buckets that end at plus infinity.
    """

    buckets: Sequence[tuple[float, float, float]]
    nan: float = 0.0
    below: float = 0.0
    above: float = 0.0

    @property
    def total(self) -> float:
        """Number of values, the NaN and infinite ones included."""
        return sum(count for _, _, count in self.buckets) + self.nan + self.below + self.above

    def at_most(self, value: float) -> float:
        """Returns how many finite values are <= `value`, interpolated inside a bucket."""
        count = 0.0
        for low, high, mass in self.buckets:
            if high <= value:
                count += mass
            elif low < value:
                count += mass * (value - low) / (high - low)
        return count

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form kept in the gate report."""
        return {
            "kind": "numeric",
            "buckets": [list(bucket) for bucket in self.buckets],
            "nan": self.nan,
            "below": self.below,
            "above": self.above,
        }


def numeric_histogram(stats: statistics_pb2.NumericStatistics) -> Histogram | None:
    """Returns the finest usable histogram of a numeric feature, or None when the statistics hold none.

    Quantile buckets are preferred: one outlier stretches equal-width buckets until all other values share one.
    """
    by_kind = {histogram.type: histogram for histogram in stats.histograms}
    standard, quantiles = 0, 1
    chosen = by_kind.get(quantiles) or by_kind.get(standard)
    if chosen is None or not chosen.buckets:
        return None
    buckets = []
    below = above = 0.0
    for bucket in chosen.buckets:
        if math.isinf(bucket.low_value):
            below += bucket.sample_count
        elif math.isinf(bucket.high_value):
            above += bucket.sample_count
        else:
            buckets.append((bucket.low_value, bucket.high_value, bucket.sample_count))
    return Histogram(sorted(buckets), nan=float(chosen.num_nan), below=below, above=above)


def categorical_counts(stats: statistics_pb2.StringStatistics) -> dict[str, float]:
    """Returns {value: count} of the values that the statistics list, the most frequent first."""
    return {bucket.label: bucket.sample_count for bucket in stats.rank_histogram.buckets}


def l_infinity(left: Mapping[str, float], right: Mapping[str, float]) -> tuple[float, str]:
    """Returns the largest difference between the shares of any one value, and that value.

    Args:
        left: {value: count}; at least one count is positive.
        right: The same of the other side.

    Returns:
        Distance in 0 to 1, and the value it was found at (the first in order among equals).
    """
    left_total, right_total = sum(left.values()), sum(right.values())
    differences = {
        value: abs(left.get(value, 0.0) / left_total - right.get(value, 0.0) / right_total)
        for value in sorted({*left, *right})
    }
    worst = max(differences, key=differences.__getitem__)
    return differences[worst], worst


def jensen_shannon(left: Sequence[float], right: Sequence[float]) -> float:
    """Returns the Jensen-Shannon divergence of two count vectors over the same bins, in bits: 0 equal, 1 disjoint.

    JSD(P, Q) = KL(P || M) / 2 + KL(Q || M) / 2 with M = (P + Q) / 2 and logarithms to base 2, after J. Lin,
    "Divergence measures based on the Shannon entropy", IEEE Transactions on Information Theory 37 (1), 1991.

    Args:
        left: Counts by bin, not all zero.
        right: Counts by bin, as many, not all zero.
    """
    left_total, right_total = math.fsum(left), math.fsum(right)
    terms: list[float] = []
    for left_count, right_count in zip(left, right, strict=True):
        p, q = left_count / left_total, right_count / right_total
        middle = (p + q) / 2
        terms.extend(share * math.log2(share / middle) / 2 for share in (p, q) if share > 0)
    return min(1.0, max(0.0, math.fsum(terms)))


def rebin(left: Histogram, right: Histogram) -> tuple[list[float], list[float]]:
    """Returns the counts of two histograms over common bins.

    The edges of both are candidates; one becomes a cut when the bin before it holds its part of the pooled mass.
    There are at most as many bins as the coarser histogram has buckets, and at most 20, so that rounding of a single
    edge (two samples of one distribution rarely agree on a quantile) does not look like a difference. NaN and the
    two infinities have bins of their own.

    Returns:
        Two count vectors of the same length.
    """
    left_total, right_total = max(left.total, 1e-300), max(right.total, 1e-300)
    edges = sorted({edge for low, high, _ in (*left.buckets, *right.buckets) for edge in (low, high)})
    share = 1.0 / max(1, min(_MOST_BINS, len(left.buckets), len(right.buckets)))
    bins: tuple[list[float], list[float]] = ([], [])
    done = [0.0, 0.0]
    for edge in edges:
        reached = [left.at_most(edge), right.at_most(edge)]
        pooled = ((reached[0] - done[0]) / left_total + (reached[1] - done[1]) / right_total) / 2
        if pooled >= share * (1 - 1e-9) or edge == edges[-1]:
            for side in (0, 1):
                bins[side].append(reached[side] - done[side])
            done = reached
    for side, histogram in enumerate((left, right)):
        bins[side].extend([histogram.nan, histogram.below, histogram.above])
    return bins
