r"""In how many rounds some pair of arms exceeds its bound, for every draw of the true rewards.

A round violates under a draw if any pair's :math:`D(\pi_i\|\pi_j) - \epsilon_1 D(r_i\|r_j)` exceeds
the allowance. Draws of a posterior agree about most rounds: what the smallest and the largest
reward distance over the draws decide is decided for all of them at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled

__all__ = ["count_violations"]


@compiled()
def _count(  # type: ignore[no-untyped-def]
    differences, rounds, weights, distances, low, high, eps1, limit, n, first, last
):  # fmt: skip
    """Add a chunk of rounds to ``n``, ``first`` and ``last``; see `count_violations`."""
    n_draws, n_pairs = n.shape[0], differences.shape[1]
    open_pairs, hit = np.empty(n_pairs, np.int64), np.empty(n_draws, np.bool_)
    sure, sure_first, sure_last = 0.0, -1, -1
    for t in range(differences.shape[0]):
        n_open, for_all = 0, False
        for p in range(n_pairs):
            x = differences[t, p]
            if not x > limit:  # also a pair that is not on offer
                continue
            if x - eps1 * high[p] > limit:
                for_all = True
                break
            if x - eps1 * low[p] > limit:
                open_pairs[n_open] = p
                n_open += 1
        if for_all:
            sure += weights[t]
            sure_first = rounds[t] if sure_first < 0 else sure_first
            sure_last = rounds[t]
            continue
        if n_open == 0:
            continue
        hit[:] = False
        for c in range(n_open):
            p = open_pairs[c]
            x = differences[t, p]
            for s in range(n_draws):
                hit[s] |= x - eps1 * distances[p, s] > limit
        for s in range(n_draws):
            if hit[s]:
                n[s] += weights[t]
                first[s] = rounds[t] if first[s] < 0 else first[s]
                last[s] = rounds[t]
    if sure_first >= 0:
        for s in range(n_draws):
            n[s] += sure
            first[s] = sure_first if first[s] < 0 else min(first[s], sure_first)
            last[s] = max(last[s], sure_last)


def count_violations(
    differences: NDArray[np.float64],
    rounds: NDArray[np.int64],
    weights: NDArray[np.float64],
    distances: NDArray[np.float64],
    eps1: float,
    limit: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return number, first and last (-1 = none) of the violating rounds under every draw.

    Parameters
    ----------
    differences : (T, P) array
        Divergence of the decisions of every pair; NaN = not on offer together, may hold inf.
    rounds : (T,) array of int
        Their numbers, ascending.
    weights : (T,) array
        How many rounds each stands for.
    distances : (P, S) array
        Divergence of the pair's rewards under every draw; may hold inf, which frees the pair.
    eps1, limit : float
        A round violates if a pair's difference - eps1 distance > limit.

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
    n_draws = distances.shape[1]
    n, first, last = np.zeros(n_draws), np.full(n_draws, -1), np.full(n_draws, -1)
    if not distances.shape[0] or not len(rounds):
        return n, first, last
    # 0 times infinity is 0: at eps1 = 0 rewards do not count
    known = distances if eps1 > 0 else np.zeros_like(distances)
    _count(
        differences, rounds, weights, known, known.min(axis=1), known.max(axis=1),
        float(eps1), float(limit), n, first, last,
    )  # fmt: skip
    return n, first, last
