"""Columns of comparisons beside those that are read: counts, the loser, parts named twice."""

import command_line
import pandas as pd
import pytest

import bayesfair as bf

COUNTED = pd.DataFrame({"winner": list("ABBC"), "loser": list("BACB"), "Freq": [40, 10, 30, 20]})
SIDED = pd.DataFrame({"left": list("abca"), "right": list("bcab"), "winner": list("abcb")})


def kinds(made):
    return [notice.kind for notice in made.notices]


@pytest.mark.parametrize("name", ["Freq", "N", "count", "Weights", "number", "times"])
def test_counts_that_are_not_used_are_asked_about(name):
    table = COUNTED.rename(columns={"Freq": name})
    for read in (bf.read_comparisons, bf.read_duels):
        with pytest.raises(bf.DataError) as error:
            read(table)
        assert (error.value.kind, error.value.column) == ("counts_unread", name)
    assert bf.read_comparisons(table, weight=name).n_comparisons == 100
    left_out = bf.read_comparisons(table, weight=False)
    assert left_out.n_comparisons == 4 and kinds(left_out) == ["unused_columns"]
    assert bf.read_duels(table, weight=False).n_rounds == 4
    with pytest.raises(bf.OptionError) as refused:
        bf.read_duels(table, weight=name)
    assert (refused.value.kind, refused.value.column) == ("unused_option", "weight")


@pytest.mark.parametrize("rows", ["", "a,b\n", "a,b,\n"])
def test_a_file_without_a_count_is_read_or_refused_as_before(rows, tmp_path):
    path = tmp_path / "none.csv"
    path.write_text(f"winner,loser,n\n{rows}")
    if rows.count(",") == 2:
        assert bf.read_comparisons(path).n_comparisons == 1
    else:
        with pytest.raises(bf.DataError):
            bf.read_comparisons(path)


def test_what_is_no_count_is_named_among_the_unused_columns():
    for beside in ({"n": 1}, {"n": [0.5, 1, 2, 3]}, {"n": [-1, 1, 2, 3]}, {"judge": list("xyzx")}):
        made = bf.read_comparisons(SIDED.assign(**beside))
        [notice] = made.notices
        assert (notice.kind, notice.column, notice.n) == ("unused_columns", *beside, 1)
    total = pd.DataFrame({"left": ["a"], "right": ["b"], "w": [3], "l": [4], "n": [7]})
    assert kinds(bf.read_comparisons(total, wins=["w", "l"])) == ["unused_columns"]
    with pytest.raises(bf.DataError):
        bf.read_comparisons(total.assign(n=8), wins=["w", "l"])
    assert kinds(bf.read_comparisons(SIDED, weight=False)) == ["option_without_effect"]
    ranks = pd.DataFrame({"a": [1, 2], "b": [2, 1], "c": [3, 3]})
    assert kinds(bf.read_comparisons(ranks, ranks=["a", "b"])) == ["unused_columns"]


@pytest.mark.parametrize("command", [("fit", "--prior-sd", "inf"), ("audit-comparisons",)])
def test_the_command_line_asks_about_counts_too(command, tmp_path, capsys):
    path = tmp_path / "counts.csv"
    COUNTED.to_csv(path, index=False)
    status, _, said = command_line.run(capsys, *command, str(path))
    assert status == 2 and "'Freq'" in said
    status, _, said = command_line.run(capsys, *command, str(path), "--weight", "")
    assert status == 0, said


def test_a_loser_that_contradicts_the_winner_is_refused_by_its_row():
    right = SIDED.assign(loser=["b", "c", "a", "a"])
    for fine in (right, right.assign(winner=["left", "left", "left", "right"]),
                 right.assign(winner="tie", loser=None)):  # fmt: skip
        assert bf.read_comparisons(fine).n_comparisons == 4
    for wrong, at in ((["b", "b", "a", "a"], 1), ([*"bcba"], 2), (["b", "", "", "b"], 3)):
        for read in (bf.read_comparisons, bf.read_duels):
            with pytest.raises(bf.DataError) as error:
                read(SIDED.assign(loser=wrong))
            assert (error.value.kind, error.value.row) == ("contradiction", at + 1)
            assert error.value.value == wrong[at]


def test_one_column_does_not_serve_two_parts():
    for options in ({"left": "left", "right": "right", "winner": "left"},
                    {"left": "right", "right": "right", "winner": "winner"},
                    {"first": "winner"}):  # fmt: skip
        with pytest.raises(bf.OptionError) as error:
            bf.read_duels(SIDED, **options)
        assert error.value.kind == "same_column"
    assert bf.read_duels(SIDED.rename(columns={"left": "home"}), left="home", right="right",
                         winner="winner", first="home").n_rounds == 4  # fmt: skip


def test_a_column_winner_that_was_not_named_is_pointed_out():
    with pytest.raises(bf.OptionError) as error:
        bf.read_comparisons(SIDED, left="left", right="right")
    assert (error.value.kind, error.value.column) == ("option_lacks", "winner")
    assert "winner='winner'" in str(error.value)
