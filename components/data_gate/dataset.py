"""One split's feature statistics, as the checks read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import statistics_pb2


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Statistics of one split.

    Attributes:
        split: Name of the split.
        examples: Number of examples in it.
        features: Statistics by feature name; the steps of a nested path are joined by '.'.
    """

    split: str
    examples: int
    features: Mapping[str, statistics_pb2.FeatureNameStatistics]

    @classmethod
    def from_proto(cls, split: str, statistics: statistics_pb2.DatasetFeatureStatisticsList) -> Dataset:
        """Returns the unsliced statistics of a list; an empty list is a split without examples."""
        if not statistics.datasets:
            return cls(split, 0, {})
        whole = next(
            (item for item in statistics.datasets if item.name in ("", "All Examples")), statistics.datasets[0]
        )
        features = {".".join(feature.path.step) or feature.name: feature for feature in whole.features}
        return cls(split, int(whole.num_examples), features)

    def filled(self, feature: str) -> int:
        """Returns how many examples hold at least one value of a feature."""
        statistics = self.features.get(feature)
        return int(common_statistics(statistics).num_non_missing) if statistics is not None else 0


def common_statistics(feature: statistics_pb2.FeatureNameStatistics) -> statistics_pb2.CommonStatistics:
    """Returns the part of a feature's statistics that every type has (counts of examples and values)."""
    kind = feature.WhichOneof("stats")
    if kind == "num_stats":
        return feature.num_stats.common_stats
    if kind == "bytes_stats":
        return feature.bytes_stats.common_stats
    if kind == "struct_stats":
        return feature.struct_stats.common_stats
    return feature.string_stats.common_stats


def type_name(feature: statistics_pb2.FeatureNameStatistics) -> str:
    """Returns the data type of a feature as the statistics name it, such as INT or STRING."""
    return str(type(feature).Type.Name(feature.type))
