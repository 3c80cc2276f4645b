"""PyMC models against the closed forms of their names; a wrong likelihood must show."""

import importlib
import inspect
import types

import numpy as np
import pytest
from densities import log_density
from scipy import stats

from bayesfair.families import FAMILIES
from bayesfair.families.logs import posterior_of
from bayesfair.history import History

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


def points(name, history, n_points=5):
    """Return values of the model's own variables, from near the posterior to far from it."""
    rng = np.random.default_rng(6)
    family = FAMILIES[name.split("_", maxsplit=1)[0]]
    table, k = posterior_of(history, family)[1], history.n_arms
    found = []
    for scale in np.linspace(0.5, 2.0, n_points):
        if name == "bernoulli_independent":
            found.append({"theta": rng.beta(scale * table[:, 0], scale * table[:, 1])})
        elif name == "finite_independent":
            found.append({"probability": np.array([rng.dirichlet(scale * a) for a in table])})
        elif name == "poisson_independent":
            found.append({"rate": rng.gamma(scale * table[:, 0] + 1) / table[:, 1]})
        else:
            variance = table[:, 3] / rng.gamma(table[:, 2]) * scale
            found.append({"variance": variance, "offset": scale * rng.normal(size=k)})
    return found


def closed_form(name, history, point):
    """Return the log posterior density of a point, from scipy's laws."""
    _, table, _ = posterior_of(history, FAMILIES[name.split("_", maxsplit=1)[0]])
    if name == "bernoulli_independent":
        return stats.beta(*table.T).logpdf(point["theta"]).sum()
    if name == "finite_independent":
        return sum(
            stats.dirichlet(a).logpdf(p) for a, p in zip(table, point["probability"], strict=True)
        )
    if name == "poisson_independent":
        return stats.gamma(table[:, 0], scale=1 / table[:, 1]).logpdf(point["rate"]).sum()
    mean, kappa, shape, scale = table.T
    sd = np.sqrt(point["variance"])
    # the model samples the mean in units of its own error
    mu = stats.norm(mean, sd / np.sqrt(kappa)).logpdf(mean + sd * point["offset"] / np.sqrt(kappa))
    law = stats.invgamma(shape, scale=scale).logpdf(point["variance"])
    return (mu + law + np.log(sd / np.sqrt(kappa))).sum()


def difference(name, model, history):
    """Return the largest difference of log densities, but for one constant of all points."""
    at = points(name, history)
    return np.ptp(log_density(model, at) - [closed_form(name, history, point) for point in at])


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_density_is_that_of_the_closed_form_and_a_mutated_likelihood_s_is_not(name):
    """Exact at every point: what NUTS then makes of a density, SBC shows for each model."""
    history = history_of(name)
    module = importlib.import_module(f"bayesfair.models.{name}")
    assert difference(name, module.build(history), history) < 1e-8
    old, new = MUTATIONS[name]
    source = inspect.getsource(module)
    assert source.count(old) == 1
    mutant = types.ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), mutant.__dict__)
    assert difference(name, mutant.build(history), history) > 0.01


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
