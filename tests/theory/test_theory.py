"""Theory as functions: against enumeration, integration, random search and hand calculation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize

from bayesfair import theory
from bayesfair.errors import DataError, OptionError
from bayesfair.policies import (
    SDTS,
    CalibratedOracle,
    EpsilonGreedy,
    FairSDDTS,
    FairSDTS,
    Greedy,
    SDTSMixture,
    Softmax,
    Thompson,
    Uniform,
)


def best_arm(laws):
    """P* exactly, by enumeration; laws: per arm, probabilities of the levels 0, 1, ..."""
    best = [0] * len(laws)
    for outcome in itertools.product(*(range(len(law)) for law in laws)):
        top = max(outcome)
        winners = [i for i, v in enumerate(outcome) if v == top]
        weight = math.prod(law[v] for law, v in zip(laws, outcome, strict=True))
        for i in winners:
            best[i] += weight / len(winners)
    return best


def bernoulli(m):
    return best_arm([[1 - x, x] for x in m])


# -- smooth fairness -----------------------------------------------------------------------------


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


# -- regret --------------------------------------------------------------------------------------


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


# -- duels ---------------------------------------------------------------------------------------


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


# -- proper scoring ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_the_calibrated_rule_minimises_the_expected_loss(rule):
    rng = np.random.default_rng(4)
    for _ in range(6):
        k = int(rng.integers(2, 5))
        p = rng.dirichlet(np.full(k, 0.8))

        def loss(x, p=p):
            pi = np.exp(x - x.max())
            return float(theory.expected_fairness_loss(pi / pi.sum(), p, rule))

        best = optimize.minimize(loss, np.zeros(k), method="BFGS", options={"gtol": 1e-10})
        pi = np.exp(best.x - best.x.max())
        np.testing.assert_allclose(pi / pi.sum(), p, atol=5e-4)
        assert theory.fairness_loss_excess(p, p, rule) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_the_excess_is_the_difference_of_losses_and_bounds_the_regret(rule):
    rng = np.random.default_rng(5)
    p, pi = rng.dirichlet(np.full(4, 0.7), (2, 500))
    by_arm = np.stack([theory.fairness_loss(pi, np.full(500, i), rule) for i in range(4)], axis=1)
    own = np.stack([theory.fairness_loss(p, np.full(500, i), rule) for i in range(4)], axis=1)
    expected = theory.expected_fairness_loss(pi, p, rule)
    np.testing.assert_allclose(expected, (p * by_arm).sum(axis=1), rtol=1e-12)
    excess = theory.fairness_loss_excess(pi, p, rule)
    np.testing.assert_allclose(excess, (p * (by_arm - own)).sum(axis=1), atol=1e-12)
    regret = np.maximum(p - pi, 0).sum(axis=1)
    assert np.all(regret <= theory.regret_from_excess(excess, rule, n_arms=4) + 1e-12)


def test_losses_at_the_edge():
    assert theory.fairness_loss([0.0, 1.0], 0) == np.inf
    assert theory.fairness_loss_excess([0.0, 1.0], [0.1, 0.9]) == np.inf
    assert theory.fairness_loss_excess([0.5, 0.5], [0.0, 1.0]) == pytest.approx(math.log(2))
    assert theory.expected_fairness_loss([0.0, 1.0], [0.0, 1.0]) == 0
    with pytest.raises(OptionError, match="rule='spherical'"):
        theory.fairness_loss([1.0], 0, "spherical")


# -- guarantees ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "numbers", "kind", "status"),
    [
        (SDTS(), {}, (1, 0, 0), "subjective", "proved"),
        (SDTS(), {"family": "normal"}, (2, 0, 0), "subjective", "proved"),
        (SDTS(), {"kind": "objective"}, (0, 1, 0), "objective", "trivial"),
        (SDTSMixture(eps1=0.4), {}, (0.4, 0, 0), "subjective", "proved"),
        (SDTSMixture(eps1=0.4), {"family": "finite"}, (0.4, 0, 0), "subjective", "proved"),
        (SDTSMixture(weight=0.4), {"family": "finite"}, (0.8, 0, 0), "subjective", "proved"),
        (FairSDTS(eps2=0.1, delta=0.05), {}, (1, 0.2, 0.05), "objective", "proved"),
        (
            FairSDTS(eps2=0.1, delta=0.05),
            {"family": "finite", "n_levels": 3},
            (2, 0.2, 0.05),
            "objective",
            "proved",
        ),
        (FairSDTS(eps2=0.1, delta=0.05), {"kind": "subjective"}, (1, 0, 0), "subjective", "proved"),
        (FairSDTS(eps2=0.6, delta=0.05), {}, (0, 1, 0), "objective", "trivial"),
        (
            FairSDTS(eps2=0.1, delta=0.1, C="paper", max_divergence=0.0),
            {"n_arms": 40},
            (2, 0.2, 0.1),
            "objective",
            "observed",
        ),
        (
            FairSDTS(eps2=0.1, delta=0.1, C="paper", max_divergence=0.8),
            {"n_arms": 40},
            (1, 0.2, 0.1),
            "objective",
            "proved",
        ),
        (FairSDTS(C=0), {"n_arms": 2}, (0, 1, 0), "objective", "trivial"),
        (CalibratedOracle([0.5, 0.4]), {}, (1, 0, 0), "objective", "proved"),
        (Uniform(), {}, (0, 0, 0), "subjective", "proved"),
        (EpsilonGreedy(epsilon=0.3), {}, (0, 0.7, 0), "subjective", "trivial"),
        (Softmax(temperature=0.25), {}, (2, 0, 0), "subjective", "proved"),
        (Thompson(), {}, (0, 1, 0), "subjective", "trivial"),
        (Greedy(), {}, (0, 1, 0), "subjective", "trivial"),
        (FairSDDTS(C="paper", eps2=0.2), {}, (2, 0.4, 0.1), "objective", "claimed"),
        (FairSDDTS(C=10), {}, (0, 1, 0), "objective", "trivial"),
    ],
    ids=str,
)
def test_guarantees(policy, options, numbers, kind, status):
    found = theory.guarantee(policy, **options)
    assert tuple(found) == pytest.approx(numbers)
    assert (found.kind, found.status) == (kind, status)


def test_a_number_as_C_buys_what_the_corrected_formula_says():
    found = theory.guarantee(FairSDTS(C=500, delta=0.05), n_arms=4)
    assert theory.union_C(found.eps2 / 2, 0.05, n_arms=4) == pytest.approx(500)
    with pytest.raises(OptionError, match="give n_arms="):
        theory.guarantee(FairSDTS(C=500))


def test_softmax_guarantee_holds_and_is_nearly_reached():
    rng = np.random.default_rng(6)
    rule = Softmax(temperature=0.3)
    eps1, _, _ = theory.guarantee(rule)
    largest = 0.0
    for _ in range(400):
        k = int(rng.integers(2, 5))
        state = rule.start(k)
        for _ in range(int(rng.integers(0, 30))):
            state = rule.update(state, int(rng.integers(k)), float(rng.random() < 0.5))
        s, f = state.table.T
        m = s / (s + f)
        pi = rule.selection_probability(state)
        for i, j in itertools.combinations(range(k), 2):
            assert abs(pi[i] - pi[j]) <= eps1 * abs(m[i] - m[j]) + 1e-12
            if m[i] != m[j]:
                largest = max(largest, abs(pi[i] - pi[j]) / abs(m[i] - m[j]))
    assert largest > 0.9 * eps1


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


# -- forecasts given a context ---------------------------------------------------------------------


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
