"""The subjective audit in clean, vectorised NumPy: what a careful analyst would write.

Chunks of rounds; prefix counts by cumulative sums; the tie integral broadcast over
(round, arm, node); pairs by a sort and running extremes. Float64 throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.laws.quadrature import n_tie_nodes

Floats = NDArray[np.float64]


class Audited(NamedTuple):
    """The numbers on which both sides must agree."""

    frontier: Floats
    n_violating: int
    regret: Floats
    p_best_sum: Floats
    pi_sum: Floats
    plays: NDArray[np.int64]
    all_zero_sum: float


def audit_numpy(
    arm: NDArray[np.int32],
    reward: Floats,
    pi: Floats,
    *,
    grid: Floats,
    asked: int,
    eps2: float,
    chunk: int,
) -> Audited:
    """Audit a whole log, ``chunk`` rounds at a time (Beta(1/2, 1/2), rewards all observed)."""
    n_rounds, k = pi.shape
    x, w = np.polynomial.legendre.leggauss(n_tie_nodes(k))  # as few as ours
    x, w = (x + 1) / 2, w / 2
    won, seen = np.full(k, 0.5), np.full(k, 1.0)
    frontier, regret = np.zeros(grid.size), np.empty(n_rounds)
    p_best_sum, pi_sum, all_zero_sum, n_violating = np.zeros(k), np.zeros(k), 0.0, 0
    for start in range(0, n_rounds, chunk):
        stop = min(start + chunk, n_rounds)
        rows, rule = np.arange(stop - start), pi[start:stop]
        # beliefs before each round
        one = np.zeros((stop - start + 1, k))
        one[rows + 1, arm[start:stop]] = 1.0
        one[0] = seen
        n = np.cumsum(one, axis=0)
        one[0] = won
        one[rows + 1, arm[start:stop]] = reward[start:stop]
        s = np.cumsum(one, axis=0)
        seen, won = n[-1], s[-1]
        m = s[:-1] / n[:-1]
        q = 1.0 - m
        # P*
        factor = q[:, :, None] + m[:, :, None] * x
        product = w * np.prod(factor, axis=1)
        none = np.prod(q, axis=1)
        p_best = m * (product[:, None, :] / factor).sum(axis=2) + (none / k)[:, None]
        regret[start:stop] = np.maximum(p_best - rule, 0.0).sum(axis=1)
        p_best_sum += p_best.sum(axis=0)
        pi_sum += rule.sum(axis=0)
        all_zero_sum += none.sum()
        # pairs
        order = np.argsort(m, axis=1)
        m_sorted = np.take_along_axis(m, order, axis=1)
        rule_sorted = np.take_along_axis(rule, order, axis=1)
        at_asked = _excess(rule_sorted, m_sorted, grid[asked])
        n_violating += int((at_asked > eps2 + 1e-9).sum())
        spread = rule.max(axis=1) - rule.min(axis=1)
        for e, eps1 in enumerate(grid):
            if e == asked:
                frontier[e] = max(frontier[e], at_asked.max())
                continue
            # convex and falling in eps1: most rounds cannot matter
            share = min(eps1 / grid[asked], 1.0)
            bound = spread + share * (at_asked - spread)
            above = bound > frontier[e]
            if above.any():
                excess = _excess(rule_sorted[above], m_sorted[above], eps1)
                frontier[e] = max(frontier[e], excess.max())
    plays = np.bincount(arm, minlength=k)
    return Audited(frontier, n_violating, regret, p_best_sum, pi_sum, plays, all_zero_sum)


def _excess(rule: Floats, m: Floats, eps1: float) -> Floats:
    """Return each round's largest excess over pairs, arms in order of m."""
    u, v = rule - eps1 * m, rule + eps1 * m
    up = u[:, 1:] - np.minimum.accumulate(u, axis=1)[:, :-1]
    down = np.maximum.accumulate(v, axis=1)[:, :-1] - v[:, 1:]
    return np.maximum(up.max(axis=1), down.max(axis=1))
