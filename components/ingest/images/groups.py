"""Which photos belong together: those of one product, exact copies, and photos that look alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from components.ingest.images.facts import Fact
from components.ingest.images.near import Pairs, near_pairs

# A family of photos that look alike is a warning when it is larger than this share of all and than this many products.
_LARGE_SHARE, _LARGE_PRODUCTS = 0.02, 20
_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class Grouping:
    """Which photos may not be torn apart.

    Attributes:
        family: int64[photos + copies], number of the family of each; a family is one or more whole products.
        near: int64[pairs, 2], photos that look alike.
    """

    family: npt.NDArray[np.int64]
    near: Pairs


def join(photos: Sequence[Fact], copies: Sequence[Fact], near_bits: Union[int, None]) -> Grouping:
    """Returns the families of photos: connected by product, by equal bytes, or by near perceptual hashes.

    Args:
        photos: Facts of the photos that go into a split.
        copies: Facts of exact copies of them that do not; two products that share a photo still hang together.
        near_bits: Bits in which hashes of photos that look alike may differ; None: not looked for.
    """
    near = look_alikes(photos, near_bits)
    every = [*photos, *copies]
    edges = np.concatenate([_chains([fact.group for fact in every]), _chains([fact.sha256 for fact in every]), near])
    return Grouping(_connected(len(every), edges), near)


def _connected(size: int, edges: Pairs) -> npt.NDArray[np.int64]:
    """Returns int64[size], for each place the smallest place that it is connected to: union-find."""
    parent = list(range(size))

    def root_of(place: int) -> int:
        while parent[place] != place:
            # Every visit halves the path, so that long chains stay cheap.
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for left, right in edges.tolist():
        first, second = sorted((root_of(left), root_of(right)))
        parent[second] = first
    return np.array([root_of(place) for place in range(size)], np.int64)


def look_alikes(photos: Sequence[Fact], near_bits: Union[int, None]) -> Pairs:
    """Returns int64[pairs, 2], places of photos that look alike; plain photos without a hash look like none."""
    places = np.array([place for place, fact in enumerate(photos) if fact.phash is not None], np.int64)
    if near_bits is None or not len(places):
        return np.zeros((0, 2), np.int64)
    hashes = np.array([fact.phash for fact in photos if fact.phash is not None], np.uint64)
    pairs: Pairs = places[near_pairs(hashes, near_bits)]
    return pairs


def account(photos: Sequence[Fact], grouping: Grouping) -> dict[str, Any]:
    """Returns the report's `groups`: products, families, look-alikes, and the largest family, JSON-serializable."""
    family = grouping.family[: len(photos)]
    sizes = np.bincount(family, minlength=1)
    largest = sizes.argmax()
    members = [fact for fact, number in zip(photos, family, strict=True) if number == largest]
    return {
        "products": len({fact.group for fact in photos}),
        "families": int((sizes > 0).sum()),
        "look_alike_pairs": len(grouping.near),
        "without_product_id": sum(not fact.own_group for fact in photos),
        "largest": {
            "photos": len(members),
            "products": len({fact.group for fact in members}),
            "examples": sorted(fact.name for fact in members)[:_SHOWN],
        },
    }


def warnings_of(photos: Sequence[Fact], grouping: Grouping, *, ids_expected: bool) -> list[str]:
    """Returns what the user should know of products and look-alikes.

    Args:
        photos: The photos.
        grouping: Their families.
        ids_expected: True when a pattern or a manifest should have given every photo its product id.
    """
    warnings = []
    groups = account(photos, grouping)
    lacking = groups["without_product_id"]
    if ids_expected and lacking:
        first = min(fact.name for fact in photos if not fact.own_group)
        warnings.append(
            f"{lacking} of {len(photos)} photos have no product id, such as {first}: each is its own product"
        )
    mixed = sorted(
        tuple(sorted((photos[left].name, photos[right].name)))
        for left, right in grouping.near.tolist()
        if photos[left].label != photos[right].label and photos[left].sha256 != photos[right].sha256
    )
    if mixed:
        shown = "; ".join(" and ".join(pair) for pair in mixed[:_SHOWN])
        warnings.append(f"{len(mixed)} pairs of photos look alike but are of different classes: {shown}")
    largest = groups["largest"]
    if largest["products"] > _LARGE_PRODUCTS and largest["photos"] > _LARGE_SHARE * len(photos):
        warnings.append(
            f"{largest['photos']} photos of {largest['products']} products hang together because they look alike, such "
            f"as {', '.join(largest['examples'])}: lower data.images.near_duplicate_bits if they are not copies"
        )
    return warnings


def _chains(keys: Sequence[str]) -> Pairs:
    """Returns pairs that connect the places with equal keys."""
    last: dict[str, int] = {}
    pairs = []
    for place, key in enumerate(keys):
        if key in last:
            pairs.append((last[key], place))
        last[key] = place
    return np.array(pairs, np.int64).reshape(-1, 2)
