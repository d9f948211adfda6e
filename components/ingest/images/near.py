"""Pairs of perceptual hashes that differ in few bits, found without comparing every two."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Pairs = npt.NDArray[np.int64]

_HASH_BITS = 64
# Set bits of every 16-bit number: this NumPy has no popcount.
_SET_BITS = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)


def near_pairs(hashes: Hashes, bits: int) -> Pairs:
    """Returns int64[pairs, 2], places in `hashes` of which each pair is at most `bits` bits apart.

    Equal hashes are chained (first with second, second with third), not paired each with each: whoever joins pairs gets
    the same groups, and a thousand equal hashes make a thousand pairs.

    Hashes at most `bits` apart agree on at least one of `bits + 1` pieces, so only those that share a piece are
    compared. Time grows with the number of such pairs, memory with the number of hashes.

    Args:
        hashes: uint64[photos].
        bits: 0 to 63.
    """
    order = np.argsort(hashes, kind="stable")
    equal = hashes[order[1:]] == hashes[order[:-1]]
    chains = np.stack([order[:-1][equal], order[1:][equal]], axis=1).astype(np.int64)
    firsts = order[np.concatenate(([True], ~equal))] if len(order) else order
    distinct = hashes[firsts]
    found = [chains]
    edges = np.linspace(0, _HASH_BITS, bits + 2).round().astype(int)
    for low, high in itertools.pairwise(edges.tolist()):
        piece = (distinct >> np.uint64(low)) & np.uint64((1 << (high - low)) - 1)
        found.append(firsts[_pairs_in_pieces(distinct, piece, bits)].reshape(-1, 2).astype(np.int64))
    pairs = np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
    return pairs.astype(np.int64)


def _pairs_in_pieces(distinct: Hashes, piece: Hashes, bits: int) -> Pairs:
    """Returns near pairs among hashes with an equal piece, int64[pairs, 2]."""
    order = np.argsort(piece, kind="stable")
    ordered, values = piece[order], distinct[order]
    found = []
    # Equal pieces stand together: neighbours at distance 1, 2, ... are compared until none share a piece.
    alive = np.arange(len(order))
    distance = 1
    while True:
        alive = alive[alive + distance < len(order)]
        alive = alive[ordered[alive] == ordered[alive + distance]]
        if not len(alive):
            break
        near = alive[_distances(values[alive], values[alive + distance]) <= bits]
        found.append(np.stack([order[near], order[near + distance]], axis=1))
        distance += 1
    return np.concatenate(found).astype(np.int64) if found else np.zeros((0, 2), np.int64)


def _distances(left: Hashes, right: Hashes) -> npt.NDArray[np.int64]:
    halves = (left ^ right).view(np.uint16).reshape(-1, 4)
    return _SET_BITS[halves].sum(axis=1, dtype=np.int64)
