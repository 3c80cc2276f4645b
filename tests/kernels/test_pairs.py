"""The worst pair of a round against the reference values and against all pairs, one by one."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesfair.kernels.log.pairs import worst_pair, worst_pairs

REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "smooth_fairness_rounds.json"


def cases():
    every = json.loads(REFERENCE.read_text())["cases"]
    return [c for c in every if c["divergence"] == "tv" and c["rewards"] == "bernoulli"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_reference_rounds(case):
    pi, m = case["pi"]["float"], case["m"]["float"]
    excess, more, less = worst_pair(pi, m, case["eps1_float"])
    if case["max_excess"] is None:
        assert (excess, more, less) == (-np.inf, -1, -1)
        return
    assert excess == pytest.approx(float(Fraction(case["max_excess"])), abs=1e-14)
    assert sorted((more, less)) == sorted(case["argmax_pairs"])[0]
    assert pi[more] >= pi[less]


def by_all_pairs(pi, m, eps1):
    best, found = -np.inf, (-1, -1)
    for i in range(len(pi)):
        for j in range(i + 1, len(pi)):
            excess = abs(pi[i] - pi[j]) - eps1 * abs(m[i] - m[j])
            if excess > best + 1e-12:  # NaN compares false: not on offer
                best, found = excess, (i, j) if pi[i] >= pi[j] else (j, i)
    return best, *found


@st.composite
def rounds(draw):
    """Rounds with the ties and gaps that real logs have."""
    k, n_rounds = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pi, m = rng.dirichlet(np.ones(k), n_rounds), rng.random((n_rounds, k))
    # multiples of 1/64 are exact: ties are ties
    if draw(st.booleans()):
        pi = np.round(pi * 64) / 64
    if draw(st.booleans()):
        m = np.round(m * 8) / 8
    if draw(st.booleans()):
        pi[rng.random(pi.shape) < 0.3] = np.nan
    return pi, m, draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 8.0]))


@given(rounds())
def test_all_pairs_give_the_same(case):
    pi, m, eps1 = case
    excess, pair = worst_pairs(pi, m, eps1)
    for t in range(len(pi)):
        value, more, less = by_all_pairs(pi[t], m[t], eps1)
        assert excess[t] == pytest.approx(value, abs=1e-13)
        assert tuple(pair[t]) == (more, less)
        assert worst_pair(pi[t], m[t], eps1) == (excess[t], more, less)


@given(rounds(), st.randoms(use_true_random=False))
def test_order_of_arms_does_not_matter(case, random):
    pi, m, eps1 = case
    order = list(range(pi.shape[1]))
    random.shuffle(order)
    excess, pair = worst_pairs(pi, m, eps1)
    shuffled, shuffled_pair = worst_pairs(pi[:, order], m[:, order], eps1)
    np.testing.assert_allclose(shuffled, excess, atol=1e-13)
    for t in np.flatnonzero(pair[:, 0] >= 0):
        i, j = (order[a] for a in shuffled_pair[t])
        again = abs(pi[t, i] - pi[t, j]) - eps1 * abs(m[t, i] - m[t, j])
        assert again == pytest.approx(excess[t], abs=1e-12)


def test_many_arms_against_broadcasting():
    rng = np.random.default_rng(4)
    k = 1500
    pi, m = rng.dirichlet(np.ones(k)), rng.random(k)
    for eps1 in (0.0, 0.01, 1.0):
        every = np.abs(pi[:, None] - pi) - eps1 * np.abs(m[:, None] - m)
        np.fill_diagonal(every, -np.inf)
        excess, more, less = worst_pair(pi, m, eps1)
        assert excess == pytest.approx(every.max(), abs=1e-14)
        assert every[more, less] == pytest.approx(every.max(), abs=1e-14)


def test_equal_probabilities_keep_arm_order():
    assert worst_pair([0.5, 0.5], [0.2, 0.2], 1.0) == (0.0, 0, 1)
    assert worst_pair([0.25, 0.5, 0.25], [0.5, 0.5, 0.5], 2.0) == (0.25, 1, 0)


def test_readonly_rows_are_taken_as_they_are():
    pi, m = np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]])
    pi.flags.writeable = m.flags.writeable = False
    assert worst_pairs(pi, m, 1.0)[0] == 0.5


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="must be"):
        worst_pairs(np.ones((2, 3)), np.ones((3, 2)), 1.0)
