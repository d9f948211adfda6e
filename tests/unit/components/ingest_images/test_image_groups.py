"""Photos that belong together, and a split that gives every class its shares and tears nothing apart."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from components.ingest.images import groups, leakage, near, stratify
from components.ingest.images.facts import Fact
from core.settings.data import SplitSettings

pytestmark = pytest.mark.unit

SPLIT = SplitSettings(method="stratified", column=None, shares={"train": 0.9, "eval": 0.1}, seed="seed")


def fact(name: str, label: str = "a", group: str = "", phash: int | None = None) -> Fact:
    """Returns the fact of a photo; its bytes are its name."""
    return Fact(name, label, group or name, sha256=name, phash=phash, own_group=bool(group))


def alone(number: int, label: str = "a") -> list[Fact]:
    """Returns photos of which each is its own product."""
    return [fact(f"{label}/{index}.jpg", label) for index in range(number)]


def split_of(photos: list[Fact], settings: SplitSettings = SPLIT) -> dict[str, int]:
    """Returns the split of each photo by name."""
    codes, _ = stratify.assign(photos, groups.join(photos, [], 4).family, settings)
    return dict(zip([photo.name for photo in photos], codes.tolist(), strict=True))


@limits(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 63), max_size=6), st.integers(0, 1 << 30), st.sampled_from([0, 1, 4, 9, 32]))
def test_near_pairs_are_those_of_every_comparison(flips: list[int], seed: int, bits: int) -> None:
    """The index joins exactly the hashes that comparing each with each joins."""
    chance = random.Random(seed)
    values = [chance.getrandbits(64) for _ in range(12)]
    values += [values[0], values[0], values[1] ^ sum({1 << flip for flip in flips})]
    hashes = np.array(values, np.uint64)
    found = {tuple(pair) for pair in near.near_pairs(hashes, bits).tolist()}
    wanted = {
        (left, right)
        for left, right in itertools.combinations(range(len(values)), 2)
        if (values[left] ^ values[right]).bit_count() <= bits
    }
    assert found <= wanted
    family = groups.join([fact(str(i), phash=value) for i, value in enumerate(values)], [], bits).family
    assert all(family[left] == family[right] for left, right in wanted)


def test_thousand_equal_hashes_make_a_chain() -> None:
    """Equal hashes are chained, so that they cost as many pairs as photos."""
    assert len(near.near_pairs(np.full(1000, 7, np.uint64), 4)) == 999


def test_no_hash_no_pair() -> None:
    """Nothing, one photo, plain photos and a switched-off search have no pairs."""
    assert len(near.near_pairs(np.zeros(0, np.uint64), 4)) == 0
    assert len(groups.look_alikes([fact("1"), fact("2")], 4)) == 0
    assert len(groups.look_alikes([fact("1", phash=5), fact("2", phash=5)], None)) == 0


def test_products_copies_and_look_alikes_hang_together() -> None:
    """A family is closed: product 1 looks like product 2, which shares a photo with product 3."""
    photos = [
        fact("1", group="p1", phash=0),
        fact("2", group="p2", phash=3),
        fact("3", group="p2", phash=0xFFFF0000),
        fact("4", group="p3"),
        fact("5", group="p4", phash=0xFF << 40),
    ]
    copy = Fact("3-copy", "a", "p3", sha256="3")
    family = groups.join(photos, [copy], 4).family
    assert len(set(family[:4].tolist())) == 1
    assert family[4] not in family[:4]


@pytest.mark.parametrize("number", [10, 37, 1000])
def test_every_class_has_the_shares(number: int) -> None:
    """Each class gives a tenth of its photos to eval, to the nearest photo."""
    photos = alone(number, "a") + alone(3 * number, "b")
    counts = Counter((photo.label, code) for photo, code in zip(photos, split_of(photos).values(), strict=True))
    for label, size in (("a", number), ("b", 3 * number)):
        assert counts[label, 1] == pytest.approx(size / 10, abs=1)


def test_order_of_files_means_nothing() -> None:
    """Shuffled photos fall into the same splits."""
    photos = [fact(f"{i}", "ab"[i % 2], f"p{i // 3}") for i in range(300)]
    shuffled = random.Random(1).sample(photos, len(photos))
    assert split_of(photos) == split_of(shuffled)


def test_another_seed_is_another_split() -> None:
    """The seed decides which photos are held out."""
    photos = alone(200)
    assert split_of(photos) != split_of(photos, SPLIT.model_copy(update={"seed": "other"}))


def test_one_more_photo_moves_few_others() -> None:
    """Adding five photos to a thousand leaves all but a few where they were."""
    photos = alone(1000)
    before, after = split_of(photos), split_of([*photos, *[fact(f"new/{i}") for i in range(5)]])
    assert sum(after[name] != code for name, code in before.items()) <= 5


def test_products_stay_whole() -> None:
    """I08: five photos of each product; no product is in two splits, and the leakage check says so."""
    photos = [fact(f"{i}", "ab"[i // 5 % 2], f"p{i // 5}") for i in range(500)]
    splits = split_of(photos)
    shared = leakage.count_shared([(splits[photo.name], photo) for photo in photos], 4)
    assert shared["groups_checked"] == 100
    assert shared["groups_shared"] == 0
    assert 40 <= sum(splits.values()) <= 60


def test_leakage_is_seen() -> None:
    """The check finds a product, a copy and a look-alike that are in two splits."""
    written = [
        (0, fact("1", group="p", phash=1)),
        (1, fact("2", group="p")),
        (1, fact("3", phash=3)),
        (0, Fact("4", "a", "4", sha256="3")),
    ]
    shared = leakage.count_shared(written, 4)
    assert (shared["groups_shared"], shared["duplicates_shared"], shared["near_duplicates_shared"]) == (1, 1, 1)
    assert leakage.count_shared(written, None)["near_duplicates_shared"] is None


@pytest.mark.parametrize(("number", "in_eval"), [(1, 0), (2, 1), (3, 1), (5, 1)])
def test_small_classes(number: int, in_eval: int) -> None:
    """A class of one product is all in train; one of two or more has one at least in each split."""
    photos = alone(number)
    codes, warnings = stratify.assign(photos, groups.join(photos, [], 4).family, SPLIT)
    assert codes.sum() == in_eval
    assert bool(warnings) == (number == 1)


@limits(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 12)), min_size=1, max_size=60))
def test_no_class_is_missing_from_train(rows: list[tuple[str, int]]) -> None:
    """Whatever products span which classes, each class has a photo in train and no product is torn apart."""
    photos = [fact(f"{index}", label, f"p{product}") for index, (label, product) in enumerate(rows)]
    splits = split_of(photos)
    assert {photo.label for photo in photos if splits[photo.name] == 0} == {photo.label for photo in photos}
    assert leakage.count_shared([(splits[photo.name], photo) for photo in photos], None)["groups_shared"] == 0


def test_warnings_name_photos() -> None:
    """Look-alikes of two classes, missing product ids and a family that is too large are said with examples."""
    photos = [fact(f"x/{i}", "ab"[i % 2], phash=1 << (i % 4)) for i in range(50)]
    grouping = groups.join(photos, [], 4)
    ids, mixed, large = groups.warnings_of(photos, grouping, ids_expected=True)
    assert "50 of 50 photos have no product id, such as x/0" in ids
    assert "of different classes: x/" in mixed
    assert "50 photos of 50 products hang together" in large
