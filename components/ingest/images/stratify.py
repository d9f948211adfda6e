"""Splits families of photos so that every class has the same shares, and no family is torn apart."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from components.ingest.images.facts import Fact
from components.ingest.splitting import split_names
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
    shares, unless families of several classes stand in the way; a class of one is in train. A split between the two
    gets what is left: where that is less or more than its share of a class, the classes that follow make up for it.

    Args:
        photos: Facts of the photos.
        family: int64[photos], number of each photo's family.
        settings: Shares and seed.

    Returns:
        int64[photos], indices into `splitting.split_names`; and sentences.
    """
    names = split_names(settings)
    families = _families(photos, family, settings.seed)
    by_home: dict[str, list[_Family]] = defaultdict(list)
    for member in families.values():
        by_home[member.home].append(member)
    owed = dict.fromkeys(range(1, len(names) - 1), 0.0)
    for label in sorted(by_home, key=lambda label: _hash(settings.seed, label)):
        members = sorted(by_home[label], key=lambda one: one.order)
        _cut_eval(members, len(names) - 1, settings.shares["eval"])
        for code in owed:
            owed[code] = _cut_between(members, code, owed[code], settings.shares[names[code]])
    _fill(families.values(), len(names) - 1)
    codes = np.array([families[number].split for number in family.tolist()], np.int64)
    return codes, _warnings(photos, codes, families.values(), names)


def _families(photos: Sequence[Fact], family: npt.NDArray[np.int64], seed: str) -> dict[int, _Family]:
    groups: dict[int, str] = {}
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for fact, number in zip(photos, family.tolist(), strict=True):
        # The first product's id names the family, so that another photo of it changes nothing.
        groups[number] = min(groups.get(number, fact.group), fact.group)
        counts[number][fact.label] += 1
    return {number: _Family(_hash(seed, group), counts[number]) for number, group in groups.items()}


def _hash(seed: str, name: str) -> str:
    return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).hexdigest()


def _cut_eval(members: Sequence[_Family], last: int, share: float) -> None:
    """Gives the last families of a class to eval, by where the middle of each lies on the scale from 0 to 1.

    Args:
        members: The families of the class in their order, all in train.
        last: The code of eval.
        share: Of eval.
    """
    if len(members) == 1:
        return
    total = sum(member.size for member in members)
    before = 0
    for member in members:
        member.split = last if (before + member.size / 2) / total >= 1 - share else 0
        before += member.size
    for needed, wanted in ((last, share * total), (0, float(total))):
        if not any(member.split == needed for member in members):
            # All of them are on the other side. Of those that fit best the last in order: the one next to the cut.
            min(reversed(members), key=lambda member: abs(member.size - wanted)).split = needed


def _cut_between(members: Sequence[_Family], code: int, owed: float, share: float) -> float:
    """Gives families of a class from train to a split between train and eval, the ones next to the cut first.

    Args:
        members: The families of the class in their order.
        code: The split.
        owed: Photos that the split lacks of the classes before; below zero when it has too many.
        share: Of the split.

    Returns:
        Photos that it lacks now, at most one family's worth: what small classes cannot give is not taken from others.
    """
    wanted = owed + share * sum(member.size for member in members)
    here = [member for member in members if member.split == 0]
    for member in reversed(here[1:]):
        if wanted < member.size / 2:
            break
        member.split = code
        wanted -= member.size
    largest = max(member.size for member in members)
    return max(-largest, min(largest, wanted))


def _fill(families: Iterable[_Family], last: int) -> None:
    """Moves a family to train, and then one to eval, for each class without: its own went by their other classes."""
    holders: dict[str, list[_Family]] = defaultdict(list)
    for member in sorted(families, key=lambda one: one.order):
        for label in member.photos:
            holders[label].append(member)
    for needed, other in ((0, last), (last, 0)):
        for label in sorted(holders):
            members = holders[label]
            if any(member.split == needed for member in members) or (needed == last and len(members) == 1):
                continue
            spare = [member for member in members if _is_spare(member, other, holders)]
            # Training needs every class; without eval a class is only not judged.
            for member in spare[:1] or (members[:1] if needed == 0 else []):
                member.split = needed


def _is_spare(member: _Family, code: int, holders: Mapping[str, Sequence[_Family]]) -> bool:
    """Returns True when no class loses its only family in a split by moving this one."""
    return member.split != code or all(
        any(one.split == code and one is not member for one in holders[label]) for label in member.photos
    )


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
            warnings.append(
                f"class {label!r} has one family only (a product with what looks like it): it is in train, none in eval"
            )
        elif len(names) - 1 not in held[label]:
            warnings.append(f"class {label!r} has no photo in eval")
    return warnings
