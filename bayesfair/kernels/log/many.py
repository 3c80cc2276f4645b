r"""Many logs at once: the kernels of one log run over slices of long arrays, in one compiled loop.

A log of four rounds costs less than calling a kernel. Here the loop over logs is compiled too; what
is done with each of them is what is done with a log that is audited alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import tie_nodes
from bayesfair.kernels.log.guards import RewardMoments, moments_into, moments_table, rule_into
from bayesfair.kernels.log.propensities import pair_maxima_into
from bayesfair.kernels.log.stream_narrow import run_narrow
from bayesfair.kernels.log.stream_state import TOLERANCES

__all__ = ["ManyResults", "fair_shares", "stream_many"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ManyResults(NamedTuple):
    """What G logs amount to; k arms, N rounds in all, E values of eps1.

    Attributes
    ----------
    frontier : (G, E) array
        Largest excess over rounds and pairs, cut at 0.
    sums : (G, 3, k) array
        Sums over rounds of P*, pi and pi (1 - pi); NaN where some arm was not on offer.
    tallies : (G, 2, k) array of int
        Rounds in which the arm was chosen, was on offer.
    totals : (G, 3) array
        Sums of prod(1 - m) and of the largest pi; the worst excess.
    still, moved : (G,) array of int
        Rounds with the beliefs of the round before; those in which pi moved all the same.
    n_violating : (G, len(TOLERANCES)) array of int
        Violating rounds.
    regret : (N,) array
        sum_i max(P*_i - pi_i, 0) of every round.
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
    totals: Floats
    still: Ints
    moved: Ints
    n_violating: Ints
    regret: Floats
    rule: Floats
    moments: RewardMoments
    maxima: Floats


@compiled()
def _run(  # type: ignore[no-untyped-def]
    bounds, arm, pi, line, p, reward, offered, until, counts, row_before,
    alpha, beta, nodes, weights, grid, asked, limits,
    frontier, worst_mean, sums, tallies, totals, marks, regret, p_chosen, p_rows,
    rule, moments, maxima,
):  # fmt: skip
    k = alpha.shape[0]
    one = np.zeros(1, np.int64)
    for g in range(bounds.shape[0] - 1):
        a, b = bounds[g], bounds[g + 1]
        run_narrow(
            one, b - a, b - a,
            arm[a:b], line[a * k : b * k], (k, 1), offered,
            until, arm[a:b], reward[a:b], counts, True, row_before,
            alpha, beta, nodes, weights, grid, asked, limits,
            frontier[g : g + 1], worst_mean[g : g + 1], sums[g : g + 1], tallies[g : g + 1],
            totals[g : g + 1], marks[g : g + 1], regret[a:b], p_chosen[a:b], p_rows,
        )  # fmt: skip
        rule_into(arm[a:b], line[a * k : b * k], k, 1, k, rule[g])
        moments_into(arm[a:b], reward[a:b], p[a:b], moments[:, g])
        pair_maxima_into(pi[a:b], 128, maxima[g])


def stream_many(
    bounds: Ints,
    arm: NDArray[np.int32],
    reward: Floats,
    pi: Floats,
    *,
    alpha: Floats,
    beta: Floats,
    eps1_grid: Floats,
    eps1_index: int,
    eps2: float,
) -> ManyResults:
    """Audit many logs with few arms that start from the same Beta beliefs.

    Parameters
    ----------
    bounds : (G + 1,) array of int
        Log g has the rounds bounds[g] to bounds[g + 1] - 1, at least one.
    arm : (N,) array of int32
    reward : (N,) array
        0, 1, or NaN = not observed.
    pi : (N, k) array, C order
        Selection probabilities; of a log with NaN the results are not to be used (its sums of pi
        are NaN).
    alpha, beta : (k,) arrays
        Beliefs before the first round of each log.
    eps1_grid, eps1_index, eps2
        As in `bayesfair.kernels.log.stream.stream_bernoulli`.
    """
    n_logs, (n, k), n_grid = len(bounds) - 1, pi.shape, len(eps1_grid)
    nodes, weights = tie_nodes(k)
    frontier, worst_mean = np.zeros((n_logs, n_grid)), np.zeros((n_logs, k))
    sums, totals = np.zeros((n_logs, 3, k)), np.zeros((n_logs, 3))
    tallies = np.zeros((n_logs, 2, k), np.int64)
    marks = np.zeros((n_logs, 3 + 3 * len(TOLERANCES)), np.int64)
    marks[:, 3 + len(TOLERANCES) :] = -1
    regret, p_chosen, p_rows = np.empty(n), np.empty(n), np.empty((0, k))
    rule, maxima = np.zeros((n_logs, 8)), np.full((n_logs, k, k), -np.inf)
    moments = moments_table((n_logs, k))
    line = np.ascontiguousarray(pi).reshape(-1)
    nothing = np.empty(0, np.int64)
    _run(
        _fixed(bounds), _fixed(arm), _fixed(pi), _fixed(line),
        _fixed(np.take_along_axis(pi, arm[:, None].astype(np.int64), axis=1)[:, 0]),
        _fixed(reward), _fixed(np.empty((0, k), bool)), _fixed(nothing), np.zeros((1, 2, k)),
        _fixed(np.full(k, np.nan)), _fixed(alpha), _fixed(beta), nodes, weights,
        _fixed(eps1_grid), eps1_index, _fixed(eps2 + np.array(TOLERANCES)),
        frontier, worst_mean, sums, tallies, totals, marks, regret, p_chosen, p_rows,
        rule, moments, maxima,
    )  # fmt: skip
    return ManyResults(
        frontier, sums, tallies, totals, marks[:, 0], marks[:, 1],
        marks[:, 3 : 3 + len(TOLERANCES)], regret, rule, RewardMoments(*moments), maxima,
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
        _fixed(logs), _fixed(maxima), distances, distances.min(axis=1), distances.max(axis=1),
        float(eps1), _fixed(allowed), shares,
    )  # fmt: skip


def _fixed(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: one compiled version serves frozen and ordinary arrays."""
    view = values.view()
    view.flags.writeable = False
    return view
