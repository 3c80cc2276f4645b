"""Checks of fit against closed forms, quadrature, enumeration and refits."""

from itertools import product

import numpy as np
import pytest
from scipy import integrate, special, stats

import bayesfair as bf
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError


def duels_of(wins, **options):
    wins = np.asarray(wins, dtype=float)
    return Comparisons.from_win_matrix(wins, [chr(97 + i) for i in range(len(wins))], **options)


def test_consistent_frequencies_have_no_inconsistency():
    nu = np.array([5.0, 3.0, 2.0, 1.0])
    wins = 400 * nu[:, None] / (nu[:, None] + nu) * (1 - np.eye(4))
    data = duels_of(wins)
    found = bf.pl_consistency(bf.fit(data, seed=1), data, seed=1, replicates=100)
    np.testing.assert_allclose(found["top1"], nu / nu.sum())
    assert float(found["inconsistency"]) == pytest.approx(0, abs=1e-12)
    assert float(found["p_value"]) == 1
    assert int(found["cycles"]) == 0


def test_a_cycle_is_inconsistent_by_the_closed_form():
    data = Comparisons.from_counts(["a", "b", "c"], ["b", "c", "a"], [90] * 3, [10] * 3)
    found = bf.pl_consistency(bf.fit(data, seed=1), data, seed=1, replicates=100)
    # 1 / (1 + 1/9 + 9) each
    np.testing.assert_allclose(found["top1"], 1 / (1 + 1 / 9 + 9))
    assert float(found["inconsistency"]) == pytest.approx(1 - 3 / (1 + 1 / 9 + 9))
    assert float(found["p_value"]) == pytest.approx(1 / 101)
    assert int(found["cycles"]) == 1


def test_case_37_cycle_of_rankings_is_flagged_where_there_is_enough_of_it():
    orders = [list("abc")] * 40 + [list("bca")] * 40 + [list("cab")] * 40
    data = Comparisons.from_rankings(orders)
    found = bf.pl_consistency(bf.fit(data, seed=1), data, seed=1, replicates=200)
    assert int(found["cycles"]) == 1
    assert float(found["p_value"]) < 0.02


@pytest.mark.statistical
def test_p_values_under_the_model_are_not_small_too_often():
    rng = np.random.default_rng(8)
    nu = np.array([4.0, 2.0, 1.0, 1.0])
    low = 0
    for run in range(60):
        n = rng.integers(10, 30, size=(4, 4))
        wins = np.triu(rng.binomial(n, nu[:, None] / (nu[:, None] + nu)), 1)
        wins = wins + np.triu(n - wins, 1).T
        data = duels_of(wins)
        found = bf.pl_consistency(
            bf.fit(data, seed=run, draws=1000), data, seed=run, replicates=100
        )
        low += float(found["p_value"]) <= 0.1
    # the data are used twice, which makes p-values too large: P(Binomial(60, .1) > 14) < .001
    assert low <= 14


def test_unplayed_pairs_get_the_fits_probability():
    data = Comparisons.from_counts(["a", "b"], ["b", "c"], [60, 60], [40, 40])
    tree = bf.fit(data, seed=1, prior_sd=np.inf)
    found = bf.pl_consistency(tree, data, seed=1, replicates=50)
    # odds 1.5 and 1.5, hence 2.25: consistent
    np.testing.assert_allclose(found["top1"], np.array([2.25, 1.5, 1]) / 4.75, rtol=1e-6)


def test_predicted_wins_are_binomial_at_a_point():
    wins = [[0, 12, 30], [8, 0, 5], [10, 15, 0]]
    data = duels_of(wins)
    tree = bf.fit(data, seed=1, prior_sd=np.inf)
    found = bf.predicted_wins(tree, data, seed=3, replicates=2000)
    worth = np.exp(tree["mode"]["log_worth"].values)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        one = found.isel(item=i, item_other=j)
        n, p = wins[i][j] + wins[j][i], worth[i] / (worth[i] + worth[j])
        assert float(one["observed"]) == wins[i][j]
        # five standard errors of the mean of 2000 replicates
        assert float(one["expected"]) == pytest.approx(
            n * p, abs=5 * (n * p * (1 - p) / 2000) ** 0.5
        )
        low, high = stats.binom.ppf([0.025, 0.975], n, p)
        assert abs(float(one["lower"]) - low) <= 1
        assert abs(float(one["upper"]) - high) <= 1
        tails = stats.binom.cdf(wins[i][j], n, p), stats.binom.sf(wins[i][j] - 1, n, p)
        assert float(one["p_value"]) == pytest.approx(min(1, 2 * min(tails)), abs=0.06)


def test_predicted_wins_of_rankings_keep_the_design():
    data = Comparisons.from_rankings(
        [list("abc"), ["b", "a"], [["a", "b"], "c"], ["c"]], items=list("abcd"), partial="top"
    )
    found = bf.predicted_wins(bf.fit(data, seed=1), data, seed=1, replicates=200)
    drawn = found["expected"].values
    # every replicate has as many decided (and tied) pairs as the data
    total = data.win_matrix() + data.tie_matrix() / 2
    assert drawn.sum() == pytest.approx(total.sum())
    np.testing.assert_allclose(found["observed"], total)


def test_ties_are_replicated():
    data = Comparisons.from_counts(["a"], ["b"], [5], [3], [200])
    found = bf.predicted_wins(bf.fit(data, seed=1), data, seed=1)
    one = found.sel(item="a", item_other="b")
    assert float(one["observed"]) == 105
    assert abs(float(one["expected"]) - 105) < 2
    # eight decided duels among 208: far less spread than 208 coin throws (sd 7.2)
    assert float(one["upper"] - one["lower"]) < 12


def left_out(wins, losses, won):
    """Log predictive probability of one more duel, by quadrature: gap ~ Normal(0, sqrt 2)."""

    def weight(d):
        return np.exp(
            wins * special.log_expit(d) + losses * special.log_expit(-d)
        ) * stats.norm.pdf(d, 0, 2**0.5)

    p = special.expit
    total = integrate.quad(weight, -12, 12)[0]
    hit = integrate.quad(lambda d: weight(d) * p(d if won else -d), -12, 12)[0]
    return np.log(hit / total)


def test_loo_is_the_exact_left_out_density_per_comparison():
    data = Comparisons.from_counts(["a"], ["b"], [7], [3])
    tree = bf.fit(data, seed=1, draws=40_000)
    found = bf.loo(tree, data)
    exact = 7 * left_out(6, 3, True) + 3 * left_out(7, 2, False)
    assert found.n_data_points == 10
    assert found.elpd_i.sizes == {"comparison": 10}
    assert float(found.elpd_i.sum()) == pytest.approx(found.elpd)
    assert found.elpd == pytest.approx(exact, abs=0.01)
    # the cell of seven left out whole would give another number
    assert abs(exact - (7 * left_out(0, 3, True) + 3 * left_out(7, 0, False))) > 1
    # ArviZ on the full pointwise matrix, row by row
    import arviz_stats as az
    import xarray as xr

    gap = tree["posterior"]["log_worth"].sel(item="a") - tree["posterior"]["log_worth"].sel(
        item="b"
    )
    rows = [special.log_expit(gap.values)] * 7 + [special.log_expit(-gap.values)] * 3
    group = xr.Dataset({"y": (("chain", "draw", "obs"), np.stack(rows, axis=-1))})
    whole = xr.DataTree.from_dict(
        {"/posterior": tree["posterior"].to_dataset(), "/log_likelihood": group}
    )
    theirs = az.loo(whole, pointwise=True)
    assert found.elpd == pytest.approx(theirs.elpd, abs=2e-3)
    assert found.se == pytest.approx(theirs.se, abs=2e-3)


def test_loo_of_duels_and_of_the_same_rankings_agree():
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a"), ("a", "b")]
    winner, loser = zip(*pairs, strict=True)
    duels = Comparisons.from_duels(winner, loser)
    rankings = Comparisons.from_rankings(pairs, partial="subset")
    both = [bf.loo(bf.fit(data, seed=1, draws=20_000), data).elpd for data in (duels, rankings)]
    assert both[0] == pytest.approx(both[1], abs=0.03)


@pytest.mark.statistical
def test_compare_finds_the_order_effect_that_is_there():
    n = 60
    data = Comparisons.from_counts(["a", "b"], ["b", "a"], [45, 45], [15, 15], first="left")
    without = bf.fit(data, seed=1, model_options={"order_effect": False})
    fits = {"with": bf.fit(data, seed=1), "without": without}
    table = bf.compare(fits, data)
    assert list(table.index) == ["with", "without"]
    # 2 n (log 2 - H(.75)) is the gain of knowing the effect, less about one parameter
    gain = 2 * n * (np.log(2) + 0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert table.loc["without", "elpd_diff"] == pytest.approx(-gain, abs=2.5)


def test_what_loo_refuses():
    ties = Comparisons.from_counts(["a"], ["b"], [5], [3], [2])
    with pytest.raises(OptionError, match="half a win"):
        bf.loo(bf.fit(ties, model="bradley_terry", ties="half", seed=1), ties)
    davidson = bf.fit(ties, seed=1)
    dropped = bf.fit(ties, model="bradley_terry", ties="drop", seed=1)
    with pytest.raises(OptionError, match="different comparisons"):
        bf.compare({"a": davidson, "b": dropped}, ties)
    other = Comparisons.from_counts(["a"], ["b"], [5], [3])
    with pytest.raises(OptionError, match="Give the fitted data"):
        bf.loo(davidson, other)
    weighted = Comparisons.from_counts(["a"], ["b"], [5.5], [3])
    with pytest.raises(DataError, match="whole numbers"):
        bf.loo(bf.fit(weighted, seed=1), weighted)
    with pytest.raises(OptionError, match="no draws"):
        bf.loo(bf.fit(other, seed=1, prior_sd=np.inf), other)
    with pytest.raises(OptionError, match="give loo"):
        bf.loo(davidson)


# -- influence ---------------------------------------------------------------------------------


def mode_of(wins):
    data = duels_of(wins)
    return bf.fit(data, seed=1, draws=400, method="laplace")["mode"]["log_worth"].values


def test_removing_one_duel_by_weights_agrees_with_a_refit():
    wins = np.array([[0, 8, 9, 7], [6, 0, 9, 8], [3, 4, 0, 6], [4, 4, 5, 0]])
    data = duels_of(wins)
    found = bf.influence(bf.fit(data, seed=1, draws=20_000), data)
    assert found.attrs["leader"] == "a"
    assert float(found["khat"].max()) < 0.7
    for text in ("a > b", "b > a", "c > d"):
        i, j = ord(text[0]) - 97, ord(text[-1]) - 97
        less = wins.copy()
        less[i, j] -= 1
        again = bf.rank_table(bf.fit(duels_of(less), seed=2, draws=20_000))
        one = found.sel(comparison=text)
        lead = float(again["log_worth"].sel(item="a") - again["log_worth"].sel(item="b"))
        # leads have sd .45; two estimates from 20 000 draws each
        assert float(found["lead"] + one["lead_change"]) == pytest.approx(lead, abs=0.025)
        assert float(one["p_rank1"]) == pytest.approx(
            float(again["p_rank1"].sel(item="a")), abs=0.025
        )
    change = found["lead_change"].values
    assert np.all(np.diff(change) >= 0)
    assert found["comparison"].values[0] == "a > b"


def test_smallest_flip_against_all_removals():
    wins = np.array([[0, 3, 2], [2, 0, 3], [1, 1, 0]])
    data = duels_of(wins)
    tree = bf.fit(data, seed=1)
    found = bf.influence(tree, data)
    leader = int(np.argmax(mode_of(wins)))
    assert found.attrs["leader"] == "abc"[leader]
    # the set it names does flip the leader ...
    less = wins.astype(float)
    for entry in range(found.sizes["comparison"]):
        text = str(found["comparison"].values[entry])
        less[ord(text[0]) - 97, ord(text[-1]) - 97] -= float(found["flip_removed"][entry])
    assert int(np.argmax(mode_of(less))) == "abc".index(found.attrs["flip_to"])
    assert found.attrs["flip_to"] != found.attrs["leader"]
    assert float(found["flip_removed"].sum()) == float(found["flip_n"])
    # ... and no smaller one does, by trying them all
    cells = np.argwhere(wins > 0)
    smallest = min(
        sum(take)
        for take in product(*[range(wins[i, j] + 1) for i, j in cells])
        if 0 < sum(take) < wins.sum()
        and sum(take) <= float(found["flip_n"])
        and flips(wins, cells, take, leader)
    )
    assert float(found["flip_n"]) == smallest


def flips(wins, cells, take, leader):
    less = wins.copy()
    for (i, j), n in zip(cells, take, strict=True):
        less[i, j] -= n
    return bool((less + less.T).any()) and int(np.argmax(mode_of(less))) != leader


def test_items_whose_removal_changes_the_top():
    # b leads only because of its many wins over d
    wins = np.array([[0, 6, 5, 3], [5, 0, 5, 30], [4, 5, 0, 6], [3, 1, 5, 0]])
    data = duels_of(wins)
    found = bf.influence(bf.fit(data, seed=1), data)
    assert found.attrs["leader"] == "b"
    for item in "abcd":
        keep = [i for i in "abcd" if i != item]
        index = [ord(i) - 97 for i in keep]
        expected = keep[int(np.argmax(mode_of(wins[np.ix_(index, index)])))]
        assert str(found["top_without"].sel(item=item).values) == expected
    assert str(found["top_without"].sel(item="d").values) == "a"


def test_influence_of_rankings_and_ties():
    rankings = Comparisons.from_rankings([list("abc")] * 5 + [list("bac")] * 4 + [list("cba")])
    found = bf.influence(bf.fit(rankings, seed=1), rankings)
    assert "a > b > c" in found["comparison"].values
    assert {found.attrs["leader"], found.attrs["runner_up"]} == {"a", "b"}
    assert 0 < float(found["flip_n"]) <= 2
    ties = Comparisons.from_counts(["a"], ["b"], [5], [3], [4])
    assert "a = b" in bf.influence(bf.fit(ties, seed=1), ties)["comparison"].values
    with pytest.raises(OptionError, match="finite prior"):
        bf.influence(bf.fit(ties, seed=1, prior_sd=np.inf), ties)
