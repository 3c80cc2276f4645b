"""One broken value never makes a well-known column pass for something else, or for absent.

Which it is is decided by most of its values; what is wrong is then refused by row, or by name.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesfair.errors import DataError
from bayesfair.readers import preview, read_history, scan_history
from bayesfair.readers.duels.log import read_duels
from bayesfair.readers.values.stamps import looks_like_time
from bayesfair.readers.values.values import meant_numbers

N, AT = 12, 7
ARM = ["a", "b", "b"] * 4
BASE = {"arm": ARM, "reward": ["1", "0", "0", "1"] * 3}
P_A = [0.5, 0.25, 0.75] * 4
CHOSEN = [p if arm == "a" else 1 - p for arm, p in zip(ARM, P_A, strict=True)]
BROKEN = ["1_0", "x_y", "1e400", "0,5", "٣", "1.7", "-1", "33 %"]


def _texts(values):
    return [repr(float(v)) for v in values]


# name -> columns, the one that is broken, and whether it is read (else: refused by name)
COLUMNS = {
    "propensity_score": ({"propensity_score": _texts(CHOSEN)}, "propensity_score", True),
    "Pscore": ({"Pscore": _texts(CHOSEN)}, "Pscore", True),
    "pi_{arm}": ({"pi_a": _texts(P_A), "pi_b": _texts(1 - np.array(P_A))}, "pi_b", True),
    "{arm}_prob": ({"a_prob": _texts(P_A), "b_prob": _texts(1 - np.array(P_A))}, "a_prob", True),
    "probs": ({"probs": [json.dumps({"a": p, "b": 1 - p}) for p in P_A]}, "probs", True),
    "anything": ({"anything": [str({"a": p, "b": 1 - p}) for p in P_A]}, "anything", True),
    "share {arm}": (
        {"share a": _texts(P_A), "share b": _texts(1 - np.array(P_A))}, "share a", False,
    ),
    "p": ({"p": _texts(CHOSEN)}, "p", False),
    "pi": ({"pi": [f"[{p}, {1 - p}]" for p in P_A]}, "pi", False),
    "log_prob": ({"log_prob": _texts(np.log(CHOSEN))}, "log_prob", False),
    "propensity_pct": ({"propensity_pct": _texts(100 * np.array(CHOSEN))}, "propensity_pct", False),
    "ipw": ({"ipw": _texts(1 / np.array(CHOSEN))}, "ipw", False),
}  # fmt: skip


def _number(text):
    try:
        return float(text) if text.isascii() and "_" not in text and text != "1e400" else text
    except ValueError:
        return text


def _sources(folder, columns):
    """The same log as CSV, JSON lines, a JSON array, Parquet, and as frames."""
    frame = pd.DataFrame(columns)
    rows = [{c: _number(v) for c, v in row.items()} for row in frame.to_dict("records")]
    frame.to_csv(folder / "log.csv", index=False)
    frame.to_parquet(folder / "log.parquet")
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "log.json").write_text(json.dumps(rows))
    mixed = pd.DataFrame({c: [row[c] for row in rows] for c in columns})
    files = [folder / f"log.{end}" for end in ("csv", "parquet", "jsonl", "json")]
    return [*files, frame, mixed]


def _scan(source, **options):
    return list(scan_history(source, **options).chunks())


@pytest.mark.parametrize("name", COLUMNS)
def test_one_broken_value_is_refused_in_every_format(tmp_path, name):
    columns, column, is_read = COLUMNS[name]
    values = list(columns[column])
    values[AT] = "x_y"
    for source in _sources(tmp_path, BASE | columns | {column: values}):
        for read in (read_history, _scan):
            with pytest.raises(DataError) as caught:
                read(source)
            said = str(caught.value)
            assert f"'{column}'" in said
            if is_read:
                first = 2 if str(source).endswith(".csv") else 1
                assert f"row {AT + first} of" in said and "x_y" in said
            else:
                assert caught.value.kind == "probabilities_unread"


@pytest.mark.parametrize("bad", BROKEN)
@pytest.mark.parametrize("name", COLUMNS)
def test_whatever_is_wrong_with_the_value(name, bad):
    columns, column, is_read = COLUMNS[name]
    if name in {"log_prob", "propensity_pct", "ipw"} and bad in {"1.7", "-1", "1e400"}:
        is_read = False
    values = list(columns[column])
    values[AT] = bad
    with pytest.raises(DataError, match=f"'{column}'|row {AT + 1} of") as caught:
        read_history(pa.table(BASE | columns | {column: values}))
    if is_read:
        assert f"row {AT + 1} of" in str(caught.value)
    else:
        assert caught.value.kind == "probabilities_unread"


def test_groups_previews_and_missing_values_alike():
    values = _texts(CHOSEN)
    values[AT] = "oops"
    log = pa.table(BASE | {"propensity_score": values, "g": ["u", "v"] * 6})
    for read in (read_history, scan_history):
        with pytest.raises(DataError, match=f"row {AT + 1} .*'propensity_score'.*'oops'"):
            for _, part in read(log, by="g").items():
                list(part.chunks())
    found = {c.name: c.part for c in preview(log).columns}
    assert found["propensity_score"] == "propensity"
    values[AT] = None
    with pytest.raises(DataError, match="propensity"):
        read_history(pa.table(BASE | {"propensity_score": values}))


@pytest.mark.parametrize("read", [read_history, _scan])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([*["0.5"] * 4000, "oops", *["0.5"] * 999], "row 4002 .*'pscore'.*'oops'"),
        ([""] * 2500 + ["0.5"] * 2500, "'pscore'"),
        ([""] * 5000, "'pscore'"),
        (["0,5"] * 5000, r"row 2 .*'pscore'.*decimal=\",\""),
        (["0.5"] * 2501 + ["high"] * 2499, "'pscore'.*'high'"),
    ],
)
def test_after_the_first_rows_and_in_most_of_them(tmp_path, read, values, said):
    path = tmp_path / "log.csv"
    pd.DataFrame({"arm": ["a", "b"] * 2500, "reward": 1, "pscore": values}).to_csv(
        path, index=False, sep=";"
    )
    with pytest.raises(DataError, match=said):
        read(path)


def test_a_column_of_one_file_of_several_is_not_overlooked(tmp_path):
    for day in (1, 2):
        frame = pd.DataFrame(BASE | ({"propensity_score": CHOSEN} if day == 2 else {}))
        frame.to_csv(tmp_path / f"{day}.csv", index=False)
    with pytest.raises(DataError, match=r"1\.csv has no column 'propensity_score'"):
        read_history(tmp_path)


def test_a_damaged_column_of_parquet_is_not_overlooked(tmp_path):
    raw = [b"0.5", b"\xff", *[b"0.5"] * 10]
    made = pa.StringArray.from_buffers(
        N,
        pa.array(np.cumsum([0, *map(len, raw)]), pa.int32()).buffers()[1],
        pa.py_buffer(b"".join(raw)),
    )
    for column in (made, pa.array(raw)):
        table = pa.table(BASE | {"propensity_score": column})
        pq.write_table(table, tmp_path / "log.parquet")
        for source in (table, tmp_path / "log.parquet"):
            with pytest.raises(DataError, match="'propensity_score'"):
                read_history(source)


@pytest.mark.parametrize(
    "columns",
    [
        {"policy": ["ts", "random"] * 6},
        {"weight": ["heavy", "light", "2.5"] * 4},
        {"propensity_score": ["high", "0.5"] * 6},  # no majority
        {"prob": ["high", "low", "0.5"] * 4},
        {"p": ["1", "2", "3"] * 4},
        {"p": ["1", "1", "2"] * 4},
        {"device a": ["1", "0", "1"] * 4, "device b": ["0", "1", "1"] * 4},  # sum to 1 in most rows
    ],
)
def test_words_and_other_numbers_are_no_probabilities(columns):
    log = read_history(pa.table(BASE | columns))
    assert log.selection == "none" and log.unused_columns == tuple(columns)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0.5", "x", "1"], [0.5, np.nan, 1]),
        (["0.5", "x"], None),
        (["0,5", "1,5"], [0.5, 1.5]),
        (["33 %", "1/3", "1_0", "٣"], [np.nan] * 4),
        (["yes", "no", "2", "NA"], [1, 0, 2, np.nan]),
        (["", None], None),
        (["u", "v"], None),
        ([True, None, False], [1, np.nan, 0]),
        ([0.25, None], [0.25, np.nan]),
        ([b"0.5", b"\xff", b"1"], [0.5, np.nan, 1]),
        ([[0.5], None], None),
    ],
)
def test_what_a_column_is_meant_as(values, expected):
    found = meant_numbers(pa.chunked_array([pa.array(values)]))
    if expected is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, expected)


DAYS = [f"2026-01-{d:02d}" for d in range(N, 0, -1)]
BACKWARDS = {
    "created_at": DAYS,
    "time": [f"{d}T10:00:00Z" for d in DAYS],
    "when": [f"{d}.01.2026" for d in range(N, 0, -1)],
    "date": [f"01/{d}/2026" for d in range(N + 13, 13, -1)],
    "step": [str(d) for d in range(N, 0, -1)],
    "epoch": [str(1_700_000_000 + d) for d in range(N, 0, -1)],
}


@pytest.mark.parametrize("bad", ["x_y", "", "None", "2026-13-45", "32.13.2026", "٣"])
@pytest.mark.parametrize("column", BACKWARDS)
def test_a_broken_time_does_not_hide_that_a_log_runs_backwards(column, bad):
    values = list(BACKWARDS[column])
    values[AT] = bad
    table = pa.table(BASE | {column: values})
    for read in (read_history, _scan):
        with pytest.raises(DataError, match=f"'{column}' falls") as caught:
            read(table)
        assert caught.value.kind == "order"


def test_words_are_no_times():
    for values in (["u", "v", "w"], ["2026-01-01", "u"], ["1", "u", "2026-01-01"]):
        assert looks_like_time("time", pa.chunked_array([values])) is None


@pytest.mark.parametrize("column", ["chosen", "p", "arm"])
@pytest.mark.parametrize("bad", ["x_y", "", "2"])
def test_one_row_per_round_and_arm_is_seen_with_a_broken_value(column, bad):
    rounds, k = 60, 3
    rng = np.random.default_rng(1)
    chosen = np.eye(k, dtype=int)[rng.integers(k, size=rounds)].ravel()
    log = {
        "request": np.repeat(np.arange(rounds), k).astype(str).tolist(),
        "arm": ["a", "b", "c"] * rounds, "p": ["0.2", "0.3", "0.5"] * rounds,
        "chosen": chosen.astype(str).tolist(), "reward": ["0"] * (rounds * k),
    }  # fmt: skip
    broken = list(log[column])
    broken[90] = bad
    without = {"p"} if column == "chosen" else set()
    for left_out in (without, without | {"request", "p"}):
        if column in left_out or (column, bad) == ("arm", ""):
            continue
        table = {c: v for c, v in (log | {column: broken}).items() if c not in left_out}
        with pytest.raises(DataError) as caught:
            read_history(pa.table(table))
        assert caught.value.kind == "long_shape"


@pytest.mark.parametrize("bad", [None, "oops"])
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"pi_x": ["0.5"] * N, "pi_y": ["0.5"] * N},
            r"'pi_x', 'pi_y' .*probabilities='pi_\{item\}'",
        ),
        ({"pscore": ["0.5"] * N}, "'pscore' .*propensity='pscore'"),
        ({"prob": ["0.5"] * N}, "'prob' .*propensity='prob'"),
    ],
)
def test_probabilities_of_duels_under_another_name_are_refused_by_name(
    tmp_path, columns, said, bad
):
    first = next(iter(columns))
    log = {"left": ["x", "y"] * 6, "right": ["y", "x"] * 6, "winner": ["left"] * N} | columns
    if bad:
        log[first] = [*log[first][:AT], bad, *log[first][AT + 1 :]]
    pd.DataFrame(log).to_csv(tmp_path / "log.csv", index=False)
    for source in (pa.table(log), tmp_path / "log.csv"):
        with pytest.raises(DataError, match=said) as caught:
            read_duels(source)
        assert caught.value.kind == "probabilities_unread"
        assert read_duels(source, probabilities=False, propensity=False).propensity is None
    words = log | {first: ["high"] * N}
    assert read_duels(pa.table(words)).selection_probability is None
