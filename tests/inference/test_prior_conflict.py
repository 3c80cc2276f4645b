"""Rewards far outside the prior predictive are noticed; rewards from the prior are not."""

import json

import numpy as np
import pytest
from scipy import stats

import bayesfair as bf
from bayesfair.families import FAMILIES
from bayesfair.families.conflict import prior_conflicts
from bayesfair.kernels.laws.prior_tails import beta_binomial_tail


def conflicts(found):
    return [notice for notice in found if notice.kind == "prior_conflict"]


def log_of(**rewards):
    arm = [a for a, values in rewards.items() for _ in values]
    reward = np.concatenate(list(rewards.values())).astype(float)
    return bf.History(
        arm, reward, selection_probability=[[1 / len(rewards)] * len(rewards)] * len(arm)
    )


@pytest.mark.parametrize(
    ("n", "a", "b"),
    [(40, 0.5, 0.5), (40, 2.0, 7.0), (300, 50.0, 20.0), (60, 0.05, 3.0), (30, 4, 0.2)],
)
def test_tails_are_those_of_the_beta_binomial_law(n, a, b):
    law = stats.betabinom(n, a, b)
    p = law.pmf(np.arange(n + 1))
    for k in range(n + 1):
        expected = min(1.0, 2 * min(p[: k + 1].sum(), p[k:].sum()))
        found = beta_binomial_tail(float(k), float(n), a, b, 2.0)
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_tail_above_the_level_is_not_followed():
    assert beta_binomial_tail(5e8, 1e9, 0.5, 0.5, 0.001) == 1.0
    # nothing out of n under Jeffreys: Gamma(n + 1/2) / (Gamma(1/2) n!), about 1 / sqrt(pi n)
    found = beta_binomial_tail(0.0, 1e8, 0.5, 0.5, 0.001)
    assert found == pytest.approx(2 / np.sqrt(np.pi * 1e8), rel=1e-6)


def test_five_rewards_near_300_under_a_prior_centred_at_0():
    rng = np.random.default_rng(1)
    log = log_of(a=rng.normal(300, 2, 5), b=rng.normal(290, 2, 200))
    prior = (0, 1, 1, 1)
    [notice] = conflicts(bf.audit(log, prior=prior, seed=1).findings)
    assert notice.n == 2 and notice.column == "b"
    # the mean of 200 rewards under Student t, 2 degrees of freedom, scale^2 1 + 1/200
    mean = log.reward[log.arm == 1].mean()
    assert notice.value == pytest.approx(2 * stats.t.sf(mean / np.sqrt(1 + 1 / 200), 2), rel=1e-6)
    assert "prior=" in notice and "mean 300" in notice
    assert conflicts(bf.beliefs(log, prior=prior).notices) == [notice]
    tree = bf.fit(log, prior=prior, seed=1)
    assert [n["kind"] for n in json.loads(tree.attrs["notices"])].count("prior_conflict") == 1
    assert conflicts(bf.audit(log, seed=1).findings) == []


@pytest.mark.parametrize(
    ("rewards", "options", "p"),
    [
        # nothing out of 40 under Beta(50, 50)
        (
            {"a": [0] * 40, "b": [0, 1] * 20},
            {"prior": (50, 50)},
            2 * stats.betabinom(40, 50, 50).pmf(0),
        ),
        # counts near 300 under Gamma(1/2, 1/2): negative binomial
        (
            {"a": [300, 310], "b": [1, 0]},
            {"family": "poisson"},
            2 * stats.nbinom(0.5, 0.5 / 2.5).sf(609),
        ),
        # always the highest of five levels under 20 of each
        (
            {"a": [5] * 30, "b": [1, 2, 3, 4, 5] * 6},
            {"support": [1, 2, 3, 4, 5], "prior": (20,)},
            2 * stats.betabinom(30, 20, 80).pmf(30),
        ),
        # a spread of one thousandth where the prior expects one: F(49, 2)
        (
            {"a": np.tile([0.001, -0.001], 25), "b": [1.0, -1.2, 0.3]},
            {"family": "normal", "prior": (0, 1, 1, 1)},
            2 * stats.f(49, 2).cdf(50e-6 / 49),
        ),
    ],
    ids=["bernoulli", "counts", "ratings", "spread"],
)
def test_every_family_has_its_exact_tail(rewards, options, p):
    [notice] = conflicts(bf.audit(log_of(**rewards), seed=1, **options).findings)
    assert notice.column == "a" and notice.n == 1
    assert notice.value == pytest.approx(p, rel=1e-6)


def test_an_arm_far_from_the_learned_prior_is_named():
    rng = np.random.default_rng(0)
    log = log_of(a=rng.normal(300, 1, 30), b=rng.normal(1e5, 1, 4))
    [notice] = conflicts(bf.audit(log, seed=1).findings)
    assert notice.column == "b"


def drawn(family, n_logs, rng, k=3, n=20):
    """Return prior and posteriors of logs whose rewards come from the prior."""
    if family == "bernoulli":
        prior = np.tile([2.0, 5.0], (k, 1))
        won = rng.binomial(n, rng.beta(2, 5, (n_logs, k)))
        return prior, prior + np.stack([won, n - won], axis=-1)
    if family == "finite":
        prior = np.full((k, 4), 0.5)
        share = rng.dirichlet(np.full(4, 0.5), (n_logs, k))
        return prior, prior + rng.multinomial(n, share)
    if family == "poisson":
        prior = np.full((k, 2), 0.5)
        total = rng.poisson(n * rng.gamma(0.5, 2.0, (n_logs, k)))
        return prior, prior + np.stack([total, np.full_like(total, n)], axis=-1)
    prior = np.tile([0.0, 1, 1, 1], (k, 1))
    sd = np.sqrt(1 / rng.gamma(1, 1, (n_logs, k, 1)))
    x = sd * (rng.normal(size=(n_logs, k, 1)) + rng.normal(size=(n_logs, k, n)))
    mean, squares = x.mean(-1), x.var(-1) * n
    rows = [n * mean / (1 + n), np.full_like(mean, 1 + n), np.full_like(mean, 1 + n / 2),
            1 + squares / 2 + n * mean**2 / (2 * (1 + n))]  # fmt: skip
    return prior, np.stack(rows, axis=-1)


@pytest.mark.parametrize("family", ["bernoulli", "finite", "poisson", "normal"])
def test_rewards_from_the_prior_are_seldom_noticed(family):
    """At .001 per log: of 4000 logs more than 11 have probability .001 or less (Poisson)."""
    prior, posteriors = drawn(family, 4000, np.random.default_rng(6))
    tested = FAMILIES[family], "abc", np.arange(4.0)
    n = sum(bool(prior_conflicts(prior, row, *tested)) for row in posteriors)
    assert n <= 11


def test_arms_like_those_that_a_prior_was_learned_from_are_seldom_noticed():
    """Arms of unlike means and spreads, drawn from a prior that is not known: 7 of 2000 at most."""
    rng = np.random.default_rng(3)
    n_noticed, k, n = 0, 4, 100
    tested = FAMILIES["normal"], "abcd", np.empty(0)
    for _ in range(2000):
        sd = np.sqrt(1 / rng.gamma(1, 1, k))
        mean = sd * rng.normal(size=k)
        arm = rng.integers(0, k, n)
        x = 300 + 7 * (mean[arm] + sd[arm] * rng.normal(size=n))
        centre = np.median(x[:20])
        scale = (1.4826 * np.median(np.abs(x[:20] - centre))) ** 2
        rows = []
        for i in range(k):
            y = x[arm == i]
            m, average = y.size, y.mean() if y.size else centre
            squares = ((y - average) ** 2).sum() + m * (average - centre) ** 2 / (1 + m)
            rows.append([(centre + m * average) / (1 + m), 1 + m, 1 + m / 2, scale + squares / 2])
        prior = np.tile([centre, 1, 1, scale], (k, 1))
        n_noticed += bool(prior_conflicts(prior, np.array(rows), *tested, learned=True))
    assert n_noticed <= 7
