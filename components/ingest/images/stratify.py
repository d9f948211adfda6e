"""Splits families of photos so that every class has the same shares, and no family is torn apart."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from components.ingest.images.facts import Fact
from components.ingest.splitting import split_names, upper_bounds
from core.settings.data import SplitSettings


@dataclasses.dataclass
class _Family:
    """Photos that stay together: their number by class, and the place of the family in its class' order."""

    order: str
    photos: Counter[str]
    split: int = 0

    @property
    def size(self) -> int:
        return self.photos.total()

    @property
    def home(self) -> str:
        """The class that most of its photos are of; of equal ones the first by name."""
        return min(self.photos, key=lambda label: (-self.photos[label], label))


def assign(
    photos: Sequence[Fact], family: npt.NDArray[np.int64], settings: SplitSettings
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Returns the split of each photo, and warnings of classes that cannot be split.

    The families of a class stand in the order of a hash of their name and the seed, and the shares are cut from that
    order; a family of several classes counts for the one that most of its photos are of. The order of files means
    nothing, and one more photo moves no more than the few at a cut.

    Every class has a family in train. A class of two families or more has one in each of train and eval, whatever the
    shares; a class of one is in train.

    Args:
        photos: Facts of the photos.
        family: int64[photos], number of each photo's family.
        settings: Shares and seed.

    Returns:
        int64[photos], indices into `splitting.split_names`; and sentences.
    """
    families = _families(photos, family, settings.seed)
    by_home: dict[str, list[_Family]] = defaultdict(list)
    for member in families.values():
        by_home[member.home].append(member)
    last = len(settings.shares) - 1
    bounds = upper_bounds(settings)[:-1]
    for members in by_home.values():
        members.sort(key=lambda one: one.order)
        _cut(members, bounds, last, settings.shares["eval"])
    _fill_train(families.values())
    codes = np.array([families[number].split for number in family.tolist()], np.int64)
    return codes, _warnings(photos, codes, families.values(), split_names(settings))


def _families(photos: Sequence[Fact], family: npt.NDArray[np.int64], seed: str) -> dict[int, _Family]:
    groups: dict[int, str] = {}
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for fact, number in zip(photos, family.tolist(), strict=True):
        # The first product's id names the family, so that another photo of it changes nothing.
        groups[number] = min(groups.get(number, fact.group), fact.group)
        counts[number][fact.label] += 1
    return {
        number: _Family(hashlib.blake2b(f"{seed}\0{group}".encode(), digest_size=8).hexdigest(), counts[number])
        for number, group in groups.items()
    }


def _cut(members: list[_Family], bounds: npt.NDArray[np.float64], last: int, share: float) -> None:
    """Gives each family of a class its split by where its middle lies on the scale from 0 to 1."""
    total = sum(member.size for member in members)
    before = 0
    for member in members:
        member.split = int(np.searchsorted(bounds, (before + member.size / 2) / total, side="right"))
        before += member.size
    if len(members) == 1:
        members[0].split = 0
        return
    for needed in (last, 0):
        if not any(member.split == needed for member in members):
            wanted = share * total if needed == last else total
            # Of those that fit best the last in order: the one next to the cut.
            fitting = min(reversed(members), key=lambda member: abs(member.size - wanted))
            fitting.split = needed


def _fill_train(families: Iterable[_Family]) -> None:
    """Moves a family to train for each class that has no photo there: its own families went by other classes."""
    members = sorted(families, key=lambda one: one.order)
    for label in sorted({label for member in members for label in member.photos}):
        holding = [member for member in members if label in member.photos]
        if not any(member.split == 0 for member in holding):
            holding[0].split = 0


def _warnings(
    photos: Sequence[Fact], codes: npt.NDArray[np.int64], families: Iterable[_Family], names: Sequence[str]
) -> list[str]:
    held: dict[str, set[int]] = defaultdict(set)
    for fact, code in zip(photos, codes.tolist(), strict=True):
        held[fact.label].add(code)
    number = Counter(label for member in families for label in member.photos)
    warnings = []
    for label in sorted(held):
        if number[label] == 1:
            warnings.append(f"class {label!r} has one product only: all of it is in train, none in eval")
        elif len(names) - 1 not in held[label]:
            warnings.append(f"class {label!r} has no photo in eval")
    return warnings
