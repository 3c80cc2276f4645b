"""Logs are never audited in a false order without a word: times that no option names."""

from __future__ import annotations

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

import bayesfair as bf
from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history

NEWEST = """created_at,arm,reward,p_a,p_b
2026-03-03,a,1,0.75,0.25
2026-03-02,b,0,0.625,0.375
2026-03-01,a,1,0.5,0.5
"""


def _scan(source, **options):
    return [part for part in scan_history(source, **options).chunks()][-1]


READERS = pytest.mark.parametrize("read", [read_history, _scan], ids=["read", "scan"])


def _kinds(history):
    return [n.kind for n in history.notices]


def test_the_newest_first_log_is_refused_and_right_once_it_is_sorted(tmp_path):
    """By hand, Beta(.5, .5): P*(a) before each round is .5, .625, .75, which is the rule."""
    path = tmp_path / "newest.csv"
    path.write_text(NEWEST)
    for read in (read_history, _scan):
        with pytest.raises(DataError, match=r"newest.csv runs backwards: 'created_at'") as caught:
            read(path)
        assert (caught.value.kind, caught.value.column) == ("order", "created_at")
        assert "order='created_at'" in str(caught.value)
    audit = bf.audit(read_history(path, order="created_at"), eps1=1, seed=0)
    assert audit.regret.value == pytest.approx(0, abs=1e-15)
    wrong = bf.audit(read_history(path, order=False), seed=0)
    assert wrong.regret.value == pytest.approx(1 / 6)  # as the rows stand, because it was said


def _frame(times, name="created_at"):
    n = len(times)
    return pd.DataFrame(
        {name: times, "arm": (["a", "b", "b"] * n)[:n], "reward": [1, 0, 1] * (n // 3)}
    )


STAMPS = {
    "ISO text": [f"2026-01-01T00:{i:02d}:00" for i in range(30)],
    "with zone": [f"2026-01-01 00:{i:02d}:00+01:00" for i in range(30)],
    "dates": [f"2026-01-{i + 1:02d}" for i in range(30)],
    "epoch in s": [1_767_000_000 + 60 * i for i in range(30)],
    "epoch in ms": [1_767_000_000_000 + 60 * i for i in range(30)],
    "epoch as text": [str(1_767_000_000 + 60 * i) for i in range(30)],
    "stamps": list(pd.date_range("2026-01-01", periods=30, freq="min")),
    "date objects": [dt.date(2026, 1, 1) + dt.timedelta(days=i) for i in range(30)],
}


@READERS
@pytest.mark.parametrize("stamps", STAMPS.values(), ids=STAMPS)
@pytest.mark.parametrize("name", ["created_at", "whatever"])
def test_every_form_of_a_stamp_under_any_name(read, stamps, name):
    forward = _frame(stamps, name)
    assert "order" not in _kinds(read(forward))
    with pytest.raises(DataError, match=f"runs backwards: '{name}'"):
        read(_frame(stamps[::-1], name))


@READERS
@pytest.mark.parametrize("make", [
    lambda f: f, polars.from_pandas, pa.Table.from_pandas, duckdb.from_df,
    lambda f: polars.from_pandas(f).lazy(),
], ids=["pandas", "polars", "arrow", "duckdb", "lazy"])  # fmt: skip
def test_every_kind_of_frame(read, make):
    frame = _frame(STAMPS["stamps"][::-1])
    with pytest.raises(DataError, match="data frame runs backwards: 'created_at'"):
        read(make(frame))
    assert read(make(_frame(STAMPS["stamps"]))).n_rounds == 30


@READERS
def test_counters_of_rounds_that_fall_are_refused_too(read):
    for name in ("round", "step", "trialNumber"):
        with pytest.raises(DataError, match=f"runs backwards: '{name}'"):
            read(_frame(list(range(30, 0, -1)), name))
    assert (
        read(_frame(list(range(30, 0, -1)), "price")).notices
        == read(_frame(list(range(30)), "price")).notices
    )


@READERS
def test_one_column_that_rises_says_that_the_rows_are_in_order(read):
    frame = _frame(STAMPS["stamps"]).assign(expires=STAMPS["stamps"][::-1])
    assert "order" not in _kinds(read(frame))


@READERS
def test_rows_in_no_order_and_rows_that_share_their_time_get_a_notice(read):
    shuffled = _frame(list(np.random.default_rng(1).permutation(STAMPS["stamps"])))
    (found,) = [n for n in read(shuffled).notices if n.kind == "order"]
    falls = int(np.sum(np.diff(shuffled.created_at.astype("int64")) < 0))
    assert found.column == "created_at" and found.n == falls and "order='created_at'" in found
    days = _frame(["2026-01-01"] * 12 + ["2026-01-02"] * 18, "day")
    (found,) = [n for n in read(days).notices if n.kind == "order"]
    assert found.n == 28 and "share it with the row before" in found
    assert "order" not in _kinds(read(days, order=False))
    (found,) = [n for n in read(days, order="day").notices if n.kind == "order"]
    assert found.n == 28 and "That is most of them" in found
    pairs = _frame([f"2026-01-{i // 2 + 1:02d}" for i in range(30)], "day")
    assert [n.n for n in read(pairs, order="day").notices if n.kind == "tied_order"] == [15]


def test_ties_of_a_source_that_runs_backwards_are_said_to_be_uncertain():
    days = _frame([f"2026-01-{15 - i // 2:02d}" for i in range(30)], "day")
    found = {n.kind: n for n in read_history(days, order="day").notices}
    assert found["sorted"].n == 28 and "runs backwards" in found["order"]
    assert found["order"].n == 15


@READERS
def test_each_group_has_its_own_order(read):
    """Two groups one after the other: each runs forwards, and then one of them does not."""
    frame = pd.concat([_frame(STAMPS["stamps"]).assign(leaf=leaf) for leaf in "xy"])
    groups = read_history(frame, by="leaf")
    assert all("order" not in _kinds(h) for h in groups.values())
    frame = pd.concat([frame[frame.leaf == "x"], frame[frame.leaf == "y"][::-1]])
    with pytest.raises(DataError, match="data frame, leaf=y runs backwards"):
        if read is read_history:
            read_history(frame, by="leaf")
        else:
            [list(scan.chunks()) for scan in scan_history(frame, by="leaf").values()]


@READERS
def test_a_time_in_the_index_is_a_column(read):
    stamps = pd.DatetimeIndex(STAMPS["stamps"], name="timestamp")
    frame = _frame(STAMPS["stamps"]).drop(columns="created_at").set_index(stamps)
    whole = read(frame)
    assert whole.time is not None and "timestamp" not in whole.unused_columns
    backwards = frame.sort_index(ascending=False)
    if read is read_history:  # the default order column: sorted, and said so
        sorted_ = read_history(backwards)
        assert sorted_.reward.tolist() == whole.reward.tolist()
        assert "sorted" in _kinds(sorted_)
    with pytest.raises(DataError, match=r"runs backwards: '\(index\)'"):
        read(backwards.rename_axis(None))
    with pytest.raises(DataError, match="runs backwards: 'seen'"):
        read(backwards.rename_axis("seen"))
    levels = frame.set_index("arm", append=True)
    assert read(levels).arms == ("a", "b")


@READERS
def test_a_column_that_is_time_only_at_first_does_no_harm(read):
    frame = _frame([*STAMPS["ISO text"][::-1][:15], *(f"note {i}" for i in range(15))])
    assert "order" not in _kinds(read(frame))
    with pytest.raises(DataError, match="runs backwards"):  # one odd value hides nothing
        read(_frame([*STAMPS["ISO text"][::-1][:29], "yesterday"]))


def test_a_long_scan_is_refused_before_its_end():
    n = 40_000
    frame = pa.table({
        "created": pa.array(np.arange(2_000_000_000 + n, 2_000_000_000, -1)),
        "arm": pa.array(["a", "b"] * (n // 2)), "reward": pa.array([1, 0] * (n // 2)),
    })  # fmt: skip
    parts = scan_history(frame, chunk_rounds=5000).chunks()
    seen = 0
    with pytest.raises(DataError, match="runs backwards"):
        for part in parts:
            seen += part.n_rounds
    assert seen < 20_000


_DAYS = [dt.datetime(2026, 1, 1, 9, 5) + dt.timedelta(days=i) for i in range(30)]
SURE = {
    "day.month.year": [f"{d:%d.%m.%Y}" for d in _DAYS],
    "day.month.year, short": [f"{d.day}.{d.month}.{d:%y}" for d in _DAYS],
    "with a clock": [f"{d:%d.%m.%Y %H:%M}" for d in _DAYS],
    "day/month/year": [f"{d:%d/%m/%Y}" for d in _DAYS],
    "month/day/year": [f"{d.month}/{d.day}/{d.year}" for d in _DAYS],
    "year/month/day": [f"{d:%Y/%m/%d}" for d in _DAYS],
}
UNSURE = {
    "day or month": [f"{d}/{d}/2026" for d in (1, 2, 3)],
    "clock": ["10:01", "10:02", "10:03"],
    "months": ["Jan 2026", "Feb 2026", "Mar 2026"],
    "days": ["1 March 2026", "2 March 2026", "3 March 2026"],
    "mail": [f"Sun, 0{i} Mar 2026 10:00:00 GMT" for i in (1, 2, 3)],
    "weeks": ["2026-W10", "2026-W11", "2026-W12"],
    "half days": [f"0{i}/03/2026 10:00 AM" for i in (1, 2, 3)],
    "clock objects": [dt.time(10, i) for i in (1, 2, 3)],
}


@READERS
@pytest.mark.parametrize("dates", SURE.values(), ids=SURE)
def test_dates_of_one_meaning_only_run_backwards_like_others(read, dates):
    assert not {"order", "order_unknown"} & set(_kinds(read(_frame(dates))))
    with pytest.raises(DataError, match=r"runs backwards: 'created_at'.*ISO 8601") as caught:
        read(_frame(dates[::-1]))
    assert (caught.value.kind, caught.value.column) == ("order", "created_at")
    assert "order_unknown" not in _kinds(read(_frame(dates[::-1]), order=False))


@READERS
@pytest.mark.parametrize("dates", UNSURE.values(), ids=UNSURE)
@pytest.mark.parametrize("name", ["when", "whatever"])
def test_times_that_cannot_be_read_are_noticed_once(read, dates, name):
    notices = [n for n in read(_frame(dates[::-1], name)).notices if n.kind == "order_unknown"]
    assert [(n.column, n.value) for n in notices] == [(name, str(dates[-1]))]
    assert f"column '{name}' looks like a time in a format that is not read" in notices[0]
    assert "order_unknown" not in _kinds(read(_frame(dates, name), order=False))
    known = _frame(dates, name).assign(time=range(3))
    assert "order_unknown" not in _kinds(read(known))  # another column agrees with the rows


@READERS
@pytest.mark.parametrize(
    "texts",
    [["1.2.10", "1.2.9", "1.2.3"], ["may", "see", "go"], ["10.0.0.1", "10.0.0.2", "::1"],
     ["12-34", "12-33", "12-32"], ["a/b/2026", "b", "c"], ["March"] * 3],
)  # fmt: skip
def test_versions_words_and_addresses_are_no_times(read, texts):
    assert "order_unknown" not in _kinds(read(_frame(texts, "item")))


@READERS
def test_row_numbers_of_a_frame_that_was_turned_round_are_told(read):
    frame = _frame(list("xyz"), "item")
    for turned in (frame[::-1], frame.set_axis([2, 1, 0]), frame.sort_index(ascending=False)):
        with pytest.raises(DataError, match=r"runs backwards: '\(index\)'"):
            read(turned)
        by_number = read_history(turned, order="(index)")
        labels = [by_number.arms[i] for i in by_number.arm]
        assert labels == turned.arm.tolist()[::-1]
        assert read(turned, order=False).n_rounds == 3
        assert read(turned.assign(timestamp=[1, 2, 3])).n_rounds == 3
    assert "order" not in _kinds(read(frame.set_axis([5, 1, 7])))


def test_duels_with_dates_of_other_formats():
    duels = pd.DataFrame({"winner": list("abc"), "loser": list("bca")})
    with pytest.raises(DataError, match="runs backwards: 'date'"):
        bf.read_duels(
            duels.assign(date=["30/12/2025", "29/12/2025", "28/12/2025"]),
            winner="winner", loser="loser",
        )  # fmt: skip
