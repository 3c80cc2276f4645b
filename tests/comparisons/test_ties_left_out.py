"""Ties that a fit leaves out count nowhere: neither in links, nor in n, nor in what is said."""

import numpy as np
import pytest
from comparison_tools import by_item, mle

import bayesfair as bf
from bayesfair.base.notices import notices_from_json
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError
from bayesfair.ranking import fit_summary


def duels(text):
    """``a>b a=c``: duels as one reads them."""
    rows = [(pair[0], pair[2], "left" if pair[1] == ">" else "tie") for pair in text.split()]
    return Comparisons.from_duels(*zip(*rows, strict=True))


@pytest.mark.parametrize("model", ["bradley_terry", "thurstone", "plackett_luce"])
@pytest.mark.parametrize(
    ("text", "names", "n_ties"),
    [
        ("a>b a>b b>c c>b a=c a=c", "'a' only ever beat the 2 items around 'b'", "2 ties were"),
        ("a>b b>a b=c", "'c' was never compared in a duel that was no tie", "1 tie was"),
        ("a=b a=b", "'a', 'b' were never compared", "2 ties were"),
        ("a>b b>a b=c c=d d>c", "'c', 'd'|'d', 'c'|share no comparison", "2 ties were"),
    ],
)
def test_maximum_likelihood_is_refused_where_only_dropped_ties_link_items(
    model, text, names, n_ties
):
    with pytest.raises(DataError, match=names) as caught:
        mle(duels(text), model=model, ties="drop")
    assert n_ties in str(caught.value) and caught.value.kind == "no_maximum"


def test_a_fit_without_its_ties_is_the_fit_of_the_other_duels():
    data, rest = duels("a>b b>a b>c c>b a>b b=c a=c"), duels("a>b b>a b>c c>b a>b")
    found, expected = mle(data, model="bradley_terry", ties="drop"), mle(rest)
    assert by_item(found["log_worth"]) == by_item(expected["log_worth"])
    one = bf.fit(data, model="bradley_terry", ties="drop", seed=3)
    other = bf.fit(rest, seed=3)
    np.testing.assert_array_equal(one["posterior"]["log_worth"], other["posterior"]["log_worth"])
    for name in ("n", "n_wins", "island"):
        np.testing.assert_array_equal(one["constant_data"][name], other["constant_data"][name])
    # the checks look at the same duels too
    for check in (bf.pl_consistency, bf.predicted_wins):
        left_out, never_there = check(one, data, seed=1), check(other, rest, seed=1)
        assert left_out.equals(never_there)
    assert bf.influence(one, data).equals(bf.influence(other, rest))


def test_numbers_and_notices_are_those_of_the_duels_used():
    data = duels("a>b b>a a>b b=c b=c")
    tree = bf.fit(data, model="bradley_terry", ties="drop", seed=1)
    assert (tree.attrs["n_comparisons"], tree.attrs["n_ties_left_out"]) == (3, 2)
    summary = fit_summary(tree, data)
    assert summary["n_comparisons"] == 3
    assert {row["item"]: row["n"] for row in summary["items"]} == {"a": 3, "b": 3, "c": 0}
    assert "No data: 'c' was never compared." in summary["notices"]
    said = {note.kind: note.n for note in notices_from_json(tree.attrs["notices"])}
    assert said["ties_left_out"] == 2
    # with half wins the ties are data
    half = bf.fit(data, model="bradley_terry", ties="half", seed=1)
    assert half["constant_data"]["n"].values.tolist() == [3, 5, 2]


def test_options_that_a_model_of_ones_own_cannot_heed_are_refused():
    def build(comparisons):
        raise AssertionError("never built")

    data = duels("a>b b=a")
    for option, value in (("ties", "drop"), ("reference", "a")):
        with pytest.raises(OptionError, match=f"{option}=.*shipped models"):
            bf.fit(data, model=build, seed=1, **{option: value})


def test_a_check_of_other_data_is_refused():
    data = duels("a>b b>a a>b")
    tree = bf.fit(data, seed=1)
    for check in (bf.pl_consistency, bf.predicted_wins):
        with pytest.raises(OptionError, match="Give the fitted data"):
            check(tree, duels("a>b b>a a>b c>a"), seed=1)
    with pytest.raises(OptionError, match="do not give the mode"):
        bf.influence(tree, duels("a>b b>a b>a"))
