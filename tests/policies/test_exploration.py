"""How long Fair_SD_TS explores: constants, counting, warnings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesfair.errors import BayesfairWarning, OptionError
from bayesfair.policies import (
    FairSDTS,
)
from bayesfair.policies.exploration import (
    paper_C,
    paper_worst_case_C,
    union_C,
    union_with_prior_C,
)
from bayesfair.rewards import Bernoulli


def learned(rule, rounds, k, **start):
    state = rule.start(k, **start)
    for arm, reward in rounds:
        state = rule.update(state, arm, reward)
    return state


def test_exploration_counts_rewards_known_before_the_round_and_needs_more_than_C():
    for constant in (2, 2.9):
        rule = FairSDTS(eps2=0.1, delta=0.1, C=constant)
        state = learned(rule, [(0, 1.0), (1, 0.0)] * 2 + [(0, 1.0)], 2)
        assert state.pulls.tolist() == [3, 2]
        np.testing.assert_array_equal(rule.selection_probability(state), [0.5, 0.5])
        state = rule.update(state, 1, 0.0)
        # Beta(3.5, .5) against Beta(.5, 3.5): m = 7/8, 1/8; P* = 1/2 + (7/8 - 1/8)/2
        np.testing.assert_allclose(rule.selection_probability(state), [0.875, 0.125], atol=1e-14)
        state = rule.update(state, 1, float("nan"))
        assert state.pulls.tolist() == [3, 3]


def test_an_unexplored_arm_that_is_absent_does_not_hold_up_the_others():
    rule = FairSDTS(eps2=0.1, delta=0.1, C=0)
    state = learned(rule, [(0, 1.0), (1, 0.0)], 3)
    np.testing.assert_allclose(rule.selection_probability(state), 1 / 3)
    pi = rule.selection_probability(state, [True, True, False])
    np.testing.assert_allclose(pi[:2], [0.75, 0.25], atol=1e-14)
    assert np.isnan(pi[2])


def test_constants_are_the_printed_formulas():
    log = math.log
    assert paper_C(0.1, 0.05, max_divergence=0.8) == pytest.approx(2.6**2 * log(40) / 0.02)
    assert paper_worst_case_C(0.1, 0.05) == pytest.approx(9 * log(40) / 0.02)
    assert union_C(0.1, 0.05, n_arms=7) == pytest.approx(log(280) / 0.02)
    general = union_C(0.1, 0.05, n_arms=7, family="finite", n_levels=2)
    assert general == pytest.approx(2 * log(280) / 0.01)
    assert union_C(0.1, 0.05, n_arms=7, family="finite", n_levels=60) == pytest.approx(
        2 * (log(140) + 60 * log(2)) / 0.01, rel=1e-9
    )


def test_worst_case_constant_covers_the_general_one_up_to_42_arms_at_a_tenth():
    covered = [
        k
        for k in range(2, 80)
        if paper_worst_case_C(0.1, 0.1) >= union_C(0.1, 0.1, n_arms=k, family="finite", n_levels=2)
    ]
    assert max(covered) == 42  # (2 / delta)^(5/4) = 42.3


@given(st.floats(0.01, 0.5), st.floats(0.001, 1), st.integers(2, 60))
@settings(max_examples=60, deadline=None)
def test_the_constant_that_pays_for_the_prior_is_the_smallest(eps2, delta, k):
    def enough(n):
        y = eps2 - 1 / (2 * (n + 1))
        return y > 0 and 2 * k * math.exp(-2 * n * y * y) <= delta

    n = round(union_with_prior_C(eps2, delta, n_arms=k)) + 1
    assert enough(n)
    assert not any(enough(m) for m in range(max(n - 200, 0), n))


def test_what_the_constants_need_is_said_by_name():
    with pytest.raises(OptionError, match="n_rounds="):
        FairSDTS(C="sqrt").start(2)
    with pytest.raises(OptionError, match="max_divergence="):
        FairSDTS(C="paper").start(2)
    with pytest.raises(OptionError, match=r"poisson.*number"):
        FairSDTS().start(2, "poisson")
    with pytest.raises(OptionError, match=r"'unoin'.*Did you mean 'union'"):
        FairSDTS(C="unoin")
    assert FairSDTS(C=12).start(2, "poisson").exploration == 12
    assert FairSDTS(C="sqrt").for_run(4, 100, Bernoulli([0.5] * 4)).start(4).exploration == 5
    ready = FairSDTS(C="paper", eps2=0.3).for_run(2, 10_000, Bernoulli([0.1, 0.9]))
    assert ready.max_divergence == pytest.approx(0.8)


def test_vacuous_settings_warn():
    with pytest.warns(BayesfairWarning, match="explores throughout"):
        FairSDTS(eps2=0.1, delta=0.1).for_run(2, 300, Bernoulli([0.5, 0.5]))
    with pytest.warns(BayesfairWarning, match="2 eps2 = 1.2 is vacuous"):
        FairSDTS(eps2=0.6, delta=0.1).for_run(2, 300, Bernoulli([0.5, 0.5]))


# -- best means ----------------------------------------------------------------------------------
