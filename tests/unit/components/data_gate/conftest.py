"""Factories of feature statistics, as StatisticsGen writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from components.data_gate.dataset import Dataset

Feature = statistics_pb2.FeatureNameStatistics


def _named(name: str, kind: int) -> Any:
    feature = Feature(type=kind)
    feature.path.step.append(name)
    return feature


def _numeric(name: str, buckets: list[tuple[float, float, float]], nan: int = 0, integer: bool = False) -> Any:
    feature = _named(name, Feature.INT if integer else Feature.FLOAT)
    numeric = feature.num_stats
    histogram = numeric.histograms.add(type=statistics_pb2.Histogram.QUANTILES, num_nan=nan)
    for low, high, count in buckets:
        histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
    filled = round(sum(count for _, _, count in buckets)) + nan
    numeric.common_stats.num_non_missing = filled
    numeric.common_stats.tot_num_values = filled
    if buckets:
        numeric.min, numeric.max = min(low for low, _, _ in buckets), max(high for _, high, _ in buckets)
    return feature


def _categorical(name: str, counts: Mapping[str, float], integer: bool = False) -> Any:
    feature = _named(name, Feature.INT if integer else Feature.STRING)
    feature.string_stats.unique = len(counts)
    feature.string_stats.common_stats.num_non_missing = round(sum(counts.values()))
    feature.string_stats.common_stats.tot_num_values = round(sum(counts.values()))
    for value, count in sorted(counts.items(), key=lambda item: -item[1]):
        feature.string_stats.rank_histogram.buckets.add(label=value, sample_count=count)
    return feature


@pytest.fixture
def numeric() -> Callable[..., Any]:
    """Makes the statistics of a numeric feature: name, (low, high, count) buckets, nan, integer."""
    return _numeric


@pytest.fixture
def categorical() -> Callable[..., Any]:
    """Makes the statistics of a categorical feature: name, {value: count}, integer."""
    return _categorical


@pytest.fixture
def dataset() -> Callable[..., Dataset]:
    """Makes a split: name, number of examples, features."""

    def make(split: str, examples: int, *features: Any) -> Dataset:
        statistics = statistics_pb2.DatasetFeatureStatisticsList()
        whole = statistics.datasets.add(num_examples=examples)
        whole.features.extend(features)
        return Dataset.from_proto(split, statistics)

    return make


@pytest.fixture
def settings() -> dict[str, Any]:
    """A dumped data_gate section with the defaults of configs/base.yaml."""
    limits = {"categorical_l_infinity": 0.1, "numeric_jensen_shannon": 0.1, "per_feature": {}}
    return {
        "default": "block",
        "severity": {"schema_new_column": "warn"},
        "drift": dict(limits),
        "skew": dict(limits),
        "min_examples": 100,
    }
