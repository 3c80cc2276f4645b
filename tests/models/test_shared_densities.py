"""Densities of the models whose arms share something, written out from their definitions."""

import numpy as np
import pytest
from densities import log_density
from scipy import special, stats

import bayesfair as bf
from bayesfair.models import bernoulli_drifting, bernoulli_hierarchical


def log():
    """Forty rounds of three arms, some rewards missing."""
    rng = np.random.default_rng(3)
    arm = rng.integers(0, 3, 40)
    reward = (rng.random(40) < 0.2 + 0.3 * arm).astype(float)
    reward[[4, 30]] = np.nan
    return bf.History(arm, reward, arms=("a", "b", "c"))


def counted(history, rounds):
    """Return plays and successes by arm in these rounds, counted one by one."""
    seen = [(history.arm[t], history.reward[t]) for t in rounds if np.isfinite(history.reward[t])]
    return (np.array([sum(w for a, w in seen if a == i) if won else sum(a == i for a, _ in seen)
                      for i in range(3)]) for won in (False, True))  # fmt: skip


def test_drift_is_a_random_walk_of_the_log_odds_over_bins():
    history, rng = log(), np.random.default_rng(4)
    model = bernoulli_drifting.build(history, bin_start=[0, 10, 25], drift=0.7)
    points = [
        {"tau": rng.uniform(0.05, 2), "first": rng.normal(size=3), "z": rng.normal(size=(2, 3))}
        for _ in range(5)
    ]
    expected = []
    for p in points:
        odds, density = p["first"], stats.halfnorm.logpdf(p["tau"], scale=0.7)
        density += stats.logistic.logpdf(p["first"]).sum() + stats.norm.logpdf(p["z"]).sum()
        for b, rounds in enumerate([range(10), range(10, 25), range(25, 40)]):
            odds = odds + p["tau"] * p["z"][b - 1] if b else odds
            plays, won = counted(history, rounds)
            density += stats.binom.logpmf(won, plays, special.expit(odds)).sum()
        expected.append(density)
    np.testing.assert_allclose(log_density(model, points), expected, rtol=1e-10)


def test_arms_of_a_population_in_whichever_coordinates_they_are_sampled():
    import pytensor
    from pytensor.compile.mode import Mode

    history, rng = log(), np.random.default_rng(5)
    model = bernoulli_hierarchical.build(history, center_scale=1.5, spread=0.8)
    inputs = [model[name] for name in ("tau", "y", "z")]
    outputs = [model["mu"], model["theta"]]
    evaluated = pytensor.function(inputs, outputs, mode=Mode(linker="py", optimizer=None))

    def meant(tau, y, z):
        mu, theta = evaluated(tau, y, z)
        return np.append(mu, special.logit(theta))

    points, expected, h = [], [], 1e-5
    for _ in range(5):
        tau, y, z = rng.uniform(0.1, 2), rng.normal(), rng.normal(size=3)
        at = np.append(y, z)
        steps = [
            (meant(tau, *_apart(at + h * e)) - meant(tau, *_apart(at - h * e))) / (2 * h)
            for e in np.eye(4)
        ]
        jacobian = np.linalg.slogdet(np.array(steps))[1]  # from (y, z) to (mu, logit theta)
        mu, *odds = meant(tau, y, z)
        plays, won = counted(history, range(40))
        expected.append(
            stats.halfnorm.logpdf(tau, scale=0.8) + stats.logistic.logpdf(mu, scale=1.5)
            + stats.norm.logpdf(odds, mu, tau).sum() + jacobian
            + stats.binom.logpmf(won, plays, special.expit(odds)).sum()
        )  # fmt: skip
        points.append({"tau": tau, "y": y, "z": z})
    assert log_density(model, points) == pytest.approx(expected, abs=1e-6)


def _apart(at):
    return at[0], at[1:]
