"""Simulation-based calibration of weighted draws around the mode.

Method: Talts et al. 2018, arXiv:1804.06788.

Truths from the prior, data from the truth, a fit, the rank of the truth among the draws: over many
repetitions ranks must be uniform. Each parameter is tested at .001 / number of parameters, so that
a correct program fails in one run of a thousand; seeds are fixed. A wrong prior must fail.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, norm

from bayesfair.comparisons import Comparisons
from bayesfair.inference.certified import Proposal, weighted_draws
from bayesfair.inference.comparison_problem import problem_of
from bayesfair.inference.laplace import find_mode

K, RUNS, DRAWS = 5, 150, 1000
ITEMS = [f"i{j}" for j in range(K)]


def simulate_duels(model, rng):
    """Prior draw of (log-worths, order effect, log tie), and 150 duels with it."""
    u = rng.normal(size=K)
    order, log_tie = rng.normal(), 1.5 * rng.normal()
    a = rng.integers(K, size=150)
    b = (a + rng.integers(1, K, size=150)) % K
    gap = u[a] - u[b] + order
    draw = rng.random(150)
    if model == "davidson":
        weights = np.exp(np.stack([gap / 2, -gap / 2, np.full(150, log_tie)]))
        cuts = np.cumsum(weights / weights.sum(axis=0), axis=0)
        words = np.where(draw < cuts[0], "left", np.where(draw < cuts[1], "right", "tie"))
    else:
        win = norm.cdf(gap) if model == "thurstone" else 1 / (1 + np.exp(-gap))
        words = np.where(draw < win, "left", "right")
    data = Comparisons.from_duels(a, b, words, items=range(K), first="left")
    truth = {"log_worth": u - u.mean(), "order_effect": order}
    return data, truth | ({"log_tie": log_tie} if model == "davidson" else {})


def simulate_rankings(rng):
    """Prior draw and 12 top-3 rankings of it by Gumbel utilities."""
    u = rng.normal(size=K)
    orders = np.argsort(-(u + rng.gumbel(size=(12, K))), axis=1)[:, :3]
    data = Comparisons.from_rankings(
        [[ITEMS[j] for j in order] for order in orders], items=ITEMS, partial="top"
    )
    return data, {"log_worth": u - u.mean()}


def ranks(model, *, prior_sd=1.0, seed=0):
    """Normalised ranks of every parameter, ``(runs, parameters)``."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(RUNS):
        data, truth = (
            simulate_rankings(rng) if model == "plackett_luce" else simulate_duels(model, rng)
        )
        problem = problem_of(data, model, prior_sd=prior_sd)
        mode = find_mode(problem.likelihood, problem.precision)
        proposal = Proposal(problem.likelihood, mode, problem.precision)
        found = weighted_draws(proposal, DRAWS, rng)
        layout = problem.likelihood.layout
        log_worth = layout.log_worth(found.theta)
        columns = [log_worth - log_worth.mean(axis=1, keepdims=True)]
        value = [truth["log_worth"]]
        if layout.order:
            columns.append(found.theta[:, [layout.order_at]])
            value.append([truth["order_effect"]])
        if layout.tie:
            columns.append(found.theta[:, [-1]])
            value.append([truth["log_tie"]])
        below = (np.hstack(columns) < np.concatenate(value)).sum(axis=0)
        result.append((below + 0.5) / (DRAWS + 1))
    return np.array(result)


def p_values(found):
    """Test ranks of each parameter (bias) and their distance from the middle (width)."""
    folded = np.abs(2 * found - 1)
    return np.array([kstest(u, "uniform").pvalue for u in np.hstack([found, folded]).T])


@pytest.mark.statistical
@pytest.mark.parametrize("model", ["bradley_terry", "thurstone", "davidson", "plackett_luce"])
def test_ranks_are_uniform(model):
    p = p_values(ranks(model))
    assert np.all(p > 0.001 / len(p)), p


@pytest.mark.statistical
@pytest.mark.parametrize("model", ["davidson", "plackett_luce"])
def test_a_wrong_prior_is_found(model):
    p = p_values(ranks(model, prior_sd=0.4))
    assert np.any(p < 0.001 / len(p)), p
