"""The simulator: compiled runs against the rules' own pure functions, options, reproducibility."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bayesfair.errors import ArmError, BayesfairWarning, DataError, OptionError
from bayesfair.performance import fairness_regret_per_round, tradeoff, utility
from bayesfair.policies import (
    POLICIES,
    SDTS,
    UCB1,
    CalibratedOracle,
    EpsilonGreedy,
    FairSDTS,
    Greedy,
    RandomisedPlayTheWinner,
    SDTSMixture,
    Softmax,
    Thompson,
    Uniform,
)
from bayesfair.rewards import Bernoulli, Empirical, Finite, StudentT
from bayesfair.simulation.arms import drifting_rewards, simulate

COMPILED = [
    SDTS(),
    SDTSMixture(weight=0.25),
    FairSDTS(eps2=0.2, delta=0.2, C=6),
    FairSDTS(eps2=0.2, delta=0.2, C=6.5),
    Uniform(),
    CalibratedOracle(),
    Thompson(),
    Greedy(),
    EpsilonGreedy(epsilon=0.2),
    UCB1(),
    UCB1(c=0.3),
    Softmax(temperature=0.05),
    RandomisedPlayTheWinner(start_balls=0.5, added_balls=2.0),
]


def offered_at_random(n_rounds, k, seed=0):
    rng = np.random.default_rng(seed)
    mask = rng.random((n_rounds, k)) < 0.6
    mask[np.arange(n_rounds), rng.integers(k, size=n_rounds)] = True
    return mask


def replayed(rule, history, prior=None):
    """Selection probabilities from the log alone, round by round."""
    state = rule.start(history.arms, prior=prior)
    known_at = history.known_at
    if known_at is None:
        known_at = np.arange(1, history.n_rounds + 1)
    order = np.argsort(known_at, kind="stable")
    rows, done = [], 0
    for t in range(history.n_rounds):
        while done < history.n_rounds and known_at[order[done]] <= t:
            s = order[done]
            assert s < t
            state = rule.update(state, int(history.arm[s]), float(history.reward[s]))
            done += 1
        offered = None if history.offered is None else history.offered[t]
        rows.append(rule.selection_probability(state, offered))
    return np.array(rows)


OPTIONS = {
    "plain": {},
    "batch": {"batch": 7},
    "delay": {"delay": 5},
    "random delay": {"delay": lambda rng, n: rng.geometric(0.2, n) - 1},
    "batch and delay": {"batch": 4, "delay": 3},
    "drift": {"drift": 0.05},
    "prior": {"prior": {"1": (2.0, 5.0)}},
    "offered": {"offered": offered_at_random(300, 4)},
    "everything": {
        "batch": 3,
        "delay": lambda rng, n: rng.integers(0, 20, n),
        "drift": 0.02,
        "offered": offered_at_random(300, 4, 1),
    },
}


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        pytest.param(rule, options, id=f"{rule.describe()}-{label}")
        for rule in COMPILED
        for label, options in OPTIONS.items()
        if not (isinstance(rule, CalibratedOracle) and "drift" in options)  # it knows one truth
    ],
)
def test_compiled_runs_log_what_the_rules_say_of_their_history(rule, options):
    theta = [0.15, 0.5, 0.5, 0.85]
    # the pure Thompson rule integrates in every round: batches, delays, drift are seen in 90
    n_rounds = 90 if isinstance(rule, Thompson) else 300
    if "offered" in options:
        options = options | {"offered": options["offered"][:n_rounds]}
    history = simulate(rule, theta, n_rounds, seed=11, **options)
    full = rule.for_run(4, 10_000, Bernoulli(theta))
    expected = replayed(full, history, options.get("prior"))
    # Thompson: two quadratures, each to 1e-8; the rest differ by rounding
    atol = 2e-8 if isinstance(rule, Thompson) else 1e-12
    np.testing.assert_allclose(history.selection_probability, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("k", [1, 2, 3, 40, 150])
@pytest.mark.parametrize(
    "rule",
    [
        SDTS(),
        FairSDTS(eps2=0.2, delta=0.2, C=1),
        Thompson(),
        EpsilonGreedy(),
        UCB1(),
        Softmax(),
        RandomisedPlayTheWinner(),
    ],
    ids=lambda rule: rule.name,
)
def test_compiled_runs_at_other_sizes(rule, k):
    n_rounds = 120 if isinstance(rule, Thompson) and k > 3 else 2500
    history = simulate(rule, np.linspace(0.02, 0.98, k), n_rounds, seed=3)
    pi = history.selection_probability
    for t in (0, 1, n_rounds // 2, n_rounds - 1):
        state = rule.start(k)
        for a, r in zip(history.arm[:t], history.reward[:t], strict=True):
            state = rule.update(state, int(a), float(r))
        atol = 2e-8 if isinstance(rule, Thompson) else 1e-12
        np.testing.assert_allclose(pi[t], rule.selection_probability(state), atol=atol)


def test_thompson_stays_exact_while_posteriors_become_narrow():
    history = simulate(Thompson(), [0.5, 0.48, 0.1], 200_000, seed=4)
    for t in (1_000, 20_000, 199_999):
        pulls, total = history.before(t).counts()
        known = np.stack([total, pulls - total], axis=1)
        state = replace(Thompson().start(3), pulls=pulls.astype(float), total=total, added=known)
        np.testing.assert_allclose(
            history.selection_probability[t], Thompson().selection_probability(state), atol=2e-8
        )


@pytest.mark.parametrize(
    "name", [n for n in POLICIES if n not in ("fair_sd_dts", "calibrated_oracle")]
)
def test_every_rule_runs_by_name_and_replays(name):
    params = {"sd_ts_mixture": SDTSMixture(weight=0.5), "fair_sd_ts": FairSDTS(C=3)}
    rule = params.get(name, POLICIES[name]() if name not in params else None)
    history = simulate(rule, [0.3, 0.6, 0.6], 150, seed=2, offered=offered_at_random(150, 3))
    np.testing.assert_allclose(history.selection_probability, replayed(rule, history), atol=2e-8)


def test_several_levels_and_their_family():
    truth = Finite([1, 2, 5], [[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]], arms=["a", "b"])
    history = simulate(SDTS(), truth, 400, seed=9, batch=2)
    rule = SDTS()
    state = rule.start(["a", "b"], "finite", support=[1, 2, 5])
    for t in range(400):
        if t % 2 == 0 and t:
            for s in (t - 2, t - 1):
                state = rule.update(state, int(history.arm[s]), history.reward[s])
        np.testing.assert_allclose(
            history.selection_probability[t], rule.selection_probability(state), atol=1e-13
        )
    assert history.arms == ("a", "b")
    assert set(np.unique(history.reward)) == {1, 2, 5}


def test_coins_may_be_learned_as_two_levels_and_draws_of_coins_as_coins():
    theta = [0.6, 0.3, 0.5]
    coins = simulate(SDTS(), theta, 200, seed=8)
    levels = simulate(SDTS(), theta, 200, seed=8, family="finite")
    # Dirichlet(1/2) on two levels is Beta(1/2, 1/2): the same rule, though other rewards are drawn
    state = SDTS().start(3)
    for t in range(200):
        pi = SDTS().selection_probability(state)
        np.testing.assert_allclose(levels.selection_probability[t], pi, atol=1e-12)
        state = SDTS().update(state, int(levels.arm[t]), float(levels.reward[t]))
    assert coins.selection_probability[0] == pytest.approx(levels.selection_probability[0])
    draws = Empirical(np.random.default_rng(0).integers(0, 2, (500, 2)).astype(float))
    rule = FairSDTS(eps2=0.4, delta=0.5)  # C = log(2 * 2 / .5) / (2 * .16) = 6.5
    run = simulate(rule, draws, 300, seed=1, family="bernoulli")
    plays = np.cumsum(run.arm[:, None] == np.arange(2), axis=0)
    explores = np.ptp(run.selection_probability, axis=1) == 0
    first = int(np.flatnonzero((plays > 6.5).all(axis=1))[0]) + 1
    assert explores[:first].all()
    assert not explores[first]


def test_rewards_that_no_rule_learns_need_a_family():
    truth = StudentT([3.0, 3.0], [0.0, 1.0], [1.0, 1.0])
    with pytest.raises(OptionError, match=r"no rule learns under StudentT .* family="):
        simulate(SDTS(), truth, 10, seed=1)
    history = simulate(SDTS(), truth, 60, seed=1, family="normal")
    rule = SDTS()
    state = rule.start(2, "normal")
    for t in range(60):
        expected = rule.selection_probability(state)
        np.testing.assert_allclose(history.selection_probability[t], expected, atol=1e-13)
        state = rule.update(state, int(history.arm[t]), history.reward[t])


def test_runs_are_reproducible_and_do_not_depend_on_how_many_there_are():
    one = simulate(SDTS(), [0.6, 0.5], 500, seed=3)
    three = simulate(SDTS(), [0.6, 0.5], 500, seed=3, n_runs=3)
    assert list(three) == ["0", "1", "2"]
    for other in (three["0"], simulate("sd_ts", {"a": 0.6, "b": 0.5}, 500, seed=3)):
        np.testing.assert_array_equal(one.arm, other.arm)
        np.testing.assert_array_equal(one.reward, other.reward)
        np.testing.assert_array_equal(one.selection_probability, other.selection_probability)
    assert not np.array_equal(three["1"].arm, one.arm)
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(simulate(SDTS(), [0.6, 0.5], 500, seed=rng).arm, one.arm)


def test_rules_that_agree_see_the_same_world():
    fair = FairSDTS(eps2=0.3, delta=0.5, C=40)
    explored = simulate(fair, [0.7, 0.2, 0.4], 200, seed=6)
    uniform = simulate("uniform", [0.7, 0.2, 0.4], 200, seed=6)
    same = int(np.argmax(np.ptp(explored.selection_probability, axis=1) > 0))
    assert same > 100
    np.testing.assert_array_equal(explored.arm[:same], uniform.arm[:same])
    np.testing.assert_array_equal(explored.reward[:same], uniform.reward[:same])


def test_batches_and_delays_say_when_a_reward_was_known():
    plain = simulate(SDTS(), [0.6, 0.5], 12, seed=1)
    assert plain.known_at is None
    batched = simulate(SDTS(), [0.6, 0.5], 12, seed=1, batch=5)
    np.testing.assert_array_equal(batched.known_at, [5] * 5 + [10] * 5 + [15] * 2)
    late = simulate(SDTS(), [0.6, 0.5], 6, seed=1, delay=[0, 4, 0, 0, 9, 0])
    np.testing.assert_array_equal(late.known_at, [1, 6, 3, 4, 14, 6])
    both = simulate(SDTS(), [0.6, 0.5], 6, seed=1, delay=1, batch=4)
    np.testing.assert_array_equal(both.known_at, [4, 4, 4, 8, 8, 8])


def test_arms_come_and_go():
    history = simulate(SDTS(), {"a": 0.6, "b": 0.5, "c": 0.4}, 50, seed=1, offered={"c": (10, 30)})
    pi = history.selection_probability
    assert np.isnan(pi[:10, 2]).all()
    assert np.isnan(pi[30:, 2]).all()
    assert not np.isnan(pi[10:30]).any()
    np.testing.assert_allclose(np.nansum(pi, axis=1), 1)
    assert not np.any(history.arm[30:] == 2)


def test_drifting_truth_is_given_back_by_its_seed():
    path = drifting_rewards([0.6, 0.5], 3000, drift=0.03, seed=4)
    assert path.mean.shape == (3000, 2)
    logit = np.log(path.mean / (1 - path.mean))
    steps = np.diff(logit, axis=0)
    # chi-square of 5998 steps: five standard deviations
    assert abs(np.sum((steps / 0.03) ** 2) - steps.size) < 5 * math.sqrt(2 * steps.size)
    by_number = simulate("uniform", [0.6, 0.5], 3000, drift=0.03, seed=4)
    by_path = simulate("uniform", path, 3000, seed=4)
    np.testing.assert_array_equal(by_number.reward, by_path.reward)
    residual = by_path.reward - path.mean[np.arange(3000), by_path.arm]
    assert abs(residual.sum()) < 4.5 * math.sqrt(3000 / 4)


@pytest.mark.statistical
@pytest.mark.parametrize("rule", [SDTS(), Thompson(), EpsilonGreedy()], ids=lambda r: r.name)
def test_plays_and_rewards_follow_what_was_logged(rule):
    theta = np.array([0.2, 0.5, 0.7])
    history = simulate(rule, theta, 20_000, seed=12)
    pi = history.selection_probability
    for i in range(3):
        z = ((history.arm == i) - pi[:, i]).sum() / math.sqrt((pi[:, i] * (1 - pi[:, i])).sum())
        assert abs(z) < 4.5  # 18 normal statistics in all: 1e-4
        n = (history.arm == i).sum()
        won = history.reward[history.arm == i].sum()
        assert abs(won - n * theta[i]) < 4.5 * math.sqrt(n * theta[i] * (1 - theta[i]))


def test_exploration_that_fills_the_run_warns():
    with pytest.warns(BayesfairWarning, match="explores throughout"):
        history = simulate(FairSDTS(eps2=0.1, delta=0.1), [0.6, 0.5], 300, seed=1)
    np.testing.assert_array_equal(history.selection_probability, 0.5)


# -- utility -------------------------------------------------------------------------------------


def test_utility_by_hand():
    uniform = simulate("uniform", [0.9, 0.5, 0.1], 1000, seed=1)
    result = utility(uniform, [0.9, 0.5, 0.1])
    assert result.standard_regret == pytest.approx(400)
    assert result.reward_per_round == pytest.approx(0.5)
    # P* = .66, .28, .06 (design.md section 7): only the first falls short of 1/3
    assert result.fairness_regret_per_round == pytest.approx(0.66 - 1 / 3)
    assert result.observed_reward_per_round == uniform.reward.mean()
    oracle = utility(simulate("calibrated_oracle", [0.9, 0.5, 0.1], 10, seed=1), [0.9, 0.5, 0.1])
    assert oracle.fairness_regret == pytest.approx(0, abs=1e-12)
    assert oracle.standard_regret_per_round == pytest.approx(0.9 - (0.66 * 0.9 + 0.14 + 0.006))
    assert set(utility({"x": uniform}, [0.9, 0.5, 0.1])) == {"x"}


def test_utility_among_the_arms_on_offer_and_under_drift():
    mask = np.ones((40, 3), dtype=bool)
    mask[:20, 0] = False
    history = simulate("uniform", [0.9, 0.5, 0.1], 40, seed=1, offered=mask)
    result = utility(history, [0.9, 0.5, 0.1])
    assert result.standard_regret == pytest.approx(20 * (0.5 - 0.3) + 20 * 0.4)
    two = 0.5 * 0.9 + 0.5 * (0.5 * 0.1 + 0.5 * 0.9)
    expected = 20 * (two - 0.5) + 20 * (0.66 - 1 / 3)
    assert result.fairness_regret == pytest.approx(expected)
    path = drifting_rewards([0.9, 0.5, 0.1], 40, drift=0.5, seed=2)
    drifting = simulate("uniform", path, 40, seed=2, offered=mask)
    per_round = fairness_regret_per_round(drifting, path)
    for t in (0, 25, 39):
        best = path[t].best_arm_probability(offered=mask[t])
        assert per_round[t] == pytest.approx(np.nansum(np.maximum(best - 1 / mask[t].sum(), 0)))


def test_utility_of_logs_without_probabilities():
    history = simulate("uniform", [0.9, 0.5], 100, seed=1)
    bare = type(history)(history.arm, history.reward, arms=history.arms)
    result = utility(bare, [0.9, 0.5])
    assert result.fairness_regret is None
    assert result.standard_regret == pytest.approx(0.4 * (history.arm == 1).sum())
    with pytest.raises(DataError, match="needs all selection probabilities"):
        fairness_regret_per_round(bare, [0.9, 0.5])


def test_tradeoff_ends_are_the_uniform_the_calibrated_and_the_greedy_rule():
    theta = [0.9, 0.5, 0.1]
    curve = tradeoff(theta, weights=[0, 1], divergences=["total_variation", "hellinger"])
    np.testing.assert_allclose(curve.fairness_regret, [0.66 - 1 / 3, 0], atol=1e-12)
    np.testing.assert_allclose(curve.standard_regret, [0.4, 0.9 - 0.74], atol=1e-12)
    np.testing.assert_allclose(curve.smallest_eps1[0], 0, atol=1e-12)
    assert 0 < float(curve.smallest_eps1.sel(weight=1, divergence="total_variation")) <= 1
    greedy = tradeoff(theta, towards="greedy", weights=[0.0])
    assert float(greedy.standard_regret[0]) == 0
    assert float(greedy.fairness_regret[0]) == pytest.approx(0.34)
    tied = tradeoff([0.5, 0.5, 0.1], towards="greedy", weights=[0.0])
    assert float(tied.smallest_eps1[0, 0]) == pytest.approx(0.5 / 0.4)
    every = tradeoff(theta)
    assert np.all(np.diff(every.fairness_regret) < 0)
    assert np.all(np.diff(every.smallest_eps1[:, 0]) > 0)


# -- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "arguments", "message"),
    [
        (OptionError, {"policy": "sdts"}, "policy='sdts' is not known.*'sd_ts'"),
        (OptionError, {"policy": 3}, "neither a rule"),
        (OptionError, {"n_rounds": -1}, "n_rounds=-1"),
        (OptionError, {"seed": None}, "seed= is required"),
        (OptionError, {"batch": 0}, "batch=0"),
        (OptionError, {"batch": 2.5}, "whole number from 1"),
        (OptionError, {"n_rounds": 10.5}, "whole number from 0"),
        (OptionError, {"seed": None, "drift": 0.1}, "seed= is required"),
        (OptionError, {"policy": "fair_sd_dts"}, "simulate_duels"),
        (OptionError, {"delay": -1}, "delay=-1 must be"),
        (OptionError, {"delay": "x"}, "delay='x' must be"),
        (OptionError, {"delay": 1.7}, "delay=1.7 must be"),
        (OptionError, {"delay": [[1], [1, 2]]}, "delay="),
        (OptionError, {"offered": {"0": 3}}, r"offered\['0'\]=3 must be two whole"),
        (OptionError, {"offered": {"0": (0, 1.5)}}, r"offered\['0'\]=\(0, 1.5\) must be"),
        (OptionError, {"delay": [1, 2]}, "one for each of the 20"),
        (OptionError, {"n_runs": 0}, "n_runs=0"),
        (OptionError, {"family": "binomial"}, "family='binomial'"),
        (OptionError, {"rewards": np.full((3, 2), 0.5)}, "one for each of the 20 rounds"),
        (DataError, {"rewards": [0.5, 1.5]}, "mean of arm '1' is 1.5"),
        (DataError, {"offered": np.ones((2, 2))}, r"offered has shape \(2, 2\)"),
        (DataError, {"offered": np.zeros((20, 2))}, "no arm is on offer in round 0"),
        (ArmError, {"offered": {"b": (0, 3)}}, "no arm 'b'"),
        (OptionError, {"drift": -1}, "drift=-1"),
        (OptionError, {"rewards": [0.0, 0.5], "drift": 0.1}, "inside"),
        (OptionError, {"policy": "calibrated_oracle", "drift": 0.1}, "cannot follow"),
    ],
)
def test_mistakes_are_named(error, arguments, message):
    call = {"policy": SDTS(), "rewards": [0.6, 0.5], "n_rounds": 20, "seed": 1, **arguments}
    policy, rewards, n_rounds = (call.pop(name) for name in ("policy", "rewards", "n_rounds"))
    with pytest.raises(error, match=message):
        simulate(policy, rewards, n_rounds, **call)


def test_truths_that_do_not_fit_a_log_are_named():
    history = simulate("uniform", {"a": 0.6, "b": 0.5}, 10, seed=1)
    with pytest.raises(ArmError, match=r"rewards= has 3 arms .* the log has 2: 'a', 'b'"):
        utility(history, [0.1, 0.2, 0.3])
    with pytest.raises(ArmError, match="'b', 'c' on one side only") as caught:
        utility(history, {"c": 0.5, "a": 0.6})
    assert (caught.value.kind, caught.value.column) == ("other_arms", "rewards")
    # laws are matched by label, in any order
    assert utility(history, {"b": 0.5, "a": 0.6}) == utility(history, {"a": 0.6, "b": 0.5})
    with pytest.raises(DataError, match="the log has 10 rounds"):
        utility(history, np.full((4, 2), 0.5))


def test_no_rounds_at_all():
    history = simulate(SDTS(), [0.6, 0.5], 0, seed=1)
    assert history.n_rounds == 0
    assert history.selection_probability.shape == (0, 2)
