"""Decision rules against exact references, closed forms, enumeration and brute force."""

from __future__ import annotations

import csv
import itertools
import json
import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.simulation.thompson import beta_best_mean_on_grid
from bayesfair.policies import (
    POLICIES,
    SDTS,
    UCB1,
    CalibratedOracle,
    ChainedConfidence,
    EpsilonGreedy,
    FairnessOfExposure,
    FairSDTS,
    Greedy,
    RandomisedPlayTheWinner,
    SDTSMixture,
    Softmax,
    Thompson,
    Uniform,
    policy_from_name,
)
from bayesfair.rewards import Finite

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
HISTORIES = json.loads((REFERENCE / "beta_bernoulli_histories.json").read_text())["cases"]

RULES = [
    SDTS(),
    SDTSMixture(weight=0.3),
    SDTSMixture(eps1=0.5),
    FairSDTS(eps2=0.4, delta=0.5, C=2),
    Uniform(),
    Greedy(),
    EpsilonGreedy(epsilon=0.2),
    UCB1(),
    Thompson(),
    RandomisedPlayTheWinner(),
    Softmax(temperature=0.2),
    ChainedConfidence(delta=0.2),
    FairnessOfExposure(sharpness=3.0, width=0.5),
    FairnessOfExposure(merit="power", sharpness=2.0, width=0.3),
]


def learned(rule, rounds, k, **start):
    state = rule.start(k, **start)
    for arm, reward in rounds:
        state = rule.update(state, arm, reward)
    return state


def enumerated_best_arm(laws):
    """P* by summing over all joint outcomes; laws: per arm {value: probability}."""
    best = np.zeros(len(laws))
    for outcome in itertools.product(*(law.items() for law in laws)):
        values = [value for value, _ in outcome]
        winners = [i for i, v in enumerate(values) if v == max(values)]
        best[winners] += math.prod(p for _, p in outcome) / len(winners)
    return best


# -- SD_TS ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", HISTORIES, ids=[c["id"] for c in HISTORIES])
def test_sd_ts_equals_the_exact_rule_before_every_round(case):
    rule = SDTS()
    state = rule.start(case["k"])
    for t, row in enumerate(case["rounds"]):
        s, f = state.table.T
        np.testing.assert_array_equal(s, row["S"]["float"])
        np.testing.assert_array_equal(f, row["F"]["float"])
        pi = rule.selection_probability(state)
        np.testing.assert_allclose(pi, row["sd_ts"]["float"], rtol=0, atol=1e-13)
        if t < case["T"]:
            state = rule.update(state, case["actions"][t], float(case["rewards"][t]))


def test_sd_ts_on_several_levels_is_enumeration_of_the_dirichlet_predictive():
    rng = np.random.default_rng(4)
    support = [-1.0, 0.5, 3.0]
    rounds = [(int(rng.integers(3)), support[rng.integers(3)]) for _ in range(25)]
    state = learned(SDTS(), rounds, 3, family="finite", support=support)
    laws = []
    for i in range(3):
        counts = [0.5 + sum(a == i and r == v for a, r in rounds) for v in support]
        laws.append({v: c / sum(counts) for v, c in zip(support, counts, strict=True)})
    np.testing.assert_allclose(
        SDTS().selection_probability(state), enumerated_best_arm(laws), atol=1e-14
    )


@pytest.mark.parametrize("d", [0.1, 0.01, 0.001])
def test_three_levels_reach_the_ratio_two_minus_d(d):
    laws = [{0: 0, 1: 1 - d, 2: d}, {0: d, 1: 1 - d, 2: 0}]
    pi = enumerated_best_arm(laws)
    assert (pi[0] - pi[1]) / d == pytest.approx(2 - d, rel=1e-10)
    oracle = CalibratedOracle(Finite([0, 1, 2], [[0, 1 - d, d], [d, 1 - d, 0]]))
    got = oracle.selection_probability(oracle.start(2, "finite", support=[0, 1, 2]))
    np.testing.assert_allclose(got, pi, atol=1e-14)


def test_the_mixture_sums_to_one_and_keeps_its_promise_on_three_levels():
    rng = np.random.default_rng(8)
    for eps in (0.1, 0.6, 1.0):
        rule = SDTSMixture(eps1=eps)
        for _ in range(60):
            k = int(rng.integers(2, 5))
            rounds = [(int(rng.integers(k)), float(rng.integers(3))) for _ in range(12)]
            state = learned(rule, rounds, k, family="finite", support=[0, 1, 2])
            pi = rule.selection_probability(state)
            assert pi.sum() == pytest.approx(1, abs=1e-13)
            pmf = state.prior + state.added
            pmf /= pmf.sum(axis=1, keepdims=True)
            tv = np.abs(pmf[:, None] - pmf[None]).sum(axis=-1) / 2
            assert np.all(np.abs(pi[:, None] - pi[None]) <= eps * tv + 1e-12)
    assert SDTSMixture(eps1=0.6).weight_for("bernoulli") == 0.6
    assert SDTSMixture(eps1=0.6).weight_for("finite") == 0.3


# -- Fair_SD_TS ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wins", "plays", "expected"), [((7, 5), 10, 0.8065), ((10, 9), 10, 16 / 21)]
)
def test_case_72_best_mean_is_not_the_best_arm(wins, plays, expected):
    rule = Thompson()
    rounds = [(i, float(j < w)) for i, w in enumerate(wins) for j in range(plays)]
    state = learned(rule, rounds, 2, prior=(1, 1))
    assert rule.selection_probability(state)[0] == pytest.approx(expected, abs=5e-5)
    assert SDTS().selection_probability(state)[0] < 0.6


def test_thompson_on_counts_is_the_incomplete_beta_function():
    rule = Thompson()
    rounds = [(0, 3.0), (0, 5.0), (1, 2.0), (1, 6.0), (1, 3.0)]
    state = learned(rule, rounds, 2, family="poisson")
    # Gamma(8.5, 2.5) against Gamma(11.5, 3.5)
    expected = special.betainc(11.5, 8.5, 3.5 / (2.5 + 3.5))
    np.testing.assert_allclose(
        rule.selection_probability(state), [expected, 1 - expected], atol=1e-9
    )
    even = rule.selection_probability(rule.start(7, "poisson"))
    np.testing.assert_allclose(even, 1 / 7, atol=1e-9)


def test_normal_rewards_by_integrating_student_t_laws():
    rewards = {0: [0.4, 1.9, -0.3], 1: [1.0, 1.2]}
    rounds = [(arm, r) for arm, values in rewards.items() for r in values]
    laws = []
    for values in rewards.values():  # normal-inverse-gamma(0, 1, 1, 1)
        n, mean = len(values), np.mean(values)
        scale = 1 + np.sum((values - mean) ** 2) / 2 + n * mean**2 / (2 * (1 + n))
        laws.append((2 * (1 + n / 2), n * mean / (1 + n), scale / (1 + n / 2), 1 + n))
    for rule, factor in (
        (SDTS(), lambda kappa: (kappa + 1) / kappa),
        (Thompson(), lambda c: 1 / c),
    ):
        first, second = (
            stats.t(df, loc, math.sqrt(s * factor(kappa))) for df, loc, s, kappa in laws
        )
        expected, _ = integrate.quad(
            lambda x, a=first, b=second: a.pdf(x) * b.cdf(x), -60, 60, limit=500, points=[0, 1]
        )
        state = learned(rule, rounds, 2, family="normal", prior=(0, 1, 1, 1))
        pi = rule.selection_probability(state)
        np.testing.assert_allclose(pi, [expected, 1 - expected], atol=1e-6)


def test_the_simulators_grid_and_the_pure_rule_integrate_the_same():
    rng = np.random.default_rng(2)
    rule = Thompson()
    for _ in range(40):
        k = int(rng.integers(2, 8))
        pulls = np.floor(10 ** rng.uniform(0, 5, k)) - 1
        total = np.floor(pulls * rng.beta(0.5, 0.5, k))
        state = rule.start(k)
        object.__setattr__(state, "pulls", pulls)
        object.__setattr__(state, "total", total)
        grid, whole = beta_best_mean_on_grid(*state.table.T)
        assert whole == pytest.approx(1, abs=1e-9)
        np.testing.assert_allclose(grid, rule.selection_probability(state), atol=2e-8)


# -- classic rules -------------------------------------------------------------------------------


def test_the_urn_is_the_one_of_the_ecmo_trial():
    text = resources.files("bayesfair.examples").joinpath("ecmo.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    arms = sorted({row["arm"] for row in rows})
    rule = RandomisedPlayTheWinner()
    state = rule.start(arms)
    for row in rows:
        pi = rule.selection_probability(state)
        expected = [float(row[f"p_{arm}"]) for arm in arms]
        np.testing.assert_allclose(pi, expected, atol=1e-6)
        state = rule.update(state, arms.index(row["arm"]), float(row["reward"]))


def test_classic_rules_by_hand():
    rounds = [(0, 1.0), (0, 1.0), (1, 1.0), (1, 0.0), (2, 1.0), (2, 0.0)]
    means = np.array([2.5 / 3, 0.5, 0.5])

    def pi(rule):
        return rule.selection_probability(learned(rule, rounds, 3))

    np.testing.assert_array_equal(pi(Greedy()), [1, 0, 0])
    np.testing.assert_allclose(pi(EpsilonGreedy(epsilon=0.3)), [0.8, 0.1, 0.1])
    weight = np.exp(means / 0.25)
    np.testing.assert_allclose(pi(Softmax(temperature=0.25)), weight / weight.sum())
    np.testing.assert_array_equal(pi(UCB1()), [1, 0, 0])  # equal bonuses
    np.testing.assert_allclose(pi(RandomisedPlayTheWinner()), np.array([4, 2.5, 2.5]) / 9)
    ties = learned(UCB1(), [(0, 1.0), (1, 1.0), (2, 0.0)], 3)
    np.testing.assert_array_equal(UCB1().selection_probability(ties), [0.5, 0.5, 0])
    few = learned(UCB1(), [(0, 1.0)] * 50 + [(1, 0.0)] * 2, 2)
    # 1 + sqrt(2 ln 52 / 50) = 1.398 against sqrt(2 ln 52 / 2) = 1.988
    np.testing.assert_array_equal(UCB1().selection_probability(few), [0, 1])


# -- rival notions -------------------------------------------------------------------------------


def chain_by_closure(lower, upper, active):
    """Arms connected to the highest upper end in the graph of overlapping intervals."""
    here = [i for i in range(len(lower)) if active[i]]
    reached = {max(here, key=lambda i: upper[i])}
    while True:
        more = {j for j in here for i in reached if lower[i] <= upper[j] and lower[j] <= upper[i]}
        if more <= reached:
            return reached
        reached |= more


def test_chained_confidence_is_the_connected_component_of_the_best_arm():
    rng = np.random.default_rng(5)
    rule = ChainedConfidence(delta=0.5)
    left_out = 0
    for _ in range(12):
        k = 5
        theta = rng.beta(0.3, 0.3, k)
        state = rule.start(k)
        lower, upper, active = np.zeros(k), np.ones(k), np.ones(k, dtype=bool)
        pulls, wins = np.zeros(k), np.zeros(k)
        for t in range(1, 600):
            pi = rule.selection_probability(state)
            arm = int(rng.choice(k, p=pi))
            reward = float(rng.random() < theta[arm])
            state = rule.update(state, arm, reward)
            pulls[arm] += 1
            wins[arm] += reward
            half = math.sqrt(math.log((math.pi * (t + 1)) ** 2 / 1.5) / (2 * pulls[arm]))
            lower[arm], upper[arm] = wins[arm] / pulls[arm] - half, wins[arm] / pulls[arm] + half
            chain = chain_by_closure(lower, upper, active)
            active = np.isin(np.arange(k), list(chain))
            np.testing.assert_allclose(
                rule.selection_probability(state), active / active.sum(), atol=1e-15
            )
        left_out += k - active.sum()
    assert left_out > 5  # the test has seen arms leave


@pytest.mark.parametrize("merit", ["exp", "power"])
def test_exposure_takes_the_most_favourable_means_of_the_box(merit):
    rng = np.random.default_rng(6)
    for _ in range(40):
        k = int(rng.integers(2, 6))
        rule = FairnessOfExposure(merit=merit, sharpness=rng.uniform(0.3, 8), width=rng.random())
        rounds = [(i, float(rng.random() < 0.5)) for i in [*range(k), *rng.integers(k, size=12)]]
        state = learned(rule, [(int(i), r) for i, r in rounds], k)
        half = rule.width / np.sqrt(state.pulls)
        low, high = np.maximum(state.mean - half, 0), np.minimum(state.mean + half, 1)

        def merit_of(mu, rule=rule):
            return np.exp(rule.sharpness * mu) if merit == "exp" else mu**rule.sharpness

        corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
        inside = low + (high - low) * rng.random((2000, k))
        every = np.concatenate([corners, inside])
        f = merit_of(every)
        keep = f.sum(axis=1) > 0
        f, every = f[keep], every[keep]
        value = (f * every).sum(axis=1) / f.sum(axis=1)
        same = np.abs(f / f.sum(axis=1, keepdims=True) - rule.selection_probability(state)) < 1e-12
        assert value[same.all(axis=1)].max() == pytest.approx(value.max(), abs=1e-12)


def test_no_merit_at_all_is_shared_evenly():
    rule = FairnessOfExposure(merit="power", sharpness=2.0, width=0.0)
    state = learned(rule, [(0, 0.0), (1, 0.0)], 2)
    np.testing.assert_array_equal(rule.selection_probability(state), [0.5, 0.5])


# -- what all rules share ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
def test_rules_are_distributions_equivariant_under_permutation_and_subsets(rule):
    rng = np.random.default_rng(9)
    for _ in range(8):
        k = int(rng.integers(2, 6))
        rounds = [
            (int(rng.integers(k)), float(rng.random() < 0.5)) for _ in range(rng.integers(30))
        ]
        state = learned(rule, rounds, k)
        pi = rule.selection_probability(state)
        assert np.all(pi >= 0)
        assert pi.sum() == pytest.approx(1, abs=1e-12)
        order = rng.permutation(k)
        place = np.argsort(order)
        shuffled = learned(rule, [(int(place[a]), r) for a, r in rounds], k)
        np.testing.assert_allclose(rule.selection_probability(shuffled), pi[order], atol=2e-9)
        offered = rng.random(k) < 0.6
        offered[rng.integers(k)] = True
        some = rule.selection_probability(state, offered)
        np.testing.assert_array_equal(np.isnan(some), ~offered)
        assert np.nansum(some) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
def test_updates_leave_the_old_state_alone(rule):
    state = rule.start(3)
    before = rule.selection_probability(state)
    rule.update(rule.update(state, 0, 1.0), 1, 0.0)
    np.testing.assert_array_equal(rule.selection_probability(state), before)


def test_the_oracle_is_calibrated_among_the_arms_on_offer():
    rule = CalibratedOracle([0.9, 0.5, 0.1])
    state = rule.start(3)
    np.testing.assert_allclose(rule.selection_probability(state), [0.66, 0.28, 0.06], atol=1e-12)
    pi = rule.selection_probability(state, [False, True, True])
    expected = enumerated_best_arm([{1: 0.5, 0: 0.5}, {1: 0.1, 0: 0.9}])
    np.testing.assert_allclose(pi[1:], expected, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: SDTS().update(SDTS().start(2), 0, 0.5),
            "arm 0 is 0.5; family='bernoulli' needs 0 or 1",
        ),
        (
            lambda: SDTS().update(SDTS().start(2, "finite", support=[1, 2]), 1, 3.0),
            "arm 1 is 3; family='finite' needs one of the values '1', '2'",
        ),
        (
            lambda: SDTS().update(SDTS().start(2, "poisson"), 0, -1.0),
            "arm 0 is -1; family='poisson' needs whole numbers",
        ),
        (
            lambda: SDTS().selection_probability(SDTS().start(2), [False, False]),
            "at least one",
        ),
    ],
)
def test_impossible_data_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SDTS().start(0), "arms=0"),
        (lambda: SDTS().start(2, "binomial"), "'binomial'.*bernoulli"),
        (lambda: SDTS().start(2, "finite"), "support=None"),
        (lambda: SDTS().start(2, "finite", support=[2, 1]), "increasing"),
        (lambda: SDTS().start(2, prior=(0, 1)), "prior"),
        (SDTSMixture, "weight= .*or eps1="),
        (lambda: SDTSMixture(weight=0.1, eps1=0.1), "weight= .*or eps1="),
        (lambda: SDTSMixture(weight=1.1), r"weight=1.1 must be a number in \[0, 1\]"),
        (lambda: FairSDTS(eps2=0), r"eps2=0 must be a number in \(0"),
        (lambda: FairSDTS(delta=2), "delta=2"),
        (lambda: EpsilonGreedy(epsilon=-1), "epsilon=-1"),
        (lambda: Softmax(temperature=0), "temperature=0"),
        (lambda: RandomisedPlayTheWinner().start(2, "normal"), "not defined for normal"),
        (
            lambda: ChainedConfidence().start(2, "finite", support=[0, 5]),
            r"needs rewards in \[0, 1\]",
        ),
        (lambda: CalibratedOracle().start(2), "needs truth="),
        (lambda: CalibratedOracle([0.5]).start(2), "1 arms, the run 2"),
        (
            lambda: policy_from_name("fair_sdts"),
            "'fair_sdts' is not known.*Did you mean 'fair_sd_ts'",
        ),
        (
            lambda: policy_from_name("fair_sd_ts", {"eps_2": 1}),
            "fair_sd_ts has no parameter 'eps_2'. Parameters: eps2, delta, C.*Did you mean 'eps2'",
        ),
        (lambda: policy_from_name("sd_ts", {"eps2": 1}), "sd_ts has no parameter 'eps2'"),
        (lambda: policy_from_name("softmax", {"temperature": "hot"}), "'hot' must be a number"),
    ],
)
def test_impossible_options_are_named(call, message):
    with pytest.raises(OptionError, match=message):
        call()


def test_names_and_text_parameters_make_the_same_rules():
    assert policy_from_name("fair_sd_ts", {"eps2": "0.2", "C": "sqrt", "n_rounds": "100"}) == (
        FairSDTS(eps2=0.2, C="sqrt", n_rounds=100)
    )
    assert policy_from_name("Fair-SD-TS", {"C": "30"}) == FairSDTS(C=30.0)
    assert policy_from_name("sd_ts_mixture", {"weight": "1e-1"}) == SDTSMixture(weight=0.1)
    assert {"sd_ts", "sd_ts_mixture", "fair_sd_ts", "fair_sd_dts", "thompson"} <= set(POLICIES)
    for name, cls in POLICIES.items():
        assert cls.name == name
