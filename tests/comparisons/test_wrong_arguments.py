"""Whatever is passed in: a result or a BayesfairError, never an exception of another kind."""

import warnings

import numpy as np
import pytest
import xarray as xr

import bayesfair as bf
from bayesfair.comparisons import Comparisons, Origin
from bayesfair.errors import BayesfairError, BayesfairWarning, DataError
from bayesfair.ranking import fit_summary

WRONG = {
    "nothing": None,
    "number": 1,
    "text": "x",
    "mapping": {},
    "object": object(),
    "dataset": xr.Dataset(),
    "empty tree": xr.DataTree(),
}
ONE = (["a"], ["b"], ["left"])
MAKE = Comparisons


@pytest.fixture(scope="module")
def fitted():
    data = Comparisons.from_counts(list("aab"), list("bcc"), [8, 9, 7], [4, 3, 5])
    return data, bf.fit(data, seed=1)


def only_ours(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesfairWarning)  # of items compared with themselves
        try:
            call()
        except BayesfairError as error:
            assert str(error)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_constructors(wrong):
    for call in (
        lambda: MAKE.from_duels(wrong, wrong, wrong),
        lambda: MAKE.from_duels(*ONE, weight=wrong),
        lambda: MAKE.from_duels(*ONE, items=wrong),
        lambda: MAKE.from_duels(*ONE, outcomes=wrong),
        lambda: MAKE.from_duels(*ONE, source=Origin("x", wrong)),
        lambda: MAKE.from_duels(*ONE, first=wrong),
        lambda: MAKE.from_duels(*ONE, ranking=wrong),
        lambda: MAKE.from_counts(["a"], ["b"], wrong, [1]),
        lambda: MAKE.from_counts(["a"], ["b"], [1], [1], first=wrong),
        lambda: MAKE.from_win_matrix(wrong, ["a", "b"]),
        lambda: MAKE.from_win_matrix([[0, 1], [1, 0]], wrong),
        lambda: MAKE.from_choices(wrong, [["a", "b"]]),
        lambda: MAKE.from_choices(["a"], wrong),
        lambda: MAKE.from_choices(["a"], [wrong]),
        lambda: MAKE.from_rankings(wrong),
        lambda: MAKE.from_rankings([wrong]),
        lambda: MAKE.from_rankings(ranks=wrong),
        lambda: MAKE.from_rankings(ranks=[[1, 2]], items=wrong),
        lambda: MAKE.from_rankings(ranks=[[1, 2]], unranked=wrong),
        lambda: MAKE.from_rankings(ranks=[[1, 2]], last_tie=wrong),
        lambda: MAKE.from_rankings(ranks=[[1, 2]], tie_tolerance=wrong),
        lambda: MAKE.from_ranked_rows(wrong, ["a", "b"], [1, 2]),
        lambda: MAKE.from_ranked_rows([1, 1], ["a", "b"], wrong),
    ):
        only_ours(call)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_fits_and_what_is_read_off_them(fitted, wrong):
    data, tree = fitted
    for call in (
        lambda: bf.rank_table(wrong),
        lambda: bf.rank_table(tree, anchor=wrong),
        lambda: bf.rank_table(tree, tier_probability=wrong),
        lambda: bf.win_probability(wrong),
        lambda: bf.win_probability(tree, first=wrong),
        lambda: bf.rank_probability(wrong),
        lambda: bf.quasi_standard_errors(wrong),
        lambda: bf.influence(wrong, data),
        lambda: bf.influence(tree, wrong),
        lambda: fit_summary(wrong, data),
        lambda: fit_summary(tree, wrong),
        lambda: bf.pl_consistency(wrong, data, seed=1),
        lambda: bf.pl_consistency(tree, wrong, seed=1),
        lambda: bf.pl_consistency(tree, data, seed=wrong),
        lambda: bf.pl_consistency(tree, data, seed=1, replicates=wrong),
        lambda: bf.predicted_wins(wrong, data, seed=1),
        lambda: bf.predicted_wins(tree, wrong, seed=1),
        lambda: data.with_covariates(wrong),
        lambda: data.with_covariates({"x": wrong}),
        lambda: data.with_covariates({"x": {"a": wrong, "b": 1, "c": 2}}),
        lambda: data.without(wrong),
    ):
        only_ours(call)
    for option in ("order_sd", "order_effect"):
        only_ours(
            lambda option=option: bf.fit(data, seed=1, draws=400, model_options={option: wrong})
        )
    for option in ("prior_sd", "draws", "seed", "ties", "reference", "model_options", "nonsense"):
        if not (option == "ties" and wrong is None):
            only_ours(
                lambda option=option: bf.fit(data, **({"seed": 1, "draws": 400} | {option: wrong}))
            )


@pytest.mark.parametrize("n", [1e15, 1e19, 1e300])
def test_counts_too_large_to_count(n):
    def whole(counts):
        data = Comparisons.from_counts(["a", "b"], ["b", "a"], *counts)
        bf.pl_consistency(bf.fit(data, seed=1, method="laplace"), data, seed=1, replicates=20)

    only_ours(lambda: whole(([n, 1], [1, 2])))
    if n > 2**53:
        with pytest.raises(DataError, match="more than can be counted exactly"):
            Comparisons.from_counts(["a"], ["b"], [n], [1])
    heavy = Comparisons.from_rankings([list("abc"), list("cba")], weight=[1e12, 1e12])
    with pytest.raises(DataError, match="too many to draw again"):
        bf.pl_consistency(bf.fit(heavy, seed=1, method="laplace"), heavy, seed=1)


@pytest.mark.parametrize("count", ["1_000", "1e19", "nan", "inf", "-3", "1e400", "0x1", "\u0661"])
def test_preflib_counts_are_read_strictly(tmp_path, count):
    path = tmp_path / "x.soc"
    path.write_text(f"5: 1,2\n{count}: 2,1\n", encoding="utf-8")
    with pytest.raises(DataError):
        bf.read_comparisons(path)
    path.write_text(f"# NUMBER VOTERS: {'9' * 5000}\n5: 1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="of at most 15 digits"):
        bf.read_comparisons(path)


def test_preflib_files_that_cannot_be_opened(tmp_path):
    for path in (tmp_path / "none.soc", tmp_path):
        with pytest.raises(DataError):
            bf.read_comparisons(path, format="preflib")


def test_numbers_of_one_array_are_not_those_of_another():
    with pytest.raises(DataError, match="must agree"):
        Comparisons.from_duels(["a", "b"], ["b", "a"], source=Origin("x", [1]))
    with pytest.raises(DataError, match="first has"):
        Comparisons.from_counts(["a"], ["b"], [1], [1], first=np.array(["left", "left"]))
