r"""Many logs at once: the kernels of one log run over slices of long arrays, in one compiled loop.

A log of four rounds costs less than calling a kernel. Here the loop over logs is compiled too; what
is done with each of them is what is done with a log that is audited alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import tie_nodes
from bayesfair.kernels.log.guards import RewardMoments, moments_into, moments_table, rule_into
from bayesfair.kernels.log.part_result import TOLERANCES
from bayesfair.kernels.log.propensities import pair_maxima_into
from bayesfair.kernels.log.rows import fixed
from bayesfair.kernels.log.stream_blocks import Log, Out
from bayesfair.kernels.log.stream_narrow import MOST_ARMS, run_narrow
from bayesfair.kernels.log.stream_wide import run_wide
from bayesfair.typing import Floats, Ints

__all__ = ["ManyResults", "fair_shares", "stream_many"]


class ManyResults(NamedTuple):
    """What G logs amount to; k arms, N rounds in all, E values of eps1.

    Attributes
    ----------
    frontier : (G, E) array
        Largest excess over rounds and pairs, cut at 0.
    sums : (G, 3, k) array
        Sums over rounds of P*, pi and pi (1 - pi); the last two 0 without a whole rule.
    tallies : (G, 2, k) array of int
        Rounds in which the arm was chosen, was on offer.
    moved : (G,) array of int
        Rounds with the beliefs of the round before in which pi moved all the same.
    regret : (N,) array
        sum_i max(P*_i - pi_i, 0) of every round; empty without a whole rule.
    best_chosen : (N,) array
        P* of the chosen arm of every round.
    rule : (G, 8) array
        The fields of `bayesfair.kernels.log.guards.RuleSums`.
    moments : (11, G, k) array
        The fields of `bayesfair.kernels.log.guards.RewardMoments`.
    maxima : (G, k, k) array
        Largest difference of two probabilities in a round; filled above the diagonal.
    """

    frontier: Floats
    sums: Floats
    tallies: Ints
    moved: Ints
    regret: Floats
    best_chosen: Floats
    rule: Floats
    moments: RewardMoments
    maxima: Floats


@compiled()
def _run(bounds, narrow, log, out, pi, p, rule, moments, maxima):  # type: ignore[no-untyped-def]
    k, has_pi = log.alpha.shape[0], pi.shape[0] > 0
    one = np.zeros(1, np.int64)
    for g in range(bounds.shape[0] - 1):
        a, b = bounds[g], bounds[g + 1]
        arm, line, reward = log.arm[a:b], log.pi[a * k : b * k], log.update_reward[a:b]
        # records are made by position: numba knows no names of arguments here
        here = Log(
            b - a, b - a, arm, line, log.stride, log.offered, log.until, arm, reward, log.counts,
            log.changed_before, log.row_before, log.alpha, log.beta, log.nodes, log.weights,
            log.grid, log.asked, log.limits,
        )  # fmt: skip
        own = Out(
            out.frontier[g : g + 1], out.worst_mean[g : g + 1], out.sums[g : g + 1],
            out.tallies[g : g + 1], out.totals[g : g + 1], out.marks[g : g + 1], out.regret[a:b],
            out.p_chosen[a:b], out.p_rows,
        )  # fmt: skip
        if narrow:
            run_narrow(one, here, own)
        else:
            run_wide(one, here, own)
        moments_into(arm, reward, p[a:b], moments[:, g])
        if has_pi:
            rule_into(arm, line, k, 1, k, rule[g])
            pair_maxima_into(pi[a:b], 128, maxima[g])


def stream_many(
    bounds: Ints,
    arm: NDArray[np.int32],
    reward: Floats,
    pi: Floats | None,
    p: Floats | None = None,
    *,
    alpha: Floats,
    beta: Floats,
    eps1_grid: Floats,
    eps1_index: int,
    eps2: float,
) -> ManyResults:
    """Audit many logs that start from the same Beta beliefs.

    Parameters
    ----------
    bounds : (G + 1,) array of int
        Log g has the rounds bounds[g] to bounds[g + 1] - 1, at least one.
    arm : (N,) array of int32
    reward : (N,) array
        0, 1, or NaN = not observed.
    pi : (N, k) array or None
        Selection probabilities; of a log with NaN the results are not to be used.
    p : (N,) array or None
        Probabilities of the chosen arms, where nothing else was logged.
    alpha, beta : (k,) arrays
        Beliefs before the first round of each log.
    eps1_grid, eps1_index, eps2
        As in `bayesfair.kernels.log.stream.stream_bernoulli`.
    """
    n_logs, n, k = len(bounds) - 1, len(arm), len(alpha)
    nodes, weights = tie_nodes(k)
    nothing, reward = np.empty(0, np.int64), fixed(reward)
    rows = np.empty((0, k)) if pi is None else np.ascontiguousarray(pi)
    if pi is not None:
        p = np.take_along_axis(rows, arm[:, None].astype(np.int64), axis=1)[:, 0]
    counts = np.zeros((2, 2, k))
    counts[1] = 1.0  # each arm may change
    log = Log(
        size=n,
        n_rounds=n,
        arm=fixed(arm),
        pi=fixed(rows.reshape(-1)),
        stride=(k, 1) if rows.size else (0, 0),
        offered=fixed(np.empty((0, k), bool)),
        until=fixed(nothing),
        update_arm=fixed(arm),
        update_reward=reward,
        counts=counts,
        changed_before=True,
        row_before=fixed(np.full(k, np.nan)),
        alpha=fixed(alpha),
        beta=fixed(beta),
        nodes=nodes,
        weights=weights,
        grid=fixed(eps1_grid),
        asked=eps1_index,
        limits=fixed(eps2 + np.array(TOLERANCES)),
    )
    out = Out.empty(n_logs, n, k, len(eps1_grid), has_pi=pi is not None, rows=False)
    chances = np.zeros(n) if p is None else np.ascontiguousarray(p)
    rule, moments = np.zeros((n_logs, 8)), moments_table((n_logs, k))
    maxima = np.full((n_logs, k, k), -np.inf)
    narrow = pi is not None and k <= MOST_ARMS
    _run(fixed(bounds), narrow, log, out, fixed(rows), fixed(chances), rule, moments, maxima)
    return ManyResults(
        out.frontier, out.sums, out.tallies, out.marks[:, 1], out.regret, out.p_chosen, rule,
        RewardMoments(*moments), maxima,
    )  # fmt: skip


@compiled()
def _fair(logs, maxima, distances, low, high, eps1, allowed, shares):  # type: ignore[no-untyped-def]
    n, k = distances.shape[1], maxima.shape[1]
    unfair = np.empty(n, np.bool_)
    for g in logs:
        limit, p, always = allowed[g], -1, False
        unfair[:] = False
        for i in range(k):
            for j in range(i + 1, k):
                p += 1
                need = maxima[g, i, j]
                # what the closest and the furthest pair of draws decide is decided for all
                if always or not need - eps1 * low[p] > limit:
                    continue
                always = need - eps1 * high[p] > limit
                for d in range(n):
                    unfair[d] |= need - eps1 * distances[p, d] > limit
        shares[g] = (n - unfair.sum()) / n


def fair_shares(
    logs: Ints, maxima: Floats, means: Floats, eps1: float, allowed: Floats, shares: Floats
) -> None:
    """Write the share of draws of the truth under which no pair of a log needs more than allowed.

    Parameters
    ----------
    logs : (n,) array of int
        Which logs have this truth.
    maxima : (G, k, k) array
        As in `ManyResults`.
    means : (draw, k) array
        Draws of the true means.
    eps1 : float
    allowed : (G,) array
        Largest excess that does not violate.
    shares : (G,) array
        Written to.
    """
    i, j = np.triu_indices(means.shape[1], 1)
    distances = np.ascontiguousarray(np.abs(means[:, i] - means[:, j]).T)
    _fair(
        fixed(logs), fixed(maxima), distances, distances.min(axis=1), distances.max(axis=1),
        float(eps1), fixed(allowed), shares,
    )  # fmt: skip
