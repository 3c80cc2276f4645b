"""Poisson and negative binomial rewards against mpmath sums, closed forms and SciPy."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from bayesfair.errors import DataError
from bayesfair.kernels.laws.divergences import DIVERGENCES
from bayesfair.rewards import NegativeBinomial, Poisson

# -- oracles: plain mpmath sums ----------------------------------------------------------------


def poisson_masses(rate, levels):
    rate = mp.mpf(float(rate))
    return [mp.exp(-rate) * rate**v / mp.factorial(v) for v in range(levels)]


def negative_binomial_masses(n, p, levels):
    n, p = mp.mpf(float(n)), mp.mpf(float(p))
    masses = [p**n]
    for v in range(levels - 1):
        masses.append(masses[-1] * (n + v) / (v + 1) * (1 - p))
    return masses


def summed(name, f, g):
    if name == "wasserstein":
        ahead, total = mp.mpf(0), mp.mpf(0)
        for p, q in zip(f, g, strict=True):
            ahead += p - q
            total += abs(ahead)
        return total
    term = {
        "total_variation": lambda p, q: abs(p - q) / 2,
        "kl": lambda p, q: p * mp.log(p / q),
        "hellinger": lambda p, q: (mp.sqrt(p) - mp.sqrt(q)) ** 2 / 2,
        "chi2": lambda p, q: (p - q) ** 2 / q,
        "jensen_shannon": lambda p, q: (
            (p * mp.log(2 * p / (p + q)) + q * mp.log(2 * q / (p + q))) / 2
        ),
    }[name]
    total = mp.fsum(term(p, q) for p, q in zip(f, g, strict=True))
    return mp.sqrt(total) if name == "hellinger" else total


def best_of_masses(laws):
    """P* of two or three arms by summing the definition over levels, ties split."""
    k = len(laws)
    best = [mp.mpf(0)] * k
    below = [mp.mpf(0)] * k
    for level in zip(*laws, strict=True):
        for tied in range(1, 2**k):
            winners = [i for i in range(k) if tied >> i & 1]
            p = mp.fprod(level[i] if i in winners else below[i] for i in range(k))
            for i in winners:
                best[i] += p / len(winners)
        below = [b + f for b, f in zip(below, level, strict=True)]
    return [float(b) for b in best]


# -- P* ----------------------------------------------------------------------------------------


def test_poisson_case_74():
    assert Poisson([3, 2]).best_arm_probability()[0] == pytest.approx(0.6692, abs=5e-5)
    # P(first > second) of a Skellam law, and half of the ties
    expected = stats.skellam.sf(0, 3, 2) + stats.skellam.pmf(0, 3, 2) / 2
    assert Poisson([3, 2]).best_arm_probability()[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rates", [(3, 2), (0.01, 0.02, 5), (40, 45, 38), (0, 1, 2)])
def test_poisson_best_arm_equals_mpmath(rates):
    with mp.workdps(30):
        expected = best_of_masses([poisson_masses(rate, 160) for rate in rates])
    np.testing.assert_allclose(Poisson(rates).best_arm_probability(), expected, atol=1e-14)


@pytest.mark.parametrize(
    "laws", [((0.5, 1 / 3), (2.5, 0.6)), ((30, 0.9), (0.2, 0.1), (3.3, 0.4)), ((1, 1), (2, 0.5))]
)
def test_negative_binomial_best_arm_equals_mpmath(laws):
    with mp.workdps(30):
        expected = best_of_masses([negative_binomial_masses(*law, 900) for law in laws])
    best = NegativeBinomial(*np.array(laws, dtype=float).T).best_arm_probability()
    np.testing.assert_allclose(best, expected, atol=1e-14)


def test_geometric_pair_in_closed_form():
    # P(X > Y) of two geometric laws with failure rates a, b: a (1 - b) / (1 - a b)
    a, b = 0.75, 0.5
    best = NegativeBinomial([1, 1], [1 - a, 1 - b]).best_arm_probability()
    above, tie = a * (1 - b) / (1 - a * b), (1 - a) * (1 - b) / (1 - a * b)
    assert best[0] == pytest.approx(above + tie / 2, abs=1e-15)


def test_many_and_large_counts():
    rng = np.random.default_rng(21)
    for k in (20, 60):
        best = Poisson(rng.uniform(0, 3, size=k)).best_arm_probability()
        assert best.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(Poisson([1e6] * 3).best_arm_probability(), [1 / 3] * 3, atol=1e-12)
    best = Poisson([1e6, 1e6 + 300, 5e5]).best_arm_probability()
    # a difference of large Poisson counts: Skellam, again with half of the ties
    ties = special.ive(0, 2 * math.sqrt(1e6 * (1e6 + 300))) * math.exp(-(300**2) / 4e6)
    assert best[1] == pytest.approx(stats.norm.cdf(300 / math.sqrt(2e6 + 300)), abs=3e-7)
    assert ties < 1e-3
    assert best[2] == 0


def test_poisson_is_the_limit_of_negative_binomial():
    rate, n = np.array([0.7, 4.0, 2.5]), 1e9
    late = NegativeBinomial(n, n / (n + rate))
    poisson = Poisson(rate)
    np.testing.assert_allclose(
        late.best_arm_probability(), poisson.best_arm_probability(), atol=1e-7
    )
    for name in DIVERGENCES:
        np.testing.assert_allclose(late.divergence(name), poisson.divergence(name), rtol=2e-6)


def test_offered_arms_only():
    best = Poisson([[3, 1, 2], [0.5, 9, 4]]).best_arm_probability(
        offered=[[True, False, True], [False, True, False]]
    )
    np.testing.assert_allclose(best[0, [0, 2]], Poisson([3, 2]).best_arm_probability())
    assert np.isnan(best[0, 1])
    assert best[1, 1] == pytest.approx(1, abs=1e-14)


# -- divergences -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize("rates", [(3, 2), (0.5, 4), (30, 33), (2, 2.001)])
def test_poisson_divergences_equal_mpmath(rates, name):
    with mp.workdps(40):
        f, g = (poisson_masses(rate, 400) for rate in rates)
        expected = [float(summed(name, f, g)), float(summed(name, g, f))]
    value = Poisson(rates).divergence(name)
    assert [value[0, 1], value[1, 0]] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize(
    "laws",
    [
        ((0.5, 1 / 3), (2.5, 0.6)),
        ((12.5, 0.8), (3.5, 0.5)),
        ((0.5, 0.4), (0.5, 0.41)),
        ((400.5, 0.995), (380.5, 0.99)),
        ((5.0, 0.35), (1.0, 0.3)),
        ((60.0, 0.5), (9.0, 0.5)),
    ],
)
def test_negative_binomial_divergences_equal_mpmath(laws, name):
    with mp.workdps(40):
        masses = [negative_binomial_masses(*law, 1500) for law in laws]
        for (i, j), (f, g) in {(0, 1): masses, (1, 0): masses[::-1]}.items():
            value = NegativeBinomial(*np.array(laws, dtype=float).T).divergence(name)[i, j]
            q_i, q_j = 1 - laws[i][1], 1 - laws[j][1]
            if name == "chi2" and q_i**2 >= q_j:
                assert value == np.inf
            else:
                assert value == pytest.approx(float(summed(name, f, g)), rel=1e-8)


def test_chi2_with_slowly_decaying_terms():
    # sum of p^2/q is a hypergeometric function at q_i^2 / q_j, here .9999
    n, q = np.array([2.0, 1.5]), np.array([math.sqrt(0.5 * 0.9999), 0.5])
    value = NegativeBinomial(n, 1 - q).divergence("chi2")[0, 1]
    with mp.workdps(30):
        q1, q2 = mp.mpf(1 - (1 - q[0])), mp.mpf(1 - (1 - q[1]))
        series = mp.hyp2f1(2, 2, mp.mpf("1.5"), q1**2 / q2)
        expected = (1 - q1) ** 4 / (1 - q2) ** mp.mpf("1.5") * series - 1
    assert value == pytest.approx(float(expected), rel=1e-8)


def test_infinite_and_degenerate_cases():
    poisson = Poisson([0, 2])
    np.testing.assert_allclose(poisson.divergence("kl"), [[0, 2], [np.inf, 0]])
    np.testing.assert_allclose(poisson.divergence("chi2"), [[0, math.expm1(2)], [np.inf, 0]])
    np.testing.assert_allclose(poisson.divergence("total_variation")[0, 1], -math.expm1(-2))
    sure = NegativeBinomial([1, 1], [1, 0.5])  # always 0 against a geometric law
    np.testing.assert_allclose(sure.divergence("kl"), [[0, math.log(2)], [np.inf, 0]])
    np.testing.assert_allclose(sure.divergence("chi2"), [[0, 1], [np.inf, 0]])
    np.testing.assert_allclose(sure.divergence("wasserstein")[0, 1], 1)
    same = NegativeBinomial([2, 5], [1, 1])  # both always 0, whatever n
    for name in DIVERGENCES:
        assert (same.divergence(name) == 0).all()
    assert Poisson([1.0, 1.0]).divergence("kl").tolist() == [[0, 0], [0, 0]]


def test_rows_equal_to_the_row_before_are_copied_right():
    rng = np.random.default_rng(22)
    n = np.repeat(rng.uniform(0.5, 9, size=(1, 4)), 15, axis=0)
    for t in range(1, 15):
        n[t] = n[t - 1]
        n[t, rng.integers(4)] = rng.uniform(0.5, 9)
    rewards = NegativeBinomial(n, 0.4)
    for name in DIVERGENCES:
        rows = np.stack([rewards[t].divergence(name) for t in range(15)])
        np.testing.assert_array_equal(rewards.divergence(name), rows)


# -- the rest ----------------------------------------------------------------------------------


def test_log_prob_and_mean_equal_scipy():
    v = np.arange(12.0)[:, None]
    rate = np.array([0.5, 3.0])
    np.testing.assert_allclose(Poisson(rate).log_prob(v), stats.poisson.logpmf(v, rate), rtol=1e-12)
    n, p = np.array([0.5, 40.0]), np.array([0.2, 0.9])
    counts = NegativeBinomial(n, p)
    np.testing.assert_allclose(counts.log_prob(v), stats.nbinom.logpmf(v, n, p), rtol=1e-11)
    np.testing.assert_allclose(counts.mean, stats.nbinom.mean(n, p))
    np.testing.assert_array_equal(Poisson([0.0]).log_prob([[0.0], [1.0]]), [[0], [-np.inf]])
    for bad in (-1, 0.5):
        assert (counts.log_prob(bad) == -np.inf).all()
        assert (Poisson(rate).log_prob(bad) == -np.inf).all()
    assert np.isnan(counts.log_prob(np.nan)).all()


@pytest.mark.statistical
def test_no_count_is_infinite_or_broken():
    for law in (Poisson([2.0, 0.0]), NegativeBinomial([1.5, 3.0], [0.4, 1.0])):
        for reward in (np.inf, -np.inf, 1.5, -1.0):
            assert np.all(law.log_prob(reward) == -np.inf), reward
        assert np.isnan(law.log_prob(np.nan)).all()


def test_samples_have_the_law():
    # shares of ten levels within 5 standard errors, two families of two arms
    n = 20_000
    for rewards in (Poisson([0.4, 3]), NegativeBinomial([0.5, 4], [0.3, 0.7])):
        draws = rewards.sample(n, seed=23)
        for v in range(10):
            p = np.exp(rewards.log_prob(v))
            share = (draws == v).mean(axis=0)
            assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Poisson([1, -1], arms=["a", "b"]), "rate of arm 'b' is -1"),
        (lambda: Poisson([1e14]), "too many counts"),
        (lambda: NegativeBinomial([0.0], [0.5]), "n of arm '0' is 0"),
        (lambda: NegativeBinomial([1.0], [0.0]), r"p of arm '0' is 0; .*\(0, 1\]"),
        (lambda: NegativeBinomial([1.0], [1e-12]), "too many counts"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()
