"""Rankings, choices and duels as chains of choice sets, the form all Plackett-Luce kernels take."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import DataError

__all__ = ["LARGEST_TIE", "Chains", "chains_of_pairs", "chains_of_rankings"]

LARGEST_TIE = 12  # a tie of m items needs 2^m - 1 choice sets


class Chains(NamedTuple):
    r"""Plackett-Luce data: item totals, and nested choice sets stored as suffixes of chains.

    .. math:: \log L = \sum_i c_i \lambda_i - \sum_p m_p \log \sum_{q \ge p} e^{\lambda_{x_q}},

    the inner sum over the positions from p to the end of its chain.

    Attributes
    ----------
    item : (N,) array of int32
        Items x of all chains, one chain after the other, best first.
    weight : (N,) array
        m_p: how often the set that begins at position p was chosen from.
    start : (S + 1,) array of int64
        Chain s holds the positions start[s] .. start[s + 1] - 1.
    wins : (k,) array
        c_i: how often item i was chosen from a set.
    """

    item: NDArray[np.int32]
    weight: NDArray[np.float64]
    start: NDArray[np.int64]
    wins: NDArray[np.float64]

    @property
    def n_items(self) -> int:
        """Number of items, k."""
        return len(self.wins)

    def padded(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return items, padded with k, and weights as one row per chain, ``(S, L)`` each."""
        length = np.diff(self.start)
        index = np.full((len(length), int(length.max(initial=1))), self.n_items, np.int64)
        weight = np.zeros(index.shape)
        inside = np.arange(index.shape[1]) < length[:, None]
        index[inside], weight[inside] = self.item, self.weight
        return index, weight


def chains_of_pairs(
    winner: NDArray[np.int32], loser: NDArray[np.int32], count: NDArray[np.float64], n_items: int
) -> Chains:
    """Return the chains of duels: one set of two items per unordered pair.

    Examples
    --------
    >>> a, b = np.array([0, 1], dtype=np.int32), np.array([1, 0], dtype=np.int32)
    >>> chains_of_pairs(a, b, np.array([3.0, 1.0]), 2).weight
    array([4., 0.])
    """
    low, high = np.minimum(winner, loser).astype(np.int64), np.maximum(winner, loser)
    pair, inverse = np.unique(low * n_items + high, return_inverse=True)
    total = np.bincount(inverse, count, len(pair))
    item = np.stack([pair // n_items, pair % n_items], axis=1).astype(np.int32)
    weight = np.stack([total, np.zeros(len(pair))], axis=1)
    wins = np.bincount(winner, count, n_items)
    start = 2 * np.arange(len(pair) + 1, dtype=np.int64)
    return Chains(item.ravel(), weight.ravel(), start, wins)


def chains_of_rankings(
    item: NDArray[np.int32],
    level: NDArray[np.int32],
    start: NDArray[np.int64],
    count: NDArray[np.float64],
    n_items: int,
) -> Chains:
    r"""Return the chains of rankings, with repeated choice sets merged where that is shorter.

    Parameters
    ----------
    item, level : (N,) arrays of int
        Items of each ranking, sorted by level; equal levels tie; level -1 (last) is the unordered
        rest, which is on offer at every stage but not ordered.
    start : (R + 1,) array of int
        Ranking r holds the positions start[r] .. start[r + 1] - 1.
    count : (R,) array
        Weights.
    n_items : int

    Raises
    ------
    DataError
        If more than `LARGEST_TIE` items share one place.

    Notes
    -----
    A tie is the average of the log-likelihoods of its orders. Averaged over the m! orders of a tied
    group G with the items R below, the set of the r items of G not yet placed is uniform over the
    subsets of size r, so the average is exact with 2^m - 1 sets of weight 1 / C(m, r).
    """
    length = np.diff(start)
    ranking = np.repeat(np.arange(len(length)), length)
    same_next = np.zeros(len(item), bool)
    same_next[:-1] = (level[1:] == level[:-1]) & (ranking[1:] == ranking[:-1]) & (level[:-1] >= 0)
    tied = same_next.copy()
    tied[1:] |= same_next[:-1]
    last = np.zeros(len(item), bool)
    last[start[1:][length > 0] - 1] = True
    # the last item alone is chosen from a set of one: factor 1, left out on both sides
    placed = (level >= 0) & ~(last & ~tied)
    n = np.repeat(count, length)
    wins = np.bincount(item[placed], n[placed], n_items)
    weight = np.where(placed & ~tied, n, 0.0)
    group_starts = np.flatnonzero(same_next & ~np.concatenate([[False], same_next[:-1]]))
    extra_item: list[NDArray[np.int32]] = []
    extra_weight: list[NDArray[np.float64]] = []
    for p in group_starts.tolist():
        stop = int(start[ranking[p] + 1])
        m = int(np.argmin(np.append(same_next[p:stop], False))) + 1
        if m > LARGEST_TIE:
            raise DataError(
                f"ranking {ranking[p]} (0-based, of the distinct ones) has {m} items in one place; "
                f"the average over their orders is offered up to {LARGEST_TIE}. Rank them further, "
                "or leave this ranking out."
            )
        below = item[p + m : stop]
        weight[p] = n[p]  # the whole group, a suffix of its chain
        for r in range(1, m):
            for subset in combinations(item[p : p + m].tolist(), r):
                members = np.concatenate([np.array(subset, np.int32), below])
                extra_item.append(members)
                extra_weight.append(np.zeros(len(members)))
                extra_weight[-1][0] = n[p] / comb(m, r)
    lengths = np.concatenate([length, [len(members) for members in extra_item]]).astype(np.int64)
    chains = Chains(
        np.concatenate([item, *extra_item]).astype(np.int32),
        np.concatenate([weight, *extra_weight]),
        np.concatenate([[0], np.cumsum(lengths)]),
        wins,
    )
    return _merged(chains)


def _merged(chains: Chains) -> Chains:
    """Store each distinct set once, if that is cheaper than the chains as they are."""
    item, weight, start, wins = chains
    used = np.flatnonzero(weight > 0)
    if not used.size:
        return Chains(item[:0], weight[:0], np.zeros(1, np.int64), wins)
    # a set's name is the sum of its items' random 64-bit keys: equal sets have equal names, and
    # unequal ones collide with probability n^2 / 2^65
    keys = np.random.default_rng(20020711).integers(2**64, size=chains.n_items, dtype=np.uint64)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(keys[item], dtype=np.uint64)])
    stop = np.repeat(start[1:], np.diff(start))[used]
    _, first, inverse = np.unique(total[stop] - total[used], return_index=True, return_inverse=True)
    size = (stop - used)[first]
    if size.sum() + 2 * len(first) > len(item) + 2 * len(used):
        return _trimmed(chains)
    pieces = [item[used[f] : stop[f]] for f in first]
    new_start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    new_weight = np.zeros(int(size.sum()))
    new_weight[new_start[:-1]] = np.bincount(inverse, weight[used])
    return Chains(np.concatenate(pieces), new_weight, new_start, wins)


def _trimmed(chains: Chains) -> Chains:
    """Drop what stands before the first used position of each chain."""
    item, weight, start, wins = chains
    length = np.diff(start)
    position = np.arange(len(item)) - np.repeat(start[:-1], length)
    first = np.full(len(length), np.iinfo(np.int64).max)
    chain = np.repeat(np.arange(len(length)), length)
    used = weight > 0
    np.minimum.at(first, chain[used], position[used])
    keep = position >= first[chain]
    lengths = np.bincount(chain[keep], minlength=len(length))
    lengths = lengths[lengths > 0]
    return Chains(item[keep], weight[keep], np.concatenate([[0], np.cumsum(lengths)]), wins)
