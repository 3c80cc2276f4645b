r"""The pair of arms that a round treats most differently, given how similar their rewards are.

For total variation on decisions and on Bernoulli rewards the excess of a pair is

.. math:: |\pi_i - \pi_j| - \epsilon_1 |m_i - m_j| .

With the arms sorted by m, u = pi - eps1 m and v = pi + eps1 m, the largest excess is
max_i (u_i - min_{j before i} u_j) or max_i (max_{j before i} v_j - v_i): O(k log k), not k^2.
The sort cannot be left out: -eps1 |b| is a minimum of two lines, not a maximum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.rows import fixed

__all__ = ["PAIR_TIE", "worst_pair", "worst_pairs"]

PAIR_TIE = 1e-12
"""Excesses that differ by less than this are equal: the first pair in arm order stands for them."""


@compiled()
def _sort_by(key, order, work):  # type: ignore[no-untyped-def]
    """Sort ``order`` by ``key``, in place; fast where it is nearly sorted already."""
    n = order.shape[0]
    width = 1
    while width < n:
        for low in range(0, n - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, n)
            if key[order[middle - 1]] <= key[order[middle]]:
                continue
            for c in range(low, middle):
                work[c] = order[c]
            a, b, c = low, middle, low
            while a < middle:
                if b < high and key[order[b]] < key[work[a]]:
                    order[c] = order[b]
                    b += 1
                else:
                    order[c] = work[a]
                    a += 1
                c += 1
        width *= 2


@compiled()
def _best_partners(pi, m, eps1, order, best):  # type: ignore[no-untyped-def]
    """Write each arm's largest excess over all partners to ``best``; return the largest."""
    k = order.shape[0]
    top = -np.inf
    low_u, high_v = np.inf, -np.inf
    for c in range(k):
        i = order[c]
        if np.isnan(pi[i]):
            best[i] = -np.inf
            continue
        u, v = pi[i] - eps1 * m[i], pi[i] + eps1 * m[i]
        best[i] = max(u - low_u, high_v - v)
        low_u, high_v = min(low_u, u), max(high_v, v)
    low_v, high_u = np.inf, -np.inf
    for c in range(k - 1, -1, -1):
        i = order[c]
        if np.isnan(pi[i]):
            continue
        u, v = pi[i] - eps1 * m[i], pi[i] + eps1 * m[i]
        best[i] = max(best[i], v - low_v, high_u - u)
        low_v, high_u = min(low_v, v), max(high_u, u)
        top = max(top, best[i])
    return top


@compiled()
def _worst_rows(pi, m, eps1, tie, excess, pair):  # type: ignore[no-untyped-def]
    n_rows, k = pi.shape
    order, work = np.arange(k), np.empty(k, np.int64)
    best = np.empty(k)
    # prefix sums of large eps1 * m round; a pair is judged by its own excess, so allow for that
    slack = tie + 8e-16 * (1.0 + eps1)
    for t in range(n_rows):
        # successive rounds differ in few arms: start from the last order
        _sort_by(m[t], order, work)
        top = _best_partners(pi[t], m[t], eps1, order, best)
        excess[t] = top
        pair[t, 0] = pair[t, 1] = -1
        if top == -np.inf:
            continue
        for i in range(k):
            if best[i] < top - slack:
                continue
            for j in range(k):
                if j == i or np.isnan(pi[t, j]):
                    continue
                value = abs(pi[t, i] - pi[t, j]) - eps1 * abs(m[t, i] - m[t, j])
                if value >= top - slack:
                    excess[t] = value
                    swap = pi[t, j] > pi[t, i]
                    pair[t, 0], pair[t, 1] = (j, i) if swap else (i, j)
                    break
            if pair[t, 0] >= 0:
                break


def worst_pairs(
    pi: ArrayLike, m: ArrayLike, eps1: float, *, tie: float = PAIR_TIE
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    r"""Return, for each round, the largest excess over pairs and the pair that has it.

    Parameters
    ----------
    pi : (T, k) array
        Selection probabilities; NaN = arm not on offer, it is left out.
    m : (T, k) array
        P(r_i = 1), in [0, 1].
    eps1 : float
        Factor of the reward distance, >= 0.
    tie : float
        Excesses that differ by less are equal.

    Returns
    -------
    excess : (T,) array
        max over pairs of \|pi_i - pi_j\| - eps1 \|m_i - m_j\|, with its sign; -inf where fewer
        than two arms are on offer.
    pair : (T, 2) array of int
        The arm chosen more often, then the other; the first such pair in arm order (equally often:
        in arm order). -1, -1 where there is no pair.

    Examples
    --------
    >>> excess, pair = worst_pairs([[0.1, 0.9], [0.5, 0.5]], [[0.5, 0.7], [0.5, 0.7]], 2.0)
    >>> excess.round(6), pair
    (array([ 0.4, -0.4]), array([[1, 0],
           [0, 1]]))
    """
    rows = np.ascontiguousarray(pi, dtype=np.float64)
    means = np.ascontiguousarray(m, dtype=np.float64)
    if rows.ndim != 2 or rows.shape != means.shape:
        raise ValueError(f"pi {rows.shape} and m {means.shape} must be (rounds, arms) alike.")
    excess, pair = np.empty(len(rows)), np.empty((len(rows), 2), dtype=np.int64)
    _worst_rows(fixed(rows), fixed(means), float(eps1), float(tie), excess, pair)
    return excess, pair


def worst_pair(
    pi: ArrayLike, m: ArrayLike, eps1: float, *, tie: float = PAIR_TIE
) -> tuple[float, int, int]:
    """Return (excess, i, j) of one round: see `worst_pairs`; i is the arm chosen more often.

    Examples
    --------
    >>> excess, more, less = worst_pair([0.1, 0.9], [0.5, 0.7], 2.0)
    >>> round(excess, 6), more, less
    (0.4, 1, 0)
    """
    excess, pair = worst_pairs(np.atleast_2d(pi), np.atleast_2d(m), eps1, tie=tie)
    return float(excess[0]), int(pair[0, 0]), int(pair[0, 1])
