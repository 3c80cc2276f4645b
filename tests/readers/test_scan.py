"""A scan gives what reading the whole gives, part by part, and never holds the whole."""

from __future__ import annotations

import csv
import io
import re
import tempfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.readers import read_history, scan_history
from bayesfair.readers.files.read_ahead import ahead
from bayesfair.readers.log.columns import Roles, resolve_layout

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def write(folder, text, name="log.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def joined(parts, name):
    values = [getattr(p, name) for p in parts]
    assert len({v is None for v in values}) == 1
    return None if values[0] is None else np.concatenate(values)


def assert_same(parts, whole):
    """The parts, put together, are the whole; `known_at` counts from each part's first round."""
    for name in ("arm", "reward", "selection_probability", "propensity", "row", "time"):
        expected = getattr(whole, name)
        found = joined(parts, name)
        if expected is None:
            assert found is None
        else:
            np.testing.assert_array_equal(found, expected)
    assert {p.arms for p in parts} == {whole.arms}
    assert {p.selection for p in parts} == {whole.selection}
    assert sum(p.n_skipped for p in parts) == whole.n_skipped


# -- chunked = whole -------------------------------------------------------------------------------


def random_log(rng, n, k, *, stamps=True):
    """Rows with several kinds of missing values, unequal arms, equal stamps."""
    labels = [f"arm {i}" for i in range(k)]
    pi = rng.dirichlet(np.ones(k), n)
    arm = rng.integers(0, k, n)
    time = np.sort(rng.integers(0, n // 2 + 1, n))
    reward = rng.choice(["1", "0", "yes", "False", ""], n)
    header = ["timestamp", "arm", "reward", "q", *(f"p_{a}" for a in labels), "on"]
    rows = []
    for t in range(n):
        on = rng.random(k) < 0.7
        on[arm[t]] = True
        row = [time[t], labels[arm[t]], reward[t], repr(float(pi[t, arm[t]]))]
        row += [repr(float(p)) for p in pi[t]]
        rows.append([*row, "|".join(a for a, o in zip(labels, on, strict=True) if o)])
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows(
        [header if stamps else header[1:], *(rows if stamps else [r[1:] for r in rows])]
    )
    return out.getvalue()


@pytest.mark.parametrize("size", [1, 7, 100, 101, 250, 1000])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"missing": "drop"},
        {"missing": 0.5},
        {"propensity": "q", "probabilities": False},
        {"propensity": "q", "probabilities": False, "offered": "on"},
        {"probabilities": False, "order": False, "missing": "drop"},
        {"arms": [f"arm {i}" for i in (4, 3, 2, 1, 0)]},
    ],
    ids=str,
)
def test_parts_together_are_the_whole(tmp_path, size, options):
    path = write(tmp_path, random_log(np.random.default_rng(5), 250, 5))
    options = {"missing": "unobserved"} | options
    whole = read_history(path, **options)
    scan = scan_history(path, chunk_rounds=size, **options)
    parts = list(scan.chunks())
    assert_same(parts, whole)
    if whole.offered is not None:
        full = [
            p.offered if p.offered is not None else np.ones((p.n_rounds, 5), bool) for p in parts
        ]
        np.testing.assert_array_equal(np.concatenate(full), whole.offered)
    assert (scan.arms, scan.selection) == (whole.arms, whole.selection)
    # counts are told once, at the end, as for the whole
    late = [n for n in whole.notices if "missing" in n or "same 'timestamp'" in n]
    assert late and [n for n in parts[-1].notices if n in late]
    assert not any("missing" in n for p in parts[:-1] for n in p.notices)
    assert_same(list(scan.chunks()), whole)  # a scan can be repeated


LABEL = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]),
    min_size=1,
    max_size=6,
).filter(lambda s: s.strip() and not re.search(r"\.0+$", s.strip()))  # "1.0" is the label "1"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_round_trip_through_text(data):
    """Whatever the labels, the delimiter and the part sizes: what was written is what is read."""
    import unicodedata

    def clean(s):
        return unicodedata.normalize("NFC", s.strip())

    labels = data.draw(st.lists(LABEL, min_size=1, max_size=4, unique_by=clean))
    n = data.draw(st.integers(1, 40))
    arm = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n))
    worth = st.floats(-1e150, 1e150)  # beyond, squares overflow and rewards are refused
    reward = data.draw(st.lists(worth, min_size=n, max_size=n))
    delimiter = data.draw(st.sampled_from(",;\t|"))
    decimal = data.draw(st.sampled_from(".," if delimiter != "," else "."))
    quoting = data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    raw = np.array(
        data.draw(
            st.lists(
                st.lists(st.floats(1e-3, 1), min_size=len(labels), max_size=len(labels)),
                min_size=n,
                max_size=n,
            )
        )
    )
    pi = raw / raw.sum(axis=1, keepdims=True)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerow(["arm", "reward", *(f"p_{a}" for a in labels)])
    for t in range(n):
        numbers = [repr(x).replace(".", decimal) for x in (reward[t], *pi[t].tolist())]
        writer.writerow([labels[arm[t]], *numbers])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_text(out.getvalue(), encoding="utf-8")
        options = {"delimiter": delimiter, "decimal": decimal}
        whole = read_history(path, **options)
        parts = list(
            scan_history(path, chunk_rounds=data.draw(st.integers(1, n)), **options).chunks()
        )
    assert whole.arms == tuple(map(clean, labels))
    assert whole.arm.tolist() == arm
    assert whole.reward.tolist() == reward
    np.testing.assert_allclose(whole.selection_probability, pi, rtol=0, atol=1e-15)
    assert whole.row.tolist() == list(range(2, n + 2))
    assert_same(parts, whole)


def test_known_at_counts_from_each_part(tmp_path):
    rng = np.random.default_rng(0)
    known = np.arange(30) + rng.integers(1, 9, 30)
    text = "arm,reward,seen\n" + "".join(f"a,1,{k}\n" for k in known)
    path = write(tmp_path, text)
    whole = read_history(path, known_at="seen")
    start = 0
    for part in scan_history(path, known_at="seen", chunk_rounds=7).chunks():
        stop = start + part.n_rounds
        np.testing.assert_array_equal(part.known_at + start, whole.known_at[start:stop])
        start = stop
    with pytest.raises(OptionError, match="known_at"):
        scan_history(path, known_at="seen", missing="drop")


def test_times_in_known_at_are_refused_by_a_scan(tmp_path):
    text = "timestamp,arm,reward,known_at\n2024-01-05,a,1,2024-01-06\n2024-01-07,a,1,2024-01-08\n"
    path = write(tmp_path, text)
    assert read_history(path).known_at is None  # the next round, as by default
    with pytest.raises(DataError, match=r"row 2 .*'known_at': holds a time.*known_at=False"):
        list(scan_history(path).chunks())
    assert next(scan_history(path, known_at=False).chunks()).n_rounds == 2


# -- arms and lengths ------------------------------------------------------------------------------


def test_arms_come_from_the_option_the_columns_or_a_counted_first_pass(tmp_path):
    path = write(tmp_path, "arm,reward,on\nb,1,b|d\na,0,a\n")
    assert scan_history(path, arms=["b", "a"]).notices == ()
    assert scan_history(path, arms=["b", "a"]).n_rounds is None
    found = scan_history(path)
    assert found.arms == ("a", "b") and found.n_rounds == 2
    assert "first pass over 2 rows" in found.notices[0] and "looks ahead" in found.notices[0]
    assert scan_history(path, offered="on").arms == ("a", "b", "d")
    full = write(tmp_path, "arm,reward,p_b,p_a\nb,1,.5,.5\n", "full.csv")
    assert scan_history(full).arms == ("b", "a") and scan_history(full).notices == ()


def test_unknown_arm_late_in_a_scan(tmp_path):
    path = write(tmp_path, "arm,reward\n" + "a,1\n" * 20 + "z,1\n")
    with pytest.raises(ArmError, match=r"row 22 of log\.csv, column 'arm': arm 'z'"):
        list(scan_history(path, arms=["a"], chunk_rounds=3).chunks())


def test_number_of_rounds_is_known_from_metadata(tmp_path):
    pq.write_table(pa.table({"arm": ["a"] * 9, "reward": [1.0] * 9}), tmp_path / "x.parquet")
    assert scan_history(tmp_path / "x.parquet", arms=["a"]).n_rounds == 9
    assert scan_history(tmp_path / "x.parquet", arms=["a"], missing="drop").n_rounds is None
    assert "9 rounds" in repr(scan_history(tmp_path / "x.parquet"))


def test_a_file_that_went_meanwhile_is_named(tmp_path):
    for i in range(2):
        pq.write_table(pa.table({"arm": ["a"], "reward": [1.0]}), tmp_path / f"{i}.parquet")
    scan = scan_history(tmp_path, arms=["a"])
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(DataError, match=r"1\.parquet was there .* is gone") as caught:
        list(scan.chunks())
    assert caught.value.kind == "no_file"


def test_parts_shrink_with_the_number_of_arms(tmp_path):
    path = write(tmp_path, "arm,reward\n0,1\n")
    sizes = [scan_history(path, arms=range(k)).chunk_rounds for k in (2, 30, 150, 3000, 100_000)]
    assert sizes == [131_072, 69_905, 55_924, 2796, 1024]
    with pytest.raises(OptionError, match="chunk_rounds"):
        scan_history(path, chunk_rounds=0)


# -- order -----------------------------------------------------------------------------------------


def test_unsorted_across_parts_names_the_row(tmp_path):
    stamps = [*range(10), 8.5, *range(10, 20)]
    path = write(tmp_path, "timestamp,arm,reward\n" + "".join(f"{t},a,1\n" for t in stamps))
    for size in (1, 2, 5, 10, 11, 100):
        with pytest.raises(DataError, match=r"row 12 of log\.csv, column 'timestamp': 8\.5 comes"):
            list(scan_history(path, chunk_rounds=size).chunks())
    assert sum(p.n_rounds for p in scan_history(path, order=False).chunks()) == 21


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_kinds_of_time_do_not_change_between_parts(tmp_path, size):
    stamps = ["2024-01-05"] * 3 + ["2024-01-05 11:00Z"] * 3
    path = write(tmp_path, "timestamp,arm,reward\n" + "".join(f"{t},a,1\n" for t in stamps))
    with pytest.raises(DataError, match=r"row 5 .*with zone.*row [234]"):
        list(scan_history(path, chunk_rounds=size).chunks())


def test_equal_stamps_are_counted_across_parts(tmp_path):
    path = write(tmp_path, "timestamp,arm,reward\n" + "7,a,1\n" * 10)
    for size in (1, 3, 10):
        *_, last = scan_history(path, chunk_rounds=size, arms=["a"]).chunks()
        assert "9 rows with the same" in last.notices[0]


# -- missing values --------------------------------------------------------------------------------


def test_parts_that_are_dropped_whole(tmp_path):
    path = write(tmp_path, "arm,reward\n" + "a,\n" * 5 + "a,1\n" + "b,\n" * 5)
    parts = list(scan_history(path, chunk_rounds=2, missing="drop").chunks())
    assert [p.row.tolist() for p in parts] == [[7]] and parts[0].n_skipped == 10
    assert "10 rewards are missing (by arm: 'a' 5, 'b' 5)" in parts[-1].notices[-1]
    path = write(tmp_path, "arm,reward\na,\n")
    with pytest.raises(DataError, match="all 1 were left out"):
        list(scan_history(path, missing="drop").chunks())


# -- in constant memory, and stoppable -------------------------------------------------------------


def test_memory_does_not_grow_with_the_log(tmp_path):
    k, n, groups = 10, 100_000, 12
    schema = pa.schema([("arm", pa.string()), ("reward", pa.int8())]).append(
        pa.field("p_0", pa.float64())
    )
    for i in range(1, k):
        schema = schema.append(pa.field(f"p_{i}", pa.float64()))
    with pq.ParquetWriter(tmp_path / "long.parquet", schema) as writer:
        columns = {f"p_{i}": np.full(n, 0.1) for i in range(k)}
        rows = pa.table({"arm": ["3"] * n, "reward": np.ones(n, np.int8)} | columns, schema=schema)
        for _ in range(groups):
            writer.write_table(rows)
    before = pa.total_allocated_bytes()
    held = []
    total = 0
    for part in scan_history(tmp_path / "long.parquet", chunk_rounds=20_000).chunks():
        total += part.n_rounds
        held.append(pa.total_allocated_bytes() - before)
    assert total == n * groups
    assert max(held) < rows.nbytes * 4  # twelve would be the whole


def test_a_scan_that_is_left_early_stops_reading(tmp_path):
    path = write(tmp_path, "arm,reward\n" + "a,1\n" * 1000)
    parts = scan_history(path, arms=["a"], chunk_rounds=10).chunks()
    next(parts)
    parts.close()
    assert not any(t.name.startswith("bayesfair") for t in threading.enumerate())


def test_reading_ahead_passes_errors_on_after_what_came_before_them():
    def failing():
        yield 1
        yield 2
        raise ValueError("third")

    seen = []
    with pytest.raises(ValueError, match="third"):
        for item in ahead(failing()):
            seen.append(item)
    assert seen == [1, 2]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the Open Bandit sample is not here")
def test_open_bandit_scan_is_the_whole():
    options = {"arm": "item_id", "reward": "click", "propensity": "propensity_score"}
    whole = read_history(SHARED / "obd_bts_men.csv", **options)
    scan = scan_history(SHARED / "obd_bts_men.csv", chunk_rounds=999, **options)
    assert_same(list(scan.chunks()), whole)


def test_the_rule_for_columns_in_one_place():
    header = ("timestamp", "arm", "reward", "propensity", "p_a")
    plain = resolve_layout(header, "x", Roles("arm", "reward"))
    assert (plain.order, plain.propensity, plain.probabilities) == ("timestamp", None, {"a": "p_a"})
    off = resolve_layout(
        header, "x", Roles("arm", "reward", order=False, propensity=False, probabilities=False)
    )
    assert (off.order, off.propensity, off.probabilities) == (None, None, {})
    assert off.columns == ["arm", "reward"]


@pytest.mark.parametrize("by", [None, "site"])
@pytest.mark.parametrize("read", [read_history, scan_history])
def test_options_that_meet_nothing_say_so_once_for_all_rows(read, by):
    log = pd.DataFrame(
        {"arm": ["a", "b"] * 3, "reward": [1, 0, 1, 0, 1, 1], "p_a": 0.5, "p_b": 0.5}
    ).assign(site=["x", "x", "y", "y", "y", "y"])

    def said(log, **options):
        history = read(log, by=by, **options)
        logs = [history] if by is None else list(history.values())
        parts = [list(one.chunks())[-1] if read is scan_history else one for one in logs]
        return {
            notice.column for part in parts for notice in part.notices
            if notice.kind == "option_without_effect"
        }  # fmt: skip

    assert said(log, missing="drop", rewards={"won": 1}) == {"missing", "rewards"}
    lacks = log.assign(reward=[1, 0, 1, 0, None, 1])  # group x lacks nothing, the log does
    assert said(lacks, missing="drop", rewards={1: 0.5}) == set()
    assert said(log, rewards={"won": 1, "0": 2}) == set()
