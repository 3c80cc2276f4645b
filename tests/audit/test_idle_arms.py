"""Arms that were never chosen are drawn together: the numbers of draws for each arm, in law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import poch

import bayesfair as bf
from bayesfair.audit.log import alike
from bayesfair.kernels.laws.best_arm import bernoulli_best_arm, bernoulli_best_of_copies
from bayesfair.kernels.laws.beta_atoms import beta_atoms

IDLE, DRAWS = 1500, 4000


@pytest.mark.parametrize(
    ("a", "b"), [(0.5, 0.5), (1, 1), (0.3, 0.7), (2, 1), (1e-2, 3), (400, 3), (5e4, 5e4)]
)
def test_atoms_have_the_moments_of_the_beta_law(a, b):
    value, chance = beta_atoms(a, b, 32)
    assert chance.sum() == pytest.approx(1, abs=1e-13)
    assert (value >= 0).all() and (value <= 1).all()
    for r in (1, 2, 3, 8, 31, 62, 63):
        exact = np.exp(np.sum(np.log((a + np.arange(r)) / (a + b + np.arange(r)))))
        assert chance @ value**r == pytest.approx(exact, rel=1e-11)
        exact = poch(b, r) / poch(a + b, r) if r < 4 else None
        assert exact is None or chance @ (1 - value) ** r == pytest.approx(exact, rel=1e-9)


def test_copies_are_arms_with_equal_means():
    rng = np.random.default_rng(0)
    means, copies = rng.random((4, 6)), np.array([[3, 0, 90], [1, 1, 1], [0, 70, 2], [500, 0, 0]])
    found = bernoulli_best_of_copies(means, copies.astype(float))
    for row, many, best in zip(means, copies, found, strict=True):
        each = np.concatenate([[1, 1, 1], many])
        whole = bernoulli_best_arm(np.repeat(row, each))
        ends = np.cumsum(each)
        for slot in np.flatnonzero(each):
            assert best[slot] == pytest.approx(whole[ends[slot] - 1], rel=1e-12)


def log_of(kind, n_rounds=400):
    rng = np.random.default_rng(5)
    arm = rng.integers(0, 5, n_rounds)
    reward = (rng.random(n_rounds) < np.array([0.02, 0.1, 0.3, 0.6, 0.9])[arm]).astype(float)
    known = {"propensity": rng.uniform(2e-4, 2e-3, n_rounds)} if kind == "chosen" else {}
    return bf.History(arm, reward, arms=[f"a{i:04}" for i in range(5 + IDLE)], **known)


def by_hand(log, kind, rng):
    """Return what is asked under draws for every arm, from the definitions."""
    won = np.bincount(log.arm, weights=log.reward, minlength=log.n_arms)
    n = np.bincount(log.arm, minlength=log.n_arms)
    best = bernoulli_best_arm(rng.beta(0.5 + won, 0.5 + n - won, (DRAWS, log.n_arms)))
    if kind == "chosen":
        asked = np.maximum(1 - best[:, log.arm] / log.propensity, 0).mean(axis=1)
    else:
        asked = np.maximum(best - n / log.n_rounds, 0).sum(axis=1)
    return asked, best


@pytest.mark.parametrize("kind", ["chosen", "none"])
def test_results_have_the_law_of_draws_for_every_arm(kind):
    """Means within four Monte Carlo errors, laws by Kolmogorov and Smirnov's test."""
    log = log_of(kind)
    audit = bf.audit(log, seed=1, draws=DRAWS)
    assert [f.n for f in audit.findings if f.kind == "drawn_together"] == [IDLE]
    found = audit.objective.regret if kind == "chosen" else audit.objective.lower_bound
    asked, best = by_hand(log, kind, np.random.default_rng(2))
    error = np.sqrt((asked.var() + found.var()) / DRAWS)
    assert abs(asked.mean() - found.mean()) < 4 * error
    assert stats.ks_2samp(asked, found).pvalue > 1e-3
    listed = np.array([a["p_best_objective"] for a in audit.to_dict()["arms"]])
    assert listed.sum() == pytest.approx(1, abs=1e-9)
    error = np.sqrt(2 * best.var(axis=0) / DRAWS)
    assert (np.abs(listed[:5] - best.mean(axis=0)[:5]) < 4 * error[:5]).all()
    assert np.ptp(listed[5:]) == 0
    rest = best[:, 5:].sum(axis=1)
    assert listed[5:].sum() == pytest.approx(rest.mean(), abs=4 * np.sqrt(2 * rest.var() / DRAWS))


def test_the_mean_of_best_arm_probability_is_the_integral():
    """With nothing learned of the others E P* of one arm has a closed form."""
    log = bf.History(np.zeros(30, int), np.ones(30), arms=[f"a{i:04}" for i in range(1 + IDLE)])
    audit = bf.audit(log, seed=3, draws=DRAWS)
    # m, one success, against the integral of (1 - s / 2)^n: the others' means are 1/2 on average
    exact = 30.5 / 31 * 2 / (IDLE + 1)
    draws = audit.to_dict()["arms"][0]["p_best_objective"]
    assert draws == pytest.approx(exact, rel=4 * 0.05 / np.sqrt(DRAWS))


def test_few_idle_arms_and_other_logs_have_draws_of_their_own(monkeypatch):
    log = log_of("none")
    monkeypatch.setattr(alike, "MOST_APART", IDLE)
    audit = bf.audit(log, seed=1, draws=50)
    assert "drawn_together" not in [f.kind for f in audit.findings]
    assert audit.objective.p_best.shape == (50, log.n_arms)


def test_a_saved_audit_keeps_what_was_drawn_together(tmp_path):
    audit = bf.audit(log_of("chosen"), seed=1, draws=60)
    audit.save(tmp_path / "a.nc")
    assert bf.load_audit(tmp_path / "a.nc").to_dict() == audit.to_dict()


def test_the_order_of_arms_makes_no_difference():
    log = log_of("none")
    turned = bf.History(
        log.n_arms - 1 - log.arm, log.reward, arms=tuple(reversed(log.arms))
    )  # fmt: skip
    one, other = (bf.audit(data, seed=1, draws=100).objective for data in (log, turned))
    np.testing.assert_allclose(one.lower_bound, other.lower_bound, rtol=1e-12)
