"""Losses that the calibrated rule minimises: against minimisation and differences by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from bayesfair import theory
from bayesfair.errors import OptionError


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
