"""What users of comparable software stumble on; numbers by hand or by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from comparison_tools import by_item, mle, with_ghost
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from bayesfair.comparisons import Comparisons, Origin
from bayesfair.errors import ArmError, BayesfairWarning, DataError, OptionError
from bayesfair.inference import fit
from bayesfair.inference.comparisons import fit_comparisons

DOMINANCE = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]


def wins(pairs, **options):
    winners, losers = zip(*pairs, strict=True)
    return Comparisons.from_duels(list(winners), list(losers), **options)


def test_the_best_item_has_the_largest_log_worth():
    # case 1
    tree = fit(wins(DOMINANCE), seed=1)
    assert by_item(tree["mode"]["log_worth"]) == pytest.approx(
        {"a": 0.7962, "b": 0.2610, "c": -0.2610, "d": -0.7962}, abs=5e-5
    )
    means = tree["posterior"]["log_worth"].mean(("chain", "draw")).values
    assert np.all(np.diff(means) < 0)
    with pytest.raises(DataError, match="no maximum-likelihood estimate") as error:
        mle(wins(DOMINANCE))
    assert "'b', 'c', 'd' only ever lost to 'a'" in str(error.value)


def test_a_winner_named_and_a_side_are_told_apart():
    # case 4
    left, right = ["m1", "base"], ["base", "m1"]
    for column in (["left", "right"], ["m1", "m1"], ["model_a", "model_b"]):
        data = Comparisons.from_duels(left, right, column)
        assert data.win_matrix()[data.items.index("m1")].sum() == 2
    with pytest.raises(OptionError, match="two ways"):
        Comparisons.from_duels(left, right, ["left", "m1"])
    # an item called like a side: nothing is guessed
    with pytest.raises(OptionError, match='winner_is="item"'):
        Comparisons.from_duels(["left", "b"], ["b", "left"], ["left", "left"])
    named = Comparisons.from_duels(["left", "b"], ["b", "left"], ["left", "left"], winner_is="item")
    assert named.win_matrix()[named.items.index("left")].sum() == 2
    sided = Comparisons.from_duels(["left", "b"], ["b", "left"], ["left"] * 2, winner_is="side")
    assert sided.win_matrix().tolist() == [[0, 1], [1, 0]]


def test_a_winner_that_took_no_part():
    with pytest.raises(DataError, match=r"row 7 of x\.csv: the winner 'c' is neither 'a' nor 'b'"):
        Comparisons.from_duels(["a", "c"], ["b", "a"], ["c", "c"], source=Origin("x.csv", [7, 8]))


def test_a_cycle_in_which_the_second_never_wins():
    # case 5
    left, right = ["a", "b", "c"], ["b", "c", "a"]
    data = Comparisons.from_counts(left, right, [3, 2, 1], [0, 0, 0])
    found = by_item(mle(data)["log_worth"])
    assert found == pytest.approx({"a": 0.8040, "b": -0.2024, "c": -0.6015}, abs=5e-5)
    swapped = Comparisons.from_counts(right, left, [0, 0, 0], [3, 2, 1])
    assert by_item(mle(swapped)["log_worth"]) == pytest.approx(found, abs=1e-12)


def test_unknown_outcome_words_are_refused_with_counts():
    # case 9
    words = ["model_a", "Model_A", "bothbad", "???", "???"]
    with pytest.raises(DataError, match="4 rows with an unknown outcome") as error:
        Comparisons.from_duels(["x"] * 5, ["y"] * 5, words)
    text = str(error.value)
    assert "'???' (2)" in text and "'Model_A' (1)" in text and "Did you mean 'model_a'?" in text
    skipped = Comparisons.from_duels(["x"] * 5, ["y"] * 5, words, unknown="skip")
    assert (skipped.n_comparisons, skipped.n_skipped) == (1, 4)
    assert "4 rows with an unknown outcome" in skipped.notices[0]
    mapped = Comparisons.from_duels(
        ["x"] * 5, ["y"] * 5, words,
        outcomes={"model_a": "left", "Model_A": "left", "bothbad": "both_bad", "???": "right"},
    )  # fmt: skip
    assert mapped.win_matrix().tolist() == [[0, 2], [2, 0]] and mapped.n_ties == 1


def test_order_of_rows_does_not_matter():
    # case 10
    data = Comparisons.from_duels(["A"] * 6, ["B"] * 6, ["A"] * 3 + ["B"] * 3)
    back = Comparisons.from_duels(["A"] * 6, ["B"] * 6, ["B"] * 3 + ["A"] * 3)
    for one in (data, back):
        assert by_item(mle(one)["log_worth"]) == {"A": 0.0, "B": 0.0}


def test_the_prior_is_printed():
    # case 11
    data = Comparisons.from_counts(["a"], ["b"], [7], [3])
    gap = mle(data, reference="b")["log_worth_relative"].sel(item="a")
    assert float(gap) == pytest.approx(np.log(7 / 3), abs=1e-10)
    tree = fit(data, seed=1, prior_sd=0.5)
    assert tree.attrs["prior"] == "log_worth ~ Normal(0, 0.5) each, centred"
    assert mle_attrs(data)["prior"] == "none (maximum likelihood)"


def mle_attrs(data):
    return fit_comparisons(data, prior_sd=np.inf, seed=0).attrs


def test_an_item_that_only_loses():
    # case 15
    pairs = [("A", "B"), ("C", "A"), ("A", "D"), ("B", "A"), ("B", "C")]
    data = wins(pairs)
    links = data.connectivity()
    assert links.strong_components == (("A", "B", "C"), ("D",)) and links.never_win == ("D",)
    with pytest.raises(DataError, match="'D' only ever lost to the 3 items around 'A'"):
        mle(data)
    mode = mle(data.without("D"), reference="A")
    assert by_item(mode["log_worth_relative"]) == pytest.approx(
        {"A": 0, "B": 0.8392, "C": 0.4196}, abs=5e-5
    )
    # four games remain, none of them grouped: the deviance is -2 log L
    assert -2 * float(mode["log_likelihood"]) == pytest.approx(5.1356, abs=5e-5)
    ghost = mle(with_ghost([list(p) for p in pairs], "ABCD"), reference="A")
    found = by_item(ghost["log_worth_relative"])
    assert {i: found[i] for i in "BCD"} == pytest.approx(
        {"B": 0.5184, "C": 0.1355, "D": -1.1538}, abs=5e-5
    )


def gap_moments(a_wins, b_wins, prior_sd=1.0, link=expit):
    """Mean, sd and predictive P(a wins) of the gap of two items, by quadrature."""

    def density(g):
        return norm.pdf(g, scale=np.sqrt(2) * prior_sd) * link(g) ** a_wins * link(-g) ** b_wins

    def integral(f):
        return quad(lambda g: f(g) * density(g), -30, 30, epsabs=1e-13, limit=400)[0]

    mass = integral(lambda g: 1.0)
    mean = integral(lambda g: g) / mass
    sd = np.sqrt(integral(lambda g: (g - mean) ** 2) / mass)
    return mean, sd, integral(link) / mass


@pytest.mark.parametrize(
    ("won", "lost", "printed"),
    [
        (5, 0, (1.7839, 0.9497, 0.8216)),  # case 19
        (1, 0, (0.7263, 1.2134, 0.6368)),
        (7, 3, (0.7384, 0.6286, None)),  # case 79
    ],
)
@pytest.mark.parametrize("model", ["bradley_terry", "plackett_luce"])
def test_two_items_by_quadrature(won, lost, printed, model):
    mean, sd, win = gap_moments(won, lost)
    assert (mean, sd) == pytest.approx(printed[:2], abs=5e-5)
    data = Comparisons.from_counts(["a"], ["b"], [won], [lost])
    tree = fit_comparisons(data, model=model, method="laplace", draws=40_000, seed=2)
    draws = tree["posterior"]["log_worth"]
    gap = (draws.sel(item="a") - draws.sel(item="b")).values.ravel()
    # draws are resampled: the weights' effective size counts
    error = 5 / np.sqrt(min(float(tree.attrs["ess"]), len(gap)))
    assert abs(gap.mean() - mean) < error * sd
    assert abs(gap.std() / sd - 1) < error  # sd of a sd is below sd / sqrt(n) for these shapes
    if printed[2]:
        assert win == pytest.approx(printed[2], abs=5e-5)
        assert abs(expit(gap).mean() - win) < error * expit(gap).std()
    worth = tree["posterior"]["worth"].sel(item="a").values.ravel()
    np.testing.assert_allclose(worth, expit(gap), rtol=1e-12)


def test_thurstone_by_quadrature():
    mean, sd, _ = gap_moments(6, 2, link=norm.cdf)
    data = Comparisons.from_counts(["a"], ["b"], [6], [2])
    tree = fit_comparisons(data, model="thurstone", method="laplace", draws=40_000, seed=3)
    draws = tree["posterior"]["log_worth"]
    gap = (draws.sel(item="a") - draws.sel(item="b")).values.ravel()
    error = 5 / np.sqrt(float(tree.attrs["ess"]))
    assert abs(gap.mean() - mean) < error * sd and abs(gap.std() / sd - 1) < error
    # worth: the probability of the better performance
    np.testing.assert_allclose(
        tree["posterior"]["worth"].sel(item="a").values.ravel(), norm.cdf(gap), atol=1e-9
    )


def test_all_wins_one_way_has_no_maximum():
    data = Comparisons.from_counts(["a"], ["b"], [5], [0])
    with pytest.raises(DataError, match="'b' only ever lost to 'a'"):
        mle(data)


def test_declared_items_without_data_keep_their_prior():
    # case 22
    data = wins(DOMINANCE, items="abcdef")
    assert data.connectivity().no_data == ("e", "f")
    tree = fit(data, seed=4, draws=40_000)
    mode = by_item(tree["mode"]["log_worth"])
    assert mode == pytest.approx(
        {"a": 0.7962, "b": 0.2610, "c": -0.2610, "d": -0.7962, "e": 0, "f": 0}, abs=5e-5
    )
    gap = tree["posterior"]["log_worth"].sel(item="e") - tree["posterior"]["log_worth"].sel(
        item="f"
    )
    # two independent N(0, 1): the gap has sd sqrt(2); s.e. of a sd is sd / sqrt(2 n)
    error = 5 * np.sqrt(2) / np.sqrt(2 * float(tree.attrs["ess"]))
    assert abs(float(gap.std()) - np.sqrt(2)) < error
    assert tree["constant_data"]["n"].values.tolist() == [3, 3, 3, 3, 0, 0]
    assert tree["constant_data"]["island"].values.tolist() == [0, 0, 0, 0, -1, -1]
    assert "were never compared" in tree.attrs["notices"]
    with pytest.raises(DataError, match="'e', 'f' were never compared"):
        mle(data)


def test_both_bad_is_a_tie_unless_told_otherwise():
    # case 24
    rows = (["a", "a"], ["b", "b"], ["model_a", "tie (bothbad)"])
    data = Comparisons.from_duels(*rows)
    assert data.n_ties == 1 and "both items bad" in data.notices[0]
    gap = mle(data, model="bradley_terry", ties="half", reference="b")["log_worth_relative"]
    assert float(gap.sel(item="a")) == pytest.approx(np.log(3), abs=1e-9)
    dropped = Comparisons.from_duels(*rows, both_bad="drop")
    assert (dropped.n_comparisons, dropped.n_skipped) == (1, 1)
    apart = Comparisons.from_duels(*rows, both_bad="separate")
    assert apart.n_comparisons == 1 and apart.outcome.tolist() == [0, 3]


def test_davidson_with_two_items():
    # case 25
    data = Comparisons.from_counts(["a"], ["b"], [5], [3], [2])
    mode = mle(data, reference="b")
    assert float(mode["log_worth_relative"].sel(item="a")) == pytest.approx(np.log(5 / 3), abs=1e-9)
    assert float(mode["tie"]) == pytest.approx(2 / np.sqrt(15), abs=1e-9)
    half = mle(data, ties="half", reference="b")
    assert float(half["log_worth_relative"].sel(item="a")) == pytest.approx(np.log(1.5), abs=1e-9)
    assert fit_comparisons(data, prior_sd=np.inf, seed=0).attrs["ties"] == "model"
    with pytest.raises(OptionError, match="exclude each other"):
        mle(data, model="davidson", ties="half")
    with pytest.raises(OptionError, match="2 of 10 duels are ties"):
        mle(data, model="bradley_terry")


def test_counts_weights_and_repeated_rows_are_the_same():
    # case 38
    rows = Comparisons.from_duels(["a", "a", "a", "b"], ["b", "b", "b", "a"])
    weighted = Comparisons.from_duels(["a", "b"], ["b", "a"], weight=[3, 1])
    counted = Comparisons.from_counts(["a"], ["b"], [3], [1])
    for data in (rows, weighted, counted):
        mode = mle(data, reference="b")
        assert float(mode["log_worth_relative"].sel(item="a")) == pytest.approx(np.log(3), abs=1e-9)
        error = float(mode["standard_error_relative"].sel(item="a"))
        assert error == pytest.approx(np.sqrt(1 / 3 + 1), abs=1e-8)
        value = float(mode["log_likelihood"])
        assert value == pytest.approx(3 * np.log(0.75) + np.log(0.25), abs=1e-12)
    first, second = (fit(d, seed=8)["posterior"]["log_worth"].values for d in (rows, weighted))
    np.testing.assert_array_equal(first, second)


def test_weights():
    # case 40
    left, right = ["a", "b", "c"], ["b", "a", "a"]
    data = Comparisons.from_duels(left, right, weight=[0.3, 1, 0])
    assert data.n_comparisons == pytest.approx(1.3)
    assert data.connectivity().no_data == ("c",)  # weight 0: the row is absent
    for bad, shown in ((-1, "got -1 in"), (np.nan, ""), (np.inf, "got inf in")):
        with pytest.raises(DataError, match=rf"{shown} ?row 4 of v\.csv"):
            Comparisons.from_duels(
                left, right, weight=[1, 1, bad], source=Origin("v.csv", [2, 3, 4])
            )
    with pytest.raises(DataError, match="weight"):
        Comparisons.from_rankings([["a", "b"], ["b", "a"]], weight=[1.0, -2.0])


def test_items_are_the_union_of_both_columns():
    # case 42
    assert Comparisons.from_duels(["a", "a"], ["b", "c"]).items == ("a", "b", "c")
    with pytest.raises(ArmError, match="'c' is not among the items 'a', 'b'"):
        Comparisons.from_duels(["a", "a"], ["b", "c"], items=["a", "b"])


def test_labels_are_trimmed_and_normalised_never_shortened():
    # case 45
    left = ["GPT 4", "GPT 4 ", "gpt 4", "Caf\u00e9", "Cafe\u0301", "org1/x", "org2/x"]
    data = Comparisons.from_duels(left, ["z"] * 7)
    assert data.items == ("Caf\u00e9", "GPT 4", "gpt 4", "org1/x", "org2/x", "z")
    text = " ".join(data.notices)
    assert "'GPT 4', 'GPT 4 ' read as 'GPT 4'" in text and "differ only in case" in text


def test_missing_values_are_named():
    with pytest.raises(DataError, match=r"row 3 of m\.csv, left: missing \(2 such rows\)"):
        Comparisons.from_duels(
            ["a", None, "c"], ["b", "b", ""], ["left"] * 3, source=Origin("m.csv", [2, 3, 4])
        )
    with pytest.raises(ArmError, match="'NA' spells a missing item"):
        Comparisons.from_duels(["a", None, "NA"], ["b", "b", "a"], ["left"] * 3, missing="drop")
    kept = Comparisons.from_duels(["a", None, "c"], ["b", "b", "a"], ["left"] * 3, missing="drop")
    assert kept.items == ("a", "b", "c") and kept.n_skipped == 1


def test_a_million_outcomes_collapse():
    # cases 80, 85: same posterior, fewer cells
    rng = np.random.default_rng(0)
    a = rng.integers(100, size=200_000)
    b = (a + rng.integers(1, 100, size=200_000)) % 100
    words = np.where(rng.random(200_000) < 0.5, "left", "right")
    data = Comparisons.from_duels(a, b, words)
    assert len(data.count) <= 100 * 99 * 2 and data.n_comparisons == 200_000
    assert data.win_matrix().sum() == 200_000


def test_first_shown_advantage():
    # case 91: each shown first ten times, the first one wins six
    left = ["a"] * 10 + ["b"] * 10
    right = ["b"] * 10 + ["a"] * 10
    winner = ["left"] * 6 + ["right"] * 4 + ["left"] * 6 + ["right"] * 4
    data = Comparisons.from_duels(left, right, winner, first="left")
    mode = mle(data)
    np.testing.assert_allclose(mode["log_worth"], 0, atol=1e-10)
    assert float(mode["order_effect"]) == pytest.approx(np.log(1.5), abs=1e-9)
    shown = Comparisons.from_duels(left, right, winner, first=left)  # by name
    assert float(mle(shown)["order_effect"]) == pytest.approx(np.log(1.5), abs=1e-9)
    with pytest.raises(OptionError, match="do not say who was shown first"):
        mle(Comparisons.from_duels(left, right, winner), order_effect=True)


def test_one_presentation_only_cannot_show_an_order_effect():
    # case 91: a is always first, so its worth and the order effect are the same thing
    data = Comparisons.from_duels(
        ["a"] * 10, ["b"] * 10, ["left"] * 6 + ["right"] * 4, first="left"
    )
    with pytest.raises(DataError, match="the order effect"):
        mle(data)
    assert float(mle(data, order_effect=False)["log_likelihood"]) < 0
    assert "order_effect" in fit(data, seed=0, method="laplace")["posterior"]


def test_ties_as_the_only_link():
    data = Comparisons.from_duels(
        ["a", "b", "c", "d", "b"], ["b", "a", "d", "c", "c"], ["left"] * 4 + ["tie"]
    )
    links = data.connectivity()
    assert links.tie_links == (("a", "b"), ("c", "d")) and len(links.weak_components) == 1
    assert any("Ties are the only link between 2 groups" in s for s in links.sentences())
    assert len(links.strong_components) == 1


def test_self_comparisons_warn_and_go():
    with pytest.warns(BayesfairWarning, match="2 comparisons of an item with itself"):
        data = Comparisons.from_duels(["a", "b", "a"], ["a", "b", "b"])
    assert data.n_comparisons == 1


def test_one_item_is_nothing_to_compare():
    with pytest.warns(BayesfairWarning):
        data = Comparisons.from_duels(["a"], ["a"])
    with pytest.raises(DataError, match="at least two"):
        fit(data, seed=0)


def test_what_a_model_cannot_do_is_said():
    rankings = Comparisons.from_rankings([["a", "b", "c"], ["c", "a", "b"]])
    with pytest.raises(OptionError, match="rankings, not duels"):
        fit(rankings, model="bradley_terry", seed=0)
    with pytest.raises(OptionError, match="belongs to duels"):
        fit(rankings, ties="half", seed=0)
    with pytest.raises(OptionError, match="no order effect"):
        fit(wins(DOMINANCE), model="plackett_luce", model_options={"order_effect": True}, seed=0)
    with pytest.raises(OptionError, match="no posterior to sample"):
        fit(wins(DOMINANCE), prior_sd=np.inf, method="nuts", seed=0)
    with pytest.raises(OptionError, match="has no option 'tie_sd'"):
        fit(wins(DOMINANCE), model_options={"tie_sd": 2.0}, seed=0)
    with pytest.raises(OptionError, match="davidsn"):
        fit(wins(DOMINANCE), model="davidsn", seed=0)
    covariates = wins(DOMINANCE).with_covariates({"x": {"a": 1, "b": 2, "c": 3, "d": 5}})
    with pytest.raises(OptionError, match="explain the same thing"):
        mle(covariates)
    with pytest.raises(ArmError, match="no value for 'd'"):
        wins(DOMINANCE).with_covariates({"x": {"a": 1, "b": 2, "c": 3}})
