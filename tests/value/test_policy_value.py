"""The value of other rules on a log: closed forms, all histories enumerated, the binomial law."""

import itertools
import json

import numpy as np
import pytest
from command_line import run
from scipy.stats import binom

import bayesfair as bf
from bayesfair.errors import BayesfairError
from bayesfair.value import policy_value
from bayesfair.value.estimates import doubly_robust, ips, self_normalised

THETA = np.array([0.7, 0.4])
ESTIMATORS = ("ips", "self_normalised", "doubly_robust")


def logging_rule(wins, plays):
    """Return the rule that logs: it learns, and never gives an arm less than .2."""
    p = 0.2 + 0.6 * (wins[0] + 1) / (plays[0] + 2) / sum((wins + 1) / (plays + 2))
    return np.array([p, 1 - p])


def histories(n):
    """Yield every history of n rounds of two 0/1 arms with its probability and its rows of pi."""
    for arms in itertools.product((0, 1), repeat=n):
        for rewards in itertools.product((0, 1), repeat=n):
            wins, plays, probability, rows = np.zeros(2), np.zeros(2), 1.0, []
            for a, r in zip(arms, rewards, strict=True):
                pi = logging_rule(wins, plays)
                rows.append(pi)
                probability *= pi[a] * (THETA[a] if r else 1 - THETA[a])
                wins[a] += r
                plays[a] += 1
            yield np.array(arms, np.int32), np.array(rewards, float), np.array(rows), probability


def believed(arms, rewards):
    """Return Beta(1/2, 1/2) means before each round, from the counts."""
    wins, plays, rows = np.zeros(2), np.zeros(2), []
    for a, r in zip(arms, rewards, strict=True):
        rows.append((wins + 0.5) / (plays + 1))
        wins[a] += r
        plays[a] += 1
    return np.array(rows)


def p_star(means):
    """Return P* of two Bernoulli laws, ties evenly."""
    first = means[:, 0] * (1 - means[:, 1])
    second = means[:, 1] * (1 - means[:, 0])
    p = first + (1 - first - second) / 2
    return np.stack([p, 1 - p], axis=1)


def test_the_published_four_rounds():
    log = bf.History(["a", "b", "a", "b"], [1, 0, 1, 0], propensity=[0.5, 0.5, 0.25, 0.25])
    found = policy_value(log, np.full((4, 2), 0.5)).rules[1]
    assert found.ips.value == 0.75
    assert found.self_normalised.value == 0.5
    assert found.effective_sample_size == pytest.approx(36 / 10, abs=1e-12)
    assert found.mean_weight == 1.5 and found.max_weight == 2
    # terms 1, 0, 2, 0: standard deviation sqrt(11/12), t(3) at .975 is 3.18245
    assert found.ips.upper - 0.75 == pytest.approx(3.182446305284263 * (11 / 12) ** 0.5 / 2)


@pytest.mark.parametrize("rule", ["p_star", "uniform", "greedy"])
@pytest.mark.parametrize("selection", ["full", "chosen"])
def test_ips_and_doubly_robust_are_unbiased_over_all_histories(rule, selection):
    expected = dict.fromkeys(("ips", "doubly_robust", "truth"), 0.0)
    total = 0.0
    for arms, rewards, rows, probability in histories(3):
        given = (
            {"selection_probability": rows} if selection == "full"
            else {"propensity": rows[np.arange(3), arms]}
        )  # fmt: skip
        log = bf.History(arms, rewards, arms=["a", "b"], **given)
        found = policy_value(log, rule, family="bernoulli").rules[1]
        means = believed(arms, rewards)
        best = means == means.max(axis=1, keepdims=True)
        e = {
            "p_star": p_star(means),
            "uniform": np.full((3, 2), 0.5),
            "greedy": best / best.sum(axis=1, keepdims=True),
        }[rule]
        total += probability
        expected["truth"] += probability * (e @ THETA).mean()
        for name in ("ips", "doubly_robust"):
            expected[name] += probability * getattr(found, name).value
        # both as published for obp: round by round, by hand
        at, pi = np.arange(3), rows[np.arange(3), arms]
        w = e[at, arms] / pi
        model = (e * means).sum(axis=1)
        assert found.ips.value == pytest.approx((w * rewards).mean(), abs=1e-12)
        assert found.self_normalised.value == pytest.approx(
            (w * rewards).sum() / w.sum() if w.any() else np.nan, abs=1e-12, nan_ok=True
        )
        assert found.doubly_robust.value == pytest.approx(
            (model + w * (rewards - means[at, arms])).mean(), abs=1e-12
        )
        assert found.fairness_regret == pytest.approx(
            np.maximum(p_star(means) - e, 0).sum(axis=1).mean(), abs=1e-12
        )
    assert total == pytest.approx(1, abs=1e-12)
    assert expected["ips"] == pytest.approx(expected["truth"], abs=1e-12)
    assert expected["doubly_robust"] == pytest.approx(expected["truth"], abs=1e-12)


def test_doubly_robust_is_ips_where_the_reward_model_is_0():
    rng = np.random.default_rng(1)
    reward, weight = rng.normal(size=50), rng.exponential(size=50)
    assert doubly_robust(reward, weight, np.zeros(50), np.zeros(50)) == ips(reward, weight)


def test_the_self_normalised_value_moves_with_the_rewards():
    rng = np.random.default_rng(1)
    reward, weight = rng.normal(size=50), rng.exponential(size=50)
    before, after = self_normalised(reward, weight), self_normalised(reward + 100, weight)
    assert np.subtract(after, before) == pytest.approx([100, 100, 100])


def test_the_logged_rule_has_its_mean_reward_and_the_regret_of_the_audit():
    rng = np.random.default_rng(2)
    pi = rng.dirichlet([2, 2, 2], 200)
    arm = np.array([rng.choice(3, p=row) for row in pi], np.int32)
    log = bf.History(arm, rng.integers(0, 2, 200), selection_probability=pi, arms=["a", "b", "c"])
    found = policy_value(log)
    audit = bf.audit(log, objective=False).to_dict()["calibration"]["subjective"]
    logged = found["logged"]
    assert logged.ips.value == logged.self_normalised.value == log.reward.mean()
    assert logged.fairness_regret == pytest.approx(audit["regret_per_round"], abs=1e-12)
    assert found["p_star"].fairness_regret == pytest.approx(0, abs=1e-12)
    seen = bf.History(log.arm, log.reward, propensity=pi[np.arange(200), arm], arms=log.arms)
    estimated = bf.audit(seen, objective=False).to_dict()["calibration"]["subjective"]
    assert policy_value(seen)["logged"].fairness_regret == pytest.approx(
        estimated["regret_per_round"], abs=1e-12
    )
    later = policy_value(log, from_round=50)
    judged = bf.audit(log, objective=False, from_round=50).to_dict()["calibration"]["subjective"]
    assert later["logged"].ips.value == log.reward[50:].mean()
    assert later["logged"].fairness_regret == pytest.approx(judged["regret_per_round"], abs=1e-12)


@pytest.mark.parametrize(
    ("family", "reward"),
    [("finite", [1, 3, 2, 3, 1, 2] * 10), ("poisson", [0, 4, 2, 7, 1, 3] * 10),
     ("normal", [0.1, 2.5, -1.2, 3.3, 0.7, 1.4] * 10)],
)  # fmt: skip
def test_the_policy_objects_agree_with_the_rules_by_name(family, reward):
    """`SDTS` and `Greedy` learn round by round; the rules by name read the streamed beliefs."""
    rng = np.random.default_rng(3)
    offered = np.ones((60, 3), bool)
    offered[::4, 2] = False
    arm = np.array([rng.choice(np.flatnonzero(row)) for row in offered], np.int32)
    pi = np.where(offered, 1 / offered.sum(axis=1, keepdims=True), np.nan)
    known_at = np.arange(60) + 1 + rng.integers(0, 4, 60)
    log = bf.History(arm, reward, selection_probability=pi, arms=["a", "b", "c"], known_at=known_at)
    rules = {
        "p_star": "p_star", "greedy": "greedy", "uniform": "uniform",
        "SD_TS": bf.policies.SDTS(), "Greedy": bf.policies.Greedy(), "Uniform": "uniform",
    }  # fmt: skip
    found = policy_value(log, rules, family=family, prior=None if family == "finite" else
                         {"poisson": (1, 1), "normal": (0, 1, 2, 2)}[family])  # fmt: skip
    for by_name, by_policy in (("p_star", "SD_TS"), ("greedy", "Greedy"), ("uniform", "Uniform")):
        for name in ESTIMATORS:
            assert getattr(found[by_name], name) == pytest.approx(
                getattr(found[by_policy], name), abs=1e-7
            )


def test_arms_that_are_not_on_offer_have_no_part_in_the_rule():
    offered = [[True, True, False], [True, False, True]]
    log = bf.History(
        ["a", "c"], [1, 1], arms=["a", "b", "c"], offered=offered, propensity=[0.5, 0.5]
    )
    rule = [0.2, 0.3, 0.5]
    found = policy_value(log, {"mine": rule}, family="bernoulli")["mine"]
    assert found.ips.value == pytest.approx((0.2 / 0.5 / 0.5 + 0.5 / 0.7 / 0.5) / 2)
    with pytest.raises(BayesfairError, match="every arm that is on offer in round 1"):
        policy_value(log, {"mine": [0, 1, 0]}, family="bernoulli")


def test_rounds_without_a_reward_are_left_out_and_said():
    log = bf.History(["a", "b", "a", "b"], [1, np.nan, 1, 0], propensity=[0.5, 0.5, 0.25, 0.25])
    found = policy_value(log, {"half": [0.5, 0.5]})
    assert (found.n_rounds, found.n_used) == (4, 3)
    assert found["half"].ips.value == pytest.approx((1 + 2 + 0) / 3)
    kinds = [notice.kind for notice in found.notices]
    assert "unobserved" in kinds and "small_effective_sample" in kinds


def test_probability_on_arms_that_were_never_chosen_is_said():
    log = bf.History(
        ["a", "b"] * 50, [1, 0] * 50, arms=["a", "b", "c"],
        selection_probability=[[0.5, 0.5, 0]] * 100,
    )  # fmt: skip
    found = policy_value(log, "uniform")
    assert found["uniform"].unsupported == pytest.approx(1 / 3)
    assert "unsupported" in [notice.kind for notice in found.notices]
    chosen = bf.History(["a", "b"] * 50, [1, 0] * 50, arms=["a", "b", "c"], propensity=[0.5] * 100)
    found = policy_value(chosen, "uniform")
    assert found["uniform"].mean_weight == pytest.approx(2 / 3)
    assert "mean_weight" in [notice.kind for notice in found.notices]


def test_what_is_no_rule_or_no_such_log_is_refused():
    log = bf.History(["a", "b"], [1, 0], propensity=[0.5, 0.5])
    with pytest.raises(bf.OptionError, match="Did you mean 'uniform'"):
        policy_value(log, "unifrom")
    with pytest.raises(bf.OptionError, match="is no rule"):
        policy_value(log, 7)
    with pytest.raises(bf.OptionError, match="twice"):
        policy_value(log, ["uniform", "uniform"])
    with pytest.raises(bf.OptionError, match="is empty"):
        policy_value(log, [])
    with pytest.raises(bf.DataError, match="expected \\(rounds, arms\\) = \\(2, 2\\)"):
        policy_value(log, np.full((3, 2), 0.5))
    with pytest.raises(bf.ProbabilityError, match=r"round 0 .*sum to 1"):
        policy_value(log, lambda log: np.full((2, 2), 0.6))
    with pytest.raises(bf.DataError, match="propensity=") as refused:
        policy_value(bf.History(["a", "b"], [1, 0]))
    assert refused.value.kind == "no_probabilities"
    with pytest.raises(bf.OptionError, match="must be a History"):
        policy_value([1, 2])


def test_several_logs_have_a_table_each_and_share_the_family():
    logs = {
        label: bf.History(["a", "b"] * 20, rewards * 20, propensity=[0.5] * 40)
        for label, rewards in (("x", [1, 0]), ("y", [1, 3]))
    }
    found = policy_value(logs)
    assert list(found) == ["x", "y"]
    assert found["x"].family == found["y"].family == "finite"
    assert found["y"]["uniform"].ips.value == 2  # every weight is 1
    assert found["y"].to_xarray()["value"].sel(rule="uniform", estimator="ips") == 2


def test_the_command_says_the_same_as_the_function(capsys, tmp_path):
    rng = np.random.default_rng(5)
    rows = [
        f"{'ab'[a]},{r},0.5,0.5,{s}" for a, r, s in zip(*rng.integers(0, 2, (3, 80)), strict=True)
    ]
    (tmp_path / "log.csv").write_text("arm,reward,p_a,p_b,site\n" + "\n".join(rows) + "\n")
    args = ("audit", tmp_path / "log.csv", "--draws", 40, "--value", "p_star,uniform,sd_ts")
    done = run(capsys, *args, "--json", tmp_path / "a.json")
    assert done.status == 0, done.err
    assert "Value of rules on" in done.out and "self-normalised" in done.out
    history = bf.read_history(tmp_path / "log.csv")
    found = json.loads((tmp_path / "a.json").read_text())["value"]
    assert found == policy_value(history, ["p_star", "uniform", "sd_ts"]).to_dict()
    done = run(capsys, *args, "--by", "site", "--json", tmp_path / "b.json")
    assert done.out.count("Value of rules on") == 2
    found = json.loads((tmp_path / "b.json").read_text())["value"]["groups"]
    logs = bf.read_history(tmp_path / "log.csv", by="site")
    assert found["1"] == policy_value(logs, ["p_star", "uniform", "sd_ts"])["1"].to_dict()
    for option, words in (("--scan", "--no-scan"), ("--probabilities=", "--propensity")):
        done = run(capsys, *args, option)
        assert (done.status, done.out) == (2, "") and words in done.err and "--value" in done.err


@pytest.mark.statistical
def test_the_intervals_hold_the_value_in_95_of_100_logs():
    """Fixed and learning rules; the truth is the mean over the rounds of the rule's reward."""
    n_logs, n_rounds, theta = 300, 300, np.array([0.7, 0.5, 0.3])
    rng = np.random.default_rng(7)
    held = {(rule, name): 0 for rule in ("fixed", "uniform", "p_star") for name in ESTIMATORS}
    for _ in range(n_logs):
        pi = rng.dirichlet([5, 5, 5], n_rounds) * 0.85 + 0.05
        arm = (rng.random((n_rounds, 1)) > np.cumsum(pi, axis=1)[:, :2]).sum(axis=1)
        reward = (rng.random(n_rounds) < theta[arm]).astype(float)
        log = bf.History(
            arm.astype(np.int32), reward, selection_probability=pi, arms=["a", "b", "c"]
        )
        found = policy_value(log, {"fixed": [0.6, 0.3, 0.1], "uniform": "uniform",
                                   "p_star": "p_star"}, family="bernoulli")  # fmt: skip
        best = bf.beliefs(log, family="bernoulli").best_arm_probability.values
        truth = {"fixed": 0.6 * 0.7 + 0.3 * 0.5 + 0.1 * 0.3, "uniform": 0.5,
                 "p_star": (best @ theta).mean()}  # fmt: skip
        for rule, name in held:
            _, lower, upper = getattr(found[rule], name)
            held[rule, name] += lower <= truth[rule] <= upper
    # .92 is the least coverage allowed, .98 the most: what 300 logs can show of that, at 1 in 1000
    low, high = binom.ppf(5e-4, n_logs, 0.92), binom.ppf(1 - 5e-4, n_logs, 0.98)
    assert all(low <= n <= high for n in held.values()), held


def test_a_context_that_the_values_do_not_use_is_said(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("leaf,arm,reward,p_a,p_b\nx,a,1,.5,.5\ny,b,1,.5,.5\nx,b,0,.5,.5\ny,a,0,.5,.5\n")
    found = policy_value(bf.read_history(log, context="leaf"))
    (said,) = [n for n in found.notices if n.kind == "context_unused"]
    assert (said.column, said.value) == ("context", ["leaf"])
    kinds = {n.kind for n in policy_value(bf.read_history(log)).notices}
    assert "context_unused" not in kinds
    given = ["--context", "leaf", "--context-model", "cells", "--value", "p_star"]
    assert "'leaf' is not used for the values" in run(capsys, "audit", log, *given).out


def test_a_value_of_a_log_read_in_parts_is_refused_in_the_words_of_the_shell(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("arm,reward,p_a,p_b\na,1,.5,.5\nb,1,.5,.5\n")
    status, _, err = run(capsys, "audit", log, "--scan", "--value", "p_star")
    assert status == 2 and "read_history" not in err
    assert err.count("--no-scan") == 1 and ".--no-scan" not in err
