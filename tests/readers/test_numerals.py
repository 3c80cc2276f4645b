"""Numbers in files are the digits 0 to 9 and what double precision holds; in every format alike."""

from __future__ import annotations

import decimal
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesfair.base.numerals import number
from bayesfair.errors import DataError
from bayesfair.readers import read_history, scan_history
from bayesfair.readers.duels.comparisons import read_comparisons

ODD = [
    "0_1",
    "1_000",
    "\u0663",
    "\uff10.\uff15",
    "1e400",
    "-1e400",
    "1e-400",
    "0x1",
    "1e",
    "nan(1)",
    "1d0",
]
TINY = "0." + "0" * 330 + "1"


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_nearest_double_or_refused(value):
    """Oracle: the decimal module, which holds every one of them."""
    nearest = float(value)
    held = math.isfinite(nearest) and (nearest != 0 or value == 0)
    assert number(str(value)) == (nearest if held else None)


@given(st.text(st.sampled_from("0123456789.eE+-_ \u0661\uff11x"), max_size=8))
def test_what_is_read_is_a_decimal_number_of_ascii_digits(text):
    value = number(text)
    if value is not None:
        assert text.isascii() and "_" not in text
        assert value == float(decimal.Decimal(text))


def _csv(folder, odd, column):
    rows = [{"arm": "a", "reward": "1", "propensity": "0.5", "timestamp": "1"} for _ in range(4)]
    rows[2][column] = odd
    path = folder / "log.csv"
    path.write_text(
        ",".join(rows[0]) + "\n" + "".join(",".join(row.values()) + "\n" for row in rows),
        encoding="utf-8",
    )
    return path


def _parquet(folder, odd, column):
    columns = {"arm": ["a"] * 4, "reward": ["1"] * 4, "propensity": ["0.5"] * 4}
    columns |= {"timestamp": ["1"] * 4}
    columns[column] = [*columns[column][:2], odd, columns[column][3]]
    pq.write_table(pa.table(columns), folder / "log.parquet")
    return folder / "log.parquet"


@pytest.mark.parametrize("odd", [*ODD, TINY])
@pytest.mark.parametrize("column", ["reward", "propensity", "timestamp"])
@pytest.mark.parametrize(("make", "row"), [(_csv, 4), (_parquet, 3)])
def test_odd_numbers_of_histories_are_refused_by_row_and_column(tmp_path, odd, column, make, row):
    path = make(tmp_path, odd, column)
    for read in (read_history, lambda p: list(scan_history(p, arms=["a"]).chunks())):
        with pytest.raises(DataError, match=rf"row {row} of {path.name}, column '{column}'"):
            read(path)


@pytest.mark.parametrize("odd", ODD)
def test_odd_numbers_of_duels_are_refused(tmp_path, odd):
    """As CSV, as Parquet text, as JSON (where the text is, and where the number can be, odd)."""
    csv = tmp_path / "wins.csv"
    csv.write_text(f"left,right,wins,losses\na,b,7,3\na,b,{odd},9\n", encoding="utf-8")
    pq.write_table(
        pa.table({"left": ["a"] * 2, "right": ["b"] * 2, "wins": ["7", odd], "losses": ["3", "9"]}),
        tmp_path / "wins.parquet",
    )
    for name, row in (("wins.csv", 3), ("wins.parquet", 2)):
        with pytest.raises(DataError, match=rf"row {row} of {name}.*'wins'"):
            read_comparisons(tmp_path / name, left="left", right="right", wins=("wins", "losses"))
    written = [json.dumps(odd)] + [odd] * (odd.lstrip("-") in {"1e400", "1e-400"})
    for value in written:
        arena = tmp_path / "log.jsonl"
        lines = [
            f'{{"model_a": "x", "model_b": "y", "winner": "model_a", "votes": {v}}}\n'
            for v in ("7", value)
        ]
        arena.write_text("".join(lines), encoding="utf-8")
        with pytest.raises(DataError, match=r"row 2 of log.jsonl.*'votes'"):
            read_comparisons(arena, weight="votes")


@pytest.mark.parametrize("odd", [*ODD, "inf", "nan"])
def test_odd_numbers_of_voters_are_refused(tmp_path, odd):
    new, old = tmp_path / "new.soc", tmp_path / "old.soc"
    head = "# ALTERNATIVE NAME 1: x\n# ALTERNATIVE NAME 2: y\n"
    new.write_text(f"{head}3: 1,2\n{odd}: 2,1\n", encoding="utf-8")
    old.write_text(f"2\n1,x\n2,y\n4,4,2\n3,1,2\n{odd},2,1\n", encoding="utf-8")
    for path, row in ((new, 4), (old, 6)):
        with pytest.raises(DataError, match=rf"row {row} of {path.name}: .* no number of voters"):
            read_comparisons(path)


def test_what_is_written_plainly_is_read_as_before(tmp_path):
    path = tmp_path / "log.csv"
    texts = ["1", "1.", ".5", "+2", "-3e2", "1E-3", "0.000000000", "-0.0000000", "0e-400", "1e-300"]
    path.write_text("arm,reward\n" + "".join(f"a,{t}\n" for t in texts))
    assert read_history(path).reward.tolist() == [
        1, 1, 0.5, 2, -300, 0.001, 0, 0, 0, 1e-300,
    ]  # fmt: skip
    path.write_text("arm;reward\n" + "".join(f"a;{t.replace('.', ',')}\n" for t in texts))
    assert read_history(path, decimal=",").reward.tolist()[2] == 0.5


def test_nulls_of_databases_are_missing_and_their_booleans_have_a_remedy(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward\na,1\nb,\\N\na,0\n")
    log = read_history(path, missing="unobserved")
    assert log.n_unobserved == 1 and log.reward[[0, 2]].tolist() == [1, 0]
    path.write_text("arm,reward\na,t\nb,f\na,t\n")
    with pytest.raises(DataError, match=r"row 2 .* 't' is not a reward.*rewards=\{'t': 1, 'f': 0"):
        read_history(path)
    assert read_history(path, rewards={"t": 1, "f": 0}).reward.tolist() == [1, 0, 1]
