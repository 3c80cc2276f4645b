"""The compiled density and its NUTS; what needs no chain is drawn from the prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import kstest, norm

from bayesfair.comparisons import Comparisons
from bayesfair.errors import OptionError
from bayesfair.inference import fit
from bayesfair.inference.certified import Proposal, certify
from bayesfair.inference.comparison_problem import problem_of
from bayesfair.inference.laplace import find_mode
from bayesfair.inference.reweight import psis_weights
from bayesfair.inference.worth_nuts import target_of
from bayesfair.kernels.orders.comparison_density import PROBIT, Target, log_density


def duels(*, ties, covariate):
    rng = np.random.default_rng(4)
    a = rng.integers(5, size=90)
    b = (a + rng.integers(1, 5, size=90)) % 5
    words = np.where(rng.random(90) < 0.6, "left", "right")
    if ties:
        words = np.where(rng.random(90) < 0.25, "tie", words)
    made = Comparisons.from_duels(a, b, words, first="left", items=range(6))
    return made.with_covariates({"size": [0.1, 3, 4, 5, 1, 2]}) if covariate else made


def rankings():
    rows = [list("abcd"), ["b", ["a", "c"], "d"], list("dca"), list("cb"), list("badc")]
    made = Comparisons.from_rankings(rows, partial="subset", items="abcdef")
    return made.with_covariates({"x": [1, 2, 4, 3, 0, 7]})


@pytest.mark.parametrize(
    ("data", "model"),
    [
        (duels(ties=False, covariate=False), "bradley_terry"),
        (duels(ties=False, covariate=True), "bradley_terry"),
        (duels(ties=False, covariate=True), "thurstone"),
        (duels(ties=True, covariate=False), "davidson"),
        (duels(ties=True, covariate=True), "davidson"),
        (duels(ties=False, covariate=False), "plackett_luce"),
        (rankings(), "plackett_luce"),
    ],
)
def test_the_compiled_density_is_the_likelihood_and_its_gradient_the_slope(data, model):
    problem = problem_of(data, model, prior_sd=1.5)
    target, kept, component = target_of(problem.likelihood, problem.precision)
    idle = np.setdiff1d(np.arange(problem.likelihood.layout.size), kept)
    assert all((component == component[i]).sum() == 1 for i in idle) and len(idle) >= 1
    rng = np.random.default_rng(1)
    slope, found = np.empty(len(kept)), []
    for scale in (0.3, 1.0, 4.0):
        theta = np.zeros(problem.likelihood.layout.size)
        theta[kept] = scale * rng.normal(size=len(kept))
        value, gradient = problem.likelihood.value_gradient(theta)
        value -= 0.5 * float(problem.precision @ theta**2)
        found.append(value - log_density(target, theta[kept], slope))
        np.testing.assert_allclose(
            slope, (gradient - problem.precision * theta)[kept], rtol=1e-9, atol=1e-9
        )
    # constants of the models may differ
    np.testing.assert_allclose(found, found[0], atol=1e-8)


def test_normal_tails_are_exact_far_out():
    none, no = np.empty(0), np.empty(0, np.int64)
    target = Target(
        PROBIT, np.empty((2, 0)), False, np.zeros(2), no, none, no, none,
        np.array([0]), np.array([1]), np.array([0]), np.array([[1.0], [0.0], [0.0]]),
    )  # fmt: skip
    slope = np.empty(2)
    for gap in (8.0, 0.3, -5.0, -36.9, -37.1, -80.0, -3000.0):
        value = log_density(target, np.array([gap, 0.0]), slope)
        assert value == pytest.approx(float(log_ndtr(gap)), rel=1e-12)
        ratio = np.exp(norm.logpdf(gap) - log_ndtr(gap))
        assert slope[0] == pytest.approx(ratio, rel=1e-9, abs=1e-300)


@pytest.mark.statistical
def test_items_without_data_and_levels_of_islands_keep_their_prior():
    # two islands of two, two items without data; prior_sd 3 and one-sided wins
    data = Comparisons.from_counts(["a", "c"], ["b", "d"], [6, 2], [0, 1], items="abcdef")
    tree = fit(data, prior_sd=3.0, method="nuts", seed=1, draws=8000, cores=1)
    assert tree.attrs["rhat_max"] <= 1.01
    x = tree["posterior"]["log_worth"].values.reshape(-1, 6)
    # differences of what the likelihood does not contain are normal, known in closed form
    assert kstest((x[:, 4] - x[:, 5]) / (3 * np.sqrt(2)), "norm").pvalue > 1e-4
    levels = x[:, :2].mean(axis=1) - x[:, 2:4].mean(axis=1)
    assert kstest(levels / 3, "norm").pvalue > 1e-4
    idle = x[:, :2].mean(axis=1) - x[:, 4:].mean(axis=1)
    assert kstest(idle / 3, "norm").pvalue > 1e-4
    # and the gap within an island is that of the island alone, by quadrature
    gap = np.linspace(-60, 60, 240_001)
    mass = np.exp(-6 * np.logaddexp(0, -gap) - gap**2 / (4 * 9))
    mass /= mass.sum()
    mean = mass @ gap
    sd = np.sqrt(mass @ (gap - mean) ** 2)
    mine = x[:, 0] - x[:, 1]
    error = 4 / np.sqrt(tree.attrs["ess_min"])
    assert abs(mine.mean() - mean) < error * sd and abs(mine.std() / sd - 1) < error


@pytest.mark.statistical
def test_draws_do_not_depend_on_cores_and_few_are_judged_by_many():
    data = Comparisons.from_counts(["a"], ["b"], [20], [0])
    one, two = (fit(data, prior_sd=5.0, method="nuts", seed=4, cores=c) for c in (1, 2))
    np.testing.assert_array_equal(one["posterior"]["log_worth"], two["posterior"]["log_worth"])
    few = fit(data, prior_sd=5.0, method="nuts", seed=4, draws=5)
    assert few["posterior"]["log_worth"].sizes["draw"] == 2  # 8 draws in 4 chains
    assert few.attrs["ess_min"] >= 400 and few.attrs["certified"] == 1


def test_the_method_depends_on_the_data_alone():
    plain = Comparisons.from_counts(["a", "b", "c"], ["b", "c", "a"], [5, 4, 3], [2, 3, 4])
    found = [
        fit(plain, seed=seed, draws=draws).attrs
        for seed, draws in ((1, 4000), (2, 400), (3, 20), (4, 5))
    ]
    assert {a["method"] for a in found} == {"laplace"}
    assert len({(a["khat"], a["efficiency"], a["certified"]) for a in found}) == 1
    assert [a["draws"] for a in found] == [4000, 400, 20, 8]
    assert [round(a["ess"]) <= a["draws"] for a in found] == [True] * 4
    with pytest.raises(OptionError, match="draws=2"):
        fit(plain, seed=1, draws=2)


def test_a_tail_that_the_curvature_hides_is_fitted_and_certified():
    """The posterior's far end is e^3.2 times the normal's, or more (cases of wide priors)."""
    for won, lost, sd in ((20, 0, 5.0), (20, 1, 10.0), (5, 0, 3.0), (1, 0, 100.0)):
        data = Comparisons.from_counts(["a"], ["b"], [won], [lost])
        problem = problem_of(data, "bradley_terry", prior_sd=sd)
        mode = find_mode(problem.likelihood, problem.precision)
        layout = problem.likelihood.layout
        around = Proposal(problem.likelihood, mode, problem.precision)
        assert around.excess(layout) > 3.2
        certificate = certify(around, layout)[1]
        assert certificate.holds and certificate.efficiency > 0.85
        tree = fit(data, prior_sd=sd, seed=1, draws=20_000)
        assert tree.attrs["method"] == "laplace" and tree.attrs["certified"] == 1
        gap = np.linspace(-10 * sd, 10 * sd, 100_001)
        log = -won * np.logaddexp(0, -gap) - lost * np.logaddexp(0, gap) - gap**2 / (4 * sd**2)
        mass = np.exp(log - log.max())
        mass /= mass.sum()
        mean = mass @ gap
        spread = np.sqrt(mass @ (gap - mean) ** 2)
        draws = tree["posterior"]["log_worth"].diff("item").values.ravel() * -1
        assert abs(draws.mean() - mean) < 4 / np.sqrt(tree.attrs["ess"]) * spread
        assert draws.std() == pytest.approx(spread, rel=0.03)
        cut = gap[np.searchsorted(np.cumsum(mass), [0.025, 0.5, 0.975])]
        below = (draws[:, None] <= cut).mean(axis=0)
        np.testing.assert_allclose(below, [0.025, 0.5, 0.975], atol=0.015)


def test_what_is_fitted_depends_on_the_data_alone():
    chain = Comparisons.from_duels(list("321"), list("210"))
    found = [
        fit(chain, model=model, prior_sd=sd, seed=seed, draws=draws).attrs
        for model, sd in (("bradley_terry", 10.0), ("thurstone", 8**0.5))
        for seed, draws in ((1, 4000), (2, 20))
    ]
    assert {(a["method"], a["certified"]) for a in found} == {("laplace", 1)}
    assert len({(a["model"], a["khat"], a["efficiency"]) for a in found}) == 2


def test_a_tail_beside_many_items_is_not_certified():
    # beside sixty items that are known well, chance would not find it
    rng = np.random.default_rng(3)
    worth = rng.normal(size=60) / 2
    a = rng.integers(60, size=20_000)
    b = (a + rng.integers(1, 60, size=20_000)) % 60
    won = rng.random(20_000) < 1 / (1 + np.exp(worth[b] - worth[a]))
    left, right = [*map(str, a), *["new"] * 21], [*map(str, b), *["0"] * 21]
    words = [*np.where(won, "left", "right"), *["left"] * 20, "right"]
    data = Comparisons.from_duels(left, right, words)
    tree = fit(data, prior_sd=3.0, method="laplace", seed=1)
    assert tree.attrs["efficiency"] > 0.6 and tree.attrs["certified"] == 0


def test_too_few_weights_have_no_certificate():
    log_ratio = np.random.default_rng(1).normal(size=20)
    weight, khat = psis_weights(log_ratio)
    assert khat == np.inf and weight.sum() == pytest.approx(1)
    assert psis_weights(np.zeros(20))[1] == -np.inf
