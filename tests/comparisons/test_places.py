"""What ranks mean: 0 is a rank, infinity is none, and a last tie may be an unordered rest."""

import numpy as np
import pandas as pd
import pytest
from comparison_tools import by_item, mle
from scipy.optimize import minimize

import bayesfair as bf
from bayesfair.base.notices import Notice
from bayesfair.comparisons import Comparisons, Origin
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.duels.comparisons import read_comparisons

ABCD = list("abcd")


def kinds(comparisons):
    return {Notice.of(note).kind for note in comparisons.notices}


# -- where counting begins, and who is not ranked --------------------------------------------------


def in_both_forms(table, **options):
    """Ranks in wide and in long form; these are one thing."""
    rows = np.argwhere(~np.isnan(np.array(table, dtype=float)))
    rank = [table[i][j] for i, j in rows]
    wide = Comparisons.from_rankings(ranks=table, items=ABCD, **options)
    long = Comparisons.from_ranked_rows(
        rows[:, 0], [ABCD[j] for j in rows[:, 1]], rank, items=ABCD, **options
    )
    assert wide.orderings() == long.orderings() and kinds(wide) == kinds(long)
    np.testing.assert_array_equal(wide.count, long.count)
    return wide


def test_ranks_that_count_from_0_are_ranks():
    data = in_both_forms([[0, 1, 1, 2]])
    assert data.orderings() == [(("a",), ("b", "c"), ("d",))]
    assert kinds(data) == {"ranks_from_zero"}
    assert in_both_forms([[1, 2, 2, 3]]).orderings() == data.orderings()


def test_zero_is_not_ranked_only_if_that_is_said():
    table = [[1, 2, 3, 4], [2, 1, 0, 0]]
    with pytest.raises(DataError, match="is 0, but in another ranking the best is 1") as error:
        Comparisons.from_rankings(ranks=table, items=ABCD, source=Origin("r.csv", [5, 9]))
    assert (error.value.row, error.value.value) == (9, 0.0) and "unranked=0" in str(error.value)
    with pytest.raises(OptionError, match="partial"):
        in_both_forms(table, unranked=0)
    data = in_both_forms(table, unranked=0, partial="subset")
    assert data.orderings() == [tuple((i,) for i in ABCD), (("b",), ("a",))]
    assert not kinds(data)
    # of a quantity of which more is better, 0 may stand for "not ranked" too
    scores = in_both_forms([[3, 5, 0, 1]], unranked=0, partial="subset", lowest_is_best=False)
    assert scores.orderings() == [(("b",), ("a",), ("d",))]


@pytest.mark.parametrize("mark", [np.inf, 99, -1])
def test_any_number_can_stand_for_not_ranked(mark):
    data = in_both_forms([[1, 2, mark, mark]], unranked=mark, partial="top")
    assert data.orderings() == [(("a",), ("b",))] and data.level.tolist() == [0, 1, -1, -1]


def test_infinite_and_negative_ranks_are_refused_unless_they_stand_for_not_ranked():
    with pytest.raises(DataError, match=r"rank of 'd' is inf.*unranked=inf"):
        in_both_forms([[1, 2, 3, np.inf]])
    with pytest.raises(DataError, match=r"rank of 'd' is -1.*unranked=-1"):
        in_both_forms([[1, 2, 3, -1]])
    with pytest.raises(DataError, match=r"is -inf.*unranked=-inf"):
        in_both_forms([[1, 2, 3, -np.inf]], lowest_is_best=False)
    with pytest.raises(OptionError, match="unranked='DNF'"):
        in_both_forms([[1, 2, 3, 4]], unranked="DNF")


def test_options_of_numbers_are_refused_for_orderings():
    for option in ({"unranked": 0}, {"lowest_is_best": False}, {"tie_tolerance": 0.5}):
        with pytest.raises(OptionError, match=f"{next(iter(option))}=.* belongs to ranks"):
            Comparisons.from_rankings([["a", "b"]], **option)


def test_unranked_in_files(tmp_path):
    path = tmp_path / "ranks.csv"
    path.write_text("r,item,rank\n1,a,1\n1,b,2\n1,c,0\n2,c,1\n2,a,2\n2,b,3\n")
    named = {"ranking": "r", "item": "item", "rank": "rank"}
    with pytest.raises(DataError, match=r"row 4 of ranks.csv: rank of 'c' is 0") as error:
        read_comparisons(path, **named)
    assert error.value.row == 4
    data = read_comparisons(path, **named, unranked=0, partial="top")
    assert data.orderings() == [(("a",), ("b",)), (("c",), ("a",), ("b",))]
    wide = read_comparisons(
        pd.DataFrame({"a": [1, 2], "b": [2, 3], "c": [0, 1]}),
        ranks=list("abc"), unranked=0, partial="top",
    )  # fmt: skip
    assert wide.orderings() == data.orderings()
    duels = pd.DataFrame({"left": ["a"], "right": ["b"], "winner": ["left"]})
    for option in ({"unranked": 0.0}, {"last_tie": "rest"}):
        with pytest.raises(OptionError, match=next(iter(option))):
            read_comparisons(duels, **option)


# -- a tie for last place --------------------------------------------------------------------------


def preflib(path, ballots, k, kind, modified):
    """Write ballots of (count, order); items are numbered from 1."""
    names = [f"# ALTERNATIVE NAME {i}: item {i}" for i in range(1, k + 1)]
    rows = [f"{n}: {order}" for n, order in ballots]
    head = [f"# DATA TYPE: {kind}", f"# MODIFICATION TYPE: {modified}"]
    path.write_text("\n".join([*head, *names, *rows]) + "\n")
    return path


def election(tmp_path, k=6, seed=4):
    """Top ballots of k candidates as .soi, and filled up in last place as .toc."""
    rng = np.random.default_rng(seed)
    tops, full = [], []
    for _ in range(60):
        order = (1 + np.argsort(-(np.linspace(0.8, -0.8, k) + rng.gumbel(size=k)))).astype(str)
        length = int(rng.integers(1, k))
        rest = ",".join(sorted(order[length:], key=int))
        tops.append((1, ",".join(order[:length])))
        full.append((1, f"{tops[-1][1]},{{{rest}}}"))
    soi = preflib(tmp_path / "x.soi", tops, k, "soi", "original")
    return soi, preflib(tmp_path / "x.toc", full, k, "toc", "imbued")


def test_a_toc_filled_up_in_last_place_and_its_soi_give_the_same_fit(tmp_path):
    soi, toc = election(tmp_path)
    top, imbued = read_comparisons(soi, partial="top"), read_comparisons(toc)
    assert {"imbued", "last_tie_rest"} <= kinds(imbued) and imbued.n_ties == 0
    assert imbued.partial == top.partial == "top"
    one, two = mle(top), mle(imbued)
    for name in ("log_worth", "standard_error", "worth", "log_likelihood"):
        np.testing.assert_allclose(one[name], two[name], rtol=1e-9, atol=1e-9)
    draws = [bf.fit(data, seed=5)["posterior"]["log_worth"].values for data in (top, imbued)]
    np.testing.assert_allclose(*draws, atol=1e-8)
    # --partial top concerns what a ballot does not name; here it names all
    assert by_item(mle(read_comparisons(toc, partial="top"))["log_worth"]) == by_item(
        two["log_worth"]
    )
    # read as equality the same ballots say something else
    equal = mle(read_comparisons(toc, last_tie="tie"))
    assert abs(equal["log_worth"] - two["log_worth"]).max() > 0.1


def test_more_than_twelve_tied_items_fit_where_they_are_the_rest(tmp_path):
    ballots = [(3, "1,2"), (2, "2,5")]
    rest = {top: ",".join(str(i) for i in range(1, 17) if str(i) not in top.split(","))
            for _, top in ballots}  # fmt: skip
    full = [(n, f"{top},{{{rest[top]}}}") for n, top in ballots]
    soi = read_comparisons(
        preflib(tmp_path / "y.soi", ballots, 16, "soi", "original"), partial="top"
    )
    toc = read_comparisons(preflib(tmp_path / "y.toc", full, 16, "toc", "imbued"))
    for name in ("log_worth", "standard_error"):
        np.testing.assert_allclose(
            *(bf.fit(d, seed=1)["mode"][name] for d in (soi, toc)), atol=1e-9
        )
    original = preflib(tmp_path / "z.toc", full, 16, "toc", "original")
    with pytest.raises(DataError, match=r"row 19 of z.toc: 14 items share one place") as error:
        bf.fit(read_comparisons(original), seed=1)
    assert (error.value.row, error.value.value) == (19, 14) and "last_tie" in str(error.value)
    assert read_comparisons(original, last_tie="rest").orderings() == toc.orderings()
    first = [[list("abcdefghijklm"), "n"]]
    with pytest.raises(DataError, match="13 items share one place") as error:
        bf.fit(Comparisons.from_rankings(first), seed=1)
    assert "last_tie" not in str(error.value)  # not the last place


def test_a_genuine_tie_for_last_place_stays_a_tie(tmp_path):
    path = preflib(tmp_path / "s.toc", [(4, "1,{2,3}"), (2, "3,2,1")], 3, "toc", "original")
    data = read_comparisons(path)
    assert data.n_ties == 4 and not kinds(data)
    # a tie of two is the mean of the log-likelihoods of its two orders
    lam = np.array([0.3, 0.1, -0.4])

    def order(*items):
        return sum(lam[i] - np.log(np.exp(lam[list(items[p:])]).sum()) for p, i in enumerate(items))

    expected = 2 * (order(0, 1, 2) + order(0, 2, 1)) + 2 * order(2, 1, 0)
    from bayesfair.kernels.orders.plackett_luce import log_likelihood

    assert log_likelihood(data.chains(), lam) == pytest.approx(expected, abs=1e-12)


def test_long_choices_are_choices_with_the_last_tie_as_rest(tmp_path):
    truth = np.array([1.5, 0.5, 0.0, -0.5, -1.5])
    rng = np.random.default_rng(11)
    rows, chosen, offered = [], [], []
    for n in range(3000):
        here = rng.permutation(5)[:4]
        best = here[np.argmax(truth[here] + rng.gumbel(size=4))]
        rows += [(n, f"i{j}", int(j == best)) for j in here]
        chosen.append(best)
        offered.append(here)
    frame = pd.DataFrame(rows, columns=["id", "alt", "chosen"])
    named = {"ranking": "id", "item": "alt", "rank": "chosen", "partial": "subset"}
    for lowest in (True, False):
        with pytest.raises(OptionError, match="looks like choices") as error:
            read_comparisons(frame, **named, lowest_is_best=lowest)
        assert error.value.kind == "choices_as_ranks"
    data = read_comparisons(frame, **named, lowest_is_best=False, last_tie="rest")
    found = mle(data)
    # the conditional logit by scipy
    sets, picked = np.array(offered), np.array(chosen)

    def minus(lam):
        return np.log(np.exp(lam[sets]).sum(axis=1)).sum() - lam[picked].sum()

    best = minimize(minus, np.zeros(5), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(found["log_worth"], best - best.mean(), atol=1e-5)
    assert np.abs(found["log_worth"] - truth).max() < 4 * 0.05
    choices = Comparisons.from_choices(
        [f"i{j}" for j in chosen], [[f"i{j}" for j in here] for here in offered]
    )
    for name in ("log_worth", "standard_error", "log_likelihood"):
        np.testing.assert_allclose(found[name], mle(choices)[name], atol=1e-8)
    # said to be ties, they are ties
    tied = read_comparisons(frame, **named, lowest_is_best=False, last_tie="tie")
    assert tied.n_ties == 3000
    # equal weights of all four items of a tie squeeze the worths together
    assert float(mle(tied)["log_worth"].sel(item="i0")) < 1.0


def test_many_last_ties_that_nobody_spoke_of_get_a_notice():
    ranks = [[1, 2, 3, 3], [2, 1, 3, 3], [1, 2, 3, 4]]
    assert kinds(Comparisons.from_rankings(ranks=ranks, items=ABCD)) == {"last_tie"}
    assert not kinds(Comparisons.from_rankings(ranks=ranks, items=ABCD, last_tie="tie"))
    with pytest.raises(OptionError, match="last_tie='equal'"):
        Comparisons.from_rankings(ranks=ranks, items=ABCD, last_tie="equal")


def test_a_ballot_that_ranks_nobody_compares_nothing():
    data = Comparisons.from_rankings([[["a", "b"]], ["a", "b"]], last_tie="rest")
    assert data.n_comparisons == 1 and "ranking_without_comparison" in kinds(data)
