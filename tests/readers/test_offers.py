"""Which arms were on offer, however a log writes it."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayesfair as bf
from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history

ROWS = [["x", "y"], ["y"], ["x", "z"], ["x", "y", "z"]]
MASK = [[True, True, False], [False, True, False], [True, False, True], [True, True, True]]
CHOSEN = ["x", "y", "z", "x"]


def _both(source, **options):
    """The offers that both readers find, as rows of booleans."""
    options = {"offered": "on", "propensity": False, **options}
    whole = read_history(source, **options)
    parts = list(scan_history(source, chunk_rounds=3, **options).chunks())
    rows = [None if h.offered is None else h.offered.tolist() for h in (whole,)]
    scanned = [
        row
        for part in parts
        for row in (
            [[True] * part.n_arms] * part.n_rounds if part.offered is None else part.offered
        )
    ]
    assert rows[0] is None or [list(map(bool, r)) for r in scanned] == rows[0]
    return whole.arms, rows[0]


@pytest.mark.parametrize(
    "write",
    [
        "|".join,
        str,  # ['x', 'y']
        lambda row: str(tuple(row)),  # ('y',)
        lambda row: '["' + '", "'.join(row) + '"]',
        lambda row: "{" + ",".join(row) + "}",  # Postgres
        lambda row: "{" + ",".join(f'"{x}"' for x in row) + "}",
        lambda row: "[" + ", ".join(row) + "]",  # Spark, Java
        lambda row: "[" + " ".join(f"'{x}'" for x in row) + "]",  # NumPy
        lambda row: "{" + ", ".join(f"'{x}'" for x in row) + "}",  # a set of Python
    ],
)
def test_lists_of_labels_as_programs_write_them(tmp_path, write):
    path = tmp_path / "log.csv"
    pd.DataFrame({"arm": CHOSEN, "reward": [1, 0, 1, 0], "on": list(map(write, ROWS))}).to_csv(
        path, index=False
    )
    assert _both(path) == (("x", "y", "z"), MASK)
    assert _both(path, arms=["z", "y", "x"]) == (("z", "y", "x"), [row[::-1] for row in MASK])


@pytest.mark.parametrize(
    "write",
    [
        list,
        lambda row: [int(x) for x in row],
        lambda row: [float(x) for x in row],
        str,
        lambda row: str([int(x) for x in row]),
        lambda row: "[" + " ".join(str(int(x)) for x in row) + "]",
        lambda row: str(row).lower(),
        lambda row: dict(zip("xyz", row, strict=True)),
        lambda row: str({a: int(x) for a, x in zip("xyz", row, strict=True)}),
    ],
)
def test_masks_in_the_order_of_the_arms(tmp_path, write):
    table = pa.table({"arm": CHOSEN, "reward": [1, 0, 1, 0], "on": list(map(write, MASK))})
    pq.write_table(table, tmp_path / "log.parquet")
    for source in (table, tmp_path / "log.parquet", table.to_pandas()):
        assert _both(source, arms=["x", "y", "z"]) == (("x", "y", "z"), MASK)


def test_a_mask_without_arms_does_not_say_whose_it_is():
    table = pa.table({"arm": CHOSEN, "reward": [1, 0, 1, 0], "on": MASK})
    for read in (read_history, scan_history):
        with pytest.raises(DataError, match=r"row 1 .*'on'.* mask of 3 arms.*arms=") as caught:
            read(table, offered="on")
        assert caught.value.kind == "arms_needed"
    numbered = pa.table(
        {"arm": ["0", "1", "2"], "reward": [1, 0, 1], "on": [[1, 1, 0]] * 2 + [[1, 0, 1]]}
    )
    assert _both(numbered) == (("0", "1", "2"), [[True, True, False]] * 2 + [[True, False, True]])


def test_lists_of_0_and_1_that_may_be_either_are_refused():
    """Arms 0 and 1: [1, 0] lists both, or says that only the first is on offer."""
    log = {"arm": ["0", "1", "0", "1"], "reward": [1, 0, 1, 0], "propensity": [1.0] * 4}
    ambiguous = pa.table({**log, "on": [[1, 0], [0, 1], [1, 0], [0, 1]]})
    for read in (read_history, lambda *a, **k: list(scan_history(*a, **k).chunks())):
        for arms in (None, ["0", "1"]):
            with pytest.raises(
                DataError, match=r"row 1 .*'on'.*\[1, 0\].*mask.*true and false"
            ) as e:
                read(ambiguous, offered="on", arms=arms)
            assert e.value.kind == "ambiguous_mask"
    marked = pa.table({**log, "on": [[True, False], [False, True]] * 2})
    audit = bf.audit(read_history(marked, offered="on", arms=["0", "1"]), seed=1)
    assert audit.regret.value == pytest.approx(0, abs=1e-15)  # one arm on offer: P* = pi = 1
    lists = pa.table({**log, "on": ["0|1"] * 4})
    assert read_history(lists, offered="on").offered is None  # both, in every round


def test_lists_of_labels_0_and_1_of_several_lengths_are_labels():
    table = pa.table({"arm": ["0", "1", "1"], "reward": [1, 0, 1], "on": [[0], [1], [0, 1]]})
    assert _both(table) == (("0", "1"), [[True, False], [False, True], [True, True]])


@pytest.mark.parametrize(
    ("values", "arms", "message"),
    [
        ([[1, 1, 0], [1, 1]], None, r"row 2 .*mask of 2 arms, but there are 3"),
        ([[1, 1, 0], [1, 0, 2]], None, r"row 1 .*lists an arm twice"),
        (["[x, y]", "[]"], None, r"row 2 .*no arm is on offer"),
        (["{x,y}", "{x,w}"], ["x", "y"], r"row 2 .*'w' is not among the arms"),
        (['{"x": 0.5, "y": 0.5}'] * 2, ["x", "y"], r"row 1 .*neither 0 nor 1"),
    ],
)
def test_odd_offers_are_refused_by_row(values, arms, message):
    chosen = ["0", "0"] if isinstance(values[0], list) else ["x", "y"]
    table = pa.table({"arm": chosen, "reward": [1, 0], "on": values})
    arms = ["0", "1", "2"] if isinstance(values[0], list) else arms
    with pytest.raises(DataError, match=message):
        read_history(table, offered="on", arms=arms)
