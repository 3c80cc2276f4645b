"""Fewer draws than an interval of 95 % has ends for are said to be too few, wherever one draws."""

import json

import pytest

import bayesfair as bf

LOG = bf.History([0, 1, 1, 0], [1, 0, 1, 1], selection_probability=[[0.5, 0.5]] * 4)
WORTHS = bf.Comparisons.from_duels(["a", "b"] * 9, ["b", "a"] * 9, ["left"] * 18, keep_rows=True)
DUELS = bf.DuelLog.from_comparisons(WORTHS, selection_probability=[[0.5, 0.5]] * 18)
FITS = {
    "audit": lambda n: bf.audit(LOG, seed=1, draws=n).to_dict()["findings"],
    "duels": lambda n: bf.audit_comparisons(DUELS, seed=1, draws=n).to_dict()["findings"],
    "arms": lambda n: json.loads(bf.fit(LOG, seed=1, draws=n).attrs["notices"]),
    "worths": lambda n: json.loads(bf.fit(WORTHS, seed=1, draws=n).attrs["notices"]),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("n", [8, 36, 40, 80])
def test_few_draws_are_said_to_be_few(name, n):
    """Of n equally likely draws fewer than n/40 lie below an interval of 95 %: none if n < 40."""
    said = [(one["column"], one["n"]) for one in FITS[name](n) if one["kind"] == "few_draws"]
    assert said == ([("draws", n)] if n < 40 else [])


def test_known_true_rewards_are_not_drawn():
    audit = bf.audit(LOG, truth=bf.rewards.Bernoulli([0.5, 0.4]))
    assert "few_draws" not in [one["kind"] for one in audit.to_dict()["findings"]]
