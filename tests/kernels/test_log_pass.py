"""One pass over the rows of a log, and violating rounds per draw, against plain definitions."""

import numpy as np
import pytest

from bayesfair.kernels.log.guards import WINDOW, row_prints
from bayesfair.kernels.log.log_pass import log_pass
from bayesfair.kernels.log.row_terms import window_surprises
from bayesfair.kernels.log.violations import count_violations

MOST = 1000


def a_log(k, n_rounds, *, gaps=False, seed=0):
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(k), n_rounds)
    if gaps:
        off = (rng.random((n_rounds // 50 + 1, k)) < 0.3).repeat(50, axis=0)[:n_rounds]
        off[:, 0] = False
        pi = np.where(off, np.nan, pi)
    chance = np.nan_to_num(pi)
    steps = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
    arm = (steps < rng.random((n_rounds, 1))).sum(axis=1).astype(np.int32)
    reward = (rng.random(n_rounds) < 0.3).astype(float)
    reward[rng.random(n_rounds) < 0.1] = np.nan
    return arm, reward, pi


@pytest.mark.parametrize(("k", "n_rounds"), [(3, 20_000), (12, 9000), (4, 1), (5, 14), (2, 0)])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_of_the_pass_are_those_of_their_definitions(k, n_rounds, gaps, order):
    arm, reward, pi = a_log(k, n_rounds, gaps=gaps)
    found = log_pass(
        arm, reward, np.asarray(pi, order=order), None, k, apart=0.3, most=MOST, threads=2
    )
    rounds = np.arange(n_rounds)
    p = pi[rounds, arm]
    np.testing.assert_array_equal(found.p, p)
    on = ~np.isnan(pi)
    high, low = np.where(on, pi, -1).max(axis=1), np.where(on, pi, 2).min(axis=1)
    np.testing.assert_array_equal(found.may, high - low > 0.3)
    known = np.nan_to_num(pi)
    second, third = (known**2).sum(axis=1), (known**3).sum(axis=1)
    again = pi[rounds[1:], arm[:-1]]
    open_ = ~np.isnan(again)
    same = (arm[1:] == arm[:-1])[open_] - again[open_]
    steps = (on[1:] == on[:-1]).all(axis=1)
    moved = 0.5 * np.abs(np.diff(known, axis=0)).sum(axis=1)[steps].sum()
    expected = [
        (p - second).sum(), (third - second**2).sum(),
        np.maximum(high - second, second - low).max(initial=0), same.sum(),
        (again * (1 - again))[open_].sum(), open_.sum(), moved, steps.sum(),
    ]  # fmt: skip
    np.testing.assert_allclose(list(found.rule), expected, rtol=1e-11, atol=1e-11)
    seen = ~np.isnan(reward)
    np.testing.assert_array_equal(found.n_unobserved, np.bincount(arm[~seen], minlength=k))
    np.testing.assert_array_equal(found.n_zero, np.bincount(arm[reward == 0], minlength=k))
    for a in np.flatnonzero(np.bincount(arm[seen], minlength=k)):
        r, x = reward[seen & (arm == a)], p[seen & (arm == a)]
        mine = [getattr(found.moments, name)[a] for name in found.moments._fields]
        mine[2] += mine[1]  # mean reward, from the origin
        direct = [
            len(r), r[0], r.mean(), x.mean(), ((r - r.mean()) ** 2).sum(),
            ((x - x.mean()) ** 2).sum(), ((r - r.mean()) * (x - x.mean())).sum(), r.min(), r.max(),
            x.min(), x.max(),
        ]  # fmt: skip
        np.testing.assert_allclose(mine, direct, rtol=1e-11, atol=1e-11)
        assert found.reward_total[a] == r.sum()


@pytest.mark.parametrize("n_rounds", [15, 16, 900, 30_000])
def test_windows_that_are_kept_depend_on_the_rows_alone(n_rounds):
    arm, reward, pi = a_log(3, n_rounds)
    one, two = (
        log_pass(arm, reward, pi, None, 3, most=MOST, threads=threads) for threads in (1, 2)
    )
    for a, b in zip(one[-3:], two[-3:], strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(one.place) <= MOST
    # a window's fingerprint: a polynomial in those of its rows, mixed; here with whole numbers
    rows = [int(x) for x in row_prints(arm, reward, one.p)]
    root, size = 0x9E3779B97F4A7C15, 1 << 64

    def mixed(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % size
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % size
        return x ^ (x >> 31)

    expected = {}
    for t in range(WINDOW - 1, n_rounds):
        x = 0
        for row in rows[t - WINDOW + 1 : t + 1]:
            x = (x * root + row) % size
        expected[t] = mixed(x)
    limit = size - 1
    while sum(x <= limit for x in expected.values()) > MOST:
        limit >>= 1
    assert one.limit == limit
    assert dict(zip(one.place.tolist(), one.prints.tolist(), strict=True)) == {
        t: x for t, x in expected.items() if x <= limit
    }
    chosen = one.p[one.place[:, None] - np.arange(WINDOW)]
    found = window_surprises(one.p, one.place - WINDOW + 1)
    np.testing.assert_allclose(found, -np.log(chosen).sum(axis=1), rtol=1e-12)


def test_rows_that_are_all_alike_keep_what_their_windows_say():
    n = 5000
    arm, reward, p = np.zeros(n, np.int32), np.ones(n), np.full(n, 0.5)
    found = log_pass(arm, reward, None, p, 1, most=MOST)
    assert len(set(found.prints.tolist())) <= 1
    assert len(found.place) == 0  # one fingerprint stands there too often to be kept
    assert found.moments.probability_squares[0] == found.moments.reward_squares[0] == 0


def test_surprise_of_choices_that_were_hardly_possible_is_finite():
    p = np.full(WINDOW, 1e-290)
    found = window_surprises(p, np.array([0]))
    assert found[0] == pytest.approx(WINDOW * 290 * np.log(10), rel=1e-12)


@pytest.mark.parametrize(("k", "n_draws"), [(2, 3), (4, 700), (12, 90)])
@pytest.mark.parametrize("eps1", [0.0, 1.5])
def test_violating_rounds_per_draw_are_those_of_the_definition(k, n_draws, eps1):
    rng = np.random.default_rng(k)
    n_rounds, limit = 3000, 0.1
    pi = rng.dirichlet(np.full(k, 3.0), n_rounds)
    pi[rng.random(pi.shape) < 0.1] = np.nan
    theta = rng.beta(rng.uniform(5, 50, k), 20, size=(n_draws, k))
    i, j = np.triu_indices(k, 1)
    differences = np.abs(pi[:, i] - pi[:, j])
    distances = np.abs(theta[:, i] - theta[:, j]).T.copy()
    distances[0, 0] = np.inf  # frees the pair under this draw
    rounds = np.sort(rng.choice(9 * n_rounds, n_rounds, replace=False))
    weights = rng.integers(1, 9, n_rounds).astype(float)
    held = distances if eps1 else np.zeros_like(distances)
    over = np.stack([(differences - eps1 * d > limit).any(axis=1) for d in held.T])
    first = [rounds[row][0] if row.any() else -1 for row in over]
    last = [rounds[row][-1] if row.any() else -1 for row in over]
    for of_arms, values in ((True, pi), (False, differences)):
        for threads in (1, 2):
            found = count_violations(
                values, rounds, weights, distances, eps1, limit, of_arms=of_arms, threads=threads
            )
            np.testing.assert_array_equal(found[0], over @ weights)
            np.testing.assert_array_equal(found[1], first)
            np.testing.assert_array_equal(found[2], last)


def test_a_lower_limit_below_zero_never_violates():
    # limits of two windows: the second pair is surely apart in the first, nobody in the second
    limits = np.array([[-0.9, 0.3], [-0.5, -0.4]])
    n, first, last = count_violations(
        limits, np.array([4, 5]), np.ones(2), np.zeros((2, 3)), 1, 0.05
    )
    assert n.tolist() == [1, 1, 1] and first.tolist() == last.tolist() == [4, 4, 4]
