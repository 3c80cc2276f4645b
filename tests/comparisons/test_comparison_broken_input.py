"""Broken and ambiguous comparison files: refused or noticed, with row, value and remedy."""

import itertools
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from command_line import run

from bayesfair.comparisons import Comparisons, Origin
from bayesfair.errors import BayesfairWarning, DataError, OptionError
from bayesfair.readers.duels.comparisons import read_comparisons

NEW = (
    "# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 10\n# NUMBER UNIQUE ORDERS: 2\n"
    "# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 2: B\n# ALTERNATIVE NAME 3: C\n"
    "4: 1,2,3\n6: 2,3,1\n"
)
OLD = "3\n1,A\n2,B\n3,C\n10,10,2\n4,1,2,3\n6,2,3,1\n"


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# -- outcome words that are numbers ---------------------------------------------------------------


@pytest.mark.parametrize("words", [{"1": "left", "0": "right", ".5": "tie"},
                                   {1.0: "left", 0.0: "right", 0.5: "tie"},
                                   {1: "left", 0: "right", "0.50": "tie"}])  # fmt: skip
@pytest.mark.parametrize("column", [["1", "0", "0.5"], [1.0, 0.0, 0.5]])
def test_numbers_are_outcome_words_by_value(words, column):
    duels = Comparisons.from_duels(["a", "a", "a"], ["b", "b", "b"], column, outcomes=words)
    assert duels.win_matrix().tolist() == [[0, 1], [1, 0]]
    assert duels.n_ties == 1


def test_an_item_called_like_a_number_stays_an_item():
    duels = Comparisons.from_duels(
        ["001", "2"], ["2", "001"], ["001", "001"], outcomes={1: "left", 2: "right"},
        winner_is="item",
    )  # fmt: skip
    assert duels.win_matrix().tolist() == [[0, 2], [0, 0]]


def test_other_numbers_are_unknown_words():
    with pytest.raises(DataError, match=r"unknown outcome: '0.25' \(1\).*comparison 1"):
        Comparisons.from_duels(["a", "a"], ["b", "b"], [1, 0.25], outcomes={1: "left"})


# -- counts, ranks, nothing left ------------------------------------------------------------------


def test_one_column_cannot_hold_the_wins_of_both_sides():
    table = pa.table({"cited": ["a", "b"], "citing": ["b", "a"], "count": [5, 2]})
    with pytest.raises(OptionError, match=r"all different.*loser= and weight="):
        read_comparisons(table, left="cited", right="citing", wins=("count", "count"))
    duels = read_comparisons(table, winner="cited", loser="citing", weight="count")
    assert duels.win_matrix().tolist() == [[0, 5], [2, 0]]


def test_negative_ranks_are_refused_in_long_form():
    with pytest.raises(DataError, match=r"row 3 of x: rank of 'b' is -1. Ranks count") as error:
        Comparisons.from_ranked_rows([1, 1], ["a", "b"], [1, -1], source=Origin("x", [2, 3]))
    assert (error.value.row, error.value.value) == (3, -1.0)
    scores = Comparisons.from_ranked_rows([1, 1], ["a", "b"], [1, -1], lowest_is_best=False)
    assert scores.orderings() == [(("a",), ("b",))]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("left,right,winner,w\na,b,left,0\n", ["--weight", "w"]),
        ("left,right,winner\na,b,x\n", ["--unknown", "skip"]),
        ("ranking,item,rank\n1,a,1\n2,b,1\n", ["--partial", "subset"]),
    ],
)
def test_a_file_in_which_nothing_is_left_is_refused(capsys, tmp_path, text, options):
    path = written(tmp_path, "none.csv", text)
    done = run(capsys, "fit", path, *options)
    assert (done.status, done.out) == (2, "")
    assert "DataError: no comparison is left in none.csv" in done.err


def test_comparisons_with_oneself_are_counted_by_weight():
    with pytest.warns(BayesfairWarning, match="6 comparisons of an item with itself"):
        duels = Comparisons.from_counts(["a", "a"], ["a", "b"], [3, 2], [3, 0])
    assert duels.n_comparisons == 2


# -- pairs of one ranking (a ranking of m items has m - 1 choices, but m (m - 1) / 2 pairs) -------


def pairs_of(rankings):
    rows = [(i, *p) for i, order in rankings for p in itertools.combinations(order, 2)]
    return pa.table(dict(zip(("ballot", "winner", "loser"), zip(*rows, strict=True), strict=True)))


def test_pairs_that_share_a_ranking_get_a_warning():
    table = pairs_of([("v1", "abc"), ("v2", "bca"), ("v3", "cab"), ("v4", "ab")])
    with pytest.warns(BayesfairWarning, match="9 duels are pairs of 3 rankings"):
        duels = read_comparisons(table)
    assert any("intervals come out too narrow" in note for note in duels.notices)
    days = table.rename_columns(["day", "winner", "loser"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_comparisons(days)  # nothing says that a day is a ranking
    with pytest.warns(BayesfairWarning, match="9 duels"):
        read_comparisons(days, winner="winner", loser="loser", ranking="day")


def test_separate_duels_of_one_ballot_get_none():
    table = pa.table({"ballot": [1, 1, None, None], "winner": ["a", "c", "a", "a"],
                      "loser": ["b", "d", "b", "c"]})  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_comparisons(table).notices == ()


def test_counts_have_no_ranking():
    table = pa.table({"i": ["a"], "j": ["b"], "x": [1], "y": [2], "r": [1]})
    with pytest.raises(OptionError, match=r"ranking='r' has no effect on duels given as counts"):
        read_comparisons(table, left="i", right="j", wins=("x", "y"), ranking="r")


# -- JSON lines -----------------------------------------------------------------------------------

BATTLES = [{"model_a": "x", "model_b": "y", "winner": "model_a"}] * 1500


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"model_a": "x", "model_b": ', "row 1000 of b.jsonl is not valid JSON"),
        ("[1, 2]", "row 1000 of b.jsonl is no object"),
        ('{"model_a": "x", "winner": "model_a"}', "row 1000 of .*missing"),
        ('{"model_a": "x", "model_b": null, "winner": "model_a"}', "row 1000 of .*missing"),
        ('{"model_a": "x", "model_b": {"id": 1}, "winner": "model_a"}',
         "row 1000 of b.jsonl, key 'model_b': .* is no label"),
        ('{"model_a": "x", "model_b": "y", "winner": "A"}', r"'A' \(1\); the first is row 1000"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(tmp_path, line, message):
    lines = [json.dumps(record) for record in BATTLES]
    lines[999] = line
    with pytest.raises(DataError, match=message):
        read_comparisons(written(tmp_path, "b.jsonl", "\n".join(lines)))


def test_line_separators_inside_json_text_end_no_line(tmp_path):
    name = "one\u2028two\x85three"
    record = {"model_a": name, "model_b": "y", "winner": "model_a"}
    text = "\r\n".join([json.dumps(record, ensure_ascii=False)] * 3 + [""])
    assert name in read_comparisons(written(tmp_path, "u.jsonl", text)).items
    mixed = text + json.dumps({"model_a": 5, "model_b": "y", "winner": "model_a"})
    duels = read_comparisons(written(tmp_path, "mixed.jsonl", mixed))
    assert set(duels.items) == {name, "y", "5"}


def test_offered_sets_may_be_json_lists(tmp_path):
    lines = [{"chosen": "a", "offered": ["a", "b|c", 3]}, {"chosen": 3, "offered": ["a", 3]}]
    path = written(tmp_path, "c.jsonl", "\n".join(map(json.dumps, lines)))
    choices = read_comparisons(path, chosen="chosen", offered="offered")
    assert choices.items == ("3", "a", "b|c")
    assert choices.win_matrix().tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]


# -- PrefLib --------------------------------------------------------------------------------------


def test_both_layouts_agree(tmp_path):
    new = read_comparisons(written(tmp_path, "new.soc", NEW))
    old = read_comparisons(written(tmp_path, "old.soc", OLD))
    assert new.notices == old.notices == ()
    np.testing.assert_array_equal(new.win_matrix(), [[0, 4, 4], [6, 0, 10], [6, 0, 0]])
    np.testing.assert_array_equal(old.win_matrix(), new.win_matrix())


@pytest.mark.parametrize(
    ("name", "text", "notice"),
    [
        ("a.soc", NEW.replace("ALTERNATIVES: 3", "ALTERNATIVES: 5"),
         "announces 5 alternatives, the file names 3"),
        ("b.soc", NEW.replace("ORDERS: 2", "ORDERS: 9"),
         "announces 9 unique orders, the file holds 2"),
        ("c.soc", NEW.replace("VOTERS: 10", "VOTERS: 12"), "announces 12 voters"),
        ("d.soc", OLD.replace("10,10,2", "10,10,5"), "announces 5 unique orders"),
        ("e.soc", OLD.replace("10,10,2", "12,10,2"), "announces 12 voters"),
    ],
)  # fmt: skip
def test_counts_of_the_header_that_do_not_match_are_noticed(tmp_path, name, text, notice):
    found = read_comparisons(written(tmp_path, name, text))
    assert len(found.notices) == 1
    assert notice in found.notices[0]
    assert found.n_comparisons == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEW.replace("NAME 3: C", "NAME 2: C"), "row 6 of x.soc names alternative 2 again: 'C'"),
        (OLD.replace("3,C", "2,C"), "row 4 of x.soc names alternative 2 again"),
        ("-3\n1,A\n", "row 1 of x.soc reads '-3'"),
        (NEW.replace("4: 1,2,3", "4 1,2,3"), "row 7 of x.soc reads '4 1,2,3'"),
        (NEW.replace("4: 1", "-4: 1"), "got -4 in row 7"),
        (NEW.replace("4: 1", "nan: 1"), "row 7 of x.soc: 'nan' is no number of voters"),
        (NEW.replace("1,2,3", "1,2,1"), "row 7 of x.soc: 'A' is ranked twice"),
        (NEW.replace("1,2,3", "{1,2,3"), "row 7 of x.soc: the braces"),
        (NEW.replace("1,2,3", "1,2,7"), "row 7 of x.soc ranks alternative '7'"),
        ("\n".join(NEW.splitlines()[:6]), "holds no ballots"),
        ("3\n1,A\n2,B\n", "truncated"),
        ("", "row 1 of x.soc"),
    ],
)
def test_broken_ballot_files_name_the_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_comparisons(written(tmp_path, "x.soc", text))


def test_names_in_latin_1_may_hold_an_ellipsis(tmp_path):
    text = NEW.encode().replace(b"NAME 3: C", b"NAME 3: C\x85\xe9")
    assert "C\x85\xe9" in read_comparisons(written(tmp_path, "l.soc", text)).items


@pytest.mark.parametrize(
    ("winners", "shares"),
    [([".7", "1"], True), ([0.25], True), (["1", "0.5"], False), (["7"], False), (["A"], False)],
)
def test_shares_of_a_win_are_told_the_two_columns_they_are_read_from(winners, shares):
    n = len(winners)
    with pytest.raises(DataError) as error:
        Comparisons.from_duels(["a"] * n, ["b"] * n, winners)
    assert error.value.kind == "unknown_outcomes"
    assert ("wins=['p', 'q']" in str(error.value)) == shares
