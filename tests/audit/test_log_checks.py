"""A log that contradicts itself: choices, propensities, sticky choices, rows that stand twice."""

import itertools
import json
import math

import numpy as np
import pytest
from contextual_logs import even, history, in_leaves
from scipy import stats

import bayesfair as bf

CAUSES = ("another version", "thinned by outcome", "stand in it twice", "sticky assignment")


def checks(log, **options):
    return bf.audit(log, objective=False, **options).checks


def kinds(audit):
    return {notice.kind for notice in audit.findings}


# -- choices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "n_a", "passed"),
    [(3000, 1590, True), (3500, 1855, False), (3500, 1854, False), (10_000, 5300, False)],
)
def test_an_even_split_is_tested_as_by_chi_square(n, n_a, passed):
    # 53/47 at n = 3000: p = .00102; at n = 3500: .0004
    p = stats.chisquare([n_a, n - n_a]).pvalue
    audit = bf.audit(history(even(n, n_a)), seed=1)
    check = audit.checks["choices"]
    assert check.p_value == pytest.approx(p, rel=1e-9) and check.threshold == 0.001
    assert check.statistic == pytest.approx((2 * n_a - n) / math.sqrt(n))
    assert check.passed is passed is audit.consistent
    assert bool(p >= 0.001) is passed
    said = [text for text in audit.findings if text.kind == "choices"]
    assert len(said) == (not passed)
    for text in said:
        assert f"arm 'a' was chosen {n_a} times" in text and all(c in text for c in CAUSES)


def test_a_lopsided_split_just_below_the_level_is_let_pass():
    # 95/5 by design, drawn at 95.2 %: z = 3.2, p = .0013
    n = 200_000
    n_a = round(0.95 * n + 3.2 * math.sqrt(n * 0.95 * 0.05))
    log = even(n, n_a) | {"pi": np.tile([0.95, 0.05], (n, 1))}
    check = checks(history(log))["choices"]
    assert check.statistic == pytest.approx(3.2, abs=0.01)
    assert check.p_value == pytest.approx(0.0013, abs=1e-4) and check.passed


@pytest.mark.parametrize("n_rare", [2, 4])
def test_a_rare_arm_is_tested_exactly(n_rare):
    # one constant probability of .001, 500 rounds: binomial; z = 4.9 for 4 plays is p = .0035
    log = even(500, 500 - n_rare) | {"pi": np.tile([0.999, 0.001], (500, 1))}
    check = checks(history(log))["choices"]
    p = min(1.0, 2 * stats.binom.sf(n_rare - 1, 500, 0.001))
    assert check.method == "exact" and check.p_value == pytest.approx(p, rel=1e-9)
    assert check.passed


def test_few_plays_under_changing_probabilities_are_judged_by_freedmans_bound():
    rng = np.random.default_rng(0)
    pi = rng.uniform(0.001, 0.05, 200)
    arm = np.r_[np.zeros(20, int), np.ones(180, int)]
    log = {"arm": arm.astype(np.int32), "reward": np.ones(200), "pi": np.c_[pi, 1 - pi]}
    check = checks(history(log))["choices"]
    x, v = 20 - pi.sum(), (pi * (1 - pi)).sum()
    assert check.method == "bound"
    assert check.p_value == pytest.approx(2 * math.exp(-(x**2) / (2 * (v + x / 3))), rel=1e-9)


def test_chosen_only_logs_are_tested_on_the_side_that_is_evidence():
    log = even(3500, 1855)
    check = checks(history(log, chosen=True))["choices"]
    p = 2 * stats.binom.sf(1854, 3500, 0.5)
    assert check.method == "exact" and check.p_value == pytest.approx(p, rel=1e-9)
    assert check.passed is False
    assert checks(history(even(3000, 1590), chosen=True))["choices"].passed


def test_probabilities_of_other_rounds_are_seen_although_the_totals_fit():
    # the rule alternates between .9 and .1; the log has its rows shuffled
    rng = np.random.default_rng(1)
    n = 1000
    pi = np.where(np.arange(n) % 2 == 0, 0.9, 0.1)
    arm = (rng.random(n) > pi).astype(np.int32)
    reward = rng.integers(0, 2, n).astype(float)
    pi = np.c_[pi, 1 - pi]
    assert checks(history({"arm": arm, "reward": reward, "pi": pi}))["strength"].passed
    wrong = checks(history({"arm": arm, "reward": reward, "pi": pi[rng.permutation(n)]}))
    assert wrong["choices"].passed and wrong["strength"].passed is False
    # by hand: (1{a} - pi_a) pi_a summed over arms has variance sum pi^3 - (sum pi^2)^2
    x = (0.9**3 + 0.1**3) - (0.9**2 + 0.1**2) ** 2
    assert checks(history({"arm": arm, "reward": reward, "pi": pi}))["strength"].statistic == (
        pytest.approx((pi[np.arange(n), arm] - 0.82).sum() / math.sqrt(n * x), rel=1e-9)
    )


def test_thinned_logs_name_the_rows_that_are_missing():
    # theta .2/.1, rows with reward 0 kept with probability .1
    rng = np.random.default_rng(2)
    n = 6000
    arm = rng.integers(0, 2, n).astype(np.int32)
    reward = (rng.random(n) < np.array([0.2, 0.1])[arm]).astype(float)
    kept = (reward == 1) | (rng.random(n) < 0.1)
    log = {"arm": arm[kept], "reward": reward[kept], "pi": np.full((kept.sum(), 2), 0.5)}
    for chosen in (False, True):
        audit = bf.audit(history(log, chosen=chosen, unused_columns=("keep_prob",)), seed=1)
        assert not audit.consistent
        (text,) = [found for found in audit.findings if found.kind == "choices"]
        assert "rows are missing from the log, for instance thinned by outcome" in text
        assert "thinned" in kinds(audit)


# -- sticky choices ------------------------------------------------------------------------------


def sticky(seed, keep, n=1500):
    """Even chances logged, but the arm of the round before is kept with probability `keep`."""
    rng = np.random.default_rng(seed)
    arm = np.zeros(n, np.int32)
    for t in range(1, n):
        arm[t] = arm[t - 1] if rng.random() < keep else rng.integers(2)
    return {"arm": arm, "reward": rng.integers(0, 2, n) * 1.0, "pi": np.full((n, 2), 0.5)}


@pytest.mark.parametrize("chosen", [False, True])
def test_choices_that_hang_on_the_one_before(chosen):
    log = sticky(0, 0.2)
    found = checks(history(log, chosen=chosen))["sticky"]
    same = (np.diff(log["arm"]) == 0).sum()
    # each step: 1{same} - 1/2, variance 1/4; with weights 1/p twice that, its variance estimated
    z = (same - 1499 / 2) / math.sqrt(1499 / 4)
    if chosen:
        z = (2 * same - 1499) / math.sqrt(2 * same)
    assert found.statistic == pytest.approx(z, rel=1e-12) and found.passed is False
    assert checks(history(sticky(1, 0.0), chosen=chosen))["sticky"].passed


def test_arms_dealt_out_in_turn_are_no_draws():
    arm = np.arange(400, dtype=np.int32) % 2
    log = {"arm": arm, "reward": np.zeros(400), "pi": np.full((400, 2), 0.5)}
    audit = bf.audit(history(log), objective=False)
    assert audit.checks["choices"].passed and audit.checks["sticky"].passed is False
    assert audit.checks["repeated_rows"].passed  # two rows, however often, are no export
    (text,) = [found for found in audit.findings if found.kind == "sticky"]
    assert "dealt out in turn" in text
    told = history(log | {"pi": np.eye(2)[arm]})  # where the log says so, all is well
    assert bf.audit(told, objective=False).consistent


# -- rows that stand twice -----------------------------------------------------------------------


def doubled(log, times=2):
    return {name: np.concatenate([values] * times) for name, values in log.items()}


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("times", [2, 3])
def test_an_export_that_was_added_twice_is_found(chosen, times):
    once = in_leaves(7, n=60)
    assert checks(history(once, chosen=chosen))["repeated_rows"].passed
    audit = bf.audit(history(doubled(once, times), chosen=chosen), objective=False)
    check = audit.checks["repeated_rows"]
    assert check.passed is False and (check.row, check.n) == (60, 60) and not audit.consistent
    (text,) = [found for found in audit.findings if found.kind == "repeated_rows"]
    assert "the 60 rounds from round 60 on" in text
    # by chance: product of the chances of the copy's choices, times that of equal rewards, for any
    # of the n^2 / 2 pairs of places
    p = once["pi"][np.arange(60), once["arm"]]
    assert check.statistic > -np.log(p).sum() * 0.8


def test_a_day_that_was_added_twice_within_a_long_log():
    once = in_leaves(8, n=3000)
    rows = np.r_[0:2000, 1200:1700, 2000:3000]
    check = checks(history(once, rows=rows))["repeated_rows"]
    assert check.passed is False and (check.row, check.n) == (2000, 500)


def test_logs_without_probabilities_are_found_by_their_rewards():
    rng = np.random.default_rng(3)
    arm, reward = rng.integers(0, 2, 100).astype(np.int32), rng.integers(0, 2, 100) * 1.0
    once = bf.History(arm, reward, arms=("a", "b"))
    twice = bf.History(np.tile(arm, 2), np.tile(reward, 2), arms=("a", "b"))
    assert checks(once)["repeated_rows"].passed
    assert checks(twice)["repeated_rows"].passed is False


@pytest.mark.parametrize(
    "rule", ["uniform", "constant", "greedy", "in turn", "batches", "no clicks", "no rule"]
)
def test_rows_that_are_alike_by_nature_are_not_called_copies(rule):
    rng = np.random.default_rng(4)
    n = 4000
    arm, reward = rng.integers(0, 2, n).astype(np.int32), (rng.random(n) < 0.05) * 1.0
    pi = np.full((n, 2), 0.5)
    if rule == "constant":
        pi, arm = np.tile([0.999, 0.001], (n, 1)), np.zeros(n, np.int32)
    if rule == "greedy":
        pi, arm = np.tile([1.0, 0.0], (n, 1)), np.zeros(n, np.int32)
    if rule == "in turn":
        arm = np.arange(n, dtype=np.int32) % 2
        pi = np.eye(2)[arm]
    if rule == "batches":  # days of a constant rule, nearly always the same row
        pi = np.repeat(rng.choice([0.05, 0.95, 0.5], 40), 100)[:, None]
        pi = np.hstack([pi, 1 - pi])
        arm = (rng.random(n) > pi[:, 0]).astype(np.int32)
    if rule == "no clicks":
        reward = np.zeros(n)
    log = {"arm": arm, "reward": reward, "pi": pi}
    stamps = np.arange(n) // 10  # ten rows share a stamp
    if rule == "no rule":
        plain = bf.History(arm, reward, arms=("a", "b"), time=stamps)
        assert checks(plain)["repeated_rows"].passed
        return
    for chosen in (False, True):
        for time in (None, stamps, np.arange(n)):
            found = checks(history(log, chosen=chosen, time=time))["repeated_rows"]
            assert found.passed, (chosen, found)


@pytest.mark.parametrize("chosen", [False, True])
def test_events_that_were_delivered_twice_are_found_by_their_stamps(chosen):
    log = in_leaves(9, n=1000)
    often = np.where(np.arange(1000) % 20 == 3, 2, 1)  # 50 of 1000
    rows = np.repeat(np.arange(1000), often)
    stamps = np.datetime64("2026-01-01T00:00:00") + rows * np.timedelta64(1, "s")
    check = checks(history(log, chosen=chosen, rows=rows, time=stamps))["repeated_rows"]
    assert check.passed is False and check.n == 50
    p = log["pi"][np.arange(1000), log["arm"]][often == 2]
    z = (50 - p.sum()) / math.sqrt((p * (1 - p)).sum())
    assert check.statistic == pytest.approx(z, rel=1e-9)


def test_keys_that_were_said_to_be_unique():
    log = in_leaves(10, n=200)
    keys = [f"request {t}" for t in range(200)]
    keys[150], keys[180], keys[7] = "request 20", "request 20", None
    audit = bf.audit(history(log, unique=keys), objective=False)
    check = audit.checks["repeated_keys"]
    assert (check.passed, check.n, check.row) == (False, 2, 150) and not audit.consistent
    arm = log["arm"]
    same = int(arm[150] == arm[20]) + int(arm[180] == arm[150])
    (text,) = [found for found in audit.findings if found.kind == "repeated_keys"]
    assert f"{same} of them chose the arm of the time before" in text
    whole = history(log, unique=np.arange(200))
    assert checks(whole)["repeated_keys"].passed
    assert checks(history(log))["repeated_keys"].passed is None
    with pytest.raises(bf.DataError, match="unique has 3 values, expected one for each of the 200"):
        history(log, unique=[1, 2, 3])


@pytest.mark.parametrize("read", ["read_history", "scan_history"])
@pytest.mark.parametrize("kind", ["text", "number", "time"])
def test_keys_are_read_from_a_column(read, kind):
    import pandas as pd

    log = in_leaves(11, n=120)
    ids = np.arange(120)
    ids[100] = 3
    keys = {"text": [f"{i:04d}" for i in ids], "number": ids,
            "time": pd.Timestamp("2026-01-01") + pd.to_timedelta(ids, "s")}[kind]  # fmt: skip
    table = pd.DataFrame({
        "id": keys, "arm": np.array(["a", "b"])[log["arm"]], "reward": log["reward"],
        "p_a": log["pi"][:, 0], "p_b": log["pi"][:, 1],
    })  # fmt: skip
    options = {"chunk_rounds": 50} if read == "scan_history" else {}
    found = checks(getattr(bf, read)(table, unique="id", **options))["repeated_keys"]
    assert (found.passed, found.n, found.row) == (False, 1, 100)
    with pytest.raises(bf.DataError, match="column 'ids'"):
        getattr(bf, read)(table, unique="ids")


# -- whatever the parts --------------------------------------------------------------------------


def test_checks_do_not_depend_on_how_a_log_was_cut(tmp_path):
    once = in_leaves(12, n=200)
    rows = np.r_[0:200, 100:200]
    log = {name: values[rows] for name, values in once.items()}
    stamps = np.repeat(np.arange(150), 2)
    keys = np.r_[0:250, 0:50]
    for chosen in (False, True):
        whole = history(log, chosen=chosen, time=stamps, unique=keys)
        expected = checks(whole)
        assert expected["repeated_rows"].n == 100 and expected["repeated_keys"].n == 50
        for cuts in ([1, 2, 3, 150, 151, 300], [13, 14, 30, 31, 47, 300], [100, 200, 300]):
            done = bf.audit(whole.before(cuts[0]), objective=False)
            for start, stop in itertools.pairwise(cuts):
                done = done.resume(whole.rounds(start, stop))
            done.save(tmp_path / "audit.nc")
            loaded = bf.load_audit(tmp_path / "audit.nc")
            states = [bf.audit(whole.before(100), objective=False)]
            states.append(bf.audit(whole.rounds(100, 170), prior=states[0], objective=False))
            states.append(bf.audit(whole.rounds(170, 300), prior=states[1], objective=False))
            # from the right as well: (first, (second, third))
            right = bf.merge(states[0], bf.merge(states[1], states[2]))
            for name, check in expected.items():
                for other in (done, loaded, right):
                    found = other.checks[name]
                    assert found._replace(statistic=None, p_value=None) == check._replace(
                        statistic=None, p_value=None
                    )
                    for field in ("statistic", "p_value"):
                        a, b = getattr(check, field), getattr(found, field)
                        assert a == b or a == pytest.approx(b, rel=1e-10), (name, field)
            assert loaded.to_dict()["checks"] == done.to_dict()["checks"]


def test_parts_with_and_without_keys_are_not_merged():
    log = in_leaves(13, n=40)
    first = bf.audit(history(log, rows=slice(0, 20), unique=np.arange(20)), objective=False)
    with pytest.raises(bf.OptionError, match="unique="):
        first.resume(history(log, rows=slice(20, 40)))


def test_a_long_log_keeps_a_share_of_its_windows_and_finds_the_copy_all_the_same(monkeypatch):
    from bayesfair.audit.log import repeats

    monkeypatch.setattr(repeats, "MOST", 256)
    once = in_leaves(14, n=3000)
    rows = np.r_[0:3000, 1000:2000]
    whole = history(once, rows=rows)
    audit = bf.audit(whole, objective=False)
    assert len(audit.summary.guards.blocks.place) <= 256
    check = audit.checks["repeated_rows"]
    assert check.passed is False and 3000 <= check.row < 3100 and 800 <= check.n <= 1000
    parts = bf.audit(whole.before(1234), objective=False).resume(whole.rounds(1234, 4000))
    for field in ("place", "prints", "limit"):
        a, b = (getattr(x.summary.guards.blocks, field) for x in (audit, parts))
        assert np.array_equal(a, b)


def test_json_of_the_checks_is_plain():
    out = bf.audit(history(in_leaves(15, n=50)), objective=False).to_dict()
    assert json.loads(json.dumps(out["checks"], allow_nan=False)) == out["checks"]
    assert out["consistent"] is True
    assert set(out["checks"]) == {
        "choices", "strength", "propensities", "sticky", "sticky_users", "repeated_rows",
        "repeated_keys", "context", "movement",
    }  # fmt: skip
    for check in out["checks"].values():
        if check["passed"] is None:
            assert set(check) == {"passed", "reason"} and check["reason"].endswith(".")
        else:
            assert {"statistic", "threshold", "method"} <= set(check)
    assert out["checks"]["propensities"]["passed"] is None


# -- false alarms --------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    "rule",
    [bf.policies.SDTS(), bf.policies.Thompson(), bf.policies.Uniform(),
     bf.policies.EpsilonGreedy(), bf.policies.UCB1()],
    ids=lambda rule: type(rule).__name__,
)  # fmt: skip
def test_true_logs_seldom_contradict_themselves(rule):
    # six tests at .001: more than 3 of 80 logs by chance has probability below .001
    failed = []
    for seed in range(80):
        means = [[0.6, 0.5], [0.6, 0.5, 0.4], [0.02, 0.01, 0.015, 0.01]][seed % 3]
        log = bf.simulate(rule, bf.rewards.Bernoulli(means), n_rounds=800, seed=seed)
        p = log.selection_probability[np.arange(800), log.arm]
        chosen = bf.History(log.arm, log.reward, arms=log.arms, propensity=p)
        for one in (log, chosen):
            failed += [n for n, c in checks(one).items() if c.passed is False and n != "movement"]
    assert len(failed) <= 3, failed
