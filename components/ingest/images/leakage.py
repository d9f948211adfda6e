"""What the splits share, counted again from the photos that were written to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Union

from components.ingest.images.facts import Fact
from components.ingest.images.groups import look_alikes


def count_shared(written: Sequence[tuple[int, Fact]], near_bits: Union[int, None]) -> dict[str, Any]:
    """Returns the report's `split.leakage`, JSON-serializable; None stands for what was not looked for.

    It knows nothing of how the splits were made: products and exact copies are counted by their ids, and photos that
    look alike are looked for again among all that was written.

    Args:
        written: (split, photo) in the order of writing.
        near_bits: Bits in which hashes of photos that look alike may differ.
    """
    products: dict[str, set[int]] = defaultdict(set)
    contents: dict[str, set[int]] = defaultdict(set)
    for split, fact in written:
        products[fact.group].add(split)
        contents[fact.sha256].add(split)
    pairs = look_alikes([fact for _, fact in written], near_bits)
    torn = sum(written[left][0] != written[right][0] for left, right in pairs.tolist())
    return {
        "checked": "products, exact copies" + (" and look-alikes" if near_bits is not None else ""),
        "groups_checked": len(products),
        "groups_shared": sum(len(splits) > 1 for splits in products.values()),
        "duplicates_shared": sum(len(splits) > 1 for splits in contents.values()),
        "near_duplicates_shared": torn if near_bits is not None else None,
    }
