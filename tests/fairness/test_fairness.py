"""Smooth fairness and fairness regret against exact reference values, with all conventions."""

from __future__ import annotations

import json
import math
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesfair.fairness as bf
from bayesfair.errors import ArmError, DataError, OptionError, ProbabilityError
from bayesfair.kernels.laws.divergences import (
    DIVERGENCES,
    SYMMETRIC,
    bernoulli_divergence,
    decision_divergence_maxima,
    worst_pair_general,
)
from bayesfair.rewards import Bernoulli, Empirical, Finite

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
NAMES = {
    "tv": "total_variation",
    "kl": "kl",
    "hellinger": "hellinger",
    "chi2": "chi2",
    "js": "jensen_shannon",
    "w1": "wasserstein",
}


def cases(name):
    return json.loads((REFERENCE / f"{name}.json").read_text())["cases"]


def rewards_of(case):
    if case.get("m"):
        return Bernoulli(case["m"]["float"])
    return Finite.from_arms([(a["support"]["float"], a["probs"]["float"]) for a in case["arms"]])


@pytest.mark.parametrize("short", NAMES)
def test_smallest_eps2_equals_reference(short):
    seen = 0
    for case in cases("smooth_fairness_rounds"):
        if case["divergence"] != short:
            continue
        seen += 1
        name, eps1 = NAMES[short], case["eps1_float"]
        pi, rewards = case["pi"]["float"], rewards_of(case)
        result = bf.smallest_eps2(pi, rewards, eps1=eps1, divergence=name)
        assert float(result) == pytest.approx(float(case["eps2"]), rel=1e-12, abs=1e-12), case["id"]
        excess, first, second = worst_pair_general(
            np.array([pi]), rewards.divergence(name), eps1, name
        )
        if case["max_excess"] is None:
            assert (excess[0], first[0], second[0]) == (-np.inf, -1, -1)
            assert str(result.arm.values) == ""
            continue
        expected = float(case["max_excess"])
        assert excess[0] == pytest.approx(expected, rel=1e-12, abs=1e-12), case["id"]
        pairs = [tuple(pair) for pair in case["argmax_pairs"]]
        # the first of all exact maximisers, in arm order
        assert (first[0], second[0]) == min(pairs), case["id"]
        assert str(result.arm.values) == rewards.arms[first[0]]
    assert seen == 48


@pytest.mark.parametrize("case", cases("fairness_regret"), ids=lambda c: c["id"])
def test_fairness_regret_equals_reference(case):
    pi = np.array([row["float"] for row in case["pi"]])
    rewards = rewards_of(case)
    best = bf.best_arm_probability(rewards)
    np.testing.assert_allclose(best, case["best"]["float"], atol=1e-13)
    regret = bf.fairness_regret(pi, best)
    np.testing.assert_allclose(regret, case["per_round"]["float"], atol=1e-13)
    np.testing.assert_allclose(np.cumsum(regret), case["cumulative"]["float"], atol=1e-12)
    # the same as the total variation distance: both rows sum to 1
    np.testing.assert_allclose(regret, 0.5 * np.abs(pi - best.values).sum(axis=1), atol=1e-13)


def test_case_70_by_hand():
    rewards = Bernoulli([0.7, 0.5])
    best = bf.best_arm_probability(rewards)
    for pi, regret in [([0.9, 0.1], 0.3), ([1.0, 0.0], 0.4), ([0.5, 0.5], 0.1)]:
        assert float(bf.fairness_regret(pi, best)) == pytest.approx(regret, abs=1e-14)
    assert float(bf.smallest_eps2([0.9, 0.1], rewards, eps1=2)) == pytest.approx(0.4, abs=1e-14)
    assert float(bf.smallest_eps2(best, rewards, eps1=1)) == pytest.approx(0, abs=1e-14)


def test_case_71_regret_by_hand():
    best = bf.best_arm_probability(Bernoulli([0.9, 0.5, 0.1]))
    assert float(bf.fairness_regret([1, 0, 0], best)) == pytest.approx(0.34, abs=1e-14)
    uniform = np.full(3, 1 / 3)
    assert float(bf.fairness_regret(uniform, best)) == pytest.approx(0.32667, abs=4e-6)


def test_example_1_of_the_paper():
    rewards = Finite([0, 1, 2], [[0, 1, 0], [0.6, 0, 0.4]])
    best = bf.best_arm_probability(rewards)
    np.testing.assert_allclose(best, [0.6, 0.4], atol=1e-14)
    np.testing.assert_allclose(
        bf.fairness_regret([[1, 0], [0.5, 0.5], [0.6, 0.4]], best), [0.4, 0.1, 0], atol=1e-14
    )


def test_chi2_counterexample_is_no_guarantee():
    # theory: 1197.0 / 554.6 = 2.158 for h = 1/1000, so eps1 = 2 does not suffice
    h = 1e-3
    rewards = Finite([0, 1, 2], [[2 / 3, 1 / 3, 0], [h, h, 1 - 2 * h]])
    best = bf.best_arm_probability(rewards)
    ratio = bernoulli_divergence(best.values, "chi2")[0, 1] / rewards.divergence("chi2")[0, 1]
    assert ratio == pytest.approx(2.158, abs=5e-4)
    assert "counterexample" in bf.guarantee_note("chi2")
    assert bf.guarantee_note("total_variation").startswith("Proved")
    assert "counterexample" in bf.guarantee_note("total_variation", "wasserstein")
    for decision in DIVERGENCES:
        for reward in DIVERGENCES:
            if (decision, reward) not in PROVED:
                assert not bf.guarantee_note(decision, reward).startswith("Proved")


@pytest.mark.parametrize(
    ("pair", "means", "needed"),
    [
        (("hellinger", "kl"), [0.5, 0.6], 0.0305),
        (("kl", "jensen_shannon"), [0.01, 0.02, 0.9], 1.73),
        (("kl", "hellinger"), [0.01, 0.02, 0.9], 1.19),
    ],
)
def test_mixed_pairs_that_eps1_2_does_not_cover(pair, means, needed):
    rewards = Bernoulli(means)
    best = _by_enumeration(means)
    found = bf.smallest_eps2(best, rewards, 2, *pair)
    by_hand = max(
        DEFINITION[pair[0]](best[i], best[j]) - 2 * DEFINITION[pair[1]](means[i], means[j])
        for i, j in permutations(range(len(means)), 2)
    )
    assert float(found) == pytest.approx(by_hand, abs=1e-12)
    assert by_hand == pytest.approx(needed, abs=0.006 * max(needed, 0.01))
    assert "no violation" not in bf.guarantee_note(*pair)


def _by_enumeration(means):
    best = np.zeros(len(means))
    for outcome in product((0, 1), repeat=len(means)):
        chance = np.prod([m if r else 1 - m for m, r in zip(means, outcome, strict=True)])
        top = np.array(outcome) == max(outcome)
        best += chance * top / top.sum()
    return best


def _kl(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


DEFINITION = {
    "kl": _kl,
    "jensen_shannon": lambda p, q: (_kl(p, (p + q) / 2) + _kl(q, (p + q) / 2)) / 2,
    "hellinger": lambda p, q: math.sqrt(
        max(1 - math.sqrt(p * q) - math.sqrt((1 - p) * (1 - q)), 0)
    ),
}


def test_what_is_said_of_divergences_without_a_proof():
    for pair in [
        ("kl", "chi2"),
        ("jensen_shannon", "chi2"),
        *((name, name) for name in ("kl", "hellinger", "jensen_shannon")),
    ]:
        note = bf.guarantee_note(*pair)
        assert note.startswith("Nothing is proved") and "no violation" in note
        assert "counterexample" not in note
    for reward in ("kl", "jensen_shannon", "chi2"):
        assert "No constant eps1" in bf.guarantee_note("hellinger", reward)
        # the ratio grows without bound as two Bernoulli arms approach
        ratio = []
        for gap in (1e-2, 1e-3):
            near = Bernoulli([0.5, 0.5 + gap])
            decided = bernoulli_divergence(near.best_arm_probability(), "hellinger")[0, 1]
            ratio.append(decided / near.divergence(reward)[0, 1])
        assert ratio[1] > 9 * ratio[0]
    for reward in DIVERGENCES:
        if reward not in ("chi2", "wasserstein"):
            assert "counterexample" in bf.guarantee_note("chi2", reward)


#: eps1 that is enough for the rule that selects with P*, decisions and rewards
PROVED = {
    ("total_variation", "total_variation"): 2,
    ("wasserstein", "total_variation"): 2,  # decisions are Bernoulli: the same number
    ("total_variation", "hellinger"): 2 * np.sqrt(2),
    ("wasserstein", "hellinger"): 2 * np.sqrt(2),
    ("jensen_shannon", "total_variation"): 2 * np.log(2),
}


def random_laws(seed, n=400):
    """Finite laws of 2 to 4 arms, near and far from each other, with holes in their supports."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        k, levels = rng.integers(2, 5), rng.integers(2, 5)
        pmf = rng.dirichlet(np.full(levels, 10 ** rng.uniform(-1, 1)), size=k)
        if rng.random() < 0.5:
            pmf[1:] = pmf[0] + 10 ** rng.uniform(-3, 0) * (pmf[1:] - pmf[0])
        yield Finite(np.arange(levels), np.maximum(pmf, 0) / pmf.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("pair", PROVED)
def test_what_is_said_to_be_proved_is_never_violated(pair):
    assert bf.guarantee_note(*pair).startswith("Proved")
    worst = 0.0
    for laws in random_laws(1):
        needed = bf.smallest_eps2(laws.best_arm_probability(), laws, PROVED[pair], *pair)
        worst = max(worst, float(needed))
    # the sharp family of theory.md 3: (0, 1 - d, d) against (d, 1 - d, 0)
    d = 1e-3
    sharp = Finite([0, 1, 2], [[0, 1 - d, d], [d, 1 - d, 0]])
    needed = bf.smallest_eps2(sharp.best_arm_probability(), sharp, PROVED[pair], *pair)
    assert max(worst, float(needed)) <= 1e-12


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("kl", lambda d: np.sqrt(d / 2)),
        ("jensen_shannon", lambda d: np.sqrt(2 * d)),
        ("chi2", lambda d: np.sqrt(d) / 2),
    ],
)
def test_bounds_of_total_variation_by_squares(name, bound):
    for laws in random_laws(2):
        pi, distance = laws.best_arm_probability(), laws.divergence(name)
        gap = np.abs(pi[:, None] - pi)
        finite = np.isfinite(distance)
        assert np.all(gap[finite] <= 2 * bound(distance[finite]) + 1e-9)
    # and no constant is enough: the ratio grows without bound as two Bernoulli arms approach
    ratios = []
    for gap in (1e-2, 1e-3, 1e-4):
        near = Bernoulli([0.5, 0.5 + gap])
        pi = near.best_arm_probability()
        ratios.append(abs(pi[0] - pi[1]) / near.divergence(name)[0, 1])
    assert ratios[1] > 9 * ratios[0] and ratios[2] > 9 * ratios[1]
    assert "no constant eps1" in bf.guarantee_note("total_variation", name)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_sd_ts_meets_its_guarantee(data):
    """The rule that selects with P*: eps1 = 2 in general, 1 for Bernoulli; never violated."""
    k = data.draw(st.integers(2, 5))
    weights = data.draw(
        st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=k, max_size=k)
    )
    pmf = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    finite = Finite([0, 1, 2], pmf)
    assert float(bf.smallest_eps2(bf.best_arm_probability(finite), finite, eps1=2)) <= 1e-13
    bernoulli = Bernoulli(pmf[:, 0])
    assert float(bf.smallest_eps2(bf.best_arm_probability(bernoulli), bernoulli)) <= 1e-13


def test_conventions_for_infinities():
    inf = np.inf
    pi = np.array([[1.0, 0.0], [0.5, 0.5]])
    infinite = np.array([[0, inf], [inf, 0]])
    finite = np.array([[0, 0.5], [0.5, 0]])
    # infinite reward divergence: the pair is unconstrained, also where decisions differ infinitely
    assert (worst_pair_general(pi, infinite, 1.0, "kl")[0] == -inf).all()
    assert worst_pair_general(pi, infinite, 1.0, "kl")[1].tolist() == [0, 0]
    # eps1 = 0 drops the rewards
    assert worst_pair_general(pi, infinite, 0.0, "kl")[0].tolist() == [inf, 0]
    # an infinite left side alone
    assert worst_pair_general(pi, finite, 1.0, "kl")[0].tolist() == [inf, -0.5]


def test_different_divergences_and_orders():
    rng = np.random.default_rng(3)
    pi = rng.dirichlet(np.ones(4), size=5)
    rewards = Bernoulli(rng.random((5, 4)))
    for decision in DIVERGENCES:
        for reward in DIVERGENCES:
            result = bf.smallest_eps2(
                pi, rewards, eps1=0.5, divergence=decision, reward_divergence=reward
            )
            left, right = bernoulli_divergence(pi, decision), rewards.divergence(reward)
            excess = np.where(np.eye(4, dtype=bool), -np.inf, left - 0.5 * right)
            np.testing.assert_allclose(result, np.maximum(excess.max(axis=(1, 2)), 0), atol=1e-14)
            for t in range(5):
                i, j = np.unravel_index(np.argmax(excess[t]), (4, 4))
                assert (str(result.arm[t].values), str(result.arm_other[t].values)) == (
                    str(i),
                    str(j),
                )
                if decision in SYMMETRIC and reward in SYMMETRIC:
                    assert i < j


@pytest.mark.parametrize("name", DIVERGENCES)
def test_maxima_over_rounds(name):
    rng = np.random.default_rng(4)
    pi = rng.dirichlet(np.ones(4) / 2, size=30)
    pi[::3, 1] = pi[1::3, 3] = pi[2::3, 3] = np.nan  # arms 1 and 3 never together
    largest = decision_divergence_maxima(pi, name)
    for i in range(4):
        for j in range(4):
            both = ~np.isnan(pi[:, i]) & ~np.isnan(pi[:, j])
            rounds = bernoulli_divergence(pi[both][:, [i, j]], name)[:, 0, 1]
            expected = 0 if i == j else rounds.max(initial=-np.inf)
            assert largest[i, j] == pytest.approx(expected, rel=1e-14)


def test_arms_not_on_offer_are_left_out():
    rewards = Bernoulli([0.9, 0.5, 0.1], arms=["a", "b", "c"])
    pi = np.array([[np.nan, 0.8, 0.2], [0.2, 0.3, 0.5], [np.nan, np.nan, 1.0]])
    result = bf.smallest_eps2(pi, rewards, eps1=0)
    np.testing.assert_allclose(result, [0.6, 0.3, 0])
    assert result.arm.values.tolist() == ["b", "a", ""]
    best = np.stack([rewards.best_arm_probability(offered=~np.isnan(row)) for row in pi])
    regret = bf.fairness_regret(pi, best)
    np.testing.assert_allclose(regret[0], 0.1, atol=1e-14)  # P* = (1 + .5 - .1) / 2 = .7 for b
    with pytest.raises(ProbabilityError, match=r"arm '0' is not on offer in round 0"):
        bf.fairness_regret(pi, rewards.best_arm_probability())


def test_labels_are_carried_and_matched():
    rewards = Bernoulli([0.7, 0.5], arms=["north", "south"])
    best = bf.best_arm_probability(rewards)
    assert best.dims == ("arm",)
    assert best.sel(arm="north").item() == pytest.approx(0.6)
    swapped = best.isel(arm=[1, 0])
    assert float(bf.smallest_eps2(swapped, rewards, eps1=0.5)) == pytest.approx(0.1)
    assert float(bf.fairness_regret(swapped, best)) == pytest.approx(0, abs=1e-15)
    with pytest.raises(ArmError, match="'east'"):
        bf.smallest_eps2(best.assign_coords(arm=["north", "east"]), rewards)
    table = bf.divergence(Bernoulli([[0.7, 0.5]], arms=["north", "south"]), dims=["round"])
    assert table.dims == ("round", "arm", "arm_other")
    assert table.sel(round=0, arm="north", arm_other="south").item() == pytest.approx(0.2)
    empirical = bf.best_arm_probability(Empirical([[0, 1], [1, 0], [3, 1]]))
    assert isinstance(empirical, xr.DataArray)
    assert empirical.standard_error.dims == ("arm",)


def test_best_mean_of_known_rewards():
    np.testing.assert_array_equal(
        bf.best_mean_probability(Bernoulli([[0.5, 0.5, 0.1], [0.2, 0.3, 0.1]])),
        [[0.5, 0.5, 0], [0, 1, 0]],
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bf.best_arm_probability([0.5]), DataError, "got list"),
        (lambda: bf.divergence(Bernoulli([0.5]), "tv"), OptionError, "total_variation"),
        (lambda: bf.smallest_eps2([0.6, 0.6], Bernoulli([0.5, 0.5])), ProbabilityError, "sum 1.2"),
        (
            lambda: bf.smallest_eps2([[1, 0], [2, -1]], Bernoulli([0.5, 0.5])),
            ProbabilityError,
            "row 1",
        ),
        (lambda: bf.smallest_eps2([1.0], Bernoulli([0.5, 0.5])), DataError, "expected 2"),
        (lambda: bf.smallest_eps2([1, 0], Bernoulli([0.5, 0.5]), eps1=-1), OptionError, "eps1"),
        (
            lambda: bf.smallest_eps2([[1, 0]], Bernoulli(np.full((2, 2), 0.5))),
            DataError,
            "2 rounds",
        ),
        (
            lambda: bf.smallest_eps2([1, 0], Bernoulli([0.5, 0.5]), divergence="TV"),
            OptionError,
            "divergence",
        ),
        (lambda: bf.fairness_regret([[1, 0]], [0.5, 0.4]), ProbabilityError, "p_best|selection"),
        (lambda: bf.fairness_regret([[1, 0]], np.full((2, 2), 0.5)), DataError, "1 rounds"),
        (lambda: bf.best_arm_probability(Bernoulli([[0.5]]), dims=["a", "b"]), DataError, "dims"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
