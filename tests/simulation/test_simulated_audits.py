"""Simulated logs through the audit: it must find what the theory says of each rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.audit.duels.api import audit_comparisons
from bayesfair.errors import DataError
from bayesfair.performance import utility
from bayesfair.policies import (
    SDTS,
    UCB1,
    CalibratedOracle,
    ChainedConfidence,
    EpsilonGreedy,
    FairnessOfExposure,
    FairSDDTS,
    FairSDTS,
    Greedy,
    RandomisedPlayTheWinner,
    SDTSMixture,
    Softmax,
    Thompson,
    Uniform,
)
from bayesfair.rewards import Bernoulli, Finite, Normal, Poisson
from bayesfair.simulation.arms import drifting_rewards, simulate
from bayesfair.simulation.duels import simulate_duels
from bayesfair.theory import guarantee

TRUTH = Bernoulli([0.7, 0.5, 0.4, 0.1], arms=["north", "south", "east", "west"])
RULES = [
    SDTS(),
    SDTSMixture(weight=0.3),
    SDTSMixture(eps1=0.8),
    FairSDTS(eps2=0.2, delta=0.1),
    CalibratedOracle(),
    Uniform(),
    Greedy(),
    EpsilonGreedy(epsilon=0.4),
    UCB1(),
    Softmax(temperature=0.3),
    Thompson(),
    RandomisedPlayTheWinner(),
    ChainedConfidence(),
    FairnessOfExposure(),
]


def audited(run, eps1, eps2, **options):
    return bf.audit(run, eps1=eps1, eps2=eps2, seed=1, **options).to_dict()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
def test_audits_find_the_guarantee_and_the_true_regret(rule):
    run = simulate(rule, TRUTH, 3000, seed=7)
    subjective = guarantee(rule, kind="subjective")
    found = audited(run, subjective.eps1, subjective.eps2, truth=TRUTH)
    assert found["subjective"]["verdict"] == "fair"
    assert found["subjective"]["n_violating_rounds"] == 0
    objective = guarantee(rule, kind="objective", n_arms=4)
    found = audited(run, objective.eps1, objective.eps2, truth=TRUTH)
    # delta = .1 for Fair_SD_TS; never seen violated (theory.md, section 5)
    assert found["objective"]["verdict"] == "fair"
    result = utility(run, TRUTH)
    total = found["calibration"]["objective"]["regret_total"]
    assert total == pytest.approx(result.fairness_regret, rel=1e-9, abs=1e-9)


def test_rules_without_a_guarantee_are_found_out():
    for rule in (Thompson(), Greedy()):
        found = audited(simulate(rule, TRUTH, 3000, seed=7), 2, 0.05, truth=TRUTH)
        assert found["subjective"]["verdict"] == "unfair"
    found = audited(simulate(SDTS(), TRUTH, 3000, seed=7), 1, 0.05, truth=TRUTH)
    assert (found["subjective"]["verdict"], found["objective"]["verdict"]) == ("fair", "unfair")


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 10},
        {"delay": 15},
        {"delay": lambda rng, n: rng.geometric(0.1, n), "batch": 3},
        {"offered": {"north": (0, 700), "west": (300, 1000)}},
        {"drift": 0.05},
        {"batch": 4, "drift": 0.02, "offered": {"south": (100, 900)}},
    ],
    ids=["batch", "delay", "random delay", "offered", "drift", "all"],
)
def test_sd_ts_stays_subjectively_fair_whatever_the_world_does(options):
    run = simulate(SDTS(), TRUTH, 1000, seed=3, **options)
    found = audited(run, 1, 0)
    assert found["subjective"]["smallest_eps2"] < 1e-9
    assert found["subjective"]["n_violating_rounds"] == 0
    assert found["calibration"]["subjective"]["regret_total"] < 1e-8


@pytest.mark.parametrize(
    "truth",
    [
        Finite([1, 2, 5], [[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1]]),
        Poisson([2.0, 3.0, 3.5]),
        Normal([0.0, 1.0, 0.5], [1.0, 2.0, 0.5]),
    ],
    ids=lambda truth: type(truth).__name__,
)
def test_other_rewards_have_the_constant_two_and_the_beliefs_of_the_audit(truth):
    family = type(truth).__name__.lower()
    run = simulate(SDTS(), truth, 300, seed=5, delay=2)
    beliefs = bf.beliefs(run, family=family)
    np.testing.assert_allclose(
        np.asarray(beliefs.best_arm_probability), run.selection_probability, atol=1e-9
    )
    found = audited(run, 2, 0, family=family)
    # the worst pair is within the quadrature's error of fair
    assert found["subjective"]["smallest_eps2"] < 1e-9


def test_a_run_per_value_of_by():
    runs = simulate(SDTS(), TRUTH, 200, seed=3, n_runs=3)
    found = audited(runs, 1, 0, truth=TRUTH)
    assert set(found["groups"]) == {"0", "1", "2"}
    for group in found["groups"].values():
        assert group["subjective"]["verdict"] == "fair"


@pytest.mark.parametrize("slot", ["first", "mean"])
@pytest.mark.parametrize("exploitation", ["A", "C"])
def test_duels_through_the_audit_of_who_is_compared(exploitation, slot):
    worth = {"x": 3.0, "y": 2.0, "z": 1.0}
    rule = FairSDDTS(C=30, exploitation=exploitation, slot=slot)
    log = simulate_duels(rule, worth, 1500, seed=4)
    found = audit_comparisons(log, slot=slot, worth=worth, eps1=np.e / 2, eps2=0.3, seed=1)
    regret = found.to_dict()["calibration"]["objective"]["regret_total"]
    assert regret == pytest.approx(log.fairness_regret(worth).sum(), rel=1e-9)
    assert found.to_dict()["objective"]["verdict"] == "fair"


def by_enumeration(means):
    """P* of Bernoulli arms over all outcomes, ties split evenly."""
    k = len(means)
    best = np.zeros(k)
    for outcome in itertools.product((0, 1), repeat=k):
        weight = np.prod([m if won else 1 - m for m, won in zip(means, outcome, strict=True)])
        first = [i for i in range(k) if outcome[i]] or list(range(k))
        best[first] += weight / len(first)
    return best


def test_a_drifting_truth_is_audited_round_by_round():
    start, n = {"a": 0.6, "b": 0.5, "c": 0.3}, 400
    run = simulate(SDTS(), start, n, seed=4, drift=0.1)
    truth = drifting_rewards(start, n, drift=0.1, seed=4)
    best = np.array([by_enumeration(m) for m in truth.mean])
    pi = run.selection_probability
    needed = 0.0
    for i, j in itertools.combinations(range(3), 2):
        reward_gap = np.abs(truth.mean[:, i] - truth.mean[:, j])
        needed = max(needed, np.max(np.abs(pi[:, i] - pi[:, j]) - 1.5 * reward_gap))
    found = audited(run, 1.5, 0.05, truth=truth)
    regret = np.maximum(best - pi, 0).sum()
    assert found["calibration"]["objective"]["regret_total"] == pytest.approx(regret, rel=1e-12)
    assert found["utility"]["fairness_regret"] == pytest.approx(regret, rel=1e-12)
    smallest = found["objective"]["smallest_eps2"]
    assert smallest["lower"] == smallest["upper"] == pytest.approx(needed, rel=1e-12)
    assert (found["objective"]["verdict"], found["objective"]["probability_fair"]) == ("unfair", 0)
    # the chosen arm's probability only: unbiased terms; nothing logged: shares against mean P*
    chosen = pi[np.arange(n), run.arm]
    found = audited(bf.History(run.arm, run.reward, propensity=chosen, arms=run.arms), 1, 0.05,
                    truth=truth)  # fmt: skip
    terms = np.maximum(1 - best[np.arange(n), run.arm] / chosen, 0)
    estimate = found["calibration"]["objective"]
    assert estimate["regret_per_round"] == pytest.approx(terms.mean(), rel=1e-12)
    assert estimate["lower"] < terms.mean() < estimate["upper"]
    half = 1.96 * terms.std(ddof=1) / np.sqrt(n)
    assert estimate["upper"] - estimate["lower"] == pytest.approx(2 * half, rel=0.1)
    result = bf.audit(bf.History(run.arm, run.reward, arms=run.arms), truth=truth)
    shares = np.bincount(run.arm, minlength=3) / n
    distance = np.maximum(best.mean(axis=0) - shares, 0).sum()
    assert result.objective.lower_bound == pytest.approx([distance], rel=1e-12)


def test_a_drifting_truth_with_arms_that_come_and_go():
    options = {"drift": 0.05, "offered": {"north": (0, 200), "west": (100, 300)}}
    run = simulate(FairSDTS(C=3), TRUTH, 300, seed=2, **options)
    truth = drifting_rewards(TRUTH, 300, drift=0.05, seed=2)
    regret, needed = 0.0, 0.0
    for pi, here, means in zip(run.selection_probability, run.offered, truth.mean, strict=True):
        regret += np.maximum(by_enumeration(means[here]) - pi[here], 0).sum()
        for i, j in itertools.combinations(np.flatnonzero(here), 2):
            needed = max(needed, abs(pi[i] - pi[j]) - abs(means[i] - means[j]))
    found = audited(run, 1, 0, truth=truth)
    assert found["calibration"]["objective"]["regret_total"] == pytest.approx(regret, rel=1e-12)
    assert found["objective"]["smallest_eps2"]["mean"] == pytest.approx(needed, rel=1e-12)


def test_a_truth_of_another_length_is_refused():
    run = simulate("uniform", TRUTH, 50, seed=1)
    with pytest.raises(DataError, match=r"batch of shape \(40,\).*50 rounds"):
        bf.audit(run, truth=drifting_rewards(TRUTH, 40, drift=0.1, seed=1))
