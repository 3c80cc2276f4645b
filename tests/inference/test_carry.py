"""Importance weights between fits: known targets, known ratios, honest standard errors."""

import numpy as np
import pytest

from bayesfair.inference.reweight import Pool, bridge_log_ratio, psis_weights


def test_psis_takes_log_ratios_the_right_way_round():
    # draws of N(0, 1), target N(1, 1): log ratio x - 1/2; the wrong sign would give mean -1
    x = np.random.default_rng(1).normal(size=4000)
    weight, khat = psis_weights(x - 0.5)
    mean = weight @ x
    error = np.sqrt(weight**2 @ (x - mean) ** 2)
    assert weight.sum() == pytest.approx(1)
    assert abs(mean - 1) < 5 * error
    assert khat < 0.7


def test_khat_warns_of_a_target_the_draws_do_not_cover():
    x = np.random.default_rng(1).normal(size=4000)
    _, khat = psis_weights(-0.5 * (x - 6) ** 2 + 0.5 * x**2)
    assert khat > 0.7


def test_flat_weights_have_no_tail():
    weight, khat = psis_weights(np.zeros(1000))
    assert np.allclose(weight, 1 / 1000)
    assert khat == -np.inf


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0])
def test_bridge_ratio(shift):
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=20_000), rng.normal(shift, 1, size=20_000)

    def log_ratio(x):  # of N(shift, 1) times e^3 over N(0, 1)
        return 3 + shift * x - shift**2 / 2

    found = bridge_log_ratio(log_ratio(first), log_ratio(second))
    # the standard error of a bridge is at most that of plain importance sampling
    error = np.sqrt((np.exp(shift**2) - 1) / 20_000) + 1e-9
    assert abs(found - 3) < 5 * error


def test_pool_means_and_standard_errors():
    """N(0, 1) and N(2, 1/4) carried to N(1, 1/2): z-scores over repetitions are standard normal."""
    rng = np.random.default_rng(3)

    def log_density(x, mean, variance):
        return -0.5 * (x - mean) ** 2 / variance

    z = []
    for _ in range(200):
        draws = np.concatenate([rng.normal(size=500), rng.normal(2, 0.5, size=500)])
        base = log_density(draws, 0, 1)
        between = log_density(draws, 2, 0.25) - base  # constants are for the bridge to find
        pool = Pool.of(between[:500], between[500:], (1.0, 1.0))
        weight, khat, ess = pool.weights(log_density(draws, 1, 0.5) - base)
        assert khat < 0.7 and 50 < ess < 1000
        values = np.stack([draws, draws**2], axis=1)
        mean = weight @ values
        z.append((mean - [1.0, 1.5]) / pool.standard_error(weight, values, mean))
    z = np.array(z)
    # 200 repetitions: the mean of z has standard error .07, its standard deviation .05
    assert np.all(np.abs(z.mean(axis=0)) < 0.35)
    assert np.all(np.abs(z.std(axis=0) - 1) < 0.25)


def test_no_overlap_is_seen():
    rng = np.random.default_rng(4)
    draws = np.concatenate([rng.normal(size=500), rng.normal(50, 1, size=500)])
    between = 50 * draws - 1250
    assert Pool.of(between[:500], between[500:], (1.0, 1.0)).overlap < 1e-6
