"""What a log's labels, columns and rewards mean once it is open."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.readers import read_history, scan_history


def labels(history):
    return [history.arms[i] for i in history.arm]


# -- labels ----------------------------------------------------------------------------------------


def test_case_43_words_for_missing_are_labels_if_named_and_only_empty_is_missing(read):
    text = "arm,reward\nNA,1\nUS,0\n,1\nNone,1\nnull,0\nnan,0\n"
    named = {"arms": ["NA", "None", "US", "nan", "null"]}
    with pytest.raises(DataError, match=r"row 4 .*'arm': the arm is empty \(1 such row\)"):
        read(text, **named)
    history = read(text, missing="drop", **named)
    assert labels(history) == ["NA", "US", "None", "null", "nan"]
    assert history.n_skipped == 1
    assert history.notices[-1] == "1 arm is missing: this row was left out (missing='drop')."
    assert history.row.tolist() == [2, 3, 5, 6, 7]


def test_case_45_spellings_merge_with_a_notice_and_case_never(read):
    names = ["GPT 4", "GPT 4 ", "gpt 4", "Caf\u00e9", "Cafe\u0301", "org1/x", "org2/x"]
    history = read("arm,reward\n" + "".join(f"{n},1\n" for n in names))
    assert history.arms == ("Caf\u00e9", "GPT 4", "gpt 4", "org1/x", "org2/x")
    assert labels(history) == ["GPT 4"] * 2 + ["gpt 4"] + ["Caf\u00e9"] * 2 + ["org1/x", "org2/x"]
    merged = next(n for n in history.notices if "merged" in n)
    assert "'GPT 4 '" in merged and "'Cafe\\u0301'" in merged
    case = next(n for n in history.notices if "case" in n)
    assert "'GPT 4', 'gpt 4'" in case and "kept apart" in case


def test_trimming_alone_is_not_worth_a_notice(read):
    history = read("arm,reward\n a,1\n b ,0\n", arms=["a", "b"])
    assert labels(history) == ["a", "b"] and history.notices == ()


def test_labels_stay_text(read):
    names = ["001", "2", "3.5", "01x", "True", "-", "\u6771\u4eac", "\U0001f600", "1e3"]
    history = read("arm,reward\n" + "".join(f"{n},1\n" for n in names))
    assert labels(history) == names
    assert history.arms == tuple(sorted(names))


def test_discovered_arms_are_noticed_and_given_or_logged_ones_are_not(read):
    text = "arm,reward\nb,1\na,0\n"
    assert any("looks ahead" in n for n in read(text).notices)
    assert read(text, arms=["b", "c", "a"]).arms == ("b", "c", "a")
    assert read(text, arms=["b", "c", "a"]).notices == ()
    assert read("arm,reward,p_b,p_a\nb,1,.5,.5\n").arms == ("b", "a")


def test_an_arm_that_is_never_chosen_is_an_arm(read):
    history = read("arm,reward,p_a,p_b\na,1,1,0\na,1,0.5,0.5\n")
    assert history.arms == ("a", "b") and history.counts()[0].tolist() == [2, 0]


def test_given_arms_select_probability_columns_in_their_order(read):
    text = "arm,reward,p_a,p_b,p_value\na,1,0.25,0.75,0.03\n"
    history = read(text, arms=["b", "a"])
    assert history.selection_probability.tolist() == [[0.75, 0.25]]
    assert "p_value" in history.notices[0]


# -- what is taken up by itself --------------------------------------------------------------------


def test_case_60_nothing_logged(read):
    history = read("timestamp,arm,reward\n1,a,1\n2,b,0\n")
    assert history.selection == "none" and history.propensity is None


def test_case_68_only_the_chosen_probability(read):
    history = read("arm,reward,propensity\na,1,0.5\nb,0,0.25\n")
    assert history.selection == "chosen" and history.propensity.tolist() == [0.5, 0.25]


def test_case_61_one_over_n_logged_for_a_rule_that_always_plays_one_arm(read):
    """The log is readable; that p = .5 contradicts 100 plays of 100 is the audit's finding."""
    history = read("arm,reward,propensity\n" + "A,1,0.5\n" * 100, arms=["A", "B"])
    expected, sd = history.propensity.sum(), np.sqrt((history.propensity * 0.5).sum())
    assert (100 - expected) / sd == 10


def test_full_probabilities_win_over_a_propensity_column(read):
    text = "arm,reward,propensity,p_a,p_b\na,1,0.9,0.5,0.5\n"
    history = read(text)
    assert history.selection == "full" and history.propensity is None
    assert "'propensity' was not used" in history.notices[0]
    assert read(text, probabilities=False).propensity.tolist() == [0.9]
    assert read(text, probabilities=False, propensity=False).selection == "none"
    assert read(text, probabilities="", propensity="").selection == "none"


def test_both_kinds_on_request_must_agree(read):
    text = "arm,reward,q,p_a,p_b\na,1,0.5,0.5,0.5\nb,0,0.500000001,0.5,0.5\n"
    assert read(text, propensity="q").propensity.tolist() == [0.5, 0.500000001]


def test_other_patterns(read):
    text = "choice,won,P[a] now,P[b] now\na,1,0.25,0.75\n"
    history = read(text, arm="choice", reward="won", probabilities="P[{arm}] now")
    assert history.arms == ("a", "b")
    with pytest.raises(OptionError, match="must contain"):
        read(text, arm="choice", reward="won", probabilities="P[")
    with pytest.raises(OptionError, match="name the column"):
        read(text, arm="choice", reward="won", propensity=True)


def test_columns_with_another_part_are_no_arms(read):
    text = "p_arm,p_won,p_a,p_b,p_time\na,1,0.5,0.5,7\n"
    assert read(text, arm="p_arm", reward="p_won", order="p_time").arms == ("a", "b")


def test_case_64_slightly_over_1_is_set_to_1_with_a_notice(read):
    history = read("arm,reward,propensity\na,1,1.0000001\nb,0,0.5\n", arms=["a", "b"])
    assert history.propensity.tolist() == [1.0, 0.5]
    assert any("above 1" in n for n in history.notices)
    rounded = read("arm,reward,p_a,p_b,p_c\n" + "a,1,0.333333,0.333333,0.333333\n" * 3)
    np.testing.assert_allclose(rounded.selection_probability, 1 / 3, rtol=1e-15)
    assert any("rescaled" in n for n in rounded.notices)


def test_probability_tolerance(read):
    text = "arm,reward,p_a,p_b\na,1,0.512345,0.512345\n"
    with pytest.raises(DataError, match=r"sum to 1\.02469"):
        read(text)
    assert read(text, probability_tolerance=0.03).selection_probability.tolist() == [[0.5, 0.5]]


# -- rewards ---------------------------------------------------------------------------------------


def test_case_51_words_for_true_and_false(read):
    words = ["True", "False", "FALSE", "yes", "no", "0", "1"]
    history = read("arm,reward\n" + "".join(f"a,{w}\n" for w in words))
    assert history.reward.tolist() == [1, 0, 0, 1, 0, 0, 1]
    for word in ("maybe", "T", "won", "-", "1_0", "0x1"):
        with pytest.raises(DataError, match=f"row 2 .*'reward': '{word}' is not a reward"):
            read(f"arm,reward\na,{word}\n")


def test_case_74_other_numbers_are_read_as_they_are(read):
    history = read("arm,reward\na,0\na,.5\na,1\na,-2.5\na,3\na,1e-3\n")
    assert history.reward.tolist() == [0, 0.5, 1, -2.5, 3, 0.001]


def test_words_with_a_worth(read):
    text = "arm,reward\na,won\na, lost\na,1\na,Yes\n"
    history = read(text, rewards={"won": 1, "lost": 0})
    assert history.reward.tolist() == [1, 0, 1, 1]
    with pytest.raises(DataError, match=r"row 3 .*'lost'.*rewards="):
        read(text, rewards={"won": 1})
    with pytest.raises(OptionError, match="no number"):
        read(text, rewards={"won": "x"})


def test_numbers_with_a_worth_such_as_costs():
    frame = pd.DataFrame({"arm": ["a", "b"], "reward": [0.001, 0.999]})
    assert read_history(frame, rewards={0.001: 1, 0.999: 0}).reward.tolist() == [1, 0]
    frame["reward"] = frame["reward"].astype(str)
    assert read_history(frame, rewards={"0.001": 1, 0.999: 0}).reward.tolist() == [1, 0]


MISSING = "arm,reward,propensity\na,1,0.5\nb,,0.5\na,NA,0.25\na,0,0.5\na,nan,0.5\n"


def test_missing_rewards_unobserved(read):
    history = read(MISSING, missing="unobserved")
    assert history.n_rounds == 5 and history.n_unobserved == 3 and history.n_skipped == 0
    note = next(n for n in history.notices if "missing" in n)
    assert "3 rewards" in note and "'a' 2, 'b' 1" in note


def test_missing_rewards_dropped(read):
    history = read(MISSING, missing="drop", arms=["a", "b"])
    assert history.row.tolist() == [2, 5] and history.n_skipped == 3
    assert history.propensity.tolist() == [0.5, 0.5]
    note = next(n for n in history.notices if "missing" in n)
    assert "3 rewards" in note and "'a' 2, 'b' 1" in note and "left out" in note


@pytest.mark.parametrize("value", [0, 0.5, "0.5", -1])
def test_missing_rewards_as_a_number(read, value):
    history = read(MISSING, missing=value)
    assert history.reward.tolist() == [1, float(value), float(value), 0, float(value)]
    assert any(f"read as reward {float(value)}" in n for n in history.notices)


@pytest.mark.parametrize("value", ["ignore", None, True, float("nan"), float("inf")])
def test_other_words_for_missing_are_refused(read, value):
    with pytest.raises(OptionError, match="'error', 'unobserved', 'drop', 'a number'"):
        read(MISSING, missing=value)


def test_nothing_left_after_dropping(read):
    with pytest.raises(DataError, match="no rounds left"):
        read("arm,reward\na,\nb,\n", missing="drop")


# -- how finely probabilities were logged ----------------------------------------------------------


def rule(n=400, k=5):
    rng = np.random.default_rng(11)
    pi = rng.dirichlet(np.ones(k), n)
    return pi, np.array([rng.choice(k, p=p) for p in pi])


def frame_of(pi, arm):
    columns = {f"p_{i}": pi[:, i] for i in range(pi.shape[1])}
    return pd.DataFrame({"arm": arm.astype(str), "reward": 0} | columns)


@pytest.mark.parametrize("through", ["read", "scan"])
def test_six_decimals_are_accepted_with_a_notice_and_their_resolution(tmp_path, through):
    pi, arm = rule()
    frame_of(pi, arm).to_csv(tmp_path / "log.csv", index=False, float_format="%.6f")
    path = tmp_path / "log.csv"
    history = read_history(path) if through == "read" else list(scan_history(path).chunks())[-1]
    assert history.resolution.decimals == 6 and history.resolution.unit == 1e-6
    np.testing.assert_allclose(history.selection_probability, pi, atol=3e-6)
    np.testing.assert_allclose(history.selection_probability.sum(axis=1), 1, atol=1e-15)
    assert any("rescaled" in n for n in history.notices)


def test_single_precision_is_recognised_in_parquet(tmp_path):
    pi, arm = rule()
    path = tmp_path / "log.parquet"
    frame_of(pi.astype(np.float32), arm).to_parquet(path)
    history = read_history(path)
    assert history.resolution.unit == 2.0**-23
    np.testing.assert_allclose(history.selection_probability, pi, atol=2e-7)
    assert any("rescaled" in n for n in history.notices)


def test_six_decimals_stored_in_single_precision(tmp_path):
    """Rows are off by more than single precision explains; the decimals are seen through it."""
    pi, arm = rule(k=10)
    path = tmp_path / "log.parquet"
    frame_of(np.round(pi, 6).astype(np.float32), arm).to_parquet(path)
    history = read_history(path)
    assert history.resolution.unit == 1e-6
    np.testing.assert_allclose(history.selection_probability, pi, atol=6e-6)


def test_full_precision_has_no_resolution_to_allow_for(tmp_path):
    pi, arm = rule(n=30_000)  # long enough for the compiled check
    path = tmp_path / "log.parquet"
    frame_of(pi, arm).to_parquet(path)
    history = read_history(path)
    assert history.resolution.unit == 0 and history.notices == ()
    np.testing.assert_array_equal(history.selection_probability, pi)
    wrong = pi.copy()
    wrong[29_000, 0] += 0.01
    pq.write_table(pa.Table.from_pandas(frame_of(wrong, arm)), path)
    with pytest.raises(DataError, match=r"row 29001 of log\.parquet\) sum to 1\.01"):
        read_history(path)


# -- what does not fit is said ---------------------------------------------------------------------


def _late(source, **options):
    """Notices of a whole reading and of the last part of a scan, which must say the same."""
    whole = read_history(source, **options).notices
    *_, last = scan_history(source, chunk_rounds=2, **options).chunks()
    return [whole, last.notices]


def test_missing_arms_and_missing_rewards_are_counted_apart(read):
    text = "arm,reward\na,1\n,1\nb,\na,\n,\n"
    assert read(text, missing="drop").notices[-2:] == (
        "2 rewards are missing (by arm: 'a' 1, 'b' 1): these rows were left out (missing='drop').",
        "2 arms are missing: these rows were left out (missing='drop').",
    )


def test_a_propensity_that_contradicts_the_probabilities_is_noticed():
    frame = pd.DataFrame(
        {
            "arm": ["a", "b", "a", "b"],
            "reward": [1, 0, 1, 0],
            "propensity": [0.5, 0.25, 0.9, np.nan],
            "p_a": [0.5] * 4,
            "p_b": [0.5] * 4,
        }
    )
    for notices in _late(frame):
        (note,) = [n for n in notices if "contradicts" in n]
        assert note.startswith("column 'propensity' contradicts the columns 'p_{arm}' in 2 rows")
        assert "by 0.4 at most (row 3 of data frame: 0.9 against 0.5" in note
        assert "'p_a'" in note and "probabilities=False" in note
    frame["propensity"] = ["x", None, "y", "1"]  # nothing that is not used stops the reading
    for notices in _late(frame):
        assert not [n for n in notices if "contradicts" in n]
    frame["propensity"] = 0.5
    for notices in _late(frame):
        assert any("'propensity' was not used" in n for n in notices)
        assert not [n for n in notices if "contradicts" in n]


def test_a_probability_column_without_any_probability_is_noticed():
    frame = pd.DataFrame({"arm": list("abab"), "reward": [1, 0] * 2, "p_a": 0.5, "p_b": 0.5})
    for notices in _late(frame.assign(p_x=np.nan)):
        (note,) = [n for n in notices if "never on offer" in n]
        assert note.startswith("column 'p_x' held no probability in any round: 'x' never on offer")
    late = frame.assign(p_x=[np.nan] * 3 + [0.0])
    for notices in [*_late(late), *_late(frame)]:
        assert not [n for n in notices if "never on offer" in n]
    # one group's arms may be others than the next one's, as long as some group has them
    slots = frame.assign(slot=[1, 1, 2, 2], p_x=[np.nan, np.nan, 0.0, 0.0], p_y=np.nan)
    for group in read_history(slots, by="slot").values():
        (note,) = [n for n in group.notices if "never on offer" in n]
        assert "'p_y'" in note and "'p_x'" not in note


def test_labels_that_are_all_numbers_are_sorted_by_value(read, tmp_path):
    assert read("arm,reward\n10,1\n2,0\n1,1\n").arms == ("1", "2", "10")
    assert scan_history(tmp_path / "log.csv").arms == ("1", "2", "10")
    assert History(["10", "2", "1"], [1, 0, 1]).arms == ("1", "2", "10")
    assert read("arm,reward\n10,1\n2,0\nb,1\n").arms == ("10", "2", "b")
    assert read("arm,reward\n-1,1\n0.5,0\n007,1\n8,1\n").arms == ("-1", "0.5", "007", "8")
