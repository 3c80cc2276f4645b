"""Cases of rankings: ties, partial ballots, choices; numbers by hand or by another program."""

from __future__ import annotations

import numpy as np
import pytest
from comparison_tools import by_item, mle, with_ghost

from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError
from bayesfair.inference import fit


def test_sharing_first_place_beats_third():
    # case 27
    items = ["p1", "p2", "p3", "p4", "p5"]
    data = Comparisons.from_rankings(ranks=[[1, 1, 3, 4, 5]], items=items)
    assert data.orderings() == [(("p1", "p2"), ("p3",), ("p4",), ("p5",))]
    averaged = with_ghost([[["p1", "p2"], "p3", "p4", "p5"]], items)
    found = by_item(mle(averaged)["log_worth"])
    values = np.array([found[item] for item in items])
    np.testing.assert_allclose(
        values - values.mean() + np.mean([1.2025, 1.2025, 0.0727, -0.7696, -1.9250]),
        [1.2025, 1.2025, 0.0727, -0.7696, -1.9250],
        atol=6e-5,
    )
    lone = fit(Comparisons.from_rankings([[["a", "b"]]]), seed=0, method="laplace")
    assert by_item(lone["mode"]["log_worth"]) == {"a": 0.0, "b": 0.0}


def test_tied_items_are_exchangeable():
    # case 28
    scores = [[10.0, 5.0, 5.0, 5.0, 1.0]]
    data = Comparisons.from_rankings(ranks=scores, lowest_is_best=False)
    mode = fit(data, seed=0, method="laplace")["mode"]["log_worth"].values
    assert np.ptp(mode[1:4]) < 1e-10 and mode[0] > mode[1] > mode[4]
    order = [3, 1, 4, 0, 2]
    moved = Comparisons.from_rankings(
        ranks=np.array(scores)[:, order], items=[str(i) for i in order], lowest_is_best=False
    )
    other = by_item(fit(moved, seed=0, method="laplace")["mode"]["log_worth"])
    np.testing.assert_allclose([other[str(i)] for i in range(5)], mode, atol=1e-10)
    close = [[10.0, 5.0, 5.0000001, 5.0, 1.0]]
    assert len(Comparisons.from_rankings(ranks=close, lowest_is_best=False).orderings()[0]) == 4
    told = Comparisons.from_rankings(ranks=close, lowest_is_best=False, tie_tolerance=1e-6)
    assert len(told.orderings()[0]) == 3


RANK_ROWS = (
    [[1, 2, 3, 4, 5]] * 10 + [[1, 2, 3, 5, 4]] + [[1, 2, 4, 3, 5]] * 3 + [[1, 2, 5, 3, 4]] * 2
    + [[1, 3, 2, 4, 5]] * 2 + [[3, 1, 2, 5, 4]] + [[0, 2, 1, 4, 5]] * 2 + [[2, 4, 3, 1, 5]]
    + [[0, 0, 0, 1, 5]] + [[0, 0, 0, 0, 1]]
)  # fmt: skip


def test_ranks_with_gaps_are_no_ties():
    # case 30
    data = Comparisons.from_rankings(ranks=RANK_ROWS, items="12345", partial="subset", unranked=0)
    assert data.n_ties == 0 and data.n_comparisons == len(RANK_ROWS) - 1
    assert (
        "1 ranking of fewer than two items, or without a ranked one, was dropped" in data.notices[0]
    )
    mode = mle(data, reference="1")
    np.testing.assert_allclose(
        mode["log_worth_relative"][1:], [-2.1306, -3.4949, -4.3968, -6.1499], atol=5e-5
    )
    assert float(mode["log_likelihood"]) == pytest.approx(-49.8048, abs=5e-5)
    rankings = [
        [place[0] for place in order]
        for order, n in zip(data.orderings(), data.count, strict=True)
        for _ in range(int(n))
    ]
    ghost = by_item(mle(with_ghost(rankings, "12345"), reference="1")["log_worth_relative"])
    assert [ghost[i] for i in "2345"] == pytest.approx(
        [-1.9951, -3.2782, -4.1248, -5.7895], abs=5e-5
    )


def test_lists_of_different_length():
    # case 32
    rankings = [["a", "b", "c", "d"], ["a", "b", "d"], ["b", "c"]]
    data = Comparisons.from_rankings(rankings, partial="subset")
    with pytest.raises(DataError, match="no maximum-likelihood estimate"):
        mle(data)
    ghost = by_item(mle(with_ghost(rankings, "abcd"), reference="a")["log_worth_relative"])
    assert {i: ghost[i] for i in "bcd"} == pytest.approx(
        {"b": -1.5544, "c": -2.9854, "d": -4.1861}, abs=5e-5
    )


def test_top_two_of_four_leaves_the_rest_exchangeable():
    # case 35
    data = Comparisons.from_rankings([["a", "b"]], items="abcd", partial="top")
    mode = by_item(fit(data, seed=0, method="laplace")["mode"]["log_worth"])
    assert mode["c"] == pytest.approx(mode["d"], abs=1e-12) and mode["a"] > mode["b"] > mode["c"]


def test_a_cycle_of_rankings_is_no_error():
    # case 37
    data = Comparisons.from_rankings([list("abc"), list("bca"), list("cab")])
    np.testing.assert_allclose(mle(data)["worth"], 1 / 3, atol=1e-10)
