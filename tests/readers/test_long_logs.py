"""One row per round and arm is never taken for one row per round."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.readers import read_history, scan_history

LONG = """timestamp,arm,p,chosen,reward
1,a,0.5,1,1
1,b,0.5,0,
2,a,0.625,0,
2,b,0.375,1,0
3,a,0.75,1,1
3,b,0.25,0,
"""
READERS = pytest.mark.parametrize("read", [read_history, scan_history], ids=["read", "scan"])


def _frame(text=LONG):
    return pd.read_csv(io.StringIO(text))


def _simulated(n, k=3, seed=1):
    """A log of SD_TS as one row per round, and the same as one row per round and arm."""
    log = bf.simulate(
        bf.policies.SDTS(), bf.rewards.Bernoulli(np.linspace(0.3, 0.7, k)), n_rounds=n, seed=seed
    )
    t, i = np.indices((n, k))
    rows = pd.DataFrame({
        "request": t.ravel(), "item": np.array(log.arms)[i.ravel()],
        "chance": log.selection_probability.ravel(),
    })  # fmt: skip
    rows["shown"] = (i == np.asarray(log.arm)[:, None]).ravel().astype(int)
    rows["click"] = np.where(rows.shown == 1, np.repeat(log.reward, k), np.nan)
    return log, rows


@READERS
@pytest.mark.parametrize(
    "options", [{}, {"propensity": "p"}, {"propensity": "p", "missing": "unobserved"},
                {"propensity": "p", "missing": 0}, {"propensity": "p", "missing": "drop"}],
)  # fmt: skip
@pytest.mark.parametrize("filled", [False, True])
def test_the_columns_are_named_whatever_is_done_with_missing_rewards(
    tmp_path, read, options, filled
):
    path = tmp_path / "long.csv"
    path.write_text(LONG.replace(",0,\n", ",0,0\n") if filled else LONG)
    with pytest.raises(DataError, match="one row per round and arm") as caught:
        read(path, **options)
    said = str(caught.value)
    assert all(f"'{column}'" in said for column in ("timestamp", "p", "chosen"))
    assert (caught.value.kind, caught.value.column) == ("long_shape", "timestamp")


@pytest.mark.parametrize("filled", [False, True])
def test_the_remedy_gives_the_audit_of_the_log_with_one_row_per_round(filled):
    """The options of the message are used as they stand; by hand the rule is P*, regret 0."""
    log, rows = _simulated(60)
    if filled:
        rows = rows.fillna({"click": 0})
    columns = {"arm": "item", "reward": "click", "order": "request"}
    for options in ({}, {"propensity": "chance"}):
        with pytest.raises(DataError) as caught:
            read_history(rows, **columns, **options)
    named = re.search(r"pass ((?:\w+='\w+'(?:, )?)+)", str(caught.value)).group(1)
    again = read_history(rows, **columns, **eval(f"dict({named})"))
    assert again.arms == log.arms and again.arm.tolist() == log.arm.tolist()
    np.testing.assert_array_equal(again.selection_probability, log.selection_probability)
    assert bf.audit(again, objective=False).regret.value == pytest.approx(0, abs=1e-6)


@READERS
@pytest.mark.parametrize(
    "lost",
    [["shown"], ["chance"], ["shown", "chance"]],
    ids=["no mark", "no probabilities", "neither"],
)
def test_one_sign_is_enough_in_a_long_log(read, lost):
    """The marks, the probabilities, or the one reward of each round."""
    _, rows = _simulated(20)
    with pytest.raises(DataError, match="one row per round and arm"):
        read(rows.drop(columns=lost), arm="item", reward="click", missing="unobserved")
    if lost == ["shown"]:
        rows = rows.fillna({"click": 0})
        with pytest.raises(DataError, match="'chance' sums to 1 within them"):
            read(rows.drop(columns=lost), arm="item", reward="click")


@READERS
def test_what_only_looks_like_it_is_read(read):
    """Rounds in the same second, a trial in which everybody gets each treatment, full logs."""
    rng = np.random.default_rng(1)
    n = 40
    arm = np.tile(["a", "b"], n // 2)
    crossover = pd.DataFrame({
        "patient": np.repeat(np.arange(n // 2), 2), "arm": arm, "reward": rng.integers(0, 2, n),
        "propensity": 0.5, "second": np.tile([0, 1], n // 2),
    })  # fmt: skip
    assert read(crossover).n_rounds == n
    second = pd.DataFrame({
        "timestamp": np.repeat(np.arange(n // 2), 2), "arm": rng.choice(["a", "b"], n),
        "reward": rng.integers(0, 2, n), "propensity": 0.5,
    })  # fmt: skip
    assert read(second).n_rounds == n
    full = second.assign(p_a=0.5, p_b=0.5)
    assert read(full).n_rounds == n


@READERS
def test_shuffled_rows_are_still_arms_of_rounds(read):
    for seed in range(3):
        rows = _frame(LONG.replace(",0,\n", ",0,0\n")).sample(frac=1, random_state=seed)
        for options in ({"propensity": "p"}, {"order": False}):
            with pytest.raises(DataError, match="one row per round and arm"):
                read(rows.reset_index(drop=True), **options)


@READERS
def test_the_mark_alone_tells_a_long_log(read):
    rows = _frame(LONG.replace(",0,\n", ",0,0\n")).drop(columns="p")
    with pytest.raises(DataError, match="'chosen' marks one row of each"):
        read(rows)


def test_rounds_without_a_number_are_told_by_their_arms_and_the_remedy_runs():
    rows = _frame(LONG.replace(",0,\n", ",0,0\n")).drop(columns="timestamp")
    for options in ({}, {"propensity": "p"}):
        with pytest.raises(DataError, match="every 2 rows hold each arm once") as caught:
            read_history(rows, **options)
    names = {"d": rows}
    exec(str(caught.value).split("with pandas: ")[1].partition(". ")[0], names)
    again = read_history(names["d"], round="round", chosen="chosen", propensity="p")
    np.testing.assert_array_equal(again.selection_probability[:, 0], [0.5, 0.625, 0.75])
    assert again.reward.tolist() == [1, 0, 1]


@READERS
def test_probabilities_alone_tell_a_long_log(read):
    fourth = "4,a,0.875,1,1\n4,b,0.125,0,0\n"
    rows = _frame(LONG.replace(",0,\n", ",0,0\n") + fourth).drop(columns="chosen")
    rows.columns = ["visit", "item", "prob", "click"]
    with pytest.raises(DataError, match="'prob' sums to 1 within them"):
        read(rows, arm="item", reward="click", propensity="prob")


@READERS
def test_plain_logs_with_several_decisions_per_time_are_read(read):
    """Random arms and flags under equal times; a flag of an arm in a log that takes turns."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for k, n in ((2, 12), (3, 30)):
            log = pd.DataFrame({
                "timestamp": np.repeat(np.arange(n // k), k), "propensity": 1 / k,
                "arm": rng.choice(list("abc")[:k], n), "reward": rng.integers(0, 2, n),
                "mobile": rng.integers(0, 2, n),
            })  # fmt: skip
            assert read(log).n_rounds == n
    turns = pd.DataFrame({
        "arm": ["a", "b"] * 10, "reward": [0, 1] * 10, "is_b": [0, 1] * 10, "propensity": 0.5
    })  # fmt: skip
    assert read(turns).n_rounds == 20


def test_a_log_of_one_arm_is_no_long_log(tmp_path):
    rows = "".join(f"{t},a,1\n" for t in range(12))
    (tmp_path / "one.csv").write_text("timestamp,arm,reward\n" + rows)
    assert read_history(tmp_path / "one.csv").n_rounds == 12


HAND = np.array([[0.5, 0.5], [0.625, 0.375], [0.75, 0.25]])


def test_the_rows_of_a_round_are_its_rule():
    """By hand: the rows of each stamp side by side; chosen a, b, a with rewards 1, 0, 1."""
    for rows in (_frame(), _frame().sample(frac=1, random_state=3)):
        log = read_history(rows, round="timestamp", chosen="chosen", propensity="p")
        assert (log.arms, log.arm.tolist(), log.reward.tolist()) == (
            ("a", "b"),
            [0, 1, 0],
            [1, 0, 1],
        )
        np.testing.assert_array_equal(log.selection_probability, HAND)
        assert bf.audit(log, objective=False).regret.value == pytest.approx(0, abs=1e-12)
    by_reward = read_history(_frame(), round="timestamp", propensity="p")
    np.testing.assert_array_equal(by_reward.selection_probability, HAND)
    turned = read_history(_frame(), round="timestamp", propensity="p", arms=["b", "a"])
    np.testing.assert_array_equal(turned.selection_probability, HAND[:, ::-1])
    marks = {"round": "timestamp", "chosen": "chosen"}
    rule = read_history(_frame(LONG.replace("2,a,0.625,0,\n", "")), propensity=False, **marks)
    assert rule.offered.tolist() == [[True, True], [False, True], [True, True]]


@pytest.mark.parametrize("by", [None, "site"])
def test_a_scan_reads_rounds_whose_rows_stand_together(tmp_path, monkeypatch, by):
    """The same as the whole, wherever blocks end; rows that stand apart are refused by row."""
    monkeypatch.setattr("bayesfair.readers.files.delimited._BLOCK", 200)
    _, rows = _simulated(60)
    rows["site"] = np.where(rows.request % 3, "x", "y")
    rows.to_csv(tmp_path / "log.csv", index=False)
    options = {"arm": "item", "reward": "click", "round": "request", "chosen": "shown", "by": by}
    for more in ({}, {"propensity": "chance"}, {"arms": ["2", "0", "1"]}):
        own = options | more
        if "arms" in more:
            own["arms"] = rows.item.unique()[::-1].tolist()
        whole, scan = (read(tmp_path / "log.csv", **own) for read in (read_history, scan_history))
        for label in whole if by else [None]:
            log, parts = (whole[label], scan[label]) if by else (whole, scan)
            found = list(parts.chunks())
            assert len(found) >= 1 and found[0].arms == log.arms
            for name in ("arm", "reward", "selection_probability", "row"):
                together = np.concatenate([getattr(part, name) for part in found])
                np.testing.assert_array_equal(together, getattr(log, name))
    apart = pd.concat([rows[1:], rows[:1]])
    apart.to_csv(tmp_path / "log.csv", index=False)
    assert len(read_history(tmp_path / "log.csv", **options | {"by": None}).arm) == 60
    with pytest.raises(DataError, match="stand together") as caught:
        list(scan_history(tmp_path / "log.csv", **options | {"by": None}).chunks())
    assert caught.value.kind == "needs_whole"


def test_what_sums_to_1_within_rounds_is_their_rule_without_being_named():
    marks = {"round": "timestamp", "chosen": "chosen"}
    for name in ("p", "score", "propensity_score"):
        log = read_history(_frame().rename(columns={"p": name}), **marks)
        np.testing.assert_array_equal(log.selection_probability, HAND)
        assert "probabilities_found" in {Notice.of(n).kind for n in log.notices}
    halves = _frame().assign(q=[0.5] * 6)
    off = _frame().rename(columns={"p": "pscore"}).assign(pscore=[0.5] + [0.9] * 5)
    for rows, column in ((halves, "'p', 'q'"), (off, "'pscore'")):
        with pytest.raises(DataError) as caught:  # which, or why not 1
            read_history(rows, **marks)
        assert caught.value.kind == "probabilities_unread"
        assert all(c in str(caught.value) for c in column.split(", "))
    assert read_history(_frame().drop(columns="p"), **marks).selection == "none"


@pytest.mark.parametrize(
    ("change", "kind", "row"),
    [
        (("2,b,0.375,1,0", "2,b,0.375,0,0"), "not_one_chosen", 4),
        (("2,a,0.625,0,", "2,a,0.625,1,1"), "not_one_chosen", 4),
        (("1,b,0.5,0,", "1,a,0.5,0,"), "duplicate_arm", 3),
        (("1,b,", ",b,"), "missing_label", 3),
    ],
)
def test_a_round_without_one_chosen_arm_is_refused_by_row(tmp_path, change, kind, row):
    path = tmp_path / "long.csv"
    path.write_text(LONG.replace(*change))
    with pytest.raises(DataError, match=f"row {row} of long.csv") as caught:
        read_history(path, round="timestamp", chosen="chosen", propensity="p")
    assert (caught.value.kind, caught.value.row) == (kind, row)


def test_chosen_needs_round():
    with pytest.raises(OptionError, match="chosen='shown' has no effect"):
        read_history(pd.DataFrame({"arm": ["a"], "reward": [1], "shown": [1]}), chosen="shown")


@READERS
def test_whoever_says_that_rows_are_rounds_is_believed(read):
    log = read(_frame().fillna(0), round=False, propensity="p")
    assert log.n_rounds == 6


@READERS
def test_all_of_a_log_is_looked_at_not_its_first_rows(read):
    """2400 rows that look like arms of rounds, and then no more; rounds of 1500 arms each."""
    _, rows = _simulated(800)
    plain = pd.DataFrame({
        "request": np.arange(3000) + 10_000, "item": np.tile(["arm0", "arm1"], 1500),
        "chance": 0.5, "shown": 1, "click": 1.0,
    })  # fmt: skip
    plain["item"] = np.random.default_rng(1).permutation(np.resize(rows.item.unique(), 3000))
    mixed = pd.concat([rows, plain]).fillna({"click": 0})
    assert read(mixed, arm="item", reward="click", propensity="chance").n_rounds == len(mixed)
    n, k = 4, 1500
    wide = pd.DataFrame({
        "visit": np.repeat(np.arange(n), k), "arm": np.tile([f"a{i}" for i in range(k)], n),
        "propensity": 1 / k, "chosen": (np.tile(np.arange(k), n) == 7).astype(int),
    })  # fmt: skip
    wide["reward"] = np.where(wide.chosen == 1, 1.0, np.nan)
    with pytest.raises(DataError, match="one row per round and arm"):
        read(wide, missing="unobserved")


@READERS
def test_small_plain_logs_are_seldom_refused_by_chance(read):
    """Two arms, two rounds at each time, a random flag: 300 logs of 4 to 16 rounds."""
    refused = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 9)) * 2
        log = pd.DataFrame({
            "timestamp": np.repeat(np.arange(n // 2), 2), "arm": rng.choice(["a", "b"], n),
            "reward": rng.integers(0, 2, n), "flag": rng.integers(0, 2, n), "propensity": 0.5,
        })  # fmt: skip
        try:
            read(log)
        except DataError:
            refused += 1
    assert refused <= 3


def test_rounds_that_run_backwards_are_refused():
    rows = [(f"2026-01-{30 - t:02}", arm, arm == "a", 0 if arm == "a" else None, 0.5, f"r{t}")
            for t in range(12) for arm in "ab"]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["created_at", "arm", "took", "reward", "p", "turn"])
    with pytest.raises(DataError, match="the order of the rounds of data frame runs") as refused:
        read_history(frame, round="turn", chosen="took", propensity="p")
    assert (refused.value.kind, refused.value.column) == ("order", "created_at")
