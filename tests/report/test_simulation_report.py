"""`bayesfair simulate`: its numbers, and logs that the other commands read."""

from __future__ import annotations

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.errors import OptionError
from bayesfair.policies import FairSDDTS
from bayesfair.report.simulation import formulas, next_step, parse_arms, report, write_runs
from bayesfair.simulation.duels import simulate_duels

ONE = {"runs": 1, "batch": 1, "delay": 0, "seed": 3}


def test_a_log_is_read_back_without_options(tmp_path):
    numbers, text, logs = report("sd_ts", "a=.7,b=.4", **(ONE | {"rounds": 400} | {"delay": 3}))
    for name in ("run.parquet", "run.csv"):
        write_runs(logs, tmp_path / name)
        again, log = bf.read_history(tmp_path / name), logs["0"]
        assert again.arms == log.arms
        for field in ("arm", "reward", "selection_probability", "known_at"):
            np.testing.assert_array_equal(getattr(again, field), getattr(log, field))
    (row,) = numbers["runs"]
    best = np.array([0.7 * 0.6 + 0.5 * (0.42 * 0 + 0.7 * 0.4 + 0.3 * 0.6), 0.0])
    best[1] = 1 - best[0]
    short = np.maximum(best - log.selection_probability, 0).sum()
    assert row["fairness_regret"] == pytest.approx(short)
    assert row["standard_regret"] == pytest.approx(0.3 * log.selection_probability[:, 1].sum())
    assert row["reward_per_round"] == log.reward.mean()
    assert f"{short:.1f}" in text
    assert next_step(logs, tmp_path / "run.csv").endswith(f"bayesfair audit {tmp_path}/run.csv")


@pytest.mark.filterwarnings("ignore:.*comparisons of an item with itself")
@pytest.mark.parametrize("exploitation", ["A", "C"])
def test_duels_are_logged_with_all_that_was_drawn(tmp_path, exploitation):
    params = ["C=5", f"exploitation={exploitation}"]
    numbers, text, logs = report("fair_sd_dts", "a=3,b=2,c=1", rounds=600, param=params, **ONE)
    rule = FairSDDTS(C=5, exploitation=exploitation)
    log = simulate_duels(rule, {"a": 3, "b": 2, "c": 1}, 600, seed=3)
    (row,) = numbers["runs"]
    share = np.array([3, 2, 1]) / 6
    assert row["fairness_regret"] == pytest.approx(
        np.abs(log.selection_probability - share).sum() / 2
    )
    selves = int((log.left == log.right).sum())
    assert row["without_outcome"] == selves
    assert (selves > 0) == (exploitation == "A")
    assert str(row["left"]["a"]) in text
    path = tmp_path / "duels.parquet"
    write_runs(logs, path)
    table = _table(path)
    assert table["left"] == [log.items[i] for i in log.left]
    known = log.left != log.right
    expected = [log.items[w] if w >= 0 else None for w in log.winner]
    assert table["winner"] == expected
    np.testing.assert_array_equal(table["p_b"], log.selection_probability[:, 1])
    np.testing.assert_array_equal(table["pair_propensity"], log.pair_propensity)
    read = bf.read_comparisons(
        path, left="left", right="right", winner="winner", missing="drop" if selves else "error"
    )
    # at the maximum of the likelihood every item won as often as the worths expect
    mode = bf.fit(read, prior_sd=np.inf, seed=1)["mode"]["log_worth"].values
    expected = np.zeros(3)
    for i, j in zip(log.left[known], log.right[known], strict=True):
        chance = 1 / (1 + np.exp(mode[j] - mode[i]))
        expected[i] += chance
        expected[j] += 1 - chance
    np.testing.assert_allclose(np.bincount(log.winner[known], minlength=3), expected, rtol=1e-6)
    assert ("--missing drop" in next_step(logs, path)) == (selves > 0)


def test_several_runs_have_a_column_of_their_own(tmp_path):
    _, _, logs = report("fair_sd_dts", "a=3,b=1", rounds=50, param=["C=5"], **(ONE | {"runs": 2}))
    write_runs(logs, tmp_path / "d.csv")
    lines = (tmp_path / "d.csv").read_text().splitlines()
    assert len(lines) == 101
    assert lines[0].replace('"', "") == "run,left,right,winner,pair_propensity,p_a,p_b"
    _, _, logs = report("uniform", "a=.3,b=.1", rounds=50, **(ONE | {"runs": 2}))
    assert next_step(logs, tmp_path / "u.csv").endswith("--by run")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parse_arms("a=0,b=1", worths=True), "a=0.*worth above 0"),
        (lambda: parse_arms("a=inf", worths=True), "worth above 0"),
        (lambda: parse_arms("a=3"), r"mean in \[0, 1\]"),
        (
            lambda: report("fair_sd_dts", "a=3,b=1", rounds=9, **(ONE | {"batch": 2})),
            "batch=2 has no effect on a rule that chooses pairs",
        ),
        (lambda: report("sd_ts_mixture", "a=.3,b=.1", rounds=9, **ONE), "--param weight="),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(OptionError, match=message):
        call()


def _table(path):
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pydict()


def test_labels_that_a_spreadsheet_would_run_are_named_where_a_spreadsheet_may_read_them(tmp_path):
    def said(labels, name):
        means = dict(zip(labels, (0.5, 0.4), strict=True))
        log = bf.simulate("uniform", means, 4, seed=1)
        write_runs({"0": log}, tmp_path / name)
        return formulas({"0": log}, tmp_path / name)

    assert "'=cmd()'" in said(["=cmd()", "b"], "a.csv")
    assert "'@b'" in said(["a", "@b"], "b.csv")
    assert said(["-1", "+2.5"], "c.csv") == ""  # numbers
    assert said(["=cmd()", "b"], "d.parquet") == ""
    assert "=cmd()" in (tmp_path / "a.csv").read_text().splitlines()[0]  # as it is
