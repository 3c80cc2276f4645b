"""Bounds of the fairness regret: against enumeration, counting and simulated rules."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from enumeration import bernoulli
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesfair import theory
from bayesfair.errors import OptionError


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_tie_weights_by_enumeration(theta):
    k = len(theta)
    expected = []
    for i in range(k):
        others = [theta[j] for j in range(k) if j != i]
        total = 0.0
        for outcome in itertools.product((0, 1), repeat=k - 1):
            weight = math.prod(m if r else 1 - m for m, r in zip(others, outcome, strict=True))
            total += weight / (1 + sum(outcome))
        expected.append(total)
    np.testing.assert_allclose(theory.tie_weights(theta), expected, atol=1e-12)
    h = theory.sum_of_tie_weights(theta)
    assert 1 - 1e-9 <= h <= k + 1e-9
    if sum(theta) > 0:
        assert h <= 1.3 * k / sum(theta) + 1e-9


def test_the_constant_of_the_limit_is_the_stated_one_and_matches_its_definition():
    stated = {2: 798, 5: 1889, 10: 2603}
    for k, value in stated.items():
        assert round(1000 * theory.asymptotic_constant(np.linspace(0.1, 0.9, k))) == value
    theta = [0.3, 0.6, 0.8]
    p = bernoulli(theta)
    total = 0.0
    for j in range(3):
        variance = 0.0
        for i in range(3):
            won = bernoulli([1.0 if a == i else m for a, m in enumerate(theta)])[j]
            lost = bernoulli([0.0 if a == i else m for a, m in enumerate(theta)])[j]
            variance += (won - lost) ** 2 * theta[i] * (1 - theta[i]) / p[i]
        total += math.sqrt(variance)
    expected = math.sqrt(2 / math.pi) * total
    assert theory.asymptotic_constant(theta) == pytest.approx(expected, rel=1e-12)


def test_bounds_keep_their_order():
    for k in (2, 4, 10, 40):
        for t in (10_000, 1_000_000):
            low = theory.regret_lower_bound(k, t)
            assert low < theory.sd_ts_regret_bound(k, t)
            theta = np.linspace(0.1, 0.9, k)
            inner = theory.sd_ts_regret_bound(k, t, theta)
            assert theory.asymptotic_constant(theta) * math.sqrt(t) < inner
            assert inner <= theory.sd_ts_regret_bound(k, t)
            assert theory.sd_ts_average_regret_bound(k, t) < theory.sd_ts_regret_bound(k, t)
            fair_low, fair_high = theory.fair_sd_ts_regret_bounds(theta, 100.0, t)
            assert fair_low <= fair_high <= t
            if k >= 4:
                assert theory.regret_lower_bound(k, t, sparse=True) < theory.sd_ts_regret_bound(
                    k, t
                )
    assert theory.regret_lower_bound(2, 10_000) == pytest.approx(17)
    assert theory.regret_lower_bound(6, 0) == 0  # nobody has regret before the first round
    assert theory.regret_lower_bound(4, 10_000) == pytest.approx(0.086 * 200)
    assert theory.regret_lower_bound(40, 2000, sparse=True) == pytest.approx(62)
    for arguments in ((3, 100), (1, 100), (4, 3)):
        with pytest.raises(OptionError, match="no lower bound is proved"):
            theory.regret_lower_bound(*arguments)
    with pytest.raises(OptionError, match="sparse=True"):
        theory.regret_lower_bound(2, 100, sparse=True)


def test_fair_sd_ts_bounds_by_hand():
    # theta = (.1, .9): P* = (.1, .9), uniform is off by .4
    low, high = theory.fair_sd_ts_regret_bounds([0.1, 0.9], 99.5, 10_000)
    assert low == pytest.approx(0.4 * 200)
    rounds = 2 * (100 + math.sqrt(200 * math.log(2)) + math.log(2))
    assert high == pytest.approx(0.4 * rounds + theory.sd_ts_regret_bound(2, 10_000, [0.1, 0.9]))


def test_unfair_rounds_of_plain_sd_ts():
    n = 39  # smallest with y = 1/4 - 1/(2(n+1)) > 0 and 4 exp(-2 n y^2) <= .05, by hand
    assert theory.unfair_rounds_end(2, 0.5, 0.1) == 4 * n * (n + 1)
    assert theory.unfair_rounds_bound(3, 10**6, 0.5) == pytest.approx(240 * (1 + math.log(10**6)))
    with pytest.raises(OptionError, match=r"excess=0\.6"):
        theory.unfair_rounds_bound(2, 10, 0.6)


def test_the_papers_tuning_explores_as_much_as_tabulated():
    # theory.md section 5: kC/T with max D := 1
    table = {2: (1.48, 0.88, 0.50, 0.27), 5: (1.09, 0.65, 0.37, 0.20), 10: (0.87, 0.51, 0.29, 0.16)}
    for k, row in table.items():
        for t, share in zip((1e3, 1e4, 1e5, 1e6), row, strict=True):
            c = theory.paper_worst_case_C(theory.paper_eps2(k, int(t)), t**-0.5)
            assert k * c / t == pytest.approx(share, abs=0.006)


def test_tie_weights_are_large_only_where_successes_are_rare():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        theta = rng.beta(0.3, rng.choice([0.5, 5.0, 50.0]), int(rng.integers(2, 40)))
        found = theory.sum_of_tie_weights(theta)
        assert 1 - 1e-12 <= found <= min(len(theta), 1.3 / theta.mean()) + 1e-9
    assert theory.sum_of_tie_weights(np.zeros(7)) == pytest.approx(7)


def test_the_constant_of_the_limit_falls_to_a_share_of_k_in_a_corner():
    """One sure success beside rare ones: A / k falls towards about .56 as the arms become many."""
    shares = [
        theory.asymptotic_constant([1 - 1e-9] + [1e-6] * (k - 1)) / k for k in (10, 100, 1000)
    ]
    assert shares[0] > shares[1] > shares[2] > 0.56
    assert shares[2] == pytest.approx(0.56, rel=0.06)


def test_the_last_unfair_round_by_trying_every_count():
    for k, e, delta in ((2, 0.5, 0.1), (5, 0.2, 0.05), (10, 0.1, 0.3)):
        n = 1
        while True:
            y = e / 2 - 1 / (2 * (n + 1))
            if y > 0 and 2 * k * math.exp(-2 * n * y * y) <= delta / 2:
                break
            n += 1
        assert theory.unfair_rounds_end(k, e, delta) == 2 * k * n * (n + 1)


@pytest.mark.parametrize("n_rounds", [0, 1, 10, 1000])
def test_no_bound_exceeds_what_the_rounds_can_hold(n_rounds):
    bounds = [
        theory.sd_ts_regret_bound(5, n_rounds),
        theory.sd_ts_regret_bound(2, n_rounds, [0.9, 0.1]),
        theory.sd_ts_average_regret_bound(5, n_rounds),
        *theory.fair_sd_ts_regret_bounds([0.1, 0.9], 1000, n_rounds),
        theory.unfair_rounds_bound(3, n_rounds, 0.1),
    ]
    assert all(0 <= bound <= n_rounds for bound in bounds)


def test_bounds_of_fewer_than_no_rounds_are_refused():
    with pytest.raises(OptionError, match="n_rounds"):
        theory.sd_ts_regret_bound(2, -1)


def kl(theta, m):
    return theta * np.log(theta / m) + (1 - theta) * np.log((1 - theta) / (1 - m))


def best_rows(m):
    """P* of rows of Bernoulli means, by enumeration."""
    best = np.zeros_like(m)
    for outcome in itertools.product((0, 1), repeat=m.shape[1]):
        top = np.array(outcome) == max(outcome)
        best += np.outer(np.where(outcome, m, 1 - m).prod(axis=1), top / top.sum())
    return best


@pytest.mark.parametrize("b", [0.02, 0.1, 0.3])
def test_the_step_of_a_round_from_forecasts_to_regret(b):
    rng = np.random.default_rng(3)
    for k in (2, 3, 5):
        theta, m = rng.uniform(b, 1 - b, (2, 400, k))
        regret = np.abs(best_rows(theta) - best_rows(m)).sum(axis=1) / 2
        loss = best_rows(m) * kl(theta, m)
        for one, of in zip(regret, loss, strict=True):
            assert one <= theory.forecast_regret_bound(of, 1, b) + 1e-12


def test_forecasts_within_contexts_keep_the_bound():
    rng = np.random.default_rng(5)
    theta, b, runs, n = np.array([[0.8, 0.5, 0.2], [0.3, 0.5, 0.6]]), 0.15, 200, 400
    won, seen = np.zeros((2, runs, 2, 3))
    regret, loss, all_ = np.zeros(runs), np.zeros((runs, 3)), np.arange(runs)
    for _ in range(n):
        x = rng.integers(0, 2, runs)
        m = np.clip((won[all_, x] + 0.5) / (seen[all_, x] + 1), b, 1 - b)
        pi = best_rows(m)
        regret += np.abs(best_rows(theta[x]) - pi).sum(axis=1) / 2
        arm = (rng.random(runs)[:, None] > pi.cumsum(axis=1)[:, :-1]).sum(axis=1)
        loss[all_, arm] += kl(theta[x, arm], m[all_, arm])
        won[all_, x, arm] += rng.random(runs) < theta[x, arm]
        seen[all_, x, arm] += 1
    measured = theory.forecast_regret_bound(loss.mean(axis=0), n, b)
    known = (0.5 * np.log(seen + 1) + math.log(2)).mean(axis=0).sum(axis=0)
    assert (loss.mean(axis=0) <= known).all()
    assert regret.mean() < measured < theory.forecast_regret_bound(known, n, b)
    # nothing is bounded by more than one for each round; k sqrt(T sum B / 2b) by hand
    assert theory.forecast_regret_bound([1.0, 3.0], 800, 0.25) == pytest.approx(2 * 6400**0.5)
    assert theory.forecast_regret_bound([1e6], 800, 0.25) == 800
