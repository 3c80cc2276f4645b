"""Order, groups, arms on offer, delays and priors of a log; the logs that come with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesfair import examples
from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.readers import read_history, scan_history

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the Open Bandit sample is not here")
OBD = {"arm": "item_id", "reward": "click", "propensity": "propensity_score"}


def labels(history):
    return [history.arms[i] for i in history.arm]


# -- order -----------------------------------------------------------------------------------------


def test_case_50_rows_are_sorted_by_time_with_a_notice(read):
    history = read("timestamp,arm,reward\n1,A,1\n3,A,1\n2,B,0\n", arms=["A", "B"])
    assert labels(history) == ["A", "B", "A"]
    assert history.row.tolist() == [2, 4, 3]
    assert history.notices == ("rounds were sorted by 'timestamp': 2 of 3 rows moved.",)
    # P*(A) before each round and after all, Beta(1, 1): (1 + mA - mB) / 2
    values = []
    for t in range(4):
        n, s = history.before(t).counts()
        a, b = (s + 1) / (n + 2)
        values.append((1 + a - b) / 2)
    np.testing.assert_allclose(values, [0.5, 7 / 12, 2 / 3, 17 / 24])


def test_equal_stamps_keep_the_order_of_the_source(read):
    rows = "".join(f"{t},{a},1\n" for t, a in zip([2, 1, 2, 1, 2], "abcde", strict=True))
    history = read("timestamp,arm,reward\n" + rows, arms=list("abcde"))
    assert labels(history) == ["b", "d", "a", "c", "e"]
    assert "3 rows with the same 'timestamp'" in history.notices[1]


def test_order_false_takes_rows_as_they_stand(read):
    text = "timestamp,arm,reward\n2,a,1\n1,b,0\n"
    for off in (False, ""):
        assert labels(read(text, order=off)) == ["a", "b"]


def test_rows_sorted_by_arm_are_noticed(read):
    text = "arm,reward\n" + "a,1\n" * 6 + "b,0\n" * 6
    assert any("sorted by arm" in n for n in read(text).notices)
    assert not any("sorted by arm" in n for n in read(text + "a,1\n").notices)


@pytest.mark.parametrize(
    "stamps",
    [
        ["10", "9", "11"],
        ["1.5", "-2", "1e3"],
        ["1704448800000000001", "1704448800000000000", "1704448800000000002"],  # beyond float
        ["2024-01-05 10:00", "2024-01-05", "2024-01-05T10:00:00.5"],
        ["2024-01-05 10:00:00.123456789", "2024-01-05 10:00:00.123456788", "2024-01-06"],
        ["2024-01-05 10:00Z", "2024-01-05 10:30+01:00", "2024-01-05 09:00-0200"],
        ["2024-01-05 10:00 UTC", "2024-01-05 09:59:59.5 UTC", "2024-01-06 00:00 UTC"],
        [" 2024-01-05 10:00 +02 ", "2024-01-05 09:00 +02", "2024-01-05 10:00 +01"],
    ],
)
def test_orders_as_text(read, stamps):
    rows = "".join(f"{s},{a},1\n" for s, a in zip(stamps, "abc", strict=True))
    assert labels(read("timestamp,arm,reward\n" + rows, arms=list("abc"))) == ["b", "a", "c"]


def test_zones_are_compared_as_instants():
    frame = pd.DataFrame(
        {
            "timestamp": pd.to_datetime(["2024-03-31 00:30", "2024-03-30 23:00"]).tz_localize(
                "UTC"
            ),
            "arm": ["b", "a"],
            "reward": [1, 0],
        }
    )
    frame["timestamp"] = frame["timestamp"].dt.tz_convert("Europe/Berlin")
    history = read_history(frame)
    assert labels(history) == ["a", "b"]
    assert history.time[0] == np.datetime64("2024-03-30T23:00")


def test_frames_that_mix_naive_and_aware_times_are_refused():
    stamps = [pd.Timestamp("2024-01-05 10:00"), pd.Timestamp("2024-01-05 11:00", tz="UTC")]
    frame = pd.DataFrame({"timestamp": stamps, "arm": ["a", "b"], "reward": [1, 0]}, dtype=object)
    with pytest.raises(DataError, match=r"row 2 .*with zone.*row 1"):
        read_history(frame)


def test_dates_and_missing_stamps_in_frames():
    frame = pd.DataFrame({"day": [pd.Timestamp("2024-01-05"), pd.NaT], "arm": "a", "reward": 1})
    with pytest.raises(DataError, match=r"row 2 of data frame, column 'day': the order is missing"):
        read_history(frame, order="day")
    frame = pd.DataFrame({"day": [2.0, np.nan], "arm": "a", "reward": 1})
    with pytest.raises(DataError, match=r"row 2 of data frame, column 'day': the order is missing"):
        read_history(frame, order="day")
    with pytest.raises(DataError, match="expected numbers or time stamps"):
        read_history(frame.assign(day=[True, False]), order="day")


# -- groups ----------------------------------------------------------------------------------------

SLOTS = "t,arm,reward,slot,p_a,p_b,p_c\n1,a,1,2,.5,.5,\n3,b,0,10,,.5,.5\n2,b,1,2,.5,.5,\n"


def test_groups_share_their_arms_and_are_sorted_by_their_own_time(read):
    groups = read(SLOTS, by="slot", order="t")
    assert list(groups) == ["2", "10"]  # by value, all being numbers
    assert {h.arms for h in groups.values()} == {("a", "b", "c")}
    assert groups["2"].row.tolist() == [2, 4] and groups["2"].notices == ()
    assert groups["2"].source == "log.csv, slot=2"


def test_groups_with_their_own_arms(read):
    groups = read(SLOTS, by="slot", arms="by_group")
    assert groups["2"].arms == ("a", "b") and groups["10"].arms == ("b", "c")
    assert groups["10"].selection_probability.tolist() == [[0.5, 0.5]]
    discovered = read(SLOTS, by="slot", arms="by_group", probabilities=False)
    assert discovered["10"].arms == ("b",) and labels(discovered["2"]) == ["a", "b"]
    with pytest.raises(OptionError, match="by_group"):
        read(SLOTS, arms="by_group")


def test_errors_in_groups_name_the_row_of_the_file(read):
    with pytest.raises(DataError, match=r"row 4 of log\.csv, slot=2\).*column 'p_b'"):
        read(SLOTS.replace("2,b,1,2,.5,.5,", "2,b,1,2,1,0,"), by="slot")


def test_dropping_is_counted_by_group(read):
    groups = read("arm,reward,g\na,1,x\na,,x\na,,y\na,0,y\na,,y\n", by="g", missing="drop")
    assert [h.n_skipped for h in groups.values()] == [1, 2]


def test_priors_by_group(read):
    prior = {"2": {"a": (3, 1)}}
    groups = read(SLOTS, by="slot", prior=prior)
    assert groups["2"].prior_counts.tolist() == [[3, 1], [0, 0], [0, 0]]
    assert groups["10"].prior_counts is None
    with pytest.raises(OptionError, match="'7'"):
        read(SLOTS, by="slot", prior={"7": {}})
    with pytest.raises(OptionError, match="group to prior"):
        read(SLOTS, by="slot", prior=[[1, 1]])


@needs_shared
def test_case_67_positions_of_the_open_bandit_log():
    groups = read_history(SHARED / "obd_bts_men.csv", by="position", **OBD)
    assert {g: h.n_rounds for g, h in groups.items()} == {"1": 3339, "2": 3262, "3": 3399}
    found = [float(np.mean(1 / h.propensity)) for h in groups.values()]
    np.testing.assert_allclose(found, [34.69, 30.40, 31.10], atol=0.005)
    assert sum(h.counts()[1].sum() for h in groups.values()) == 69
    random = read_history(SHARED / "obd_random_men.csv", by="position", **OBD)
    assert random["1"].n_rounds == 3284 and random["1"].n_arms == 34
    np.testing.assert_allclose(random["1"].propensity, 1 / 34)


@needs_shared
def test_case_65_one_tiny_propensity():
    women = read_history(SHARED / "obd_bts_women.csv", **OBD)
    weight = 1 / women.propensity
    np.testing.assert_allclose(weight.mean(), 144.17, atol=0.005)
    np.testing.assert_allclose(np.delete(weight, weight.argmax()).mean(), 44.18, atol=0.005)
    assert women.row[weight.argmax()] - 2 == np.argmin(women.propensity)
    men = read_history(SHARED / "obd_bts_men.csv", **OBD)
    np.testing.assert_allclose(np.mean(1 / men.propensity), 32.07, atol=0.005)
    assert any("2 rows with the same 'timestamp'" in n for n in men.notices)
    assert not any("sorted" in n for n in men.notices)


# -- arms on offer, delays, priors -----------------------------------------------------------------


def test_offers_as_a_list_of_labels(read):
    text = "arm,reward,on\na,1,a|b\nb,0, b |c| a\na,1,a|b\n"
    for arms, k in [(None, 3), (["a", "b", "c", "d"], 4)]:
        history = read(text, offered="on", arms=arms)
        assert history.n_arms == k
        expected = np.zeros((3, k), dtype=bool)
        expected[[0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 0, 1]] = True
        assert history.offered.tolist() == expected.tolist()
    assert read(text.replace("|", ";"), offered="on", offered_delimiter=";").n_arms == 3
    with pytest.raises(DataError, match=r"row 2 .*'on': no arm is on offer"):
        read(text.replace("a|b", ""), offered="on")


def test_offers_as_lists_in_a_frame():
    frame = pd.DataFrame({"arm": ["x", "a"], "reward": 1, "on": [["x", "z"], ["a", "x"]]})
    history = read_history(frame, offered="on")
    assert history.arms == ("a", "x", "z")
    assert history.offered.tolist() == [[False, True, True], [True, True, False]]


def test_offers_as_columns(read):
    text = "arm,reward,on_a,on_b,on_c\na,1,1,yes,\nb,0,0,True,1\n"
    history = read(text, offered="on_{arm}")
    assert history.arms == ("a", "b", "c") and history.notices == ()
    assert history.offered.tolist() == [[True, True, False], [False, True, True]]
    with pytest.raises(DataError, match=r"row 3 .*'on_a': 2 is neither yes nor no"):
        read(text.replace("b,0,0", "b,0,2"), offered="on_{arm}")
    with pytest.raises(ArmError, match="'c'"):
        read(text.replace("on_a", "p_a").replace("on_b", "p_b"), offered="on_{arm}")


def test_offers_restrict_full_probabilities(read):
    text = "arm,reward,p_a,p_b,p_c,on\na,1,.5,.5,0,a|b\n"
    history = read(text, offered="on")
    np.testing.assert_array_equal(history.selection_probability, [[0.5, 0.5, np.nan]])


def test_known_at_as_round_numbers(read):
    text = "arm,reward,seen\na,1,3\nb,0,2\na,1,3\nb,,\n"
    history = read(text, known_at="seen", missing="unobserved")
    assert history.known_at.tolist() == [3, 2, 3, 4]
    with pytest.raises(DataError, match=r"row 2 .*'seen': 1\.5 is not a round number"):
        read(text.replace("a,1,3\nb", "a,1,1.5\nb", 1), known_at="seen", missing="unobserved")
    with pytest.raises(DataError, match=r"row 2 .*'seen': missing, but the reward is there"):
        read(text.replace("a,1,3\nb", "a,1,\nb", 1), known_at="seen", missing="unobserved")


def test_known_at_counts_rounds_that_are_kept(read):
    """Round 4 of the file is round 2 once rows 3 and 4 are left out."""
    text = "arm,reward,seen\na,1,4\nb,,4\nb,,4\na,1,5\nb,0,9\n"
    history = read(text, known_at="seen", missing="drop")
    assert history.row.tolist() == [2, 5, 6] and history.known_at.tolist() == [2, 3, 3]


def test_known_at_as_times_is_converted_after_sorting(read):
    rows = [
        ("2024-01-03", "c", "2024-01-03"),  # round 2: known at once, that is in round 3
        ("2024-01-01", "a", "2024-01-03"),  # round 0: known in round 2
        ("2024-01-02", "b", "2024-02-01"),  # round 1: never in this log
        ("2024-01-04", "d", "2024-01-05"),  # round 3
    ]
    text = "timestamp,arm,reward,seen\n" + "".join(f"{t},{a},1,{s}\n" for t, a, s in rows)
    history = read(text, known_at="seen")
    assert labels(history) == ["a", "b", "c", "d"]
    assert history.known_at.tolist() == [2, 4, 3, 4]
    for day in ("2024-01-03", "2024-02-01", "2024-01-05"):
        text = text.replace(f",{day}\n", f",{day} 00:00Z\n")
    with pytest.raises(
        DataError, match=r"row 2 .*'seen': 2024-01-03.*time with zone.*without zone"
    ):
        read(text, known_at="seen")


def test_known_until_for_batches(read):
    text = "arm,reward,batch\n" + "".join(f"a,1,{b}\n" for b in (0, 0, 2, 2, 4))
    assert read(text, known_until="batch").known_at.tolist() == [2, 2, 4, 4, 5]
    with pytest.raises(OptionError, match="not both"):
        read(text, known_until="batch", known_at="batch")


def test_prior_counts(read):
    history = read("arm,reward\na,1\nb,0\n", prior={"a": (2, 3)})
    assert history.prior_counts.tolist() == [[2, 3], [0, 0]]
    with pytest.raises(ArmError, match="'z'"):
        read("arm,reward\na,1\n", prior={"z": (2, 3)})


# -- the bundled log -------------------------------------------------------------------------------


def test_ecmo_is_the_urn_of_the_trial():
    """RPW(1, 1): a success adds a ball of its own treatment, a failure one of the other."""
    history = read_history(examples.path("ecmo"))
    assert labels(history) == ["ECMO", "conventional"] + ["ECMO"] * 10
    assert history.reward.tolist() == [1, 0] + [1] * 10
    balls = np.array([1, 1])
    for t in range(12):
        np.testing.assert_array_equal(history.selection_probability[t], balls / balls.sum())
        balls[history.arm[t] if history.reward[t] else 1 - history.arm[t]] += 1
    assert history.notices == () and history.row.tolist() == list(range(2, 14))


def test_ecmo_needs_the_published_smallest_eps2():
    """One round, all pairs: |pi_E - pi_C| - eps1 |m_E - m_C| with Jeffreys posterior means."""
    history = read_history(examples.path("ecmo"))
    needed = {0: 0.8461538, 0.5: 0.4938811, 1: 0.1416084, 2: 0.0}
    for eps1, value in needed.items():
        excess = []
        for t in range(12):
            n, s = history.before(t).counts()
            m = (s + 0.5) / (n + 1)
            pi = history.selection_probability[t]
            excess.append(abs(pi[0] - pi[1]) - eps1 * abs(m[0] - m[1]))
        np.testing.assert_allclose(max(0, *excess), value, atol=5e-8)


def test_the_bundled_log_can_be_scanned():
    whole = read_history(examples.path("ecmo"))
    (part,) = scan_history(examples.path("ecmo")).chunks()
    np.testing.assert_array_equal(part.selection_probability, whole.selection_probability)
