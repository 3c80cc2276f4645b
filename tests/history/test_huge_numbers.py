"""Whole numbers that no float holds, and that Python does not even write, are refused in words."""

from __future__ import annotations

import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.errors import BayesfairError

LOG = ["a", "b"], [1, 0]
HALF = [[0.5, 0.5]] * 2
ENTRIES = {
    "reward": lambda x: bf.History(["a", "b"], [1, x]),
    "selection_probability": lambda x: bf.History(*LOG, selection_probability=[[0.5, 0.5], [x, 0]]),
    "propensity": lambda x: bf.History(*LOG, propensity=[0.5, x]),
    "known_at": lambda x: bf.History(*LOG, known_at=[1, x]),
    "known_until": lambda x: bf.History(*LOG, known_until=[0, x]),
    "row": lambda x: bf.History(*LOG, row=[1, x]),
    "offered": lambda x: bf.History(*LOG, offered=[[1, 1], [1, x]]),
    "prior": lambda x: bf.History(*LOG, prior_counts=[[1, 1], [1, x]]),
    "tolerance": lambda x: bf.History(
        *LOG, selection_probability=HALF, probability_tolerance=x
    ),
    "frame": lambda x: bf.read_history(pd.DataFrame({"arm": ["a", "b"], "reward": [1, x]})),
    "records": lambda x: bf.read_history(
        pd.DataFrame({"arm": ["a", "b"], "reward": [1, 0], "p": [{"a": 1}, {"a": x, "b": 0.5}]})
    ),
    "rewards": lambda x: bf.read_history(
        pd.DataFrame({"arm": ["a", "b"], "reward": ["w", "l"]}), rewards={"w": x, "l": 0}
    ),
    "weight": lambda x: bf.Comparisons.from_duels(["a"], ["b"], ["left"], weight=[x]),
    "counts": lambda x: bf.Comparisons.from_counts(["a"], ["b"], [x], [1]),
    "support": lambda x: bf.rewards.Finite([0, x], HALF),
}  # fmt: skip


@pytest.mark.parametrize("number", [10**400, 10**5000], ids=["1e400", "1e5000"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_number_too_large_is_refused(entry, number):
    with pytest.raises(BayesfairError):
        ENTRIES[entry](number)


def test_a_label_may_be_a_large_number_but_not_an_endless_one():
    assert bf.History([1, 10**400], [1, 0], arms=["1", str(10**400)]).n_arms == 2
    with pytest.raises(BayesfairError, match="bits"):
        bf.History([1, 10**5000], [1, 0])


@pytest.mark.parametrize("judge", [bf.audit, bf.fit])
def test_measurements_whose_squares_are_0_are_refused_with_the_first(judge):
    small = bf.read_history({"arm": ["a", "b", "a"], "reward": [0, 1e-300, -2e-300]})
    with pytest.raises(bf.DataError) as refused:
        judge(small, family="normal", seed=1)
    found = refused.value
    assert (found.kind, found.row, found.column, found.value) == ("bad_reward", 2, "reward", 1e-300)
