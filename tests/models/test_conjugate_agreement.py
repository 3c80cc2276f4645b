"""NUTS on the PyMC model against the closed form of the same name; a wrong likelihood must show."""

import importlib
import inspect
import types

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from bayesfair.families import FAMILIES
from bayesfair.families.logs import posterior_of
from bayesfair.history import History

pytestmark = pytest.mark.statistical

ENDS = (0.025, 0.975)

# what is changed in the source of a model so that its likelihood is wrong
MUTATIONS = {
    "bernoulli_independent": ("p=theta,", "p=theta**1.1,"),
    "finite_independent": ("p=probability,", "p=0.91 * probability + 0.03,"),
    "poisson_independent": ("mu=n * rate,", "mu=1.1 * n * rate,"),
    "normal_independent": ("- 0.5 * value / sd**2", "- 0.4 * value / sd**2"),
}


def history_of(name):
    """Return four arms pulled 150, 60, 5 and 0 times: from much data to none."""
    rng = np.random.default_rng(3)
    arm = np.repeat([0, 1, 2], [150, 60, 5])
    draw = {
        "bernoulli_independent": lambda a: rng.random() < (0.3, 0.9, 0.5)[a],
        "finite_independent": lambda a: rng.choice([1.0, 2.0, 5.0], p=(0.2, 0.5, 0.3)),
        "poisson_independent": lambda a: rng.poisson((0.4, 7.0, 2.0)[a]),
        "normal_independent": lambda a: rng.normal((-1.0, 20.0, 0.0)[a], (0.5, 3.0, 1.0)[a]),
    }[name]
    reward = np.array([draw(a) for a in arm], dtype=float)
    return History(arm, reward, arms=("a", "b", "c", "d"))


def exact(name, history):
    """Return {variable: (mean, (2.5 %, 97.5 % points), densities there)}, from scipy's laws."""
    family = name.split("_", maxsplit=1)[0]
    _, table, _ = posterior_of(history, FAMILIES[family])
    if family == "bernoulli":
        laws = {"theta": stats.beta(table[:, 0], table[:, 1])}
    elif family == "finite":
        # each level of a Dirichlet is a Beta
        laws = {"probability": stats.beta(table, table.sum(axis=1, keepdims=True) - table)}
    elif family == "poisson":
        laws = {"rate": stats.gamma(table[:, 0], scale=1 / table[:, 1])}
    else:
        mean, kappa, shape, scale = table.T
        laws = {"mean": stats.t(2 * shape, mean, np.sqrt(scale / (shape * kappa)))}
    found = {}
    for variable, law in laws.items():
        ends = [law.ppf(p) for p in ENDS]
        found[variable] = (law.mean(), ends, [law.pdf(end) for end in ends])
    if family == "normal":
        variance = stats.invgamma(shape, scale=scale)
        ends = [np.sqrt(variance.ppf(p)) for p in ENDS]
        expected = np.sqrt(scale) * np.exp(gammaln(shape - 0.5) - gammaln(shape))
        # density of sd at x: 2 x times that of the variance
        found["sd"] = (expected, ends, [2 * end * variance.pdf(end**2) for end in ends])
    return found


def largest_difference(name, history, tree):
    """Return the largest |difference| in Monte-Carlo standard errors, and where.

    The standard error of a quantile is sqrt(p (1 - p) / ESS) over the density there, which the
    closed form knows better than an estimate from few draws in a tail.
    """
    import arviz_stats as az

    posterior = tree["posterior"].to_dataset()
    worst = (0.0, "")
    for variable, (expected, ends, densities) in exact(name, history).items():
        draws = posterior[[variable]]
        flat = draws[variable].values.reshape(-1, *draws[variable].shape[2:])
        z = np.abs(flat.mean(axis=0) - expected) / az.mcse(draws, method="mean")[variable].values
        if variable in ("mean", "sd"):
            # two degrees of freedom, no variance: the mean of draws has no standard error
            z = np.where(history.counts()[0] == 0, 0.0, z)
        found = [(z, "mean")]
        for p, end, density in zip(ENDS, ends, densities, strict=True):
            ess = az.ess(draws, method="quantile", prob=p)[variable].values
            error = np.sqrt(p * (1 - p) / ess) / density
            found.append((np.abs(np.quantile(flat, p, axis=0) - end) / error, f"{p} quantile"))
        for z, what in found:
            worst = max(worst, (float(z.max()), f"{what} of {variable}"))
    return worst


@pytest.mark.parametrize("name", MUTATIONS)
def test_nuts_agrees_with_the_closed_form(compiled, name):
    history = history_of(name)
    model, data = compiled(name, history)
    tree, found = model.fit(draws=4000, seed=11, cores=1, data=data)
    z, where = largest_difference(name, history, tree)
    assert found["divergences"] == 0
    assert z < 5, f"{where}: {z:.1f} Monte-Carlo standard errors"


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutated_likelihood_is_found_out(name):
    from bayesfair.inference.nuts import CompiledModel

    old, new = MUTATIONS[name]
    source = inspect.getsource(importlib.import_module(f"bayesfair.models.{name}"))
    assert source.count(old) == 1
    mutant = types.ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), mutant.__dict__)
    history = history_of(name)
    tree, _ = CompiledModel(mutant.build(history)).fit(draws=4000, seed=11, cores=1)
    z, _ = largest_difference(name, history, tree)
    assert z > 5


@pytest.mark.parametrize("name", MUTATIONS)
def test_exact_draws_follow_the_closed_form(name):
    """The draws of the conjugate path, against scipy's laws, by Kolmogorov-Smirnov."""
    history = history_of(name)
    family = name.split("_", maxsplit=1)[0]
    _, table, _ = posterior_of(history, FAMILIES[family])
    draws = FAMILIES[family].draw(table, (20_000,), np.random.default_rng(4), history.arms)
    pvalues = []
    for i in range(4):
        a = table[i]
        if family == "bernoulli":
            pvalues.append(stats.kstest(draws["theta"][:, i], stats.beta(*a).cdf).pvalue)
        elif family == "finite":
            for j in range(len(a)):
                law = stats.beta(a[j], a.sum() - a[j])
                pvalues.append(stats.kstest(draws["probability"][:, i, j], law.cdf).pvalue)
        elif family == "poisson":
            law = stats.gamma(a[0], scale=1 / a[1])
            pvalues.append(stats.kstest(draws["rate"][:, i], law.cdf).pvalue)
        else:
            mean, kappa, shape, scale = a
            law = stats.t(2 * shape, mean, np.sqrt(scale / (shape * kappa)))
            pvalues.append(stats.kstest(draws["mean"][:, i], law.cdf).pvalue)
            law = stats.invgamma(shape, scale=scale)
            pvalues.append(stats.kstest(draws["sd"][:, i] ** 2, law.cdf).pvalue)
    assert min(pvalues) > 0.001 / len(pvalues)
