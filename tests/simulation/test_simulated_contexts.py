"""Rules that see a context: SD_TS by cells, against enumeration and rounds replayed by hand."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

import bayesfair as bf
from bayesfair.errors import BayesfairError, BayesfairWarning
from bayesfair.policies import FairSDTS, LinUCB

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


AGE = np.random.default_rng(6).normal(50, 10, 150)
CHANCES = special.ndtr(np.column_stack([AGE - 50, 50 - AGE, 0 * AGE]) / 10)


def features(n):
    """Intercept and age, centred and scaled by the first hundred rounds."""
    return np.column_stack([np.ones(n), (AGE - AGE[:100].mean()) / AGE[:100].std()])[:n]


@pytest.mark.parametrize("late", [{}, {"delay": 4}])
def test_sd_ts_given_features_is_p_star_of_moments_computed_by_hand(late):
    run = bf.simulate("sd_ts", CHANCES, 150, seed=1, contexts={"age": AGE},
                      context_model="probit", **late)  # fmt: skip
    known = np.arange(1, 151) if run.known_at is None else run.known_at
    mean, cov, z = np.zeros((3, 2)), np.tile(np.eye(2), (3, 1, 1)), features(150)
    for t in range(150):
        for s in np.flatnonzero(known == t):
            i, sign = run.arm[s], 2 * run.reward[s] - 1
            q = cov[i] @ z[s]
            s2 = 1 + z[s] @ q
            u = sign * (z[s] @ mean[i]) / np.sqrt(s2)
            v = stats.norm.pdf(u) / stats.norm.cdf(u)
            mean[i] += sign * q * v / np.sqrt(s2)
            cov[i] -= np.outer(q, q) * v * (v + u) / s2
        wide = np.sqrt(1 + np.einsum("a,kab,b->k", z[t], cov, z[t]))
        expected = p_star(special.ndtr(mean @ z[t] / wide))
        assert run.selection_probability[t] == pytest.approx(expected, abs=1e-9)
    found = bf.audit(run, context_model="probit", objective=False)
    assert found.regret.value < 1e-9 and found.subjective_verdict == "fair"


def test_linear_rules_are_ridge_regressions():
    truth = bf.rewards.Normal(np.column_stack([AGE, 100 - AGE]) / 10, np.ones((150, 2)))
    given = {"contexts": {"age": AGE}, "context_model": "linear", "prior": (0.0, 1.0, 1.0, 1.0)}
    z = features(150)
    runs = {}
    for rule in (LinUCB(alpha=0.7), "thompson", "sd_ts"):
        runs[rule] = run = bf.simulate(rule, truth, 150, seed=2, **given)
        for t in (0, 1, 30, 149):
            known = [np.flatnonzero(run.arm[:t] == i) for i in range(2)]
            gram = [np.linalg.inv(np.eye(2) + z[of].T @ z[of]) for of in known]
            centre = [g @ z[of].T @ run.reward[of] for g, of in zip(gram, known, strict=True)]
            at = np.array([c @ z[t] for c in centre])
            v = np.array([z[t] @ g @ z[t] for g in gram])
            a = np.array([1 + len(of) / 2 for of in known])
            b = np.array([1 + (run.reward[of] @ (run.reward[of] - z[of] @ c)) / 2
                          for of, c in zip(known, centre, strict=True)])  # fmt: skip
            if rule == "thompson":
                law = bf.rewards.StudentT(2 * a, at, np.sqrt(b / a * v))
            elif rule == "sd_ts":
                law = bf.rewards.StudentT(2 * a, at, np.sqrt(b / a * (1 + v)))
            else:
                score = at + 0.7 * np.sqrt(v)
                top = score == score.max()
                assert run.selection_probability[t] == pytest.approx(top / top.sum())
                continue
            expected = law.best_arm_probability()
            assert run.selection_probability[t] == pytest.approx(expected, abs=1e-6)
    found = bf.audit(runs["sd_ts"], context_model="linear", objective=False, family="normal",
                     prior=given["prior"])  # fmt: skip
    assert found.regret.value < 1e-6


def test_fair_sd_ts_explores_first_given_features_and_says_that_nothing_is_known():
    with pytest.warns(BayesfairWarning, match="given features"):
        run = bf.simulate(FairSDTS(C=5), CHANCES, 150, seed=1, contexts={"age": AGE},
                          context_model="logit")  # fmt: skip
    plays = np.cumsum(np.eye(3)[run.arm], axis=0)
    first = int(np.argmax(plays.min(axis=1) > 5)) + 1
    assert run.selection_probability[:first] == pytest.approx(1 / 3)
    assert np.ptp(run.selection_probability[first:]) > 0.05


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        ("ucb1", {"context_model": "probit"}),
        ("lin_ucb", {"context_model": "probit"}),
        ("sd_ts", {"context_model": "probit", "prior": (1, 1)}),
        ("sd_ts", {"context_model": "linear", "family": "poisson"}),
    ],
)
def test_what_is_not_defined_given_features_is_refused(rule, given):
    with pytest.raises(BayesfairError) as caught:
        bf.simulate(rule, CHANCES, 150, seed=1, contexts={"age": AGE}, **given)
    assert caught.value.column == "context_model"
