"""Simulation-based calibration: simulators written from each model's docstring, ranks, verdict."""

import numpy as np
import pytest
from scipy import special, stats

from bayesfair.history import History

ARMS = ("a", "b", "c")
N_ROUNDS = 12
N_BINS = 4
#: A minute of compilation. Their densities are held exactly in test_conjugate_agreement.py, those
#: of arms that share something in test_shared_densities.py.
LONG = ("finite_independent", "normal_independent")
LEVELS = np.array([1.0, 2.0, 3.0])
N_DRAWS = 100  # kept per simulation, nearly independent


def _history(rng, theta_of_round, draw):
    arm = rng.permutation(np.arange(N_ROUNDS) % len(ARMS))
    reward = np.array([draw(theta_of_round(t, a)) for t, a in enumerate(arm)], dtype=float)
    return History(arm, reward, arms=ARMS)


def bernoulli_independent(rng, alpha=0.5, beta=0.5):
    theta = rng.beta(alpha, beta, 3)
    history = _history(rng, lambda t, a: theta[a], lambda p: rng.random() < p)
    return {"theta": theta}, history


def bernoulli_hierarchical(rng, spread=1.0, center_scale=1.0):
    mu = center_scale * special.logit(rng.random())  # a standard logistic variate, scaled
    tau = abs(rng.normal(0, spread))
    theta = special.expit(rng.normal(mu, tau, 3))
    history = _history(rng, lambda t, a: theta[a], lambda p: rng.random() < p)
    return {"mu": mu, "tau": tau, "theta": theta}, history


def bernoulli_drifting(rng, drift=0.5):
    tau = abs(rng.normal(0, drift))
    steps = tau * rng.normal(size=(N_BINS - 1, 3))
    first = special.logit(rng.random(3))
    logit = first + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    theta = special.expit(logit)
    length = N_ROUNDS // N_BINS
    history = _history(rng, lambda t, a: theta[t // length, a], lambda p: rng.random() < p)
    return {"tau": tau, "theta": theta}, history


def finite_independent(rng, concentration=(0.5, 0.5, 0.5)):
    probability = rng.dirichlet(concentration, 3)
    history = _history(
        rng, lambda t, a: probability[a], lambda p: LEVELS[rng.choice(3, p=p / p.sum())]
    )
    return {"probability": probability}, history


def poisson_independent(rng, shape=0.5, rate=0.5):
    rates = rng.gamma(shape, 1 / rate, 3)
    return {"rate": rates}, _history(rng, lambda t, a: rates[a], rng.poisson)


def normal_independent(rng, location=0.0, shape=1.0, scale=1.0):
    sd = np.sqrt(scale / rng.gamma(shape, 1.0, 3))
    mean = location + sd * rng.normal(size=3)
    history = _history(rng, lambda t, a: (mean[a], sd[a]), lambda p: rng.normal(*p))
    return {"mean": mean, "sd": sd}, history


#: simulator, options of `build`, and a wrong prior for the simulator
CASES = {
    "bernoulli_independent": (bernoulli_independent, {}, {"alpha": 8.0, "beta": 0.5}),
    "bernoulli_hierarchical": (bernoulli_hierarchical, {}, {"spread": 6.0}),
    "bernoulli_drifting": (bernoulli_drifting, {"n_bins": N_BINS}, {"drift": 4.0}),
    "finite_independent": (
        finite_independent,
        {"support": LEVELS},
        {"concentration": (0.5, 0.5, 5.0)},
    ),
    "poisson_independent": (poisson_independent, {}, {"shape": 6.0, "rate": 0.5}),
    "normal_independent": (
        normal_independent,
        {"prior": (0, 1, 1, 1)},
        {"location": 4.0, "scale": 4.0},
    ),
}


#: Six contexts from much to little; a number and a label, and the features that they are.
SITES = np.repeat([f"s{i}" for i in range(6)], [40, 30, 20, 10, 4, 2])
SHOWN = {"x": np.random.default_rng(2).normal(50, 10, 60), "site": np.repeat(["u", "v", "w"], 20)}
_X = (SHOWN["x"] - SHOWN["x"].mean()) / SHOWN["x"].std()
TWO = ("a", "b")
ROWS = np.column_stack([np.ones(60), _X, SHOWN["site"][:, None] == np.array(["u", "v", "w"])])


def _given(rng, context, draw):
    n = len(ROWS if context is SHOWN else SITES)
    arm = rng.permutation(np.arange(n) % 2)
    return History(arm, [draw(t, a) for t, a in enumerate(arm)], arms=TWO, context=context)


def _in_sites(rng, theta):
    site = np.unique(SITES, return_inverse=True)[1]
    return {"theta": theta}, _given(rng, SITES, lambda t, a: rng.random() < theta[site[t], a])


def bernoulli_cells(rng, alpha=0.5, beta=0.5):
    return _in_sites(rng, rng.beta(alpha, beta, (6, 2)))


def bernoulli_pooled_cells(rng, alike=(0.5, 200.0)):
    mu, log_kappa = rng.beta(0.5, 0.5, 2), rng.uniform(*np.log(alike), 2)
    kappa = np.exp(log_kappa)
    truth, history = _in_sites(rng, rng.beta(kappa * mu, kappa * (1 - mu), (6, 2)))
    return truth | {"mu": mu, "log_kappa": log_kappa}, history


def _binary(link, sd):
    def simulate(rng, sd=sd):
        beta = rng.normal(0, sd, (2, 5))
        chance = link(ROWS @ beta.T)
        return {"beta": beta}, _given(rng, SHOWN, lambda t, a: rng.random() < chance[t, a])

    return simulate


def normal_linear(rng, location=0.0, shape=1.0, scale=1.0):
    sd = np.sqrt(scale / rng.gamma(shape, 1.0, 2))
    beta = sd[:, None] * rng.normal(size=(2, 5))
    beta[:, 0] += location
    mean = ROWS @ beta.T
    return {"beta": beta, "sd": sd}, _given(rng, SHOWN, lambda t, a: rng.normal(mean[t, a], sd[a]))


#: The same of models of rewards given a context.
CONTEXT_CASES = {
    "bernoulli_cells": (bernoulli_cells, {}, {"alpha": 50.0, "beta": 0.2}),
    "bernoulli_pooled_cells": (bernoulli_pooled_cells, {}, {"alike": (150.0, 200.0)}),
    "bernoulli_probit": (_binary(special.ndtr, 1.0), {}, {"sd": 4.0}),
    "bernoulli_logit": (_binary(special.expit, 1.5), {}, {"sd": 6.0}),
    "normal_linear": (
        normal_linear,
        {"prior": (0, 1, 1, 1)},
        {"location": 8.0, "scale": 4.0},
    ),
}


def marked(cases):
    """Return names of models as parameters of a test; all but one, held exactly elsewhere, wait."""
    long = (*LONG, "poisson_independent", "bernoulli_drifting", "bernoulli_hierarchical")
    return [pytest.param(c, marks=pytest.mark.long) if c in long else c for c in cases]


def normalised_ranks(compiled, name, n_simulations, seed, wrong=False):
    """Return (r + 0.5) / (L + 1) per scalar parameter, ``{label: (n_simulations,)}``."""
    simulate, options, wrong_prior = (CASES | CONTEXT_CASES)[name]
    rng, ties = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    ranks = {}
    for _ in range(n_simulations):
        truth, history = simulate(rng, **(wrong_prior if wrong else {}))
        model, data = compiled(name, history, **options)
        tree = model.sample(
            draws=2 * N_DRAWS, tune=200, target_accept=0.9, chains=1,
            seed=int(rng.integers(2**31)), cores=1, data=data,
        )  # fmt: skip
        for parameter, true in truth.items():
            draws = np.round(tree["posterior"][parameter].values[0, ::2], 9)
            value = np.round(true, 9)
            # a probability may be 1 to the last digit: equal ones stand in random order
            rank = (draws < value).sum(axis=0)
            rank = rank + ties.integers(0, (draws == value).sum(axis=0) + 1)
            for index in np.ndindex(np.shape(value)):
                u = (np.asarray(rank)[index] + 0.5) / (N_DRAWS + 1)
                ranks.setdefault(f"{parameter}{list(index)}", []).append(u)
    return {label: np.array(values) for label, values in ranks.items()}


def smallest_p(ranks):
    """Return the smallest p-value of uniform ranks, and the parameter it belongs to.

    Two Kolmogorov-Smirnov tests per parameter: of the ranks (bias) and of their distance from the
    middle (too wide or too narrow posteriors), which the first one hardly sees.
    """
    found = []
    for label, u in ranks.items():
        found.append((stats.kstest(u, "uniform").pvalue, label))
        found.append((stats.kstest(np.abs(2 * u - 1), "uniform").pvalue, f"|{label}|"))
    return min(found)
