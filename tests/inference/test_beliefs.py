"""Beliefs before each round against posteriors recomputed from scratch at every round."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from scipy.integrate import quad

from bayesfair.errors import DataError, OptionError
from bayesfair.fairness import best_arm_probability, best_mean_probability, smallest_eps2
from bayesfair.families import FAMILIES as LAWS
from bayesfair.families.logs import coded_of
from bayesfair.history import History
from bayesfair.kernels.log.conjugate import run_parameters
from bayesfair.rewards import Bernoulli, Finite

# the public function of the same name would be found by a plain import
module = importlib.import_module("bayesfair.inference.beliefs")
REFERENCE = Path(__file__).resolve().parents[1] / "reference"
ARMS = ("a", "b", "c")


def log(family, *, delayed, seed=31, n_rounds=60):
    rng = np.random.default_rng(seed)
    arm = rng.integers(3, size=n_rounds)
    reward = {
        "bernoulli": lambda: rng.integers(2, size=n_rounds),
        "finite": lambda: rng.choice([1.0, 2.0, 5.0], size=n_rounds),
        "poisson": lambda: rng.poisson(1.0 + arm),
        "normal": lambda: rng.normal(1e3 * arm, 0.5 + arm),
    }[family]().astype(float)
    reward[rng.random(n_rounds) < 0.15] = np.nan
    known_at = np.arange(n_rounds) + 1 + rng.integers(0, 6, n_rounds) if delayed else None
    return History(arm, reward, arms=ARMS, known_at=known_at)


def known_before(history, t, i):
    """Rewards of arm i that round t may use, straight from the definition."""
    first = np.arange(history.n_rounds) + 1 if history.known_at is None else history.known_at
    use = (history.arm == i) & (first <= t) & ~np.isnan(history.reward)
    return history.reward[use]


FAMILIES = ("bernoulli", "finite", "poisson", "normal")


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_marginals_equal_posteriors_from_scratch(family, delayed):
    history = log(family, delayed=delayed)
    prior = (0, 1, 1, 1) if family == "normal" else None
    found = module.beliefs(history, family=family, prior=prior)
    rewards = found.rewards
    probe = np.array([0.0, 1.0, 2.0, 5.0]) if family != "normal" else np.array([-3.0, 0, 7, 1e3])
    for t in range(history.n_rounds):
        expected = np.empty((len(probe), 3))
        for i in range(3):
            x = known_before(history, t, i)
            n, total = len(x), x.sum()
            if family == "bernoulli":
                mean = (0.5 + total) / (1 + n)
                expected[:, i] = np.select([probe == 0, probe == 1], [1 - mean, mean], 0.0)
            elif family == "finite":
                mass = [(0.5 + (x == v).sum()) / (1.5 + n) for v in (1, 2, 5)]
                expected[:, i] = [0.0, *mass]
            elif family == "poisson":
                rate = 0.5 + n
                expected[:, i] = stats.nbinom.pmf(probe, 0.5 + total, rate / (rate + 1))
            else:
                # batch form of the normal-inverse-gamma posterior (mean 0, kappa 1, a 1, b 1)
                average = x.mean() if n else 0.0
                spread = ((x - average) ** 2).sum()
                a, kappa = 1 + n / 2, 1.0 + n
                b = 1 + spread / 2 + n * average**2 / (2 * kappa)
                scale = np.sqrt(b * (kappa + 1) / (a * kappa))
                expected[:, i] = stats.t.pdf(probe, 2 * a, n * average / kappa, scale)
        got = np.exp(rewards[t].log_prob(probe[:, None]))
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(
        found.best_arm_probability.values, rewards.best_arm_probability(), atol=0
    )
    np.testing.assert_allclose(found.best_arm_probability.sum("arm"), 1, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_round_t_never_uses_itself_or_later(family):
    history = log(family, delayed=True)
    support = [1, 2, 5] if family == "finite" else None
    whole = module.beliefs(history, family=family, support=support)
    for t in (0, 1, 17, 59):
        part = module.beliefs(history.before(t), family=family, support=support)
        np.testing.assert_array_equal(
            part.best_arm_probability.values, whole.best_arm_probability.values[:t]
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_continue_each_other(family):
    """A log in three parts, delays crossing the cuts, gives the numbers of the whole."""
    history = log(family, delayed=True)
    whole = module.beliefs(history, family=family)
    state, _ = module.belief_start(ARMS, LAWS[family], None, history)
    rows = []
    for start, stop in ((0, 23), (23, 24), (24, 60)):
        part = history.rounds(start, stop)
        rows += [p for *_, p, _ in module.iter_beliefs(part, LAWS[family], state)]
        coded = coded_of(part, LAWS[family], state.support)
        state = run_parameters(LAWS[family].rule, state, part.arm, coded, part.known_at)
    np.testing.assert_allclose(np.concatenate(rows), whole.parameters, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_chunks_equal_the_whole(family, monkeypatch):
    history = log(family, delayed=True)
    whole = module.beliefs(history, family=family)
    monkeypatch.setattr(module, "_CHUNK_VALUES", 7 * 9)  # seven rounds at most
    state, _ = module.belief_start(ARMS, LAWS[family], None, history)
    chunks = list(module.iter_beliefs(history, LAWS[family], state))
    assert len(chunks) > 5
    assert [c[0] for c in chunks[1:]] == [c[1] for c in chunks[:-1]]
    best = np.concatenate([c[2].best_arm_probability() for c in chunks])
    np.testing.assert_allclose(best, whole.best_arm_probability.values, atol=1e-13)
    for start, stop, rewards, _, _ in chunks:
        np.testing.assert_allclose(
            rewards.divergence("total_variation"),
            whole.rewards[start:stop].divergence("total_variation"),
            atol=1e-14,
        )


def test_beta_histories_equal_reference():
    cases = json.loads((REFERENCE / "beta_bernoulli_histories.json").read_text())["cases"]
    for case in cases:
        k = len(case["rounds"][0]["m"]["float"])
        history = History(case["actions"], case["rewards"], arms=[str(i) for i in range(k)])
        found = module.beliefs(history, family="bernoulli")
        for t in range(history.n_rounds):
            expected = case["rounds"][t]
            np.testing.assert_allclose(found.rewards.mean[t], expected["m"]["float"], rtol=1e-14)
            np.testing.assert_allclose(
                found.best_arm_probability[t], expected["sd_ts"]["float"], atol=1e-13
            )


def test_sd_ts_is_subjectively_fair_under_every_family():
    # the rule that selects with P*: eps1 = 2 always suffices, before every round
    for family in FAMILIES:
        found = module.beliefs(log(family, delayed=True), family=family)
        excess = smallest_eps2(found.best_arm_probability.values, found.rewards, eps1=2)
        assert float(excess.max()) <= 1e-12


# -- case 72: best mean is not best reward ------------------------------------------------------


def empty_log(k=2):
    return History(np.zeros(1, int), [np.nan], arms=[str(i) for i in range(k)])


def test_case_72_two_quantities():
    for prior, mean, best in (
        ([(8, 4), (6, 6)], 0.8065, 0.5833),
        ([(11, 1), (10, 2)], 16 / 21, 0.5417),
    ):
        found = module.beliefs(empty_log(), family="bernoulli", prior=prior)
        assert best_mean_probability(found)[0, 0].item() == pytest.approx(mean, abs=5e-5)
        assert best_arm_probability(found)[0, 0].item() == pytest.approx(best, abs=5e-5)


def test_best_mean_of_counts_in_closed_form():
    prior = [(4.5, 2.0), (3.5, 1.5)]
    found = module.beliefs(empty_log(), family="poisson", prior=prior)
    # b1 rate1 / (b1 rate1 + b2 rate2) is Beta(a1, a2)
    expected = special.betaincc(4.5, 3.5, 2.0 / 3.5)
    assert found.best_mean_probability[0, 0].item() == pytest.approx(expected, abs=1e-9)


def test_best_mean_of_measurements_by_quadrature():
    prior = [(1.0, 4.0, 3.0, 2.0), (0.5, 2.0, 1.5, 1.0)]
    found = module.beliefs(empty_log(), family="normal", prior=prior)
    laws = [stats.t(2 * a, m, np.sqrt(b / (a * kappa))) for m, kappa, a, b in prior]
    expected, _ = quad(
        lambda x: laws[0].pdf(x) * laws[1].cdf(x), -np.inf, np.inf, epsabs=1e-12, limit=300
    )
    assert found.best_mean_probability[0, 0].item() == pytest.approx(expected, abs=1e-9)


def test_best_mean_of_two_ratings_is_that_of_successes():
    # two levels are a Bernoulli reward on another scale
    found = module.beliefs(empty_log(), family="finite", support=[1, 5], prior=[(3, 4), (2, 7)])
    as_beta = module.beliefs(empty_log(), family="bernoulli", prior=[(4, 3), (7, 2)])
    np.testing.assert_allclose(
        found.best_mean_probability, as_beta.best_mean_probability, rtol=0, atol=1e-12
    )


# -- families, priors and what they cannot hold -------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "family"),
    [
        ([0, 1, 1, 0], "bernoulli"),
        ([1, 1, np.nan, 1], "bernoulli"),
        ([1, 5, 3, 4], "finite"),
        ([0, 0.5, 1, 0.5], "finite"),
        (list(range(0, 40, 2)), "poisson"),
        (np.linspace(-1, 1, 30), "normal"),
    ],
)
def test_auto_says_what_it_chose(rewards, family):
    history = History(np.zeros(len(rewards), int), rewards, arms=["only", "other"])
    found = module.beliefs(history)
    assert found.family == family
    assert family in found.notices[0]
    if family == "finite":
        assert "looks ahead" in found.notices[1]


@pytest.mark.parametrize(
    ("rewards", "family", "message"),
    [
        ([0, 0.5, 1], "bernoulli", r"round 1 .*is 0.5; .*0 or 1 .*'poisson'.*'normal'"),
        ([0, -2.5], "poisson", r"round 1 .*is -2.5; .*whole numbers"),
        ([0, 3], "bernoulli", "is 3"),
    ],
)
def test_case_74_names_value_and_families(rewards, family, message):
    history = History(np.zeros(len(rewards), int), rewards, arms=["a", "b"])
    with pytest.raises(DataError, match=message):
        module.beliefs(history, family=family)


def test_given_levels_are_kept_and_others_refused():
    history = History([0, 1, 0], [1, 3, 1], arms=["a", "b"])
    found = module.beliefs(history, family="finite", support=[1, 2, 3])
    assert isinstance(found.rewards, Finite)
    np.testing.assert_allclose(found.rewards.pmf[0], np.full((2, 3), 1 / 3))
    np.testing.assert_allclose(found.rewards.pmf[1, 0], np.array([1.5, 0.5, 0.5]) / 2.5)
    assert found.notices == ()
    with pytest.raises(DataError, match=r"round 1 .*is 3; .*'1', '2'"):
        module.beliefs(history, family="finite", support=[1, 2])


def test_priors_and_earlier_counts():
    history = History([0, 1], [1, 0], arms=["a", "b"], prior_counts={"a": (3, 1)})
    found = module.beliefs(history, prior={"b": (2, 5)})
    assert isinstance(found.rewards, Bernoulli)
    np.testing.assert_allclose(found.rewards.mean[0], [3.5 / 5, 2 / 7])
    np.testing.assert_allclose(found.rewards.mean[1], [4.5 / 6, 2 / 7])
    with pytest.raises(OptionError):
        module.beliefs(history, family="poisson")


def test_arms_not_on_offer_have_no_p_star():
    offered = np.array([[True, True, False], [False, True, True]])
    history = History([0, 2], [1, 0], arms=ARMS, offered=offered)
    best = module.beliefs(history).best_arm_probability
    np.testing.assert_allclose(best[0], [0.5, 0.5, np.nan])
    assert np.isnan(best[1, 0])
    assert best.sum("arm").values == pytest.approx([1, 1])
