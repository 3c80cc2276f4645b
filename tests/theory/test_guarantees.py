"""What each rule guarantees: as proved, claimed or trivial, and by random search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bayesfair import theory
from bayesfair.errors import OptionError
from bayesfair.policies import (
    SDTS,
    CalibratedOracle,
    EpsilonGreedy,
    FairSDDTS,
    FairSDTS,
    Greedy,
    SDTSMixture,
    Softmax,
    Thompson,
    Uniform,
)


@pytest.mark.parametrize(
    ("policy", "options", "numbers", "kind", "status"),
    [
        (SDTS(), {}, (1, 0, 0), "subjective", "proved"),
        (SDTS(), {"family": "normal"}, (2, 0, 0), "subjective", "proved"),
        (SDTS(), {"kind": "objective"}, (0, 1, 0), "objective", "trivial"),
        (SDTSMixture(eps1=0.4), {}, (0.4, 0, 0), "subjective", "proved"),
        (SDTSMixture(eps1=0.4), {"family": "finite"}, (0.4, 0, 0), "subjective", "proved"),
        (SDTSMixture(weight=0.4), {"family": "finite"}, (0.8, 0, 0), "subjective", "proved"),
        (FairSDTS(eps2=0.1, delta=0.05), {}, (1, 0.2, 0.05), "objective", "proved"),
        (
            FairSDTS(eps2=0.1, delta=0.05),
            {"family": "finite", "n_levels": 3},
            (2, 0.2, 0.05),
            "objective",
            "proved",
        ),
        (FairSDTS(eps2=0.1, delta=0.05), {"kind": "subjective"}, (1, 0, 0), "subjective", "proved"),
        (FairSDTS(eps2=0.6, delta=0.05), {}, (0, 1, 0), "objective", "trivial"),
        (
            FairSDTS(eps2=0.1, delta=0.1, C="paper", max_divergence=0.0),
            {"n_arms": 40},
            (2, 0.2, 0.1),
            "objective",
            "observed",
        ),
        (
            FairSDTS(eps2=0.1, delta=0.1, C="paper", max_divergence=0.8),
            {"n_arms": 40},
            (1, 0.2, 0.1),
            "objective",
            "proved",
        ),
        (FairSDTS(C=0), {"n_arms": 2}, (0, 1, 0), "objective", "trivial"),
        (CalibratedOracle([0.5, 0.4]), {}, (1, 0, 0), "objective", "proved"),
        (Uniform(), {}, (0, 0, 0), "subjective", "proved"),
        (EpsilonGreedy(epsilon=0.3), {}, (0, 0.7, 0), "subjective", "trivial"),
        (Softmax(temperature=0.25), {}, (2, 0, 0), "subjective", "proved"),
        (Thompson(), {}, (0, 1, 0), "subjective", "trivial"),
        (Greedy(), {}, (0, 1, 0), "subjective", "trivial"),
        (FairSDDTS(C="paper", eps2=0.2), {}, (2, 0.4, 0.1), "objective", "claimed"),
        (FairSDDTS(C=10), {}, (0, 1, 0), "objective", "trivial"),
    ],
    ids=str,
)
def test_guarantees(policy, options, numbers, kind, status):
    found = theory.guarantee(policy, **options)
    assert tuple(found) == pytest.approx(numbers)
    assert (found.kind, found.status) == (kind, status)


def test_a_number_as_C_buys_what_the_corrected_formula_says():
    found = theory.guarantee(FairSDTS(C=500, delta=0.05), n_arms=4)
    assert theory.union_C(found.eps2 / 2, 0.05, n_arms=4) == pytest.approx(500)
    with pytest.raises(OptionError, match="give n_arms="):
        theory.guarantee(FairSDTS(C=500))


def test_softmax_guarantee_holds_and_is_nearly_reached():
    rng = np.random.default_rng(6)
    rule = Softmax(temperature=0.3)
    eps1, _, _ = theory.guarantee(rule)
    largest = 0.0
    for _ in range(400):
        k = int(rng.integers(2, 5))
        state = rule.start(k)
        for _ in range(int(rng.integers(0, 30))):
            state = rule.update(state, int(rng.integers(k)), float(rng.random() < 0.5))
        s, f = state.table.T
        m = s / (s + f)
        pi = rule.selection_probability(state)
        for i, j in itertools.combinations(range(k), 2):
            assert abs(pi[i] - pi[j]) <= eps1 * abs(m[i] - m[j]) + 1e-12
            if m[i] != m[j]:
                largest = max(largest, abs(pi[i] - pi[j]) / abs(m[i] - m[j]))
    assert largest > 0.9 * eps1
