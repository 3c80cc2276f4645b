"""An audit in clean, vectorised NumPy: what a careful analyst would write.

Chunks of rounds; prefix counts by cumulative sums; the tie integral broadcast over
(round, arm, node); pairs by a sort and running extremes; what is open under the draws of the truth
held against them, the rest decided for all draws at once. Float64 throughout. `subjective` computes
the numbers of ``bf.audit(log, objective=False)`` as its `to_dict` names them, `objective` what all
defaults add: Bernoulli rewards, all observed, under Beta(1/2, 1/2), every arm always on offer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from bayesfair.kernels.laws.quadrature import n_tie_nodes

Floats = NDArray[np.float64]
Numbers = dict[str, Any]

TOLERANCE = 1e-9
WINDOW = 16  # rows that are looked for again
KEPT_VALUES = 1 << 21  # probabilities of rounds whose violations are counted without gaps
MOST_COMPARISONS = 10_000_000_000
FEWEST_DRAWS = 200


def subjective(
    arm: NDArray[np.int32], reward: Floats, pi: Floats, *, grid: Floats, asked: int, eps2: float,
    chunk: int,
) -> Numbers:  # fmt: skip
    """Audit a whole log under the beliefs of each round, ``chunk`` rounds at a time."""
    n_rounds, k = pi.shape
    x, w = np.polynomial.legendre.leggauss(n_tie_nodes(k))  # as few as ours
    x, w = (x + 1) / 2, w / 2
    won, seen = np.full(k, 0.5), np.full(k, 1.0)
    frontier, regret, p_chosen = np.zeros(grid.size), 0.0, np.empty(n_rounds)
    p_best_sum, pi_sum, pi_var = np.zeros(k), np.zeros(k), np.zeros(k)
    worst, worst_round, worst_pair = -np.inf, -1, (-1, -1)
    violating: list[NDArray[np.intp]] = []
    slope = slope_variance = moved = same = same_variance = 0.0
    p = np.take_along_axis(pi, arm[:, None].astype(np.intp), axis=1)[:, 0]
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
        regret += np.maximum(p_best - rule, 0.0).sum()
        p_best_sum += p_best.sum(axis=0)
        p_chosen[start:stop] = p_best[rows, arm[start:stop]]
        # pairs
        order = np.argsort(m, axis=1)
        m_sorted = np.take_along_axis(m, order, axis=1)
        rule_sorted = np.take_along_axis(rule, order, axis=1)
        at_asked = _excess(rule_sorted, m_sorted, grid[asked])
        violating.append(start + np.flatnonzero(at_asked > eps2 + TOLERANCE))
        t = int(at_asked.argmax())
        if at_asked[t] > worst + 1e-12:
            worst, worst_round = float(at_asked[t]), start + t
            worst_pair = _pair(rule[t], m[t], grid[asked])
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
        # the log against itself
        pi_sum += rule.sum(axis=0)
        squares = rule * rule
        pi_var += (rule - squares).sum(axis=0)
        second = squares.sum(axis=1)
        slope += (p[start:stop] - second).sum()
        slope_variance += (np.einsum("ti,ti->t", squares, rule) - second * second).sum()
        first = max(start, 1)
        again = pi[np.arange(first, stop), arm[first - 1 : stop - 1]]
        same += ((arm[first:stop] == arm[first - 1 : stop - 1]) - again).sum()
        same_variance += (again * (1.0 - again)).sum()
        moved += 0.5 * np.abs(pi[first:stop] - pi[first - 1 : stop - 1]).sum()
    plays = np.bincount(arm, minlength=k)
    weight = p_chosen / p
    where = np.concatenate(violating)
    learned = (digamma(1.0 + plays + 1) - digamma(1.0 + 1)).sum()  # how far P* moved at most
    return {
        "subjective": {
            "n_violating_rounds": len(where),
            "first_violating_round": int(where[0]) if len(where) else None,
            "last_violating_round": int(where[-1]) if len(where) else None,
            "smallest_eps2": frontier[asked],
            "worst": {"round": worst_round, "arm": worst_pair[0], "arm_other": worst_pair[1]},
        },
        "regret_total": regret,
        "effective_sample_size": weight.sum() ** 2 / (weight * weight).sum(),
        "max_weight": weight.max(),
        "mean_weight": weight.mean(),
        "n": plays,
        "reward_mean": np.bincount(arm, weights=reward, minlength=k) / plays,
        "p_best_subjective": p_best_sum / n_rounds,
        "selection_mean": pi_sum / n_rounds,
        "frontier": frontier,
        "choices": (plays - pi_sum) / np.sqrt(pi_var),
        "strength": slope / np.sqrt(slope_variance),
        "sticky": same / np.sqrt(same_variance),
        "context": _context(arm, reward, p, k),
        "movement": moved / learned,
        "repeated_rows": _repeated(arm, reward, p),
    }


def _excess(rule: Floats, m: Floats, eps1: float) -> Floats:
    """Return each round's largest excess over pairs, arms in order of m."""
    u, v = rule - eps1 * m, rule + eps1 * m
    up = u[:, 1:] - np.minimum.accumulate(u, axis=1)[:, :-1]
    down = np.maximum.accumulate(v, axis=1)[:, :-1] - v[:, 1:]
    return np.maximum(up.max(axis=1), down.max(axis=1))


def _pair(rule: Floats, m: Floats, eps1: float) -> tuple[int, int]:
    """Return the pair with the largest excess in one round, the arm chosen more often first."""
    excess = np.abs(rule[:, None] - rule) - eps1 * np.abs(m[:, None] - m)
    np.fill_diagonal(excess, -np.inf)
    i, j = divmod(int((excess >= excess.max() - 1e-12).argmax()), len(m))
    return (i, j) if rule[i] >= rule[j] else (j, i)


def _context(arm: NDArray[np.int32], reward: Floats, p: Floats, k: int) -> Floats:
    """Return z of rewards on logged probabilities, by arm."""
    n = np.bincount(arm, minlength=k)
    r = reward - (np.bincount(arm, reward, k) / n)[arm]
    c = p - (np.bincount(arm, p, k) / n)[arm]
    scale = np.bincount(arm, r * r, k) / n * np.bincount(arm, c * c, k)
    with np.errstate(invalid="ignore"):  # an arm whose rewards never vary has no z
        return np.asarray(np.bincount(arm, r * c, k) / np.sqrt(scale))


def _repeated(arm: NDArray[np.int32], reward: Floats, p: Floats) -> int:
    """Return how many blocks of rows stand there again, by fingerprints."""
    mix = np.uint64(0x9E3779B97F4A7C15)
    rows = (arm.astype(np.uint64) * mix ^ reward.view(np.uint64)) * mix ^ p.view(np.uint64)
    rows = (rows ^ (rows >> np.uint64(31))) * mix
    prints = np.zeros(max(len(rows) - WINDOW + 1, 0), np.uint64)
    for lag in range(WINDOW):
        prints = prints * mix + rows[lag : lag + len(prints)]
    prints.sort()
    return int((prints[1:] == prints[:-1]).sum())


def objective(
    arm: NDArray[np.int32], reward: Floats, pi: Floats, *, grid: Floats, asked: int, eps2: float,
    draws: int, seed: int, chunk: int,
) -> Numbers:  # fmt: skip
    """Audit a whole log under draws of its true rewards from the posterior."""
    n_rounds, k = pi.shape
    plays, won = np.bincount(arm, minlength=k), np.bincount(arm, reward, k)
    theta = np.random.default_rng(seed).beta(0.5 + won, 0.5 + plays - won, size=(draws, k))
    x, w = np.polynomial.legendre.leggauss(n_tie_nodes(k))
    x, w = (x + 1) / 2, w / 2
    q = 1.0 - theta
    factor = q[:, :, None] + theta[:, :, None] * x
    product = w * np.prod(factor, axis=1)
    p_best = theta * (product[:, None, :] / factor).sum(axis=2) + (q.prod(axis=1) / k)[:, None]
    # regret: sum over rounds of max(P* - pi, 0), from every arm's probabilities in order
    regret = np.zeros(draws)
    for i in range(k):
        values = np.sort(pi[:, i])
        total = np.concatenate([[0.0], np.cumsum(values)])
        below = np.searchsorted(values, p_best[:, i], side="right")
        regret += below * p_best[:, i] - total[below]
    # smallest eps2: largest difference of every pair over rounds
    first, second = np.triu_indices(k, 1)
    largest = np.full(len(first), -np.inf)
    for start in range(0, n_rounds, chunk):
        rule = pi[start : start + chunk]
        largest = np.maximum(largest, np.abs(rule[:, first] - rule[:, second]).max(axis=0))
    distance = np.abs(theta[:, first] - theta[:, second])
    needed = np.stack([(largest - eps1 * distance).max(axis=1) for eps1 in grid], axis=1)
    needed = np.maximum(needed, 0.0)
    found = {
        "probability_fair": (needed[:, asked] <= eps2 + TOLERANCE).mean(),
        "smallest_eps2": needed[:, asked],
        "frontier_objective": needed,
        "regret_objective": regret / n_rounds,
        "p_best_objective": p_best.mean(axis=0),
    }
    unfair = needed[:, asked] > eps2 + TOLERANCE
    return found | _violating(pi, distance, grid[asked], eps2 + TOLERANCE, chunk, unfair)


def _violating(
    pi: Floats, distance: Floats, eps1: float, limit: float, chunk: int, unfair: NDArray[np.bool_]
) -> Numbers:
    """Count the rounds in which a pair violates, under every draw (of many: evenly spaced ones).

    Of long logs all rounds up to two million probabilities, from there on an ever smaller share.
    """
    n_rounds, k = pi.shape
    whole = KEPT_VALUES >> (k - 1).bit_length()
    rounds = np.arange(n_rounds)
    stride = np.where(
        rounds < whole, 1, 8 << np.log2(np.maximum(rounds // whole, 1)).astype(np.int64)
    )
    rounds = rounds[rounds % stride == 0]
    rounds = rounds[np.ptp(pi[rounds], axis=1) > limit]  # else no pair can
    weight = np.minimum(stride[rounds], n_rounds - rounds).astype(np.float64)
    work = len(rounds) * distance.shape[1] * len(distance)
    step = min(-(-work // MOST_COMPARISONS), max(len(distance) // FEWEST_DRAWS, 1))
    distance, unfair = distance[:: max(step, 1)], unfair[:: max(step, 1)]
    low, high = distance.min(axis=0), distance.max(axis=0)
    first, second = np.triu_indices(k, 1)
    n = np.zeros(len(distance))
    began, ended = np.full(len(distance), -1), np.full(len(distance), -1)
    distances = np.ascontiguousarray(distance.T)
    for start in range(0, len(rounds), chunk):
        here = slice(start, start + chunk)
        rule = pi[rounds[here]]
        differs = np.abs(rule[:, first] - rule[:, second])
        sure = (differs - eps1 * high > limit).any(axis=1)
        may = differs - eps1 * low > limit
        where = rounds[here][sure]
        if len(where):  # under every draw
            n += weight[here][sure].sum()
            began = np.where(began < 0, where[0], np.minimum(began, where[0]))
            ended = np.maximum(ended, where[-1])
        for t in np.flatnonzero(~sure & may.any(axis=1)):
            pairs = np.flatnonzero(may[t])
            hit = (differs[t, pairs, None] - eps1 * distances[pairs] > limit).any(axis=0)
            n += hit * weight[start + t]
            at = rounds[start + t]
            began[hit & ((began < 0) | (began > at))] = at
            ended[hit & (ended < at)] = at
    if n_rounds > whole:  # not all were looked at: one of the others violates, or none does
        n = np.where(unfair, np.maximum(n, 1.0), 0.0)
    return {"n_violating": n, "first_violating": began, "last_violating": ended}
