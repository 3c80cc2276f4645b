"""Arms with equal beliefs are one factor with a multiplicity: held against all arms by themselves.

Oracles: the number of successes among the other arms by convolution, closed forms for equal arms,
the pairs one by one, quadrature by scipy.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from bayesfair.kernels.laws.best_arm import bernoulli_best_arm
from bayesfair.kernels.laws.continuous_arms import location_scale_best_arm
from bayesfair.kernels.laws.count_laws import count_best_arm
from bayesfair.kernels.laws.finite_arms import finite_best_arm
from bayesfair.kernels.laws.tie_integral import tie_holds, tie_nodes, tie_reach
from bayesfair.kernels.log.conjugate import start_table
from bayesfair.kernels.log.stream import stream_bernoulli


def best_by_convolution(m):
    """P* from the law of the number of successes among the other arms."""
    best = np.empty(len(m))
    for i in range(len(m)):
        law = np.ones(1)
        for j, p in enumerate(m):
            if j != i:
                law = np.convolve(law, [1 - p, p])
        best[i] = m[i] * (law / np.arange(1, len(law) + 1)).sum()
    return best + np.prod(1 - m) / len(m)


def log_of(k, n_rounds, played, seed):
    """A log whose first ``played`` arms are played."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, played, n_rounds).astype(np.int32)
    reward = (rng.random(n_rounds) < 0.4).astype(float)
    reward[rng.random(n_rounds) < 0.1] = np.nan
    return arm, reward, rng.dirichlet(np.full(k, 0.5), size=n_rounds)


def beta_start(alpha, beta):
    return start_table(np.stack([alpha, beta], axis=1))


def means_before(arm, reward, k, alpha, beta):
    won, seen, rows = np.zeros(k), np.zeros(k), []
    for a, x in zip(arm, reward, strict=True):
        rows.append((alpha + won) / (alpha + beta + seen))
        if not np.isnan(x):
            won[a] += x
            seen[a] += 1
    return np.array(rows)


@pytest.mark.parametrize(("k", "played"), [(22, 3), (60, 5), (60, 60)])
@pytest.mark.parametrize("offers", [False, True])
def test_best_arm_and_pairs_of_many_equal_arms(k, played, offers):
    arm, reward, pi = log_of(k, 60, played, k)
    alpha, beta = np.full(k, 0.5), np.full(k, 0.5)
    alpha[-1], beta[-1] = 2.0, 1.0  # one prior apart
    if offers:
        hidden = np.random.default_rng(1).random(pi.shape) < 0.4
        hidden[np.arange(len(arm)), arm] = False
        pi = np.where(hidden, np.nan, pi)
        pi /= np.nansum(pi, axis=1, keepdims=True)
    grid = [0.0, 0.5, 2.0]
    found = stream_bernoulli(
        arm, reward, pi, state=beta_start(alpha, beta), eps1_grid=grid, eps1_index=1, eps2=0.0,
        want_rounds=True,
    )  # fmt: skip
    m = means_before(arm, reward, k, alpha, beta)
    worst = np.full(len(grid), -np.inf)
    for t in range(len(arm)):
        on = np.flatnonzero(~np.isnan(pi[t]))
        expected = np.full(k, np.nan)
        expected[on] = best_by_convolution(m[t, on])
        np.testing.assert_allclose(found.rounds.p_best[t], expected, rtol=0, atol=1e-13)
        assert found.rounds.p_best_chosen[t] == pytest.approx(expected[arm[t]], abs=1e-13)
        p, q = pi[t, on], m[t, on]
        assert found.rounds.regret[t] == pytest.approx(
            np.maximum(expected[on] - p, 0).sum(), abs=1e-12
        )
        i, j = np.triu_indices(len(on), 1)
        for e, eps1 in enumerate(grid):
            excess = np.abs(p[i] - p[j]) - eps1 * np.abs(q[i] - q[j])
            worst[e] = max(worst[e], excess.max())
    np.testing.assert_allclose(found.pairs.frontier, np.maximum(worst, 0), rtol=0, atol=1e-13)
    assert found.pairs.worst_excess == pytest.approx(worst[1], abs=1e-13)
    np.testing.assert_allclose(
        found.sums.p_best, np.nansum(found.rounds.p_best, axis=0), rtol=0, atol=1e-12
    )


def test_arms_never_played_among_many_thousands():
    """Of a hundred thousand arms all but one are at 1/2: the others' successes are binomial."""
    k = 100_000
    arm, reward = np.zeros(3, np.int32), np.array([1.0, 1.0, 1.0])
    state = start_table(np.full((k, 2), 0.5))
    found = stream_bernoulli(
        arm, reward, None, state=state, eps1_grid=[1.0], eps1_index=0, eps2=0.0
    )
    n = np.arange(k)
    for t, m in enumerate((0.5, 0.75, 2.5 / 3)):
        expected = m * (stats.binom.pmf(n, k - 1, 0.5) / (n + 1)).sum()
        assert found.rounds.p_best_chosen[t] == pytest.approx(expected, rel=1e-9)
    assert found.sums.p_best.sum() == pytest.approx(3.0, abs=1e-11)


@pytest.mark.parametrize("k", [2, 48, 49, 60, 200, 5000, 1_000_000])
@pytest.mark.parametrize("m", [1.0, 0.5, 0.02, 1e-4, 1e-6])
def test_few_nodes_are_exact_for_any_number_of_arms(k, m):
    """The integral of (1 - m s)^(k-1) is (1 - (1 - m)^k) / (k m)."""
    nodes, weights = tie_nodes(k)
    reach = tie_reach(k, k * m)
    s = reach * (1 - nodes)
    found = reach * (weights * np.exp((k - 1) * np.log1p(-m * s))).sum()
    whole = -np.expm1(k * np.log1p(-m)) if m < 1 else 1.0
    assert found == pytest.approx(whole / (k * m), rel=2e-13)
    assert len(nodes) <= 24
    assert tie_holds(k, k * m, reach)


def test_a_reach_holds_for_sums_nearby_and_no_longer():
    reach = tie_reach(500, 250.0)
    assert tie_holds(500, 245.0, reach) and tie_holds(500, 260.0, reach)
    assert not tie_holds(500, 150.0, reach) and not tie_holds(500, 400.0, reach)
    assert tie_holds(40, 20.0, 1.0)
    assert not tie_holds(500, 60.0, tie_reach(500, 30.0))


@pytest.mark.parametrize("k", [3, 30, 80, 300])
def test_bernoulli_draws_of_any_means(k):
    rng = np.random.default_rng(k)
    for m in (rng.random(k), rng.random(k) ** 8, np.full(k, 1e-3), 1 - 1e-6 * rng.random(k)):
        np.testing.assert_allclose(
            bernoulli_best_arm(m), best_by_convolution(m), rtol=0, atol=2e-14
        )


def spread_out(best, copies):
    return np.repeat(best, copies)


@pytest.mark.parametrize("copies", [[1, 5, 2], [40, 1, 30], [1, 1, 1]])
def test_finite_laws_with_copies_are_those_arms(copies):
    pmf = np.array([[0.2, 0.5, 0.3], [0.0, 0.6, 0.4], [0.7, 0.3, 0.0]])
    copies = np.array(copies)
    whole = finite_best_arm(np.repeat(pmf, copies, axis=0))
    shared = finite_best_arm(pmf, copies)
    np.testing.assert_allclose(spread_out(shared, copies), whole, rtol=0, atol=1e-13)
    assert (shared * copies).sum() == pytest.approx(1, abs=1e-13)


def test_many_equal_ratings_by_their_own_sum():
    """P(first of n iid arms, ties split) is 1/n; of a sure 2 against n fair coins of 1 and 2, E."""
    n = 5000
    shared = finite_best_arm(np.array([[0.25, 0.25, 0.5]]), np.array([n]))
    assert shared[0] == pytest.approx(1 / n, rel=1e-10)
    pmf = np.array([[0.0, 1.0], [0.5, 0.5]])
    other = stats.binom.pmf(np.arange(n + 1), n, 0.5)
    found = finite_best_arm(pmf, np.array([1, n]))
    assert found[0] == pytest.approx((other / np.arange(1, n + 2)).sum(), rel=1e-10)


@pytest.mark.parametrize("df", [np.inf, 3.0])
def test_measurements_with_copies_by_quadrature(df):
    loc, scale, copies = np.array([0.0, 0.4, -1.0]), np.array([1.0, 0.5, 2.0]), np.array([7, 1, 30])
    law = stats.norm if df == np.inf else stats.t(df)
    found = location_scale_best_arm(np.full(3, df), loc, scale, copies)

    def integrand(x, i):
        z = (x - loc) / scale
        others = law.cdf(z) ** (copies - (np.arange(3) == i))
        return law.pdf(z[i]) / scale[i] * others.prod()

    for i in range(3):
        parts = [-200, -5, 0, 2, 5, 20, 200, 1e4]
        expected = sum(
            integrate.quad(integrand, a, b, (i,), epsabs=1e-13, limit=200)[0]
            for a, b in pairwise(parts)
        )
        assert found[i] == pytest.approx(expected, abs=1e-9)
    whole = location_scale_best_arm(
        np.full(copies.sum(), df), np.repeat(loc, copies), np.repeat(scale, copies)
    )
    np.testing.assert_allclose(spread_out(found, copies), whole, rtol=0, atol=1e-12)
    assert (found * copies).sum() == pytest.approx(1, abs=1e-10)


def test_counts_with_copies_are_those_arms():
    mean, size, copies = (
        np.array([2.0, 0.5, 7.0]),
        np.array([0.5, np.inf, 3.0]),
        np.array([9, 60, 1]),
    )
    found = count_best_arm(mean, size, copies)
    whole = count_best_arm(np.repeat(mean, copies), np.repeat(size, copies))
    np.testing.assert_allclose(spread_out(found, copies), whole, rtol=0, atol=1e-13)
    assert (found * copies).sum() == pytest.approx(1, abs=1e-12)
    absent = count_best_arm(mean, size, np.array([1, 0, 1]))
    assert np.isnan(absent[1]) and absent[[0, 2]].sum() == pytest.approx(1, abs=1e-13)
