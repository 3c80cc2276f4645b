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

_BLOCK, _CHUNK = 2048, 128  # rounds
_MOST_MARKS = 1 << 20  # pairs times draws


@compiled()
def _sift(blocks, size, values, first, second, low, high, limit, state, used):  # type: ignore[no-untyped-def]
    """Write of every round whether it violates under no draw (0), some (1) or all of them (2).

    ``low`` and ``high`` are what the draws allow each pair at least and at most; ``used`` says
    which pairs violate under some.
    """
    n_lines = values.shape[1]
    lines = np.zeros((n_lines + 1, _CHUNK))  # the last stays 0
    top, bottom = np.zeros(n_lines + 1), np.zeros(n_lines + 1)
    some, every = np.empty(_CHUNK), np.empty(_CHUNK)
    for b in blocks:
        stop = min(b * size + size, values.shape[0])
        for start in range(b * size, stop, _CHUNK):
            n = min(_CHUNK, stop - start)
            some[:], every[:] = -np.inf, -np.inf
            top[:n_lines], bottom[:n_lines] = -np.inf, np.inf
            for c in range(n):  # no comparison with NaN is true: not on offer
                for i in range(n_lines):
                    x = values[start + c, i]
                    lines[i, c] = x
                    top[i] = x if x > top[i] else top[i]
                    bottom[i] = x if x < bottom[i] else bottom[i]
            for p in range(first.shape[0]):
                i, j = first[p], second[p]
                if not max(top[i] - bottom[j], top[j] - bottom[i]) - low[p] > limit:
                    continue
                above = 0
                for c in range(n):
                    left = abs(lines[i, c] - lines[j, c]) - low[p]
                    above += left > limit
                    some[c] = left if left > some[c] else some[c]
                if above == 0:
                    continue
                used[b, p] = True
                for c in range(n):
                    left = abs(lines[i, c] - lines[j, c]) - high[p]
                    every[c] = left if left > every[c] else every[c]
            for c in range(n):
                state[start + c] = 2 if every[c] > limit else some[c] > limit


@compiled()
def _prefix(x, ordered, eps1, limit):  # type: ignore[no-untyped-def]
    """Return for how many of the ascending distances a difference ``x`` is too large."""
    low, high = 0, 1  # mostly few: look near the start first
    while high < ordered.shape[0] and x - eps1 * ordered[high] > limit:
        low, high = high + 1, 2 * high + 1
    high = min(high, ordered.shape[0])
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
def _count(blocks, size, rows, pairs, draws, limit, sums, marks):  # type: ignore[no-untyped-def]
    """Add blocks of rounds to ``sums``; see `count_violations`.

    ``marks[..][p, r]`` collects rounds in which pair p violates under the r draws with its smallest
    distances, where there is room for them.
    """
    values, rounds, weights = rows
    first_of, second_of, low, typical = pairs
    ordered, order, rank, eps1 = draws
    n, first, last = sums
    marked, mark_first, mark_last = marks
    n_lines, (n_pairs, n_draws) = values.shape[1], ordered.shape
    open_pairs, open_x = np.empty(n_pairs, np.int64), np.empty(n_pairs)
    row, seen = np.zeros(n_lines + 1), np.full(n_draws, -1)
    for b in blocks:
        for t in range(b * size, min(b * size + size, rounds.shape[0])):
            for i in range(n_lines):  # a slice of an array costs seconds to compile
                row[i] = values[t, i]
            best, strongest, n_open = -np.inf, 0, 0
            for p in range(n_pairs):
                x = abs(row[first_of[p]] - row[second_of[p]])
                open_pairs[n_open], open_x[n_open] = p, x
                if x - low[p] > limit:
                    if x - typical[p] > best:
                        best, strongest = x - typical[p], n_open
                    n_open += 1
            held = open_pairs[strongest]
            r = _prefix(open_x[strongest], ordered[held], eps1, limit)
            if marked.shape[0] > 0:
                _add((held, r), weights[t], rounds[t], marked, mark_first, mark_last)
            else:
                for c in range(r):
                    _add(order[held, c], weights[t], rounds[t], n, first, last)
            n_left = n_draws - r
            for o in range(n_open):
                if n_left == 0:
                    break
                p = open_pairs[o]
                if p == held:
                    continue
                more = _prefix(open_x[o], ordered[p], eps1, limit)
                if more <= n_draws - r:  # its draws, but those known already
                    for c in range(more):
                        s = order[p, c]
                        if rank[held, s] >= r and seen[s] != t:
                            seen[s] = t
                            n_left -= 1
                            _add(s, weights[t], rounds[t], n, first, last)
                else:  # those not known yet, if they are its draws
                    for c in range(r, n_draws):
                        s = order[held, c]
                        if rank[p, s] < more and seen[s] != t:
                            seen[s] = t
                            n_left -= 1
                            _add(s, weights[t], rounds[t], n, first, last)


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
        Divergence of the decisions of every pair, or a lower limit of it; NaN = not on offer
        together, may hold inf.
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
    n_draws, far = distances.shape[1], np.iinfo(np.int64).max
    n, first, last = np.zeros(n_draws), np.full(n_draws, far), np.full(n_draws, -1)
    if not distances.size or not len(rounds):
        return n, last, last
    # 0 times infinity is 0: at eps1 = 0 rewards do not count
    known = np.ascontiguousarray(distances) if eps1 > 0 else np.zeros_like(distances)
    values = np.ascontiguousarray(differences, dtype=np.float64)
    if not of_arms:
        values = np.maximum(values, 0.0)  # below 0: surely not apart, as 0 is
    k = values.shape[1]
    one, two = np.triu_indices(k, 1) if of_arms else (np.arange(k), np.full(k, k))
    low, high = eps1 * known.min(axis=1), eps1 * known.max(axis=1)
    n_blocks = -(-len(rounds) // _BLOCK)
    state = np.empty(len(rounds), np.int8)
    matters = np.zeros((n_blocks, len(known)), np.bool_)
    with Team(max(1, min(threads, n_blocks))) as team:
        team.share(
            lambda which: _sift(
                which, _BLOCK, values, one, two, low, high, float(limit), state, matters
            ),
            n_blocks,
        )
        sure, at = np.flatnonzero(state == 2), np.flatnonzero(state == 1)
        if sure.size:
            n += weights[sure].sum()
            first[:], last[:] = rounds[sure].min(), rounds[sure].max()
        if at.size:
            used = np.flatnonzero(matters.any(axis=0))
            known = known[used]
            order = np.argsort(known, axis=1)
            ordered = np.take_along_axis(known, order, axis=1)
            rank = np.empty(order.shape, np.int32)
            np.put_along_axis(rank, order, np.arange(n_draws, dtype=np.int32)[None], axis=1)
            rows = values[at], rounds[at], weights[at]
            pairs = one[used], two[used], low[used], eps1 * known.mean(axis=1)
            n_marked = len(used) if known.size <= _MOST_MARKS else 0
            shape = n_marked, n_draws + 1
            found: list[tuple[NDArray[Any], ...]] = [(n, first, last)]

            def run(which: NDArray[np.int64]) -> None:
                sums = np.zeros(n_draws), np.full(n_draws, far), np.full(n_draws, -1)
                marks = np.zeros(shape), np.full(shape, far), np.full(shape, -1)
                _count(
                    which, _BLOCK, rows, pairs, (ordered, order, rank, float(eps1)), float(limit),
                    sums, marks,
                )  # fmt: skip
                if n_marked:
                    _unmark(order, *marks, *sums)
                found.append(sums)

            team.share(run, -(-len(at) // _BLOCK))
            # sums of whole numbers, least and largest: the same whichever thread did which
            n, first, last = (np.array(part) for part in zip(*found, strict=True))
            n, first, last = n.sum(axis=0), first.min(axis=0), last.max(axis=0)
    return n, np.where(first == far, -1, first), last
