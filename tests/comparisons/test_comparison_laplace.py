"""Mode, certified draws, and the sparse path."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from bayesfair.comparisons import Comparisons
from bayesfair.inference import fit, laplace
from bayesfair.inference.comparison_problem import problem_of
from bayesfair.inference.comparisons import fit_comparisons
from bayesfair.inference.laplace import find_mode


def simulated(k, n, seed):
    rng = np.random.default_rng(seed)
    worth = rng.normal(size=k)
    a = rng.integers(k, size=n)
    b = (a + rng.integers(1, k, size=n)) % k
    won = rng.random(n) < 1 / (1 + np.exp(worth[b] - worth[a]))
    names = np.array([f"i{j:04d}" for j in range(k)])
    return Comparisons.from_duels(names[a], names[b], np.where(won, "left", "right"))


def test_psis_reweights_one_normal_to_another():
    """ArviZ's function takes log-likelihoods and negates them: minus the log ratio goes in."""
    from arviz_stats.base import array_stats

    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    log_ratio = -0.5 * (x - 1) ** 2 + 0.5 * x**2
    log_weight, khat = array_stats.psislw(-log_ratio)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    error = 5 * np.sqrt((weight**2 * (x - 1) ** 2).sum())
    assert abs((weight * x).sum() - 1) < error < 0.2 and khat < 0.7
    wrong, _ = array_stats.psislw(log_ratio)
    flipped = np.exp(wrong - wrong.max())
    assert (flipped * x).sum() / flipped.sum() < 0


def test_conjugate_gradients_find_the_same_mode(monkeypatch):
    data = simulated(60, 400, seed=1)
    for model in ("bradley_terry", "plackett_luce"):
        problem = problem_of(data, model, prior_sd=1.0)
        dense = find_mode(problem.likelihood, problem.precision)
        monkeypatch.setattr(laplace, "_DENSE", 0)
        sparse = find_mode(problem.likelihood, problem.precision)
        monkeypatch.undo()
        np.testing.assert_allclose(sparse.theta, dense.theta, atol=1e-8)
        gradient = problem.likelihood.value_gradient(sparse.theta)[1]
        assert np.abs(gradient - problem.precision * sparse.theta).max() < 1e-7


def test_conjugate_gradients_without_a_prior(monkeypatch):
    data = simulated(30, 2000, seed=2)
    dense = fit_comparisons(data, prior_sd=np.inf, seed=0)["mode"]
    problem = problem_of(data, "bradley_terry", prior_sd=np.inf)
    monkeypatch.setattr(laplace, "_DENSE", 0)
    sparse = find_mode(problem.likelihood, problem.precision)
    np.testing.assert_allclose(
        sparse.theta - sparse.theta.mean(), dense["log_worth"].values, atol=1e-8
    )


def test_many_items_need_memory_for_the_data_only():
    data = simulated(2000, 20_000, seed=3)
    problem = problem_of(data, "bradley_terry", prior_sd=1.0)
    find_mode(problem.likelihood, problem.precision)
    tracemalloc.start()
    mode = find_mode(problem.likelihood, problem.precision)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6  # a 2000 x 2000 matrix alone has 32 MB
    gradient = problem.likelihood.value_gradient(mode.theta)[1]
    assert np.abs(gradient - problem.precision * mode.theta).max() < 1e-6


def test_long_rankings_of_many_items():
    # case 85: 2000 items, 100 ballots of 10 to 30
    rng = np.random.default_rng(4)
    names = [f"i{j:04d}" for j in range(2000)]
    ballots = [
        [names[j] for j in rng.choice(2000, size=rng.integers(10, 31), replace=False)]
        for _ in range(100)
    ]
    data = Comparisons.from_rankings(ballots, items=names, partial="subset")
    problem = problem_of(data, "plackett_luce", prior_sd=1.0)
    mode = find_mode(problem.likelihood, problem.precision)
    gradient = problem.likelihood.value_gradient(mode.theta)[1]
    assert np.abs(gradient - problem.precision * mode.theta).max() < 1e-6


def test_draws_are_the_posterior_of_three_items_by_quadrature():
    data = Comparisons.from_rankings([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]])
    tree = fit(data, seed=5, draws=40_000, method="laplace")
    assert tree.attrs["certified"] == 1
    # three items sum to zero: a grid over two coordinates, the third follows
    grid = np.linspace(-5, 5, 401)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    z = -x - y
    w = np.exp(np.stack([x, y, z]))
    log_density = np.zeros_like(x)
    for order in ((0, 1, 2), (1, 0, 2), (0, 2, 1)):
        log_density += np.log(w[order[0]] / w.sum(0) * w[order[1]] / (w.sum(0) - w[order[0]]))
    log_density -= 0.5 * (x**2 + y**2 + z**2)
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    exact = np.array([(mass * v).sum() for v in (x, y, z)])
    spread = np.sqrt([(mass * v**2).sum() - m**2 for v, m in zip((x, y, z), exact, strict=True)])
    draws = tree["posterior"]["log_worth"].values.reshape(-1, 3)
    error = 5 / np.sqrt(float(tree.attrs["ess"]))
    assert np.all(np.abs(draws.mean(0) - exact) < error * spread)
    assert np.all(np.abs(draws.std(0) / spread - 1) < error)
    # and the weights matter: the unweighted Gaussian is centred elsewhere
    assert np.abs(tree["mode"]["log_worth"].values - exact).max() > 3 * error / 5 * spread.max()


def test_extremes_have_a_mode_and_a_certificate():
    def pair(won, lost, **options):
        return fit(Comparisons.from_counts(["a"], ["b"], [won], [lost]), seed=0, **options)

    # nothing compared: the posterior is the prior, to rounding
    empty = fit(Comparisons.from_duels([], [], [], items=["a", "b"]), seed=0, draws=40_000)
    assert empty.attrs["certified"] == 1 and empty.attrs["khat"] == 0
    spread = float(empty["posterior"]["log_worth"].sel(item="a").std())
    assert abs(spread - np.sqrt(0.5)) < 5 * np.sqrt(0.5) / np.sqrt(2 * 40_000)
    # a trillion duels, a prior that decides everything, one in a billion against
    assert pair(1e12, 2e12).attrs["method"] == "laplace"
    assert pair(5, 0, prior_sd=1e-6).attrs["method"] == "laplace"
    odds = pair(1e9, 1, prior_sd=np.inf)["mode"]["log_worth"]
    assert float(odds[0] - odds[1]) == pytest.approx(np.log(1e9), abs=1e-6)
    # a flat prior and no loss: the mode is far out, and the posterior is half of a normal
    far = pair(5, 0, prior_sd=1e4)
    gap = far["posterior"]["log_worth"].sel(item="a").values * 2
    whole = 1e4 * np.sqrt(2)
    assert far.attrs["method"] == "laplace" and far.attrs["certified"] == 1
    assert gap.mean() == pytest.approx(whole * np.sqrt(2 / np.pi), rel=0.03)
    assert gap.std() == pytest.approx(whole * np.sqrt(1 - 2 / np.pi), rel=0.03)


def test_strongly_linked_but_far_apart():
    # a chain of near-certain wins, closed by one loss: worths 40 apart, found from zero
    data = Comparisons.from_counts(list("abcd"), list("bcda"), [1e6, 1e6, 1e6, 1], [1, 1, 1, 1])
    mode = fit(data, prior_sd=np.inf, seed=0)["mode"]["log_worth"].values
    won = data.win_matrix()
    p = 1 / (1 + np.exp(mode[None, :] - mode[:, None]))
    # likelihood equations: wins observed = wins expected
    np.testing.assert_allclose(((won + won.T) * p).sum(1), won.sum(1), rtol=1e-9, atol=1e-5)


def test_seeds_repeat_and_differ():
    data = simulated(6, 60, seed=6)
    one, two, three = (fit(data, seed=s)["posterior"]["log_worth"].values for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, three)


def test_tree_is_labelled_and_stored(tmp_path):
    import xarray as xr

    data = simulated(6, 60, seed=7)
    tree = fit(data, seed=1, draws=4001)
    assert dict(tree["posterior"]["log_worth"].sizes) == {"chain": 4, "draw": 1001, "item": 6}
    assert tree["posterior"]["item"].values.tolist() == list(data.items)
    assert tree["mode"]["covariance"].dims == ("item", "item_other")
    np.testing.assert_allclose(tree["mode"]["covariance"].sum("item"), 0, atol=1e-9)
    tree.to_netcdf(tmp_path / "fit.nc")
    back = xr.open_datatree(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        back["posterior"]["log_worth"].values, tree["posterior"]["log_worth"].values
    )
    assert back.attrs["method"] == "laplace" and back.attrs["khat"] == tree.attrs["khat"]
    back.close()


def test_no_pymc_for_certified_fits():
    """Closed forms and Laplace work where PyMC is not installed (case 94)."""
    import subprocess
    import sys

    code = """
import sys
sys.modules["pymc"] = None
import bayesfair as bf
from bayesfair.inference import fit
data = bf.Comparisons.from_counts(["a", "b", "c"], ["b", "c", "a"], [5, 4, 3], [2, 3, 4])
for model in ("bradley_terry", "davidson", "thurstone", "plackett_luce"):
    assert fit(data, model=model, seed=1).attrs["method"] == "laplace"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
