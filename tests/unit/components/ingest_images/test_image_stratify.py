"""Shares of three splits over many small classes, and families of several classes that must not empty a split."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from components.ingest.images import stratify
from components.ingest.images.facts import Fact
from core.settings.data import SplitSettings

pytestmark = pytest.mark.unit

TRAIN, BETWEEN, EVAL = 0, 1, 2


def three(train: float, between: float, held_out: float, seed: str = "seed") -> SplitSettings:
    """Returns shares of three splits."""
    shares = {"train": train, "validation": between, "eval": held_out}
    return SplitSettings(method="stratified", column=None, shares=shares, seed=seed)


def photos_of(sizes: list[int], each: int = 1) -> list[Fact]:
    """Returns photos of classes with so many products each, and so many photos of each product."""
    return [
        Fact(f"{label}/{product}/{index}", f"class {label}", f"{label}-{product}", sha256="")
        for label, size in enumerate(sizes)
        for product in range(size)
        for index in range(each)
    ]


def cut(photos: list[Fact], settings: SplitSettings) -> tuple[Counter[int], Counter[tuple[str, int]]]:
    """Returns the photos of each split, and of each class in each split."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(fact.group for fact in photos))}
    family = np.array([numbers[fact.group] for fact in photos], np.int64)
    codes, _ = stratify.assign(photos, family, settings)
    return Counter(codes.tolist()), Counter(zip([fact.label for fact in photos], codes.tolist(), strict=True))


@pytest.mark.parametrize(
    ("shares", "sizes", "wanted"),
    [
        pytest.param((0.8, 0.1, 0.1), [4] * 10, [26, 4, 10], id="the-split-between-gets-its-tenth"),
        pytest.param((0.1, 0.8, 0.1), [2] * 10, [10, 0, 10], id="nothing-is-left-for-it"),
        pytest.param((0.6, 0.2, 0.2), [5] * 7, [21, 7, 7], id="even-shares"),
        pytest.param((0.8, 0.1, 0.1), [200, 30], [184, 23, 23], id="large-classes"),
    ],
)
def test_three_splits(shares: tuple[float, float, float], sizes: list[int], wanted: list[int]) -> None:
    """A split between train and eval gets its share of many small classes together, though of none of them alone."""
    totals, _ = cut(photos_of(sizes), three(*shares))
    assert [totals[code] for code in (TRAIN, BETWEEN, EVAL)] == wanted


@limits(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=3, max_size=3),
    st.lists(st.integers(1, 30), min_size=1, max_size=25),
    st.integers(1, 3),
    st.text("abc", max_size=3),
)
def test_totals_are_within_a_family_a_class(weights: list[int], sizes: list[int], each: int, seed: str) -> None:
    """Each split has its share of all photos, up to one family a class and what a class must give to train and eval."""
    train, between, held_out = (weight / sum(weights) for weight in weights)
    totals, held = cut(photos_of(sizes, each), three(train, between, held_out, seed))
    number, slack = each * sum(sizes), each * len(sizes)
    # What a class gives to a split that has no whole family of it by its share, the split between has to do without.
    forced = each * sum(max(0.0, 1 - size * train) + max(0.0, 1 - size * held_out) for size in sizes)
    assert abs(totals[EVAL] - held_out * number) <= slack
    assert -slack - forced <= totals[BETWEEN] - between * number <= slack
    assert -slack - each <= totals[TRAIN] - train * number <= slack + each
    for label, size in enumerate(sizes):
        assert held[f"class {label}", TRAIN]
        assert bool(held[f"class {label}", EVAL]) == (size > 1)


@limits(max_examples=100, deadline=None)
@given(st.floats(0.02, 0.98), st.integers(2, 60))
def test_two_splits_round_each_class_alone(share: float, size: int) -> None:
    """With two splits each class gives eval its share to the nearest family, one at least and not the last."""
    settings = SplitSettings(method="stratified", column=None, shares={"train": 1 - share, "eval": share}, seed="s")
    _, held = cut(photos_of([size, size]), settings)
    for label in ("class 0", "class 1"):
        assert held[label, 1] == pytest.approx(min(max(share * size, 1), size - 1), abs=0.5 + 1e-6)


def test_a_class_that_only_others_families_hold_empties_no_split() -> None:
    """A class without a family of its own gets one in train that leaves each other class its family in eval."""
    for seed in map(str, range(30)):
        rows = [("a", "a1"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b1"), ("b", "b2"), ("b", "b2"), ("b", "b3")]
        photos = [Fact(f"{i}", label, group, "") for i, (label, group) in enumerate([*rows, ("c", "a1"), ("c", "b1")])]
        settings = SplitSettings(method="stratified", column=None, shares={"train": 0.6, "eval": 0.4}, seed=seed)
        _, held = cut(photos, settings)
        assert all(held[label, code] for label in "ab" for code in (0, 1)), (seed, held)
        assert held["c", 0], (seed, held)


def test_families_are_called_families() -> None:
    """Two products that hang together are one family, and the warning counts that and not products."""
    photos = photos_of([2])
    _, warnings = stratify.assign(photos, np.zeros(2, np.int64), three(0.8, 0.1, 0.1))
    assert warnings == [
        "class 'class 0' has one family only (a product with what looks like it): it is in train, none in eval"
    ]
