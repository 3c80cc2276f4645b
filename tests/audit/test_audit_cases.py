"""What users stumble on, each case with its right value (numbers as in the cases' list)."""

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.kernels.laws.best_mean import beta_best_mean


def notices(result, start):
    return [n for n in result.to_dict()["notices"] if n.startswith(start)]


def test_case_50_order_matters_and_is_restored(tmp_path):
    rows = {1: "1,A,1", 2: "2,B,0", 3: "3,A,1"}
    path = tmp_path / "log.csv"
    path.write_text("when,arm,reward\n" + "\n".join(rows[i] for i in (1, 3, 2)) + "\n")
    in_time = bf.read_history(path, order="when")
    as_filed = bf.read_history(path)
    prior = (1, 1)
    best = bf.audit(in_time, prior=prior, objective=False).rounds()["best_arm_probability"][:, 0]
    np.testing.assert_allclose(best, [0.5, 7 / 12, 2 / 3], atol=1e-12)
    filed = bf.audit(as_filed, prior=prior, objective=False).rounds()["best_arm_probability"][:, 0]
    np.testing.assert_allclose(filed, [0.5, 7 / 12, 0.625], atol=1e-12)
    after = bf.audit(in_time, prior=prior, objective=False).state.posterior
    m = after[:, 0] / after.sum(axis=1)
    assert (1 + m[0] - m[1]) / 2 == pytest.approx(0.708333333333)
    assert any("sort" in n for n in in_time.notices)


def test_case_60_nothing_logged_tests_frequencies():
    log = bf.History(["a", "a", "b", "a"] * 10, [1, 0, 0, 1] * 10)
    result = bf.audit(log, seed=1)
    numbers = result.to_dict()
    assert result.verdict == "not_auditable"
    assert numbers["calibration"]["subjective"]["regret_per_round"] is None
    assert notices(result, "No selection probabilities were logged")
    assert "95 %" in str(result)  # shares with intervals
    assert numbers["calibration"]["effective_sample_size"] is None  # no importance sampling


def test_case_60_lower_bound_grows_to_the_true_distance():
    # 100 000 rounds always on the worse arm: shares (0, 1), mean P* close to (0.9, 0.1) in truth
    n = 100_000
    rng = np.random.default_rng(1)
    arm = np.ones(n, dtype=int)
    arm[::2] = 0
    reward = np.where(arm == 0, rng.random(n) < 0.9, rng.random(n) < 0.1)
    numbers = bf.audit(bf.History(arm, reward), truth=bf.rewards.Bernoulli([0.9, 0.1])).to_dict()
    # P* = (0.9, 0.1), shares (1/2, 1/2): distance 0.4, known up to sampling noise
    assert numbers["calibration"]["objective"]["lower"] == pytest.approx(0.4, abs=0.01)
    assert numbers["calibration"]["objective"]["lower"] <= 0.4


def test_case_61_one_half_logged_for_an_arm_that_is_always_chosen():
    log = bf.History(["A"] * 100, [1] * 100, propensity=[0.5] * 100, arms=["A", "B"])
    (text,) = notices(bf.audit(log, seed=1), "The choices do not fit")
    assert "'A' was chosen 100 times" in text
    assert "add up to 50.0" in text
    assert "z = 10.0" in text
    full = bf.History(
        ["A"] * 100, [1] * 100, arms=["A", "B"], selection_probability=[[0.5, 0.5]] * 100
    )
    assert any(
        "'A' was chosen 100 times" in n and "z = 10.0" in n
        for n in bf.audit(full, seed=1).to_dict()["notices"]
    )


def test_case_64_propensities():
    log = bf.History(["a", "b"], [0, 1], propensity=[1.0000001, 0.5])
    assert log.propensity[0] == 1.0
    for bad, said in [(-0.127, "below 0"), (-1.386, "logarithms"), (25, "percent")]:
        with pytest.raises(bf.ProbabilityError, match=said):
            bf.History(["a", "b"], [0, 1], propensity=[0.5 if bad > -1 else -2.0, bad])
    with pytest.raises(bf.ProbabilityError, match=r"sum to 1\.5"):
        bf.History(["a"], [0], arms=["a", "b", "c"], selection_probability=[[0.5, 0.5, 0.5]])


def test_case_65_one_tiny_propensity_is_reported_and_cannot_rule_the_estimate():
    rng = np.random.default_rng(3)
    p = np.full(1000, 0.5)
    arm = rng.integers(0, 2, 1000)
    p[500] = 1e-6
    numbers = bf.audit(
        bf.History(arm, rng.integers(0, 2, 1000), propensity=p), objective=False
    ).to_dict()["calibration"]
    assert numbers["max_weight"] > 1e5
    assert numbers["effective_sample_size"] < 2
    # the estimate is an average of terms in [0, 1]: one row moves it by at most 1/1000
    p[500] = 0.5
    clean = bf.audit(
        bf.History(arm, rng.integers(0, 2, 1000), propensity=p), objective=False
    ).to_dict()["calibration"]
    moved = numbers["subjective"]["regret_per_round"] - clean["subjective"]["regret_per_round"]
    assert abs(moved) < 0.05


def test_case_68_chosen_only_says_what_is_skipped():
    result = bf.audit(bf.History(["a", "b"], [0, 1], propensity=[0.5, 0.5]), seed=1)
    assert result.subjective_verdict == "not_auditable"
    assert result.to_dict()["subjective"]["smallest_eps2"] is None
    assert notices(result, "Only the chosen arm's probability was logged")


def test_case_70_two_bernoulli_arms():
    truth = bf.rewards.Bernoulli([0.7, 0.5])
    for pi, regret in [((0.9, 0.1), 0.3), ((1.0, 0.0), 0.4), ((0.5, 0.5), 0.1), ((0.6, 0.4), 0.0)]:
        log = bf.History([0], [1], selection_probability=[pi])
        result = bf.audit(log, eps1=2, eps2=0, truth=truth)
        assert result.regret_objective.value == pytest.approx(regret, abs=1e-12)
    log = bf.History([0], [1], selection_probability=[(0.9, 0.1)])
    result = bf.audit(log, eps1=2, eps2=0, truth=truth).to_dict()
    assert result["objective"]["smallest_eps2"]["mean"] == pytest.approx(0.4)
    own = bf.History([0], [1], selection_probability=[(0.6, 0.4)])
    assert bf.audit(own, eps1=1, eps2=0, truth=truth).objective_verdict == "fair"


@pytest.mark.parametrize(
    ("theta", "best"),
    [
        ((0.9, 0.5, 0.1), (0.66, 0.28, 0.06)),
        ((0.8, 0.5, 0.2), (0.57333333333, 0.30333333333, 0.12333333333)),
        ((0.3,) * 4, (0.25,) * 4),
    ],
)
def test_case_71_three_bernoulli_arms(theta, best):
    found = bf.best_arm_probability(bf.rewards.Bernoulli(theta))
    np.testing.assert_allclose(found, best, atol=1e-10)


def test_utility_is_reported_beside_fairness_where_the_truth_is_known():
    # always arm 1 of (1; 0 or 2 with P = .4) pays 1.0 per round, always arm 2 pays 0.8
    truth = bf.rewards.Finite(support=[0, 1, 2], pmf=[[0, 1, 0], [0.6, 0, 0.4]])
    log = bf.History(
        ["b"] * 10, [0.0] * 10, arms=["a", "b"], selection_probability=[[0.0, 1.0]] * 10
    )
    result = bf.audit(log, family="finite", truth=truth)
    found = result.to_dict()["utility"]
    assert found["reward_per_round"] == pytest.approx(0.8)
    assert found["standard_regret"] == pytest.approx(2.0)
    assert result.regret_objective.value == pytest.approx(0.6)  # P* = (.6, .4)
    assert "standard regret 2.0" in str(result)


def test_example_1_of_the_paper():
    truth = bf.rewards.Finite(support=[0, 1, 2], pmf=[[0, 1, 0], [0.6, 0, 0.4]])
    for pi, regret in [((1, 0), 0.4), ((0.5, 0.5), 0.1), ((0.6, 0.4), 0.0)]:
        log = bf.History([0], [1.0], selection_probability=[pi])
        result = bf.audit(log, family="finite", truth=truth)
        assert result.regret_objective.value == pytest.approx(regret, abs=1e-12)


def test_case_71_regrets():
    truth = bf.rewards.Bernoulli([0.9, 0.5, 0.1])
    for pi, regret in [((1, 0, 0), 0.34), ((1 / 3,) * 3, 0.326666666667)]:
        log = bf.History([0], [1], selection_probability=[pi])
        assert bf.audit(log, truth=truth).regret_objective.value == pytest.approx(regret)


def test_case_72_best_mean_is_not_best_arm():
    log = bf.History([0] * 10 + [1] * 10, [1] * 7 + [0] * 3 + [1] * 5 + [0] * 5)
    state = bf.audit(log, prior=(1, 1), objective=False).state.posterior
    assert beta_best_mean(state[:, 0], state[:, 1])[0] == pytest.approx(0.8065, abs=5e-5)
    m = state[:, 0] / state.sum(axis=1)
    assert bf.rewards.Bernoulli(m).best_arm_probability()[0] == pytest.approx(0.5833, abs=5e-5)
    assert beta_best_mean([11, 10], [1, 2])[0] == pytest.approx(16 / 21, abs=1e-12)


@pytest.mark.parametrize("value", [0.5, -2.5, 3])
def test_case_74_other_rewards_are_refused_by_bernoulli_with_the_alternatives(value):
    log = bf.History(["a", "b"], [1, value], row=[2, 3], source="log.csv")
    with pytest.raises(bf.DataError) as caught:
        bf.audit(log, family="bernoulli", seed=1)
    for part in ("row 3 of log.csv", f"{value:g}", "finite", "poisson", "normal"):
        assert part in str(caught.value)


def quiet(log, **options):
    """No notice may accuse the log."""
    found = bf.audit(log, objective=False, **options).findings
    assert not [n for n in found if "do not fit" in n or "too small" in n], found


def test_honest_logs_are_not_accused():
    rng = np.random.default_rng(0)
    # arms that come and go, only the chosen probability logged
    offered = np.ones((1000, 3), dtype=bool)
    offered[100:, 2] = False
    arm = np.array([rng.choice(np.flatnonzero(row)) for row in offered])
    p = 1 / offered.sum(axis=1)
    quiet(bf.History(arm, np.ones(1000), propensity=p, offered=offered))
    # a rule with a context: an arm is possible in half of the rounds only
    arm = np.where(np.arange(1000) % 2 == 0, rng.integers(0, 2, 1000), 2)
    quiet(bf.History(arm, np.ones(1000), propensity=np.where(arm == 2, 1.0, 0.5)))
    # rare arms in short logs: 200 honest logs, none accused at level .001
    rule = 1 / np.arange(1, 31) ** 3.0
    rule /= rule.sum()
    for _ in range(200):
        arm = rng.choice(30, 300, p=rule)
        quiet(bf.History(arm, np.ones(300), selection_probability=np.tile(rule, (300, 1))))


def test_row_sums_far_from_1_are_scores():
    for row in ([1, 1], [0.5, 0.6], [0.1] * 9, [0.02] * 34):
        with pytest.raises(bf.ProbabilityError, match="sum to"):
            bf.History([0, 0], [1, 0], selection_probability=[row, row])
    thirds = bf.History([0, 1], [1, 0], selection_probability=[[0.33, 0.33, 0.33]] * 2)
    assert thirds.repairs.n_rescaled == 2


def test_a_tolerance_that_was_asked_for_counts_exactly():
    log = bf.History([0, 1, 0], [1, 0, 1], selection_probability=[[0.52775, 0.47225]] * 3)
    for tolerance, n in [(0.005, 3), (0.006, 0), (0.0, 3), (0.5, 0)]:
        result = bf.audit(log, eps1=0, eps2=0.05, tolerance=tolerance, objective=False)
        assert result.n_violating_rounds == n
        assert result.subjective_verdict == ("unfair" if n else "fair")
    first = bf.audit(log.before(2), eps1=0, eps2=0.05, tolerance=0.006, seed=1)
    rest = bf.audit(log.rounds(2, 3), eps1=0, eps2=0.05, tolerance=0.006, seed=1, prior=first.state)
    assert bf.merge(first, rest).subjective_verdict == "fair"
    assert bf.merge(first, rest).n_violating_rounds == 0


def test_without_the_objective_part_the_verdict_is_the_subjective_one():
    fair = bf.History([0, 1], [1, 0], selection_probability=[[0.5, 0.5]] * 2)
    unfair = bf.History([0, 0], [1, 0], selection_probability=[[0.9, 0.1]] * 2)
    group = bf.audit({"a": fair, "b": fair, "c": unfair}, eps1=0, objective=False)
    assert [a.verdict for a in group.audits.values()] == ["fair", "fair", "unfair"]
    assert group.to_dict()["runs"]["share"] == pytest.approx(1 / 3)


def test_few_rounded_probabilities_of_sd_ts_are_not_unfair():
    m = np.array([[0.5, 0.5], [0.75, 0.5], [0.75, 0.25], [5 / 6, 0.25]])
    for written in (lambda x: np.round(x, 3), lambda x: np.round(x, 6), np.float32):
        pi = written(bf.rewards.Bernoulli(m).best_arm_probability())
        log = bf.History([0, 1, 0, 0], [1, 0, 1, 1], selection_probability=pi)
        assert bf.audit(log, eps1=1, eps2=0, objective=False).subjective_verdict == "fair"


def test_misspelt_options_are_refused():
    log = bf.History([0], [1], selection_probability=[[0.5, 0.5]])
    with pytest.raises(bf.OptionError, match="eps1"):
        bf.audit(log, eps_1=0, seed=1)


def test_a_stray_code_among_0_and_1_is_refused_by_name():
    reward = np.array([0, 1] * 50, dtype=float)
    reward[7] = 99
    log = bf.History([0, 1] * 50, reward, selection_probability=[[0.5, 0.5]] * 100)
    with pytest.raises(bf.DataError, match=r"round 7 .* is 99"):
        bf.audit(log, seed=1)
    assert bf.audit(log, family="finite", seed=1).family == "finite"


def test_the_lower_bound_of_nothing_known_is_0():
    log = bf.History([0, 1] * 10, [1, 0] * 10, known_at=[20] * 20, arms=["a", "b"])
    numbers = bf.audit(log, seed=1).to_dict()["calibration"]
    assert numbers["objective"]["lower"] == numbers["subjective"]["lower"] == 0


def test_repairs_are_counted_over_the_parts_of_a_scan(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,p_a,p_b,p_c\n" + "a,1,0.333,0.333,0.333\n" * 11)
    whole = bf.audit(bf.read_history(path), objective=False)
    parts = bf.audit(bf.scan_history(path, chunk_rounds=2), objective=False)
    (said,) = [n for n in whole.findings if "rescaled" in n]
    assert said.startswith("11 rows")
    assert [n for n in parts.findings if "rescaled" in n] == [said]
