"""P(the mean is the largest) under any prior, held against closed forms and high precision."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special

import bayesfair as bf
from bayesfair.errors import ConvergenceError
from bayesfair.kernels.laws.best_mean import beta_best_mean, gamma_best_mean
from bayesfair.kernels.laws.continuous_arms import location_scale_best_arm
from bayesfair.kernels.laws.count_laws import count_best_arm
from bayesfair.kernels.laws.dirichlet_mean import dirichlet_best_mean, dirichlet_mean_cdf
from bayesfair.kernels.laws.gauss_best import gauss_best_probability
from bayesfair.kernels.laws.quadrature import require_sum_of_one
from bayesfair.kernels.simulation.thompson import beta_best_mean_on_grid

WEIGHTS = [1e-6, 1e-3, 0.01, 0.3, 0.5, 1.0, 40.0, 1e5, 1e7]


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("k", [2, 3, 10, 60])
def test_equal_arms_share_evenly_whatever_the_prior(weight, k):
    even = np.full(k, weight)
    np.testing.assert_allclose(beta_best_mean(even, even), 1 / k, rtol=0, atol=1e-11)
    np.testing.assert_allclose(gamma_best_mean(even, even), 1 / k, rtol=0, atol=1e-11)
    np.testing.assert_allclose(gamma_best_mean(even, np.ones(k)), 1 / k, rtol=0, atol=1e-11)


@pytest.mark.parametrize("weight", [1e-4, 0.01, 0.1, 0.5, 2.0, 1e3, 1e7])
@pytest.mark.parametrize("n_levels", [3, 5])
def test_equal_arms_with_several_levels_share_evenly(weight, n_levels):
    found = dirichlet_best_mean(np.full((3, n_levels), weight), np.arange(n_levels) ** 1.5)
    np.testing.assert_allclose(found, 1 / 3, rtol=0, atol=1e-11)


def beta_by_high_precision(alpha, beta):
    """The same integral at 20 digits on the logit scale, F by hypergeometric functions."""
    with mp.workdps(20):
        a, b = [mp.mpf(v) for v in alpha], [mp.mpf(v) for v in beta]
        whole = [mp.beta(x, y) for x, y in zip(a, b, strict=True)]

        def density(i, y):
            return mp.exp(-a[i] * mp.log1p(mp.exp(-y)) - b[i] * mp.log1p(mp.exp(y))) / whole[i]

        def cdf(i, y):
            x, rest = 1 / (1 + mp.exp(-y)), 1 / (1 + mp.exp(y))
            if y <= 0:
                return x ** a[i] * mp.hyp2f1(a[i], 1 - b[i], a[i] + 1, x) / a[i] / whole[i]
            return 1 - rest ** b[i] * mp.hyp2f1(b[i], 1 - a[i], b[i] + 1, rest) / b[i] / whole[i]

        near = [-60, -30, -10, -4, -1, 0, 1, 4, 10, 30, 60]
        points = sorted(
            {*near, *(-c / min(a) for c in (2, 6, 20, 60)), *(c / min(b) for c in (2, 6, 20, 60))}
        )
        return [
            float(mp.quad(
                lambda y, i=i: density(i, y) * mp.fprod(
                    cdf(j, y) for j in range(len(a)) if j != i
                ), points,
            ))
            for i in range(len(a))
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        ([2.01, 0.01], [0.01, 1.01]),  # rewards 1, 1 of the first arm and 0 of the second
        ([2.01, 0.01, 0.3], [1.01, 0.01, 0.2]),
        ([0.001, 0.05], [0.02, 0.003]),
    ],
    ids=str,
)
def test_beta_means_against_high_precision(alpha, beta):
    expected = beta_by_high_precision(alpha, beta)
    np.testing.assert_allclose(beta_best_mean(alpha, beta), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("first", "second"),
    [((0.5, 20042.5), (2, 39355)), ((3.5, 4104), (1, 835.5)), ((0.01, 3.2), (7, 0.04)),
     ((1000.25, 900.5), (30, 20.5))],
)  # fmt: skip
def test_two_beta_means_where_the_sum_is_finite(first, second):
    """Beta(a2, b2) with a2 whole: P(2 above 1) is a sum of a2 ratios of beta functions."""
    (a1, b1), (a2, b2) = first, second
    with mp.workdps(30):
        above = float(sum(
            mp.beta(a1 + i, b1 + b2) / mp.beta(1 + i, b2) / mp.beta(a1, b1) / (b2 + i)
            for i in range(a2)
        ))  # fmt: skip
    found = beta_best_mean([a1, a2], [b1, b2])
    np.testing.assert_allclose(found, [1 - above, above], rtol=0, atol=1e-11)


def test_the_simulator_s_grid_reaches_the_tail_of_an_arm_at_the_end():
    # Beta(1/2, b) has tails wider by the root of 2 than its curvature at the mode says
    for a, b in ([[0.5, 2.0], [20042.5, 39355.0]], [[2.0, 0.5], [48469.5, 4341.0]],
                 [[4.0, 0.5], [333.5, 111.5]]):  # fmt: skip
        row, whole = beta_best_mean_on_grid(np.array(a), np.array(b))
        assert whole == pytest.approx(1, abs=1e-10)
        np.testing.assert_allclose(row, beta_best_mean(a, b), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("shape", "rate"),
    [([0.01, 0.01], [1.0, 3.0]), ([3.01, 0.01], [2.0, 1.0]), ([1e-4, 2.5], [1e-3, 7.0]),
     ([4e6, 4.001e6], [1e3, 1e3])],
)  # fmt: skip
def test_two_poisson_rates_in_closed_form(shape, rate):
    # b1 rate1 / (b1 rate1 + b2 rate2) is Beta(a1, a2)
    expected = special.betaincc(shape[0], shape[1], rate[0] / (rate[0] + rate[1]))
    found = gamma_best_mean(shape, rate)
    np.testing.assert_allclose(found, [expected, 1 - expected], rtol=0, atol=1e-11)


def test_three_poisson_rates_by_adaptive_quadrature():
    shape, rate = [0.01, 0.3, 2.01], [1.0, 0.5, 3.0]

    def integrand(y, i):
        def density(j):
            return math.exp(
                shape[j] * (y + math.log(rate[j])) - rate[j] * math.exp(y)
                - math.lgamma(shape[j])
            )  # fmt: skip

        others = [special.gammainc(shape[j], rate[j] * math.exp(y)) for j in range(3) if j != i]
        return density(i) * math.prod(others)

    for i, found in enumerate(gamma_best_mean(shape, rate)):
        pieces = [(-700, -100), (-100, -20), (-20, -5), (-5, 0), (0, 2), (2, 5)]
        expected = sum(
            integrate.quad(integrand, *ends, args=(i,), epsabs=1e-13, limit=200)[0]
            for ends in pieces
        )
        assert found == pytest.approx(expected, abs=1e-11)


def stick_breaking(weight, level, m):
    """P(M <= m) for three levels at 20 digits: p_3 is Beta, the rest another Beta."""
    with mp.workdps(20):
        a, x, m = [mp.mpf(v) for v in weight], [mp.mpf(v) for v in level], mp.mpf(m)

        def beta_cdf(p, c, d):
            if p <= 0:
                return mp.mpf(0)
            return mp.mpf(1) if p >= 1 else mp.betainc(c, d, 0, p, regularized=True)

        def integrand(y):
            third, rest = 1 / (1 + mp.exp(-y)), 1 / (1 + mp.exp(y))
            density = third ** a[2] * rest ** (a[0] + a[1]) / mp.beta(a[2], a[0] + a[1])
            left = (m - third * x[2] - rest * x[0]) / rest
            return density * beta_cdf(left / (x[1] - x[0]), a[1], a[0])

        ends = [(m - x[0]) / (x[2] - x[0]), (m - x[1]) / (x[2] - x[1])]
        turns = [mp.log(e / (1 - e)) for e in ends if 0 < e < 1]
        tails = [-c / a[2] for c in (80, 20, 5, 1)] + [c / (a[0] + a[1]) for c in (1, 5, 20, 80)]
        points = sorted({*tails, *turns, *(t + d for t in turns for d in (-8, -2, 2, 8)), 0})
        return float(mp.quad(integrand, points))


@pytest.mark.parametrize(
    "weight", [(0.01, 0.01, 0.01), (3.01, 0.01, 0.02), (0.05, 40.05, 0.1), (0.2, 0.1, 2.3)], ids=str
)
def test_the_law_of_a_mean_of_three_levels_under_small_weights(weight):
    level, at = [0.0, 0.3, 1.0], [0.01, 0.301, 0.9]
    expected = [stick_breaking(weight, level, m) for m in at]
    found = dirichlet_mean_cdf(weight, level, at)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_middle_level_that_hardly_counts_leaves_two_levels():
    two = np.array([(1.01, 2.01), (0.01, 0.03), (0.4, 0.01)])
    three = np.insert(two, 1, 1e-12, axis=1)  # moves probabilities by as much at the most
    expected = beta_best_mean(two[:, 1], two[:, 0])
    found = dirichlet_best_mean(three, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_rewards_with_tiny_df_and_counts_with_tiny_size_share_evenly():
    for k in (2, 5):
        even = np.ones(k)
        tails = location_scale_best_arm(0.05 * even, 0 * even, even)
        counts = count_best_arm(3 * even, 0.001 * even)
        np.testing.assert_allclose(tails, 1 / k, rtol=0, atol=1e-11)
        np.testing.assert_allclose(counts, 1 / k, rtol=0, atol=1e-11)


@pytest.mark.parametrize("k", [2, 20, 21, 100, 1000])
def test_the_highest_of_many_equal_normals_is_any(k):
    found = gauss_best_probability(np.zeros(k))
    np.testing.assert_allclose(found, 1 / k, rtol=1e-10)


@pytest.mark.parametrize(
    ("family", "prior", "support"),
    [("bernoulli", (0.01, 0.01), None), ("poisson", (0.01, 1), None), ("finite", 0.01, [1, 2, 5])],
)
def test_two_arms_without_data_are_even_in_beliefs_and_policies(family, prior, support):
    log = bf.History(["a", "b"], [np.nan, np.nan], arms=["a", "b"])
    found = bf.beliefs(log, family=family, prior=prior, support=support)
    np.testing.assert_allclose(found.best_mean_probability, 0.5, rtol=0, atol=1e-10)
    rule = bf.policies.Thompson()
    state = rule.start(2, family, prior=prior, support=support)
    np.testing.assert_allclose(rule.selection_probability(state), 0.5, rtol=0, atol=1e-10)


def test_probabilities_that_miss_1_are_an_error_with_their_miss():
    good = np.array([[0.5, 0.5, np.nan], [np.nan, 1.0, np.nan]])
    assert require_sum_of_one(good, "what") is good
    with pytest.raises(ConvergenceError, match=r"did not resolve what.*sum to 1 -1e-08") as caught:
        require_sum_of_one(np.array([[0.5, 0.5], [0.5, 0.5 - 1e-8]]), "what")
    assert caught.value.kind == "quadrature"
    assert caught.value.value == pytest.approx(1e-8)
    with pytest.raises(ConvergenceError, match="the least is -1"):
        require_sum_of_one(np.array([2.0, -1.0]), "what")
