"""Bernoulli, Finite and Empirical rewards against brute-force values and enumeration."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.kernels.laws.divergences import DIVERGENCES
from bayesfair.rewards import Bernoulli, Empirical, Finite

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
KEYS = {
    "total_variation": "tv",
    "kl": "kl",
    "hellinger": "hellinger",
    "chi2": "chi2",
    "jensen_shannon": "js",
    "wasserstein": "w1",
}


def cases(name):
    return json.loads((REFERENCE / f"{name}.json").read_text())["cases"]


def laws_of(case):
    return [(arm["support"]["float"], arm["probs"]["float"]) for arm in case["arms"]]


def enumerated(laws):
    """P* by summing over every joint outcome in exact rationals."""
    best = [Fraction(0)] * len(laws)
    for outcome in itertools.product(*(zip(*law, strict=True) for law in laws)):
        probability = Fraction(1)
        for _, p in outcome:
            probability *= Fraction(p)
        top = max(value for value, _ in outcome)
        winners = [i for i, (value, _) in enumerate(outcome) if value == top]
        for i in winners:
            best[i] += probability / len(winners)
    return np.array([float(b) for b in best])


@pytest.mark.parametrize("case", cases("best_arm_finite"), ids=lambda c: c["id"])
def test_finite_best_arm_equals_reference(case):
    rewards = Finite.from_arms(laws_of(case))
    np.testing.assert_allclose(
        rewards.best_arm_probability(), case["best"]["float"], rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("case", cases("best_arm_bernoulli"), ids=lambda c: c["id"])
def test_bernoulli_best_arm_equals_reference(case):
    m = np.array(case["m"]["float"])
    best = case["best"]["float"]
    np.testing.assert_allclose(Bernoulli(m).best_arm_probability(), best, rtol=0, atol=1e-13)
    as_finite = Finite([0, 1], np.stack([1 - m, m], axis=-1))
    np.testing.assert_allclose(as_finite.best_arm_probability(), best, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergences_equal_reference(name):
    seen = 0
    for case in cases("divergences"):
        if case["kind"] == "bernoulli":
            rewards = Bernoulli([case["p_float"], case["q_float"]])
        elif case["kind"] == "finite":
            laws = [(case[x]["support"]["float"], case[x]["probs"]["float"]) for x in "pq"]
            rewards = Finite.from_arms(laws)
        else:
            continue
        expected = float(case["values"][KEYS[name]])
        value = rewards.divergence(name)
        assert value[0, 1] == pytest.approx(expected, rel=1e-12, abs=1e-15), case["id"]
        assert value[0, 0] == value[1, 1] == 0
        if name not in ("kl", "chi2"):
            assert value[1, 0] == value[0, 1]
        seen += 1
    assert seen == 40


def test_cases_70_71_74():
    np.testing.assert_allclose(Bernoulli([0.7, 0.5]).best_arm_probability(), [0.6, 0.4])
    np.testing.assert_allclose(
        Bernoulli([0.9, 0.5, 0.1]).best_arm_probability(), [0.66, 0.28, 0.06]
    )
    np.testing.assert_allclose(
        Bernoulli([0.8, 0.5, 0.2]).best_arm_probability(), [0.57333, 0.30333, 0.12333], atol=4e-6
    )
    np.testing.assert_allclose(Bernoulli([0.3] * 4).best_arm_probability(), [0.25] * 4)
    for joint in (False, True):
        two = Empirical([[-1, -3], [-2, 0]], joint=joint)
        np.testing.assert_allclose(two.best_arm_probability(), [0.5, 0.5])


@given(
    st.lists(
        st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=4
    )
)
@settings(max_examples=80, deadline=None)
def test_finite_best_arm_equals_enumeration(weights):
    laws = [([-2, 0, 1.5, 4], [Fraction(w, sum(row)) for w in row]) for row in weights]
    pmf = [[float(p) for p in law[1]] for law in laws]
    best = Finite([-2, 0, 1.5, 4], pmf).best_arm_probability()
    np.testing.assert_allclose(best, enumerated(laws), atol=1e-14)


def test_many_arms_with_ties_sum_to_one():
    rng = np.random.default_rng(5)
    for k in (50, 200):
        best = Finite(np.arange(5), rng.dirichlet(np.ones(5) / 2, size=k)).best_arm_probability()
        assert best.sum() == pytest.approx(1, abs=1e-11)
    # all arms surely at one value: k ties
    same = Finite([3.0], np.ones((7, 1))).best_arm_probability()
    np.testing.assert_allclose(same, np.full(7, 1 / 7), rtol=1e-13)


def test_offered_arms_only():
    rng = np.random.default_rng(6)
    pmf = rng.dirichlet(np.ones(3), size=(6, 5))
    mask = rng.random((6, 5)) < 0.6
    mask[:, 0] = True
    finite = Finite([0, 1, 2], pmf).best_arm_probability(offered=mask)
    m = rng.random((6, 5))
    bernoulli = Bernoulli(m).best_arm_probability(offered=mask)
    for t in range(6):
        on = mask[t]
        np.testing.assert_allclose(
            finite[t, on], Finite([0, 1, 2], pmf[t, on]).best_arm_probability(), atol=1e-14
        )
        np.testing.assert_allclose(
            bernoulli[t, on], Bernoulli(m[t, on]).best_arm_probability(), atol=1e-14
        )
        assert np.isnan(finite[t, ~on]).all()
        assert np.isnan(bernoulli[t, ~on]).all()


def test_empirical_is_the_finite_law_of_its_draws():
    rng = np.random.default_rng(7)
    draws = rng.integers(0, 4, size=(2, 9, 3)).astype(float)
    rewards = Empirical(draws)
    for b in range(2):
        laws = [
            (list(range(4)), [Fraction(int((draws[b, :, i] == v).sum()), 9) for v in range(4)])
            for i in range(3)
        ]
        np.testing.assert_allclose(rewards.best_arm_probability()[b], enumerated(laws), atol=1e-14)
        pmf = [[float(p) for p in law[1]] for law in laws]
        for name in DIVERGENCES:
            np.testing.assert_allclose(
                rewards.divergence(name)[b], Finite(range(4), pmf).divergence(name), rtol=1e-12
            )


def test_empty_batches_keep_their_shape():
    none = Empirical(np.zeros((0, 5, 3)))
    assert none.best_arm_probability().shape == (0, 3)
    assert none.divergence("kl").shape == (0, 3, 3)
    assert Finite([1, 2], np.full((0, 3, 2), 0.5)).divergence("kl").shape == (0, 3, 3)


def test_joint_draws_are_compared_row_by_row():
    # case 83: thB ~ N(0, 1), thA = thB + .1; shuffled draws give Phi(.1 / sqrt 2) = .5282
    rng = np.random.default_rng(8)
    b = rng.normal(size=4000)
    draws = np.stack([b + 0.1, b], axis=-1)
    joint = Empirical(draws, joint=True, arms=["A", "B"])
    np.testing.assert_array_equal(joint.best_arm_probability(), [1, 0])
    np.testing.assert_array_equal(joint.best_arm_standard_error(), [0, 0])
    apart = Empirical(draws)
    assert apart.best_arm_probability()[0] == pytest.approx(0.5282, abs=0.03)


@pytest.mark.statistical
def test_empirical_standard_error_covers():
    # 5 standard errors: missed with probability 6e-7 per arm
    truth = Bernoulli([0.7, 0.5, 0.2])
    draws = truth.sample(20_000, seed=9)
    for joint in (False, True):
        empirical = Empirical(draws, joint=joint)
        error = np.abs(empirical.best_arm_probability() - truth.best_arm_probability())
        assert (error < 5 * empirical.best_arm_standard_error()).all()


@pytest.mark.statistical
def test_samples_have_the_law():
    # 5 standard errors of a proportion, 2 + 6 proportions
    n = 40_000
    finite = Finite([1, 2, 5], [[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
    draws = finite.sample(n, seed=10)
    assert draws.shape == (n, 2)
    for i, v in itertools.product(range(2), range(3)):
        p = finite.pmf[i, v]
        share = (draws[:, i] == finite.support[v]).mean()
        assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n)
    m = Bernoulli([[0.1, 0.9]]).sample(n, seed=10).mean(axis=0)
    np.testing.assert_allclose(m, [[0.1, 0.9]], atol=5 * 0.3 / np.sqrt(n))


def test_log_prob_and_mean():
    bernoulli = Bernoulli([0.25, 1.0])
    np.testing.assert_allclose(bernoulli.log_prob(1), np.log([0.25, 1.0]))
    np.testing.assert_array_equal(bernoulli.log_prob(0), [np.log(0.75), -np.inf])
    assert (bernoulli.log_prob(0.5) == -np.inf).all()
    assert np.isnan(bernoulli.log_prob(np.nan)).all()
    finite = Finite([5, 1, 3], [[0.5, 0.2, 0.3], [0, 0, 1]])
    np.testing.assert_array_equal(finite.support, [1, 3, 5])
    np.testing.assert_allclose(finite.mean, [3.6, 3])
    np.testing.assert_allclose(finite.log_prob([5, 3]), np.log([0.5, 1]))
    assert (finite.log_prob(2) == -np.inf).all()
    rows = finite.log_prob(np.array([[1.0], [3.0]]))
    np.testing.assert_allclose(np.exp(rows), [[0.2, 0], [0.3, 1]])


def test_complement_keeps_small_failure_rates():
    q = np.array([1e-20, 3e-20])
    rewards = Bernoulli(1 - q, complement=q)
    np.testing.assert_allclose(np.exp(rewards.log_prob(0)), q, rtol=1e-14)
    np.testing.assert_allclose(rewards.best_arm_probability(), [0.5, 0.5], rtol=1e-14)
    # kl of rare failures: that of two Poisson rates, to first order
    kl = q[0] * np.log(q[0] / q[1]) - q[0] + q[1]
    assert rewards.divergence("kl")[0, 1] == pytest.approx(kl, rel=1e-12)


def test_batches_and_indexing():
    rewards = Bernoulli(np.linspace(0.1, 0.9, 12).reshape(2, 2, 3), arms=["x", "y", "z"])
    assert rewards.batch_shape == (2, 2)
    assert rewards.divergence("kl").shape == (2, 2, 3, 3)
    part = rewards[1, 0]
    assert part.arms == ("x", "y", "z")
    np.testing.assert_array_equal(part.best_arm_probability(), rewards.best_arm_probability()[1, 0])
    with pytest.raises(OptionError, match="no batch"):
        part[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli([0.5, 1.2], arms=["a", "b"]), "mean of arm 'b' is 1.2"),
        (lambda: Bernoulli([[0.5], [np.nan]]), r"batch index \(1,\)"),
        (lambda: Bernoulli(0.5), r"Write \[value\]"),
        (lambda: Bernoulli(["x"]), "not numeric"),
        (lambda: Bernoulli([0.5], complement=[0.6]), "it must be 1 - mean"),
        (lambda: Finite([0, 1], [[0.5, 0.4]], arms=["a"]), "arm 'a' sums to 0.9"),
        (lambda: Finite([0, 1], [[1.5, -0.5]]), "holds -0.5"),
        (lambda: Finite([0, 0], [[0.5, 0.5]]), "more than once"),
        (lambda: Finite([0, 1], [[0.2, 0.3, 0.5]]), r"expected \(..., arm, 2\)"),
        (lambda: Finite([[0, 1], [1]], [[1], [1]]), "from_arms"),
        (lambda: Finite.from_arms([([0, 1], [1])]), "2 values and 1 prob"),
        (lambda: Finite.from_arms([([1, 1], [0.5, 0.5])]), "more than once"),
        (lambda: Empirical([1.0, 2.0]), "at least one draw"),
        (lambda: Empirical([[1.0], [np.nan]]), "must be finite"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_bad_labels_and_options():
    with pytest.raises(ArmError, match="2 labels"):
        Bernoulli([0.5], arms=["a", "b"])
    with pytest.raises(ArmError, match="more than once"):
        Bernoulli([0.5, 0.5], arms=["a", "a"])
    with pytest.raises(OptionError, match="total_variation"):
        Bernoulli([0.5]).divergence("total_variatoin")
    with pytest.raises(OptionError, match="seed"):
        Bernoulli([0.5]).sample(seed=None)
