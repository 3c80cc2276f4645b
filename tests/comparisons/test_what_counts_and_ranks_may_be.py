"""Counts that are totals, percent or told twice, and ranks that are ratings: said or refused."""

import numpy as np
import pandas as pd
import pytest

import bayesfair as bf

A, B = ["a", "b", "c"], ["b", "c", "a"]


def kinds(made):
    return {notice.kind for notice in made.notices}


def of_counts(left, right, ties=None, pairs=(A, B)):
    return bf.Comparisons.from_counts(*pairs, left, right, ties)


def test_ties_that_are_the_number_of_duels_are_refused():
    table = pd.DataFrame({"left": A, "right": B, "w": [7, 4, 5], "l": [3, 6, 0], "n": [10, 10, 5]})
    with pytest.raises(bf.DataError) as error:
        bf.read_comparisons(table, wins=["w", "l", "n"])
    assert (error.value.kind, error.value.column) == ("total_as_ties", "n")
    with pytest.raises(bf.DataError):
        of_counts([7, 4, 5], [3, 6, 0], [10, 10, 5])
    assert of_counts([7, 4, 5], [3, 6, 0], [10, 10, 4]).n_ties == 24
    assert of_counts([7], [3], [10], (["a"], ["b"])).n_ties == 10  # one row shows nothing
    wins = np.array([[0, 3, 0], [0, 0, 2], [0, 0, 0]])
    assert bf.Comparisons.from_win_matrix(wins, "abc", ties=wins).n_ties == 5


def test_counts_that_may_be_percent_or_stand_there_twice_are_said():
    assert kinds(of_counts([70, 40, 55], [30, 60, 45])) == {"percent_as_counts"}
    assert kinds(of_counts([70, 40, 55], [30, 60, 44])) == set()
    both = [*A, *B], [*B, *A]
    assert kinds(of_counts([3, 4, 5, 2, 6, 1], [2, 6, 1, 3, 4, 5], None, both)) == {
        "mirrored_counts"
    }
    assert kinds(of_counts([3, 4, 5, 2, 6, 2], [2, 6, 1, 3, 4, 5], None, both)) == set()
    assert kinds(of_counts([3, 4, 5], [2, 6, 1])) == set()


@pytest.mark.parametrize(
    "wins", [("won", "tie", "lost"), ("n_draws", "lost", "won"), ("won", "tie")]
)
def test_ties_among_the_wins_are_refused_by_their_name(wins):
    table = pd.DataFrame({"left": A, "right": B} | {name: [1, 2, 3] for name in wins})
    with pytest.raises(bf.OptionError) as error:
        bf.read_comparisons(table, wins=wins)
    assert (error.value.kind, error.value.value) == ("ties_not_last", next(
        name for name in wins if "tie" in name or "draw" in name))  # fmt: skip


def test_numbers_without_a_first_place_are_no_ranks():
    stars = pd.DataFrame({"a": [5, 4, 3], "b": [4, 5, 2], "c": [3, 3, 4]})
    with pytest.raises(bf.DataError) as error:
        bf.read_comparisons(stars, ranks=["a", "b", "c"])
    assert (error.value.kind, error.value.row, error.value.value) == ("no_first_place", 1, 3)
    turned = bf.read_comparisons(stars, ranks=["a", "b", "c"], lowest_is_best=False)
    assert turned.orderings()[0] == (("a",), ("b",), ("c",))
    rows = pd.DataFrame({"ranking": [1, 1, 2, 2], "item": list("abab"), "rank": [5, 4, 3, 5]})
    with pytest.raises(bf.DataError) as error:
        bf.read_comparisons(rows)
    assert (error.value.kind, error.value.row) == ("no_first_place", 2)
    with pytest.raises(bf.DataError):  # the 2 of the first is no first place: the second has 3
        bf.Comparisons.from_rankings(ranks=[[2, 2, 3], [5, 4, 3]], items=list("abc"))
    # a shared first place may have the mean of its places, or the last of them
    for tied in ([[1.5, 1.5, 3]], [[2, 2, 3]], [[4, 2, 3], [1, 2, 3]]):
        assert bf.Comparisons.from_rankings(ranks=tied, items=list("abc")).n_comparisons


def test_ties_everywhere_on_a_scale_of_few_numbers_may_be_ratings():
    few = [[5, 1, 3, 3], [4, 1, 4, 2], [2, 3, 5, 5]]
    assert "ratings_as_ranks" in kinds(bf.Comparisons.from_rankings(ranks=few, items="abcd"))
    few[1] = [4, 1, 3, 2]
    made = bf.Comparisons.from_rankings(ranks=few, items="abcd")
    assert "ratings_as_ranks" not in kinds(made)
