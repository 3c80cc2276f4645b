"""Bounds of smooth fairness: against enumeration, integration and random search."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from enumeration import bernoulli, best_arm
from scipy import integrate

from bayesfair import theory
from bayesfair.errors import DataError


@pytest.mark.parametrize("d", [Fraction(1, 10), Fraction(1, 100), Fraction(1, 2), Fraction(1)])
def test_the_smooth_bound_is_sharp(d):
    pi = best_arm([[Fraction(0), 1 - d, d], [d, 1 - d, Fraction(0)]])
    assert pi[0] - pi[1] == 2 * d - d * d
    assert theory.smooth_fairness_bound(float(d)) == pytest.approx(float(2 * d - d * d))


def test_the_smooth_bound_holds_on_random_levels_and_is_the_difference_itself_for_two_coins():
    rng = np.random.default_rng(1)
    for _ in range(300):
        k, levels = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        laws = rng.dirichlet(np.full(levels, 0.4), size=k)
        pi = best_arm(laws)
        for i, j in itertools.combinations(range(k), 2):
            d = np.abs(laws[i] - laws[j]).sum() / 2
            assert abs(pi[i] - pi[j]) <= theory.smooth_fairness_bound(d) + 1e-12
            if levels == 2:
                assert abs(pi[i] - pi[j]) <= d + 1e-12
                if k == 2:
                    assert abs(pi[i] - pi[j]) == pytest.approx(d, abs=1e-12)


def test_dependent_arms_break_the_theorem():
    half = Fraction(1, 2)
    first = bernoulli([Fraction(1), Fraction(0), Fraction(0)])
    second = bernoulli([Fraction(0), Fraction(1), Fraction(1)])
    mean = [half * a + half * b for a, b in zip(first, second, strict=True)]
    assert mean == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]  # though all marginals are 1/2
    # with independent arms P* of the marginals is uniform
    assert bernoulli([half] * 3) == [Fraction(1, 3)] * 3


def test_literal_uniform_among_the_others_reverses_the_order():
    # "another arm" read as one that SD_TS did not pick: eps -> 0 always plays the rejected arm
    pi = bernoulli([0.9, 0.2])
    eps = 0.1
    literal = [eps / 2 * p + (1 - eps / 2) * (1 - p) for p in pi]
    assert pi[0] > pi[1]
    assert literal[0] < literal[1]
    assert eps < 2 / 2
    assert eps / 2 * 1 + (1 - eps) / 2 * (1 / 2) * 2 < 1  # the paper's display does not sum to 1


def test_divergence_conversions_hold_on_random_laws():
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.full(4, 0.5), (2, 3000))
    tv = np.abs(p - q).sum(axis=1) / 2
    kl = (p * np.log(p / q)).sum(axis=1)
    assert np.all(tv <= theory.pinsker(kl) + 1e-12)
    assert np.all(tv <= theory.bretagnolle_huber(kl) + 1e-12)
    np.testing.assert_array_equal(
        theory.tv_bound_from_kl(kl), np.minimum(theory.pinsker(kl), theory.bretagnolle_huber(kl))
    )
    assert theory.bretagnolle_huber(np.inf) == 1
    close = (0.5, 0.5 + 1e-4)
    small = close[0] * math.log(close[0] / close[1]) * 1 + 0.5 * math.log(0.5 / (0.5 - 1e-4))
    assert theory.pinsker(small) == pytest.approx(1e-4, rel=1e-3)  # nearly tight


def test_exponential_races_by_integration():
    for b in (1.001, 1.3, 2.0, 10.0, 100.0):
        gap, _ = integrate.quad(
            lambda x, b=b: abs(math.exp(-x) - b * math.exp(-b * x)),
            0,
            60,
            points=[math.log(b) / (b - 1)],
            limit=400,
        )
        assert theory.exponential_race_tv(b) == pytest.approx(gap / 2, rel=1e-6)
        assert theory.exponential_race_tv(1 / b) == pytest.approx(gap / 2, rel=1e-6)
    assert theory.exponential_race_tv(1.0) == 0
    assert theory.exponential_race_tv(1e300) == pytest.approx(1, abs=1e-12)
    assert theory.exponential_race_tv([math.inf, 2.0]).tolist() == [1.0, 0.25]
    with pytest.raises(DataError, match="must be positive"):
        theory.exponential_race_tv([1.0, 0.0])


def test_plackett_luce_is_smoothly_fair_with_half_e():
    rng = np.random.default_rng(3)
    constant = theory.plackett_luce_eps1()
    largest = 0.0
    for _ in range(2000):
        k = int(rng.integers(2, 6))
        worth = rng.gamma(1.0, size=k) + 1e-9
        share = worth / worth.sum()
        ratio = worth[:, None] / worth[None]
        tv = theory.exponential_race_tv(ratio)
        gap = np.abs(share[:, None] - share[None])
        assert np.all(gap <= constant * tv + 1e-12)
        largest = max(largest, float(np.max(np.where(tv > 1e-9, gap / np.maximum(tv, 1e-9), 0))))
    assert largest > 1.3
    near = abs(1.001 - 1) / (1.001 + 1) / theory.exponential_race_tv(1.001)
    assert near == pytest.approx(constant, rel=1e-3)


def test_top_one_error():
    assert theory.top1_error_bound(5, 0.01) == pytest.approx(0.04)
