"""Rewards that may come late: missing means 0 after the waiting time, and nothing before."""

import json

import command_line
import numpy as np
import pandas as pd
import pytest

import bayesfair as bf
from bayesfair.errors import OptionError


def log(times=True):
    """Six rounds a day apart; rounds 0, 2 and 5 have no reward."""
    day = np.arange(6)
    return pd.DataFrame({
        "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(day, "D") if times else day * 10,
        "arm": list("abaabb"),
        "reward": [np.nan, 1, np.nan, 1, 0, np.nan],
        "p_a": 0.5,
        "p_b": 0.5,
    })  # fmt: skip


def kinds(data):
    return {n.kind: n for n in data.notices if hasattr(n, "kind")}


@pytest.mark.parametrize(
    ("times", "wait"), [(True, "2d"), (True, "48h"), (False, 20), (False, "20")]
)
def test_zero_after_the_time_unknown_before(times, wait):
    read = bf.read_history(log(times), order="t", waiting=wait)
    # round 0 is 0 from day 2 on, round 2 from day 4 on; day 7 never comes
    assert read.reward[:5].tolist() == [0, 1, 0, 1, 0] and np.isnan(read.reward[5])
    assert read.known_at.tolist() == [2, 2, 4, 4, 5, 6]
    assert kinds(read)["waited"].n == 2 and kinds(read)["missing_rewards"].n == 1


def test_beliefs_before_and_after():
    read = bf.read_history(log(), order="t", waiting="2d")
    audit = bf.audit(read, seed=1, draws=40)
    # Of two arms of 0/1 rewards P*(a) = (1 + mean a - mean b) / 2, and regret is |P*(a) - 1/2|;
    # known before rounds 0, 1: nothing; 2, 3: a 0/1, b 1/1; 4: a 1/3, b 1/1; 5: a 1/3, b 1/2
    means = [(0.25, 0.75), (0.25, 0.75), (1.5 / 4, 0.75), (1.5 / 4, 0.5)]
    regret = sum(abs(a - b) / 2 for a, b in means)
    assert audit.to_dict()["calibration"]["subjective"]["regret_total"] == pytest.approx(
        regret, abs=1e-12
    )
    assert "waited" in [note["kind"] for note in audit.to_dict()["findings"]]


def test_known_at_stays_and_late_rewards_are_told():
    frame = log()
    frame["known_at"] = frame.t + pd.to_timedelta([0, 3, 0, 1, 1, 0], "D")
    frame.loc[frame.reward.isna(), "known_at"] = pd.NaT
    read = bf.read_history(frame, order="t", waiting="2d")
    assert read.known_at.tolist() == [2, 4, 4, 4, 5, 6]
    assert kinds(read)["late_rewards"].n == 1


def test_groups_wait_by_their_own_rounds():
    frame = pd.concat([log(), log().assign(arm=list("bbbbbb"))], keys=["x", "y"])
    frame = frame.reset_index(level=0, names="site")
    read = bf.read_history(frame, order="t", by="site", waiting="2d")
    for group in read.values():
        assert group.known_at.tolist() == [2, 2, 4, 4, 5, 6]


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"waiting": "soon"}, "waiting"),
        ({"waiting": -1}, "waiting"),
        ({"waiting": 5}, "waiting"),
        ({"waiting": "2d", "missing": 0}, "waiting"),
        ({"waiting": "2d", "order": False}, "waiting"),
        ({"waiting": "2d", "known_until": "p_a"}, "waiting"),
    ],
)
def test_what_cannot_be_waited_for_is_refused(given, column):
    with pytest.raises(OptionError) as caught:
        bf.read_history(log(), **({"order": "t"} | given))
    assert caught.value.column == column


def test_nothing_to_wait_for_and_scans():
    frame = log().dropna()
    read = bf.read_history(frame, order="t", waiting="2d")
    assert kinds(read)["option_without_effect"].column == "waiting"
    with pytest.raises(OptionError) as caught:
        bf.scan_history(frame, order="t", waiting="2d")
    assert caught.value.kind == "needs_whole"


def test_on_the_command_line(tmp_path, capsys):
    log().to_csv(tmp_path / "log.csv", index=False)
    argv = ["--order", "t", "--waiting", "2d", "--draws", "40", "--json", str(tmp_path / "a.json")]
    status, out, _ = command_line.run(capsys, "audit", str(tmp_path / "log.csv"), *argv)
    assert status == 0 and "2 rewards of the 3 missing counted as 0" in " ".join(out.split())
    found = json.loads((tmp_path / "a.json").read_text())
    assert "waited" in [notice["kind"] for notice in found["findings"]]
    assert found["log"]["n_unobserved"] == 1
