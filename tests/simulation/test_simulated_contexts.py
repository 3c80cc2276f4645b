"""Rules that see a context: SD_TS by cells, against enumeration and rounds replayed by hand."""

import itertools

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.errors import BayesfairError
from bayesfair.policies import FairSDTS

MEANS = {"u": {"a": 0.7, "b": 0.3, "c": 0.5}, "v": {"a": 0.2, "b": 0.6, "c": 0.5}}
SEEN = np.random.default_rng(2).choice(["u", "v"], 400)


def p_star(m):
    """P* by enumeration of the outcomes."""
    best = np.zeros(len(m))
    for outcome in itertools.product((0, 1), repeat=len(m)):
        top = np.array(outcome) == max(outcome)
        best += np.prod(np.where(outcome, m, 1 - m)) * top / top.sum()
    return best


@pytest.mark.parametrize("late", [{}, {"batch": 6}, {"delay": 9}])
def test_sd_ts_by_cells_is_p_star_of_what_is_known_in_the_context(late):
    run = bf.simulate("sd_ts", MEANS, 400, seed=1, contexts=SEEN, **late)
    known = np.arange(1, 401) if run.known_at is None else run.known_at
    for t in (0, 7, 150, 399):
        here = (SEEN == SEEN[t]) & (known <= t)
        n = np.bincount(run.arm[here], minlength=3)
        won = np.bincount(run.arm[here], run.reward[here], minlength=3)
        expected = p_star((won + 0.5) / (n + 1))
        assert run.selection_probability[t] == pytest.approx(expected, abs=1e-12)
    found = bf.audit(run, objective=False, context_model="cells")
    assert found.regret.value < 1e-12 and found.subjective_verdict == "fair"
    across = bf.audit(run, objective=False, context_model="cells", eps1=1, across="contexts")
    assert across.to_dict()["across"]["smallest_eps2"] < 1e-12


def test_a_rule_that_does_not_look_is_calibrated_without_the_context_alone():
    run = bf.simulate("sd_ts", MEANS, 400, seed=1, contexts=SEEN, context_model="none")
    assert bf.audit(run, objective=False, context_model="none").regret.value < 1e-12
    assert bf.audit(run, objective=False, context_model="cells").regret.value > 0.05


def test_rewards_are_those_of_the_context_and_runs_are_repeated():
    always = {"u": {"a": 1.0, "b": 0.0}, "v": {"a": 0.0, "b": 1.0}}
    both = [bf.simulate("uniform", always, 400, seed=3, contexts=SEEN, n_runs=n) for n in (2, 3)]
    run = both[0]["1"]
    assert np.array_equal(run.reward, (run.arm == 0) == (SEEN == "u"))
    assert np.array_equal(run.arm, both[1]["1"].arm)
    # the same truth round by round, of any family; and two columns
    batch = np.where((SEEN == "u")[:, None], [1.0, 0.0], [0.0, 1.0])
    several = {"site": SEEN, "day": ["mon"] * 400}
    other = bf.simulate("uniform", batch, 400, seed=3, contexts=several, n_runs=2)["1"]
    assert np.array_equal(other.arm, run.arm) and np.array_equal(other.reward, run.reward)
    assert other.context.columns == ("site", "day")


def test_other_families_rules_and_arms_on_offer():
    rng = np.random.default_rng(4)
    offered = rng.random((400, 3)) < 0.8
    offered[:, 0] = True
    rates = bf.rewards.Poisson(np.where((SEEN == "u")[:, None], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]))
    run = bf.simulate("sd_ts", rates, 400, seed=1, contexts=SEEN, offered=offered)
    found = bf.audit(run, objective=False, context_model="cells", family="poisson")
    assert found.regret.value < 1e-9
    fair = bf.simulate(FairSDTS(C=50), MEANS, 400, seed=1, contexts=SEEN)
    assert fair.selection_probability[:50] == pytest.approx(1 / 3)
    oracle = bf.simulate("calibrated_oracle", MEANS, 400, seed=1, contexts=SEEN)
    for name, means in MEANS.items():
        expected = p_star(np.array(list(means.values())))
        assert oracle.selection_probability[SEEN == name][5] == pytest.approx(expected, abs=1e-12)


def test_regret_given_the_context_grows_as_the_root_of_the_rounds():
    totals = []
    for n in (500, 2000, 8000):
        seen = np.arange(n) % 2
        truth = np.where(seen[:, None] == 0, [0.7, 0.3, 0.5], [0.2, 0.6, 0.5])
        expected = np.array([p_star(row) for row in (truth[0], truth[1])])[seen]
        runs = bf.simulate("sd_ts", truth, n, seed=5, n_runs=20, contexts=seen).values()
        short = [np.abs(run.selection_probability - expected).sum() / 2 for run in runs]
        totals.append(np.mean(short))
    assert all(1.6 < later / early < 2.5 for early, later in itertools.pairwise(totals))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"context_model": "cells"}, "context_model="),
        ({}, "contexts="),
        ({"contexts": SEEN, "context_model": "pooled"}, "context_model="),
        ({"contexts": SEEN[:5]}, "400 rounds"),
        ({"contexts": ["w"] * 400}, "'w'"),
    ],
)
def test_what_does_not_fit_is_refused(given, said):
    with pytest.raises(BayesfairError) as caught:
        bf.simulate("sd_ts", MEANS, 400, seed=1, **given)
    assert said in str(caught.value)


def test_other_arms_in_another_context_are_refused():
    other = {"u": {"a": 0.5, "b": 0.5}, "v": {"a": 0.5, "c": 0.5}}
    with pytest.raises(BayesfairError) as caught:
        bf.simulate("sd_ts", other, 400, seed=1, contexts=SEEN)
    later = "v" if SEEN[0] == "u" else "u"  # the arms of the context that came first are expected
    assert caught.value.column == "rewards" and caught.value.value == later
