"""Distances between distributions."""

from __future__ import annotations

import math

import pytest

from components.data_gate.distributions import Histogram, jensen_shannon, l_infinity, numeric_histogram, rebin

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param([1, 1], [10, 10], 0.0, id="equal-shares-of-unequal-totals"),
        pytest.param([5, 0], [0, 7], 1.0, id="disjoint-is-one-bit"),
        # By hand: m = (3/4, 1/4); (1*log2(4/3) + (1/2)*log2(2/3) + (1/2)*log2(2)) / 2.
        pytest.param([1, 0], [1, 1], (math.log2(4 / 3) + 0.5 * math.log2(2 / 3) + 0.5) / 2, id="half-moved"),
    ],
)
def test_jensen_shannon_matches_hand_computed_values(left: list[float], right: list[float], expected: float) -> None:
    """The divergence is in bits: 0 for equal shares, 1 for disjoint ones, and symmetric."""
    assert jensen_shannon(left, right) == pytest.approx(expected, abs=1e-12)
    assert jensen_shannon(right, left) == pytest.approx(expected, abs=1e-12)


def test_l_infinity_names_the_value_that_moved_most() -> None:
    """The distance is the largest difference of shares, and a value absent on one side has share 0 there."""
    distance, value = l_infinity({"Cash": 60, "Card": 40}, {"Cash": 30, "Card": 40, "Mobile": 30})
    assert (distance, value) == (pytest.approx(0.3), "Cash")


def test_rebin_keeps_all_mass_over_different_edges() -> None:
    """Histograms with different edges get common bins that lose no value."""
    left = Histogram([(0, 1, 50), (1, 2, 50)])
    right = Histogram([(0.5, 1.5, 30), (1.5, 4, 30)])
    bins = rebin(left, right)
    assert [sum(side) for side in bins] == pytest.approx([100, 60])
    assert len(bins[0]) == len(bins[1])


def test_rebin_of_one_distribution_cut_differently_is_near_zero() -> None:
    """Uniform data described by 10 and by 7 buckets is not called different."""
    tens = Histogram([(index / 10, (index + 1) / 10, 10) for index in range(10)])
    sevens = Histogram([(index / 7, (index + 1) / 7, 10) for index in range(7)])
    assert jensen_shannon(*rebin(tens, sevens)) < 1e-6


def test_an_outlier_does_not_hide_a_shift() -> None:
    """A single far value on both sides leaves a doubling visible, as equal-width buckets would not."""
    before = Histogram([(index, index + 1, 100) for index in range(10)] + [(10, 10_000, 1)])
    after = Histogram([(2 * index, 2 * index + 2, 100) for index in range(10)] + [(20, 10_000, 1)])
    assert jensen_shannon(*rebin(before, after)) > 0.2


def test_repeated_values_are_jumps() -> None:
    """A bucket of one value counts at that value and not below it."""
    histogram = Histogram([(0, 0, 40), (0, 10, 60)])
    assert (histogram.at_most(-0.1), histogram.at_most(0), histogram.at_most(5)) == (0, 40, 70)


def test_nan_and_infinities_are_bins_of_their_own(numeric) -> None:
    """NaN on one side only is a distance, and infinite edges do not break the arithmetic."""
    clean = numeric_histogram(numeric("a", [(0, 1, 100)]).num_stats)
    dirty = numeric_histogram(numeric("a", [(-math.inf, 0, 10), (0, 1, 50), (1, math.inf, 10)], nan=30).num_stats)
    assert (dirty.nan, dirty.below, dirty.above, dirty.total) == (30, 10, 10, 100)
    assert 0.2 < jensen_shannon(*rebin(clean, dirty)) < 1


def test_statistics_without_buckets_give_no_histogram(numeric) -> None:
    """A feature that has no values has no distribution."""
    assert numeric_histogram(numeric("a", []).num_stats) is None
