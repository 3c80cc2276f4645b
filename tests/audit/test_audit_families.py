"""Subjective audits under every conjugate family, against beliefs computed by hand."""

import numpy as np
import pytest

import bayesfair as bf


def logged(rewards, k=3, seed=0, **more):
    rng = np.random.default_rng(seed)
    n = len(rewards)
    pi = rng.dirichlet(np.ones(k), n)
    arm = np.array([rng.choice(k, p=p) for p in pi])
    return bf.History(arm, rewards, selection_probability=pi, arms=list("abc")[:k], **more)


def parameters_by_hand(log, family, t):
    """Posterior parameters before round t from the observed rewards, by the batch formulas."""
    known = np.arange(1, log.n_rounds + 1) if log.known_at is None else log.known_at
    use = (np.arange(log.n_rounds) < t) & (known <= t) & ~np.isnan(log.reward)
    rows = []
    for i in range(log.n_arms):
        x = log.reward[use & (log.arm == i)]
        if family == "finite":
            levels = np.unique(log.reward[~np.isnan(log.reward)])
            rows.append([0.5 + (x == v).sum() for v in levels])
        elif family == "poisson":
            rows.append([0.5 + x.sum(), 0.5 + x.size])
        else:
            n, mean = x.size, x.mean() if x.size else 0.0
            kappa = 1 + n
            squares = ((x - mean) ** 2).sum() + n / kappa * mean**2
            rows.append([n * mean / kappa, kappa, 1 + n / 2, 1 + squares / 2])
    return np.array(rows)


FAMILIES = ["finite", "poisson", "normal"]


def rewards_of(family, n, seed=1):
    rng = np.random.default_rng(seed)
    draws = {
        "finite": rng.integers(1, 4, n).astype(float),
        "poisson": rng.poisson(2.0, n).astype(float),
        "normal": rng.normal(5.0, 2.0, n),
    }[family]
    draws[::9] = np.nan
    return draws


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("delays", [False, True])
def test_parameters_before_each_round(family, delays):
    known_at = np.arange(40) + 1 + np.arange(40) % 4 if delays else None
    log = logged(rewards_of(family, 40), known_at=known_at)
    prior = (0, 1, 1, 1) if family == "normal" else None
    found = bf.beliefs(log, family=family, prior=prior)
    for t in range(40):
        np.testing.assert_allclose(
            found.parameters[t], parameters_by_hand(log, family, t), rtol=1e-10
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_audit_and_beliefs_agree_and_parts_merge(family):
    log = logged(rewards_of(family, 24))
    whole = bf.audit(log, family=family, eps1=1, eps2=0.1, seed=1)
    believed = bf.beliefs(log, family=family)
    rounds = whole.rounds()
    np.testing.assert_allclose(
        rounds["best_arm_probability"], believed.best_arm_probability, atol=1e-12
    )
    best = believed.best_arm_probability.values
    np.testing.assert_allclose(best.sum(axis=1), 1, atol=1e-8)
    regret = np.maximum(best - log.selection_probability, 0).sum(axis=1)
    np.testing.assert_allclose(rounds["fairness_regret"], regret, atol=1e-12)
    needed = bf.smallest_eps2(log.selection_probability, believed.rewards, eps1=1.0)
    np.testing.assert_allclose(rounds["smallest_eps2"], np.asarray(needed).ravel(), atol=1e-9)
    if family == "finite":
        return  # the levels of a part may be fewer than those of the whole
    first = bf.audit(log.before(10), family=family, eps1=1, eps2=0.1, seed=1)
    rest = bf.audit(log.rounds(10, 24), eps1=1, eps2=0.1, seed=1, prior=first.state)
    merged = bf.merge(first, rest)
    assert merged.regret.value == pytest.approx(whole.regret.value, rel=1e-12)
    assert merged.smallest_eps2 == pytest.approx(whole.smallest_eps2, rel=1e-12)
    assert merged.probability_fair == whole.probability_fair


def test_family_is_chosen_by_the_rewards_and_said():
    finite = bf.audit(logged(rewards_of("finite", 20)), seed=1)
    assert finite.family == "finite"
    assert any("family" in n and "3 distinct values" in n for n in finite.findings)
    assert bf.audit(logged(np.ones(20)), objective=False).family == "bernoulli"


@pytest.mark.parametrize(
    ("family", "bad", "said"), [("poisson", -1.0, "whole numbers"), ("bernoulli", 0.5, "0 or 1")]
)
def test_rewards_that_a_family_cannot_hold(family, bad, said):
    rewards = np.ones(10)
    rewards[4] = bad
    with pytest.raises(bf.DataError, match=r"round 4") as caught:
        bf.audit(logged(rewards), family=family, seed=1)
    assert f"{bad:g}" in str(caught.value)
    assert said in str(caught.value)
