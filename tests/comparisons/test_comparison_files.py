"""Reading comparisons: tables, PrefLib ballots, arena-style JSON."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesfair.comparisons import Comparisons
from bayesfair.errors import ArmError, DataError, OptionError
from bayesfair.readers.duels.comparisons import read_comparisons
from bayesfair.readers.duels.log import read_duels

ROWS = {
    "model_a": ["x", "y", "x", "z", "z"],
    "model_b": ["y", "z", "z", "x", "y"],
    "winner": ["model_a", "model_b", "tie", "model_a", "tie (bothbad)"],
    "tstamp": [5.0, 4.0, 3.0, 2.0, 1.0],
}
WINS = [[0, 1, 0], [0, 0, 0], [1, 1, 0]]


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, lambda rows: pl.DataFrame(rows).lazy(), pa.table],
    ids=["pandas", "polars", "lazy", "arrow"],
)
def test_frames(make):
    data = read_comparisons(make(ROWS))
    assert data.items == ("x", "y", "z") and data.n_ties == 2
    assert data.win_matrix().tolist() == WINS


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_parquet_and_json_lines_say_the_same(tmp_path):
    frame = pd.DataFrame(ROWS)
    frame.to_csv(tmp_path / "b.csv", index=False)
    pq.write_table(pa.table(ROWS), tmp_path / "b.parquet")
    records = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    for record in records:
        record["conversation_a"] = [{"role": "user", "content": "{}"}]
    write(tmp_path, "b.jsonl", "\n".join(json.dumps(r) for r in records) + "\n")
    write(tmp_path, "b.json", json.dumps(records, indent=1))
    columns = {name: dict(enumerate(values)) for name, values in ROWS.items()}
    write(tmp_path, "columns.json", json.dumps(columns))
    pd.DataFrame(ROWS).to_csv(tmp_path / "b.csv.gz", index=False)
    for name in ("b.csv", "b.csv.gz", "b.parquet", "b.jsonl", "b.json", "columns.json"):
        data = read_comparisons(tmp_path / name)
        assert data.win_matrix().tolist() == WINS, name
        assert data.n_ties == 2


def test_json_of_another_kind_is_read_or_refused(tmp_path):
    # numbers among the labels: read slowly, as they are written
    mixed = [{"model_a": 1, "model_b": "b", "winner": "model_a"}]
    path = write(tmp_path, "m.jsonl", json.dumps(mixed[0]) + "\n")
    assert read_comparisons(path).items == ("1", "b")
    line = json.dumps({"model_a": "a", "model_b": "b", "winner": "tie"})
    path = write(tmp_path, "broken.jsonl", f"{line}\n{line[:-5]}\n")
    with pytest.raises(DataError, match=r"row 2 of broken\.jsonl is not valid JSON"):
        read_comparisons(path)
    with pytest.raises(DataError, match="neither JSON lines nor an array"):
        read_comparisons(write(tmp_path, "n.json", "[1, 2]"))
    with pytest.raises(DataError, match="is empty"):
        read_comparisons(write(tmp_path, "e.jsonl", "\n"))
    with pytest.raises(OptionError, match="among which no usual set was found"):
        read_comparisons(write(tmp_path, "o.jsonl", '{"p": "a", "q": "b"}\n'))


def test_errors_name_the_line_of_the_file(tmp_path):
    path = write(tmp_path, "b.csv", "left,right,winner\na,b,left\na,c,Left\n")
    with pytest.raises(DataError, match=r"'Left' \(1\); the first is row 3 of b\.csv"):
        read_comparisons(path)
    path = write(tmp_path, "w.csv", "left,right,winner,n\na,b,left,2\na,c,right,x\n")
    with pytest.raises(DataError, match=r"row 3 of w\.csv, column 'n'"):
        read_comparisons(path, weight="n")
    path = write(tmp_path, "neg.csv", "left,right,winner,n\na,b,left,2\na,c,right,-1\n")
    with pytest.raises(DataError, match=r"-1 in row 3 of neg\.csv"):
        read_comparisons(path, weight="n")
    with pytest.raises(DataError, match=r"no column 'modle_a'.*Did you mean 'model_a'"):
        read_comparisons(pa.table(ROWS), left="modle_a", right="model_b", winner="winner")
    with pytest.raises(OptionError, match="need winner="):
        read_comparisons(pa.table(ROWS), left="model_a", right="model_b")
    with pytest.raises(DataError, match="no rows"):
        read_comparisons(write(tmp_path, "none.csv", "left,right,winner\n"))


def test_names_with_commas_colons_and_missing_words(tmp_path):
    # cases 43 and 57
    path = write(tmp_path, "b.csv", 'left,right,winner\n"Smith, J.",NA,"Smith, J."\nNA,"a:b",NA\n')
    with pytest.raises(ArmError, match=r"row 3 of b\.csv.*'NA' spells a missing item.*items="):
        read_comparisons(path)
    data = read_comparisons(path, items=["NA", "Smith, J.", "a:b"])
    assert data.items == ("NA", "Smith, J.", "a:b")
    with pytest.raises(DataError, match=r"row 2 of e\.csv"):
        read_comparisons(write(tmp_path, "e.csv", "left,right,winner\na,,left\n"))


def test_first_shown_column(tmp_path):
    text = "left,right,winner,shown\na,b,left,a\na,b,left,b\na,b,right,\n"
    data = read_comparisons(write(tmp_path, "b.csv", text), first="shown")
    cells = data.duel_counts()
    assert cells.first.tolist() == [-1, 0, 1]
    assert cells.wins_left.tolist() == [1, 0, 1] and cells.wins_right.tolist() == [0, 1, 0]
    bad = "left,right,winner,shown\na,b,left,c\n"
    with pytest.raises(DataError, match="shown first is 'c'"):
        read_comparisons(write(tmp_path, "c.csv", bad), first="shown")


def test_rows_in_the_order_of_time():
    log = read_duels(pa.table(ROWS), order="tstamp")
    data, left = log.comparisons, [log.items[i] for i in log.left]
    assert left == ROWS["model_a"][::-1]
    # the first row of each cell is named by its own line
    assert sorted(data.row.tolist()) == [1, 2, 3, 4, 5]


def test_rankings_long_wide_and_by_rank(tmp_path):
    long = "ranking,item,rank\n1,a,1\n1,b,2\n1,c,3\n2,c,1\n2,a,2\n2,b,2\n"
    data = read_comparisons(write(tmp_path, "long.csv", long))
    expected = [(("a",), ("b",), ("c",)), (("c",), ("a", "b"))]
    assert data.orderings() == expected
    ranks = pd.DataFrame({"a": [1, 2], "b": [2, 2], "c": [3, 1]})
    assert read_comparisons(ranks, ranks=["a", "b", "c"]).orderings() == expected
    wide = "first,second,third\na,b,c\nc,b,\n"
    path = write(tmp_path, "wide.csv", wide)
    with pytest.raises(OptionError, match="1 of 2 rankings name only some") as error:
        read_comparisons(path, orderings=["first", "second", "third"])
    assert "row 3 of wide.csv" in str(error.value)
    top = read_comparisons(path, orderings=["first", "second", "third"], partial="top")
    assert top.partial == "top" and top.item_counts().tolist() == [2, 2, 2]
    scores = "race,driver,rank\n1,a,30.5\n1,b,20\n1,c,20.0000001\n"
    path = write(tmp_path, "scores.csv", scores)
    data = read_comparisons(path, lowest_is_best=False, tie_tolerance=1e-6)
    assert data.orderings() == [(("a",), ("b", "c"))]


def test_ranking_rows_that_contradict_themselves(tmp_path):
    twice = "ranking,item,rank\n1,a,1\n1,b,2\n1,a,3\n"
    with pytest.raises(DataError, match="'a' is ranked twice"):
        read_comparisons(write(tmp_path, "t.csv", twice))
    weights = "ranking,item,rank,n\n1,a,1,2\n1,b,2,3\n"
    with pytest.raises(DataError, match="a ranking has one weight"):
        read_comparisons(write(tmp_path, "w.csv", weights), weight="n")


def test_choices(tmp_path):
    path = write(tmp_path, "c.csv", "pick,set\na,a|b|c\nb,b|c\n")
    data = read_comparisons(path, chosen="pick", offered="set")
    assert data.kind == "choices" and data.item_counts().tolist() == [1, 2, 2]
    lists = pa.table({"pick": ["a", "b"], "set": [["a", "b", "c"], ["b", "c"]]})
    assert read_comparisons(lists, chosen="pick", offered="set").orderings() == data.orderings()
    with pytest.raises(DataError, match=r"row 2 of c\.csv, column 'set': the chosen item is 'z'"):
        read_comparisons(
            write(tmp_path, "c.csv", "pick,set\nz,a|b\n"), chosen="pick", offered="set"
        )


NEW = """# FILE NAME: x.soc
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 5
# ALTERNATIVE NAME 1: Mission: Impossible II
# ALTERNATIVE NAME 2: b, c
# ALTERNATIVE NAME 3: NA
3: 1,2,3
2: 3,{1,2}
"""
OLD = """3
1,Mission: Impossible II
2,"b, c"
3,NA
5,5,2
3,1,2,3
2,3,{1,2}
"""


@pytest.mark.parametrize("text", [NEW, OLD], ids=["new", "old"])
def test_both_preflib_layouts(tmp_path, text):
    data = read_comparisons(write(tmp_path, "x.toc", text))
    one, two, three = "Mission: Impossible II", "b, c", "NA"
    assert data.items == (one, two, three) and data.n_comparisons == 5 and not data.notices
    assert data.orderings() == [((one,), (two,), (three,)), ((three,), (one, two))]
    assert data.count.tolist() == [3, 2]


def test_preflib_ballots_that_cannot_be_right(tmp_path):
    cases = {
        NEW + "1: 1,4\n": "row 9 of x.toi ranks alternative '4', which the header does not name",
        NEW + "1: 1,{2,3\n": "the braces of '1,{2,3' do not match",
        NEW + "x: 1,2\n": "'x' is no number of voters",
        NEW + "1 2 3\n": "expected a count, a colon and an order",
        NEW + "1: 1,2,1\n": "'Mission: Impossible II' is ranked twice",
        "hello\n": "expected a PrefLib file",
        "3\n1,a\n": "it is truncated",
    }
    for text, message in cases.items():
        path = write(tmp_path, "x.toi", text)
        with pytest.raises(DataError) as error:
            read_comparisons(path, partial="top")
        assert message in str(error.value)


def test_preflib_totals_and_shared_names(tmp_path):
    text = NEW.replace("VOTERS: 5", "VOTERS: 6").replace("NAME 3: NA", "NAME 3: b, c")
    data = read_comparisons(write(tmp_path, "x.soc", text))
    assert data.items == ("Mission: Impossible II", "b, c (2)", "b, c (3)")
    assert "announces 6 voters, the ballots sum to 5" in data.notices[0]
    ids = read_comparisons(write(tmp_path, "x.soc", text), labels="ids")
    assert ids.items == ("1", "2", "3")


def test_a_million_strings_take_no_copy_per_row():
    # the collapse itself is timed in benchmarks/plackett_luce.py; here it must not grow with labels
    rng = np.random.default_rng(0)
    names = [f"model-{i}" for i in range(300)]  # more than the quick path for lists takes
    a = rng.integers(300, size=50_000)
    b = (a + 1 + rng.integers(299, size=50_000)) % 300
    left, right = [names[i] for i in a], [names[i] for i in b]
    one = Comparisons.from_duels(left, right)
    two = Comparisons.from_duels(np.array(left), pa.array(right))
    three = Comparisons.from_duels(pd.Series(left, dtype="category"), pl.Series(right))
    expected = np.zeros((300, 300))
    order = [one.items.index(name) for name in names]
    np.add.at(expected, (np.array(order)[a], np.array(order)[b]), 1)
    for data in (one, two, three):
        np.testing.assert_array_equal(data.win_matrix(), expected)


@pytest.mark.parametrize("what", ["ALTERNATIVES", "VOTERS", "UNIQUE ORDERS"])
@pytest.mark.parametrize("written", ["1_0", "three", "", "3.0", "1" * 16])
def test_preflib_headers_announce_whole_numbers(tmp_path, what, written):
    path = tmp_path / "x.soc"
    path.write_text(f"# ALTERNATIVE NAME 1: a\n# NUMBER {what}: {written}\n1: 1\n")
    with pytest.raises(DataError, match=f"announces '{written}' {what.lower()}") as error:
        read_comparisons(path)
    assert (error.value.kind, error.value.row) == ("bad_number", 2)
    path.write_text("2\n1,a\n2,b\n1_0,3,1\n3,1,2\n")
    with pytest.raises(DataError, match="announces '1_0' voters"):
        read_comparisons(path)


def test_preflib_headers_that_differ_from_the_ballots_are_said_with_both_numbers(tmp_path):
    path = tmp_path / "x.soc"
    head = "# NUMBER ALTERNATIVES: 5\n# NUMBER VOTERS: 9\n# NUMBER UNIQUE ORDERS: 3\n"
    path.write_text(f"{head}# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n4: 1,2\n3: 2,1\n")
    found = {n.value: (n.n, str(n)) for n in read_comparisons(path).notices if n.kind == "header"}
    assert {said: n for said, (n, _) in found.items()} == {5: 2, 9: 7, 3: 2}
    for said, (n, text) in found.items():
        assert f"announces {said} " in text and f" {n:g};" in text


def test_names_of_preflib_that_are_no_utf8_are_said(tmp_path):
    path = tmp_path / "x.soc"
    text = "# ALTERNATIVE NAME 1: caf\xe9\n# ALTERNATIVE NAME 2: b\n4: 1,2\n"
    path.write_bytes(text.encode("latin-1"))
    made = read_comparisons(path)
    assert made.items == ("caf\xe9", "b")
    (notice,) = [n for n in made.notices if n.kind == "not_utf8"]
    assert notice.row == 1 and "0xe9" in notice and "latin-1" in notice
    path.write_bytes(text.encode())
    assert [n.kind for n in read_comparisons(path).notices] == []
