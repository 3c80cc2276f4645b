r"""In how many rounds some pair of arms exceeds its bound, for every draw of the true rewards.

A round violates under a draw if any pair's :math:`D(\pi_i\|\pi_j) - \epsilon_1 D(r_i\|r_j)` exceeds
the allowance. Draws of a posterior agree about most rounds: what the smallest and the largest
reward distance over the draws decide is decided for all of them at once. In the other rounds the
draws under which one pair violates are those with the smallest distances of that pair: one search
among them in order says how many. Those of the strongest pair are counted at once, those of other
pairs one by one, as far as they are others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.team import Team

__all__ = ["count_violations"]

_BLOCK = 2048  # rounds
_MOST_MARKS = 1 << 20  # pairs times draws


@compiled()
def _spread_of(values, t, of_arms, line):  # type: ignore[no-untyped-def]
    """Write the differences of all pairs of a round, in the order of `numpy.triu_indices`."""
    if not of_arms:
        for p in range(line.shape[0]):
            line[p] = values[t, p]
        return
    p = 0
    for i in range(values.shape[1]):
        x = values[t, i]
        for j in range(i + 1, values.shape[1]):
            line[p + j - i - 1] = abs(x - values[t, j])
        p += values.shape[1] - i - 1


@compiled()
def _prefix(x, ordered, eps1, limit):  # type: ignore[no-untyped-def]
    """Return for how many of the ascending distances a difference ``x`` is too large."""
    low, high = 0, ordered.shape[0]
    while low < high:
        middle = (low + high) // 2
        if x - eps1 * ordered[middle] > limit:
            low = middle + 1
        else:
            high = middle
    return low


@compiled()
def _add(s, weight, when, n, first, last):  # type: ignore[no-untyped-def]
    n[s] += weight
    first[s] = min(first[s], when)
    last[s] = max(last[s], when)


@compiled()
def _count(  # type: ignore[no-untyped-def]
    blocks, size, values, of_arms, rounds, weights, ordered, order, rank, eps1, limit,
    n, first, last, marks, mark_first, mark_last,
):  # fmt: skip
    """Add blocks of rounds to ``n``, ``first`` and ``last``; see `count_violations`.

    ``marks[p, r]`` collects rounds in which pair p violates under the r draws with its smallest
    distances, where there is room for them.
    """
    n_pairs, n_draws = ordered.shape
    line, for_none, for_all = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
    middle, open_pairs = np.empty(n_pairs), np.empty(n_pairs, np.int64)
    seen = np.full(n_draws, -1)
    has_marks = marks.shape[0] > 0
    for p in range(n_pairs):
        for_none[p], for_all[p] = eps1 * ordered[p, 0], eps1 * ordered[p, n_draws - 1]
        middle[p] = eps1 * ordered[p, n_draws // 2]
    sure, sure_first, sure_last = 0.0, -1, -1
    for b in blocks:
        for t in range(b * size, min(b * size + size, rounds.shape[0])):
            _spread_of(values, t, of_arms, line)
            above, n_open = 0, 0
            for p in range(n_pairs):  # not so for NaN: a pair that is not on offer
                above += line[p] - for_all[p] > limit
            if above > 0:
                sure += weights[t]
                sure_first = rounds[t] if sure_first < 0 else min(sure_first, rounds[t])
                sure_last = max(sure_last, rounds[t])
                continue
            for p in range(n_pairs):
                above += line[p] - for_none[p] > limit
            if above == 0:
                continue
            best, strongest = -np.inf, -1
            for p in range(n_pairs):
                if line[p] - for_none[p] > limit:
                    open_pairs[n_open] = p
                    n_open += 1
                    if strongest < 0 or line[p] - middle[p] > best:
                        best, strongest = line[p] - middle[p], p
            r = _prefix(line[strongest], ordered[strongest], eps1, limit)
            if has_marks:
                marks[strongest, r] += weights[t]
                mark_first[strongest, r] = min(mark_first[strongest, r], rounds[t])
                mark_last[strongest, r] = max(mark_last[strongest, r], rounds[t])
            else:
                for c in range(r):
                    _add(order[strongest, c], weights[t], rounds[t], n, first, last)
            if n_open == 1:
                continue
            n_left = n_draws - r
            for o in range(n_open):
                if n_left == 0:
                    break
                p = open_pairs[o]
                if p == strongest:
                    continue
                more = _prefix(line[p], ordered[p], eps1, limit)
                if more <= n_draws - r:  # its draws, but those known already
                    for c in range(more):
                        s = order[p, c]
                        if rank[strongest, s] >= r and seen[s] != t:
                            seen[s] = t
                            n_left -= 1
                            _add(s, weights[t], rounds[t], n, first, last)
                else:  # those not known yet, if they are its draws
                    for c in range(r, n_draws):
                        s = order[strongest, c]
                        if rank[p, s] < more and seen[s] != t:
                            seen[s] = t
                            n_left -= 1
                            _add(s, weights[t], rounds[t], n, first, last)
    if sure_first >= 0:
        for s in range(n_draws):
            _add(s, sure, sure_first, n, first, last)
            last[s] = max(last[s], sure_last)


@compiled()
def _unmark(order, marks, mark_first, mark_last, n, first, last):  # type: ignore[no-untyped-def]
    """Add what was marked: a mark at r counts for the first r draws of the pair's order."""
    far = np.iinfo(np.int64).max
    for p in range(order.shape[0]):
        total, early, late = 0.0, far, -1
        for c in range(order.shape[1] - 1, -1, -1):
            total += marks[p, c + 1]
            early = min(early, mark_first[p, c + 1])
            late = max(late, mark_last[p, c + 1])
            s = order[p, c]
            n[s] += total
            first[s] = min(first[s], early)
            last[s] = max(last[s], late)


def count_violations(
    differences: NDArray[np.float64],
    rounds: NDArray[np.int64],
    weights: NDArray[np.float64],
    distances: NDArray[np.float64],
    eps1: float,
    limit: float,
    *,
    of_arms: bool = False,
    threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return number, first and last (-1 = none) of the violating rounds under every draw.

    Parameters
    ----------
    differences : (T, P) array
        Divergence of the decisions of every pair; NaN = not on offer together, may hold inf.
    rounds : (T,) array of int
        Their numbers.
    weights : (T,) array
        How many rounds each stands for, whole numbers.
    distances : (P, S) array
        Divergence of the pair's rewards under every draw; may hold inf, which frees the pair.
    eps1, limit : float
        A round violates if a pair's difference - eps1 distance > limit.
    of_arms : bool
        `differences` holds a value per arm, (T, k), and a pair differs by the difference of its
        two values; pairs in the order of `numpy.triu_indices`.
    threads : int
        Rounds are shared among them; the numbers do not depend on it.

    Returns
    -------
    n, first, last : (S,) array

    Examples
    --------
    >>> n, first, last = count_violations(
    ...     np.array([[0.5], [0.1], [0.3]]), np.arange(3), np.ones(3), np.array([[0.0, 0.3]]), 1, 0
    ... )
    >>> n, first, last
    (array([3., 1.]), array([0, 0]), array([2, 0]))
    """
    n_pairs, n_draws = distances.shape
    if not n_pairs or not n_draws or not len(rounds):
        return np.zeros(n_draws), np.full(n_draws, -1), np.full(n_draws, -1)
    # 0 times infinity is 0: at eps1 = 0 rewards do not count
    known = np.ascontiguousarray(distances) if eps1 > 0 else np.zeros_like(distances)
    order = np.argsort(known, axis=1)
    ordered = np.take_along_axis(known, order, axis=1)
    rank = np.empty(order.shape, np.int32)
    np.put_along_axis(rank, order, np.arange(n_draws, dtype=np.int32)[None], axis=1)
    values = np.ascontiguousarray(differences, dtype=np.float64)
    n_marked = n_pairs if n_pairs * n_draws <= _MOST_MARKS else 0
    far, shape = np.iinfo(np.int64).max, (n_marked, n_draws + 1)
    found: list[tuple[NDArray[Any], ...]] = []

    def run(which: NDArray[np.int64]) -> None:
        n, first, last = np.zeros(n_draws), np.full(n_draws, far), np.full(n_draws, -1)
        marks = np.zeros(shape), np.full(shape, far), np.full(shape, -1)
        _count(
            which, _BLOCK, values, of_arms, rounds, weights, ordered, order, rank, float(eps1),
            float(limit), n, first, last, *marks,
        )  # fmt: skip
        if n_marked:
            _unmark(order, *marks, n, first, last)
        found.append((n, first, last))

    n_blocks = -(-len(rounds) // _BLOCK)
    with Team(max(1, min(threads, n_blocks))) as team:
        team.share(run, n_blocks)
    # sums of whole numbers, least and largest: the same whichever thread did which
    n, first, last = (np.array(part) for part in zip(*found, strict=True))
    first = first.min(axis=0)
    return n.sum(axis=0), np.where(first == far, -1, first), last.max(axis=0)
