"""Thompson sampling with several reward levels: the law of Dirichlet means by other routes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayesfair.errors import ConvergenceError, DataError
from bayesfair.kernels.laws.dirichlet_mean import dirichlet_best_mean, dirichlet_mean_cdf
from bayesfair.policies import Thompson
from bayesfair.rewards import Finite
from bayesfair.simulation.arms import simulate


def beta_density(a, b):
    """Return the density of Beta(a, b): scipy.stats' takes a hundred times as long per point."""
    log_constant = -special.betaln(a, b)

    def at(x):
        if not 0 < x < 1:
            return 0.0
        return math.exp(log_constant + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))

    return at


def test_the_density_of_the_sticks_is_that_of_scipy():
    for a, b in ((0.5, 0.5), (1500.5, 200.5), (9.5, 2.5)):
        x = np.linspace(0.01, 0.99, 25)
        found = [beta_density(a, b)(v) for v in x]
        np.testing.assert_allclose(found, stats.beta.pdf(x, a, b), rtol=1e-10)


def by_breaking_sticks(weight, level, m):
    """P(M <= m) for three levels: p_3 is Beta, and the rest is split by another Beta."""
    a, x = [float(v) for v in weight], [float(v) for v in level]
    of_third = beta_density(a[2], a[0] + a[1])

    def given(angle):
        third = math.sin(angle) ** 2
        rest = (m - third * x[2]) / max(1 - third, 1e-300)  # mean of the first two levels below
        below = special.betainc(a[1], a[0], min(max((rest - x[0]) / (x[1] - x[0]), 0.0), 1.0))
        return below * of_third(third) * math.sin(2 * angle)

    ends = [(m - x[0]) / (x[2] - x[0]), (m - x[1]) / (x[2] - x[1]), a[2] / sum(a)]
    points = sorted(math.asin(math.sqrt(v)) for v in ends if 0 < v < 1)
    found, _ = integrate.quad(
        given, 0, math.pi / 2, points=points, limit=2000, epsabs=1e-12, epsrel=1e-11
    )
    return found


@pytest.mark.parametrize(
    "weight",
    [(0.5, 0.5, 0.5), (4.5, 0.5, 9.5), (0.5, 300.5, 0.5), (200.5, 1000.5, 0.5), (1.0, 2.0, 40.0)],
    ids=str,
)
@pytest.mark.parametrize("level", [(0.0, 0.3, 1.0), (-2.0, -1.9, 7.0)], ids=str)
def test_the_law_of_a_mean_of_three_levels(weight, level):
    a, x = np.array(weight), np.array(level)
    mean = a @ x / a.sum()
    sd = math.sqrt((a @ x**2 / a.sum() - mean**2) / (a.sum() + 1))
    at = mean + sd * np.array([-3.0, -1.0, -0.1, 0.2, 1.5, 4.0])
    at = at[(at > x[0]) & (at < x[2])]
    expected = [by_breaking_sticks(a, x, m) for m in at]
    np.testing.assert_allclose(dirichlet_mean_cdf(a, x, at), expected, rtol=0, atol=3e-9)


@pytest.mark.parametrize("a", [(0.5, 0.5), (100.5, 20.5), (0.5, 20_000.5), (3000.5, 70_000.5)])
def test_the_law_of_a_mean_of_two_levels_is_beta(a):
    at = stats.beta.ppf([1e-9, 1e-4, 0.1, 0.5, 0.9, 1 - 1e-6], a[1], a[0])
    found = dirichlet_mean_cdf(a, [3.0, 5.0], 3 + 2 * at)
    np.testing.assert_allclose(found, stats.beta.cdf(at, a[1], a[0]), rtol=0, atol=3e-9)
    assert dirichlet_mean_cdf(a, [3.0, 5.0], [2.9, 3.0, 5.0, 6.0]).tolist() == [0, 0, 1, 1]


def test_levels_that_share_a_value_are_one_level():
    # four levels of which two nearly coincide: their weights add
    at = [0.2, 0.45, 0.7]
    split = dirichlet_mean_cdf([2.5, 1.5, 3.0, 4.5], [0.0, 0.5, 0.5 + 1e-10, 1.0], at)
    joined = dirichlet_mean_cdf([2.5, 4.5, 4.5], [0.0, 0.5, 1.0], at)
    np.testing.assert_allclose(split, joined, rtol=0, atol=1e-9)


def density_by_breaking_sticks(weight, level, m):
    """The density of M for three levels: `by_breaking_sticks`, differentiated inside."""
    a, x = [float(v) for v in weight], [float(v) for v in level]
    of_third, of_second = beta_density(a[2], a[0] + a[1]), beta_density(a[1], a[0])

    def given(angle):
        third = math.sin(angle) ** 2
        left = max(1 - third, 1e-300)
        at = ((m - third * x[2]) / left - x[0]) / (x[1] - x[0])
        below = of_second(at) / (left * (x[1] - x[0]))
        return below * of_third(third) * math.sin(2 * angle)

    ends = [(m - x[0]) / (x[2] - x[0]), (m - x[1]) / (x[2] - x[1]), a[2] / sum(a)]
    points = sorted(math.asin(math.sqrt(v)) for v in ends if 0 < v < 1)
    return integrate.quad(given, 0, math.pi / 2, points=points, limit=500, epsabs=1e-11)[0]


def test_the_best_of_two_means_by_integrating_one_law_against_the_other():
    level = np.array([0.0, 1.0, 4.0])
    first, second = np.array([6.5, 2.5, 3.5]), np.array([2.5, 9.5, 1.5])
    # Gauss-Legendre on both sides of the middle level, where the densities are not analytic
    node, share = np.polynomial.legendre.leggauss(24)
    expected = total = 0.0
    for low, high in ((0.0, 1.0), (1.0, 4.0)):
        for m, w in zip(low + (high - low) * (node + 1) / 2, share * (high - low) / 2, strict=True):
            mass = w * density_by_breaking_sticks(first, level, m)
            expected += mass * by_breaking_sticks(second, level, m)
            total += mass
    assert total == pytest.approx(1, abs=1e-8)
    found = dirichlet_best_mean(np.stack([first, second]), level)
    np.testing.assert_allclose(found, [expected, 1 - expected], rtol=0, atol=1e-7)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "weight", [[[5e4, 0.5, 0.5], [1e5, 0.5, 1.5]], [[5e4, 1.5, 0.5], [5e4, 0.5, 0.5]]], ids=str
)
@pytest.mark.parametrize("end", ["low", "high"])
def test_best_means_of_laws_next_to_an_end_against_draws(weight, end):
    rng, n = np.random.default_rng(5), 1_000_000
    # 1 - p_1 = rare / (rare + G) is drawn as such: the mean differs from the end by about 1e-5
    means = []
    for row in weight:
        gammas = rng.gamma(np.array(row)[:, None], size=(3, n))
        means.append((gammas[1] + 2 * gammas[2]) / gammas.sum(axis=0))
    share = float(np.mean(means[0] > means[1]))
    level, rows = np.array([0.0, 1.0, 2.0]), np.array(weight)
    found = dirichlet_best_mean(rows if end == "low" else rows[:, ::-1], level)
    assert found.sum() == pytest.approx(1, abs=1e-8)
    first = found[0] if end == "low" else found[1]  # mirrored: the least is the largest
    # four standard errors
    assert first == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / n))


@pytest.mark.parametrize("n", [1e4, 1e5, 1e6])
@pytest.mark.parametrize("end", ["low", "high"])
def test_equal_laws_next_to_an_end_share_evenly(n, end):
    row = [n, 0.5, 0.5] if end == "low" else [0.5, 0.5, n]
    found = dirichlet_best_mean([row, row], [0.0, 1.0, 2.0])
    np.testing.assert_allclose(found, 0.5, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "weight",
    [
        [[97729.52469453687, 2.5, 3.5], [74994.79068438234, 1.5, 1.5]],
        [[0.5, 2.5, 92065.86398061915], [3.5, 1.5, 53334.50043835507]],
        [[9066.3, 1.5, 0.5], [10000.5, 2.5, 2.5]],
    ],
    ids=["low 1e5", "high 1e5", "low 1e4"],
)
def test_the_saddle_point_is_never_cut_off(weight):
    # each sum was off by 3e-7 to 7e-6 where Newton's steps narrowed the bracket
    assert dirichlet_best_mean(weight, [0.0, 1.0, 2.0]).sum() == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("n", [1e4, 1e5])
@pytest.mark.parametrize("end", ["low", "high"])
@pytest.mark.parametrize("z", [0.1, 0.5, 1.0, 3.0])
def test_the_law_of_a_mean_next_to_an_end(n, end, z):
    """Rare levels 1 and 2 with weights 1/2: n M tends to G_1 + 2 G_2, integrated exactly here."""
    m = z / n

    def given(root):  # G_2 = root^2, and P(G_1 <= z - 2 G_2) is an error function
        second = root * root
        left = z - 2 * second
        return 2 / math.sqrt(math.pi) * math.exp(-second) * math.erf(math.sqrt(max(left, 0.0)))

    expected, _ = integrate.quad(given, 0, math.sqrt(z / 2), limit=500, epsabs=1e-12)
    row = [n, 0.5, 0.5] if end == "low" else [0.5, 0.5, n]
    found = dirichlet_mean_cdf(row, [0.0, 1.0, 2.0], [m if end == "low" else 2 - m])[0]
    # the limit is approached like 1 / n
    assert (found if end == "low" else 1 - found) == pytest.approx(expected, abs=2 / n)


def test_small_priors_are_computed():
    for support, prior in (([0, 1, 2], [0.1, 0.2, 0.3]), ([0, 1], [0.1, 0.1])):
        state = Thompson().start(2, "finite", support=support, prior=prior)
        np.testing.assert_allclose(Thompson().selection_probability(state), 0.5, atol=1e-10)


def test_probabilities_that_do_not_sum_to_1_are_an_error(monkeypatch):
    def wrong(*_):
        return np.array([0.5, 0.499])

    monkeypatch.setattr("bayesfair.families.finite.dirichlet_best_mean", wrong)
    rule = Thompson()
    with pytest.raises(ConvergenceError, match=r"sum to 1 -0\.001"):
        rule.selection_probability(rule.start(2, "finite", support=[0, 1, 2]))


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(6))
def test_best_means_against_draws(seed):
    rng = np.random.default_rng(seed)
    k, n_levels, n = int(rng.integers(2, 5)), int(rng.integers(3, 6)), 400_000
    level = np.sort(rng.normal(size=n_levels)) * 10.0 ** rng.integers(-2, 3)
    seen = int(10 ** rng.uniform(0, 2.5))
    weight = 0.5 + np.array(
        [rng.multinomial(seen, rng.dirichlet(np.full(n_levels, 0.7))) for _ in range(k)]
    )
    found = dirichlet_best_mean(weight, level)
    assert found.sum() == pytest.approx(1, abs=2e-9)
    means = np.stack([rng.dirichlet(row, n) @ level for row in weight])
    share = np.bincount(means.argmax(axis=0), minlength=k) / n
    # five standard errors, 20 comparisons: below 2e-5 by chance
    assert np.all(np.abs(share - found) < 5 * np.sqrt(found * (1 - found) / n) + 1e-6)


def test_a_level_that_hardly_counts_leaves_the_rule_of_two_levels():
    """Weight 1e-6 on a middle level moves probabilities by as much at the most."""
    two = [(1.5, 4.5), (3.5, 2.5), (0.5, 0.5)]
    three = np.array([(a, 1e-6, b) for a, b in two])
    expected = Thompson().selection_probability(
        _with_counts([(int(b - 0.5), int(a - 0.5)) for a, b in two])
    )
    found = dirichlet_best_mean(three, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def _with_counts(wins_and_losses):
    rule = Thompson()
    state = rule.start(len(wins_and_losses))
    for arm, (wins, losses) in enumerate(wins_and_losses):
        for reward in [1.0] * wins + [0.0] * losses:
            state = rule.update(state, arm, reward)
    return state


def test_runs_log_the_rule_on_the_rewards_known_so_far():
    truth = Finite([1, 2, 5], [[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1]])
    run = simulate(Thompson(), truth, 60, seed=3, batch=5)
    pi = run.selection_probability
    np.testing.assert_allclose(pi[0], 1 / 3, atol=1e-9)
    for t in (5, 30, 55):
        weight = np.full((3, 3), 0.5)
        for arm, reward in zip(run.arm[:t], run.reward[:t], strict=True):
            weight[arm, [1, 2, 5].index(int(reward))] += 1
        found = dirichlet_best_mean(weight, [1.0, 2.0, 5.0])
        np.testing.assert_allclose(pi[t], found / found.sum(), atol=1e-12)
    with pytest.raises(DataError, match="one of the values"):
        Thompson().update(Thompson().start(2, "finite", support=[0, 1, 2]), 0, 3.0)
