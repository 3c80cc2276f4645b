"""Tables of items against brute force over draws, closed forms and published values."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import integrate, stats

import bayesfair as bf
from bayesfair import examples
from bayesfair.comparisons import Comparisons
from bayesfair.errors import ArmError, BayesfairWarning, OptionError
from bayesfair.ranking.table import _tiers

REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "plackett_luce.json"
SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")


def tree_of(log_worth, *, island=None, model="bradley_terry", **extra):
    """Return a fit as rank functions see one, with given draws."""
    log_worth = np.asarray(log_worth, dtype=float)
    log_worth = log_worth - log_worth.mean(axis=1, keepdims=True)
    k = log_worth.shape[1]
    items = [chr(97 + i) for i in range(k)]
    worth = np.exp(log_worth) / np.exp(log_worth).sum(axis=1, keepdims=True)
    posterior = xr.Dataset(
        {
            "log_worth": (("chain", "draw", "item"), log_worth[None]),
            "worth": (("chain", "draw", "item"), worth[None]),
            **{name: (("chain", "draw"), np.asarray(v, float)[None]) for name, v in extra.items()},
        },
        coords={"item": items},
    )
    island = np.zeros(k, int) if island is None else np.asarray(island)
    data = xr.Dataset(
        {"n": ("item", np.ones(k)), "n_wins": ("item", np.ones(k)), "island": ("item", island)},
        coords={"item": items},
    )
    tree = xr.DataTree.from_dict({"/posterior": posterior, "/constant_data": data})
    tree.attrs["model"] = model
    return tree


def test_ranks_tiers_and_p_rank1_match_loops_over_draws():
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(201, 6)) + np.array([2.0, 1.9, 0.3, 0.0, -3.0, -3.1])
    table = bf.rank_table(tree_of(draws), tier_probability=0.9)
    names = table["item"].values.tolist()
    column = {name: ord(name) - 97 for name in names}
    assert np.all(np.diff(table["worth"].values) <= 0)
    for name in names:
        i = column[name]
        ranks = np.sort([1 + sum(row[j] > row[i] for j in range(6)) for row in draws])
        assert float(table["rank_mean"].sel(item=name)) == pytest.approx(ranks.mean())
        assert float(table["p_rank1"].sel(item=name)) == pytest.approx((ranks == 1).mean())
        # the smallest value with at least 2.5 % (97.5 %) of the draws up to it
        assert float(table["rank_lower"].sel(item=name)) == ranks[int(np.ceil(0.025 * 201)) - 1]
        assert float(table["rank_upper"].sel(item=name)) == ranks[int(np.ceil(0.975 * 201)) - 1]
        better = sum((draws[:, j] > draws[:, i]).mean() >= 0.9 for j in range(6) if j != i)
        assert float(table["rank_shared"].sel(item=name)) == 1 + better
    # a tier ends where all above are told apart from all below
    tier, current = [], 1
    for m, _ in enumerate(names):
        above, below = names[:m], names[m:]
        apart = above and all(
            (draws[:, column[a]] > draws[:, column[b]]).mean() >= 0.9 for a in above for b in below
        )
        current += bool(apart)
        tier.append(current)
    assert table["tier"].values.tolist() == tier
    assert max(tier) > 1


def test_rank_probability_matches_counting_and_its_margins():
    rng = np.random.default_rng(4)
    draws = rng.normal(size=(150, 5))
    found = bf.rank_probability(tree_of(draws))
    np.testing.assert_allclose(found.sum("rank"), 1)
    np.testing.assert_allclose(found.sum("item"), 1)
    for i, item in enumerate("abcde"):
        place = [sorted(row, reverse=True).index(row[i]) + 1 for row in draws]
        for rank in range(1, 6):
            assert float(found.sel(item=item, rank=rank)) == pytest.approx(place.count(rank) / 150)


def test_case_88_shared_ranks_not_a_strict_order():
    wins = [[0, 50, 90], [50, 0, 90], [10, 10, 0]]
    tree = bf.fit(Comparisons.from_win_matrix(wins, ["a", "b", "c"]), seed=2)
    table = bf.rank_table(tree)
    assert table["rank_shared"].sel(item=["a", "b", "c"]).values.tolist() == [1, 1, 3]
    assert table["tier"].sel(item=["a", "b", "c"]).values.tolist() == [1, 1, 2]
    # 4000 independent draws: standard error .008
    np.testing.assert_allclose(table["p_rank1"].sel(item=["a", "b", "c"]), [0.5, 0.5, 0], atol=0.04)
    assert table.attrs["direction"] == "rank 1 = best"


def test_case_1_and_22_declared_items_without_data_are_last_and_unranked():
    pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    winner, loser = zip(*pairs, strict=True)
    duels = Comparisons.from_duels(winner, loser, items=list("abcdef"))
    tree = bf.fit(duels, seed=1)
    table = bf.rank_table(tree)
    assert table["item"].values.tolist()[:4] == list("abcd")
    rest = table.sel(item=["e", "f"])
    for name in ("rank_mean", "rank_lower", "p_rank1", "rank_shared"):
        assert np.isnan(rest[name]).all()
    assert rest["island"].values.tolist() == [-1, -1]
    assert "2 items without data" in table.attrs["notice"]
    assert float(table["p_rank1"].sum()) == pytest.approx(1)
    assert np.isnan(bf.rank_probability(tree).sel(item="e")).all()
    pairs = bf.win_probability(tree)
    assert not pairs["linked"].sel(item="a", item_other="e")
    assert pairs["linked"].sel(item="a", item_other="d")


def test_islands_are_flagged_and_never_told_apart():
    draws = np.random.default_rng(0).normal(size=(100, 4))
    draws += np.array([50.0, 40.0, -40.0, -50.0])
    table = bf.rank_table(tree_of(draws, island=[0, 0, 1, 1]))
    assert table["rank_shared"].values.tolist() == [1, 2, 1, 2]
    assert table["tier"].values.tolist() == [1, 1, 1, 1]
    assert "2 islands" in table.attrs["notice"]
    for found in (bf.win_probability, bf.rank_probability):
        assert "2 islands" in found(tree_of(draws, island=[0, 0, 1, 1])).attrs["notice"]


def test_tiers_of_nothing_and_of_a_chain():
    assert _tiers(np.zeros((0, 0), bool)).tolist() == []
    chain = np.triu(np.ones((4, 4), bool), 2)  # only neighbours are alike
    assert _tiers(chain).tolist() == [1, 1, 1, 1]
    assert _tiers(np.triu(np.ones((4, 4), bool), 1)).tolist() == [1, 2, 3, 4]


def normal_gap(wins, losses):
    """Mean and sd of the gap, P(win) and P(gap > 0), by quadrature: two N(0, 1) log-worths."""

    def weight(d):
        return np.exp(wins * d - (wins + losses) * np.logaddexp(0, d)) * stats.norm.pdf(
            d, 0, 2**0.5
        )

    def mean(f):
        return integrate.quad(lambda d: f(d) * weight(d), -12, 12, limit=200)[0]

    total = mean(lambda d: 1.0)
    first = mean(lambda d: d) / total
    sd = np.sqrt(mean(lambda d: d * d) / total - first**2)
    above = integrate.quad(weight, 0, 12, limit=200)[0] / total
    return first, sd, mean(lambda d: 1 / (1 + np.exp(-d))) / total, above


@pytest.mark.parametrize(
    ("wins", "published"), [(5, (1.7839, 0.9497, 0.8216)), (1, (0.7263, 1.2134, 0.6368))]
)
def test_case_19_separation_is_shrunk_and_win_probability_is_not_p_better(wins, published):
    np.testing.assert_allclose(normal_gap(wins, 0)[:3], published, atol=6e-5)
    tree = bf.fit(Comparisons.from_counts(["a"], ["b"], [wins], [0]), seed=5, draws=40_000)
    pair = bf.win_probability(tree).sel(item="a", item_other="b")
    gap = tree["posterior"]["log_worth"].sel(item="a") - tree["posterior"]["log_worth"].sel(
        item="b"
    )
    # 40 000 weighted draws: five standard errors of the mean
    assert float(gap.mean()) == pytest.approx(published[0], abs=5 * published[1] / 150)
    assert float(pair["p_beats"]) == pytest.approx(published[2], abs=0.006)
    # the standard error of a share is at most .0033 for 22 500 effective draws
    assert float(pair["p_better"]) == pytest.approx(normal_gap(wins, 0)[3], abs=0.016)


def test_reference_pairwise_and_worths():
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))
    checked = 0
    for model in reference["models"]:
        nu = np.array(model["nu"]["float"])
        pairs = bf.win_probability(tree_of(np.log(nu)[None]))
        expected = np.array([row["float"] for row in model["pairwise"]])
        found = pairs["p_beats"].values
        off = ~np.eye(len(nu), dtype=bool)
        np.testing.assert_allclose(found[off], expected[off], atol=1e-12)
        worth = bf.rank_table(tree_of(np.log(nu)[None, :].repeat(2, axis=0)))["worth"]
        top1 = worth.sel(item=[chr(97 + i) for i in range(len(nu))])
        np.testing.assert_allclose(top1, model["top1"]["float"], atol=1e-12)
        checked += 1
    assert checked >= 3


def test_davidson_and_order_effect_enter_predictions():
    log_worth = np.log([[5.0, 3.0]])
    tree = tree_of(log_worth, model="davidson", log_tie=[np.log(2 / 15**0.5)])
    pair = bf.win_probability(tree).sel(item="a", item_other="b")
    # case 25: 5 wins, 3 losses, 2 ties of 10
    assert [float(pair["p_beats"]), float(pair["p_tie"])] == pytest.approx([0.5, 0.2])
    tree = tree_of([[0.0, 0.0]], order_effect=[np.log(1.5)])
    home = bf.win_probability(tree, first="item").sel(item="a", item_other="b")
    away = bf.win_probability(tree, first="item_other").sel(item="a", item_other="b")
    # case 91: the one shown first wins 6 of 10
    assert [float(home["p_beats"]), float(away["p_beats"])] == pytest.approx([0.6, 0.4])
    with pytest.raises(OptionError, match="no order effect"):
        bf.win_probability(tree_of([[0.0, 0.0]]), first="item")


def baseball(**options):
    return bf.read_comparisons(
        examples.path("baseball"), left="home", right="away", wins=("home_wins", "away_wins"),
        **options,
    )  # fmt: skip


def test_case_76_worths_of_baseball_are_p_star():
    tree = bf.fit(baseball(), seed=1, prior_sd=np.inf)
    table = bf.rank_table(tree)
    published = {"Milwaukee": 0.2189, "Detroit": 0.1894, "Toronto": 0.1643, "New York": 0.1568,
                 "Boston": 0.1363, "Cleveland": 0.0892, "Baltimore": 0.0450}  # fmt: skip
    assert table["item"].values.tolist() == list(published)
    np.testing.assert_allclose(table["worth"], list(published.values()), atol=6e-5)
    assert np.isnan(table["p_rank1"]).all()


def test_bundled_baseball_is_agresti_s_table():
    tree = bf.fit(baseball(first="left"), seed=1, prior_sd=np.inf, reference="Baltimore")
    mode = tree["mode"].to_dataset()
    published = {"Boston": (1.143803, 0.337842), "Cleveland": (0.704694, 0.335001),
                 "Detroit": (1.475357, 0.344552), "Milwaukee": (1.619555, 0.347365),
                 "New York": (1.281340, 0.340403), "Toronto": (1.327110, 0.340322)}  # fmt: skip
    for team, (gap, error) in published.items():
        one = mode.sel(item=team)
        assert float(one["log_worth_relative"]) == pytest.approx(gap, abs=2e-6)
        assert float(one["standard_error_relative"]) == pytest.approx(error, abs=5e-6)
    assert float(mode["order_effect"]) == pytest.approx(0.302, abs=5e-4)
    assert float(mode["order_effect_standard_error"]) == pytest.approx(0.131, abs=5e-4)


def test_ml_intervals_of_worths_are_complementary():
    # of two items the worth is the logistic function of the gap, whose error is known
    tree = bf.fit(Comparisons.from_counts(["a"], ["b"], [7], [3]), seed=1, prior_sd=np.inf)
    table = bf.rank_table(tree)
    a, b = table.sel(item="a"), table.sel(item="b")
    gap, z = np.log(7 / 3), stats.norm.ppf(0.975)
    spread = z * np.sqrt(1 / 7 + 1 / 3)
    assert float(a["worth_lower"]) == pytest.approx(1 / (1 + np.exp(spread - gap)))
    assert float(a["worth_upper"]) == pytest.approx(1 / (1 + np.exp(-spread - gap)))
    assert float(a["worth_upper"]) == pytest.approx(1 - float(b["worth_lower"]), abs=1e-12)
    assert float(a["worth_lower"]) == pytest.approx(1 - float(b["worth_upper"]), abs=1e-12)


def test_ml_intervals_of_worths_are_never_cut():
    sure = Comparisons.from_counts(["a"], ["b"], [60], [1])
    table = bf.rank_table(bf.fit(sure, seed=1, prior_sd=np.inf))
    assert (table["worth_lower"] > 0).all() and (table["worth_upper"] < 1).all()
    few = Comparisons.from_counts(list("aab"), list("bcc"), [3, 4, 2], [1, 1, 2])
    tree = bf.fit(few, seed=1, prior_sd=np.inf)
    table = bf.rank_table(tree).sel(item=list("abc"))
    assert (table["worth_upper"] < 1).all()
    # logit of a worth by differences, against the covariance of the estimate
    mode = tree["mode"].to_dataset()
    theta, covariance = mode["log_worth"].values, mode["covariance"].values

    def logit_worth(x):
        share = np.exp(x) / np.exp(x).sum()
        return np.log(share / (1 - share))

    slope = np.stack([(logit_worth(theta + h) - logit_worth(theta - h)) / 2e-6
                      for h in 1e-6 * np.eye(3)], axis=1)  # fmt: skip
    spread = 1.959963984540054 * np.sqrt(np.diag(slope @ covariance @ slope.T))
    expected = 1 / (1 + np.exp(-logit_worth(theta) - spread))
    np.testing.assert_allclose(table["worth_upper"], expected, rtol=1e-6)


def test_ml_intervals_of_thurstone_worths_are_those_of_the_gap():
    tree = bf.fit(
        Comparisons.from_counts(["a"], ["b"], [7], [3]), model="thurstone", seed=1, prior_sd=np.inf,
        reference="b",
    )  # fmt: skip
    table = bf.rank_table(tree).sel(item="a")
    # worth = Phi(gap); its logit has slope phi / (Phi (1 - Phi)) in the gap
    error = float(tree["mode"]["standard_error_relative"].sel(item="a"))
    slope = stats.norm.pdf(stats.norm.ppf(0.7)) / (0.7 * 0.3)
    end = np.log(7 / 3) + stats.norm.ppf(0.975) * slope * error
    assert float(table["worth"]) == pytest.approx(0.7, abs=1e-6)
    assert float(table["worth_upper"]) == pytest.approx(1 / (1 + np.exp(-end)), abs=1e-5)


@needs_shared
def test_case_89_anchoring_moves_everything_and_widens_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesfairWarning)  # self-citations are dropped
        data = bf.read_comparisons(
            SHARED / "citations.csv", winner="cited", loser="citing", weight="count"
        )
    tree = bf.fit(data, seed=1, prior_sd=np.inf)
    plain = bf.rank_table(tree)
    errors = {"Biometrika": 0.0433, "Comm Statist": 0.0726, "JASA": 0.0416, "JRSS-B": 0.0530}
    for name, error in errors.items():
        assert float(plain["log_worth_sd"].sel(item=name)) == pytest.approx(error, abs=6e-5)
    for anchor in ("JASA", "Biometrika"):
        moved = bf.rank_table(tree, anchor=anchor)
        assert float(moved["log_worth"].sel(item=anchor)) == 0
        shift = moved["log_worth"] - plain["log_worth"]
        np.testing.assert_allclose(shift, shift[0])
        width = moved["log_worth_upper"] - moved["log_worth_lower"]
        np.testing.assert_allclose(width, plain["log_worth_upper"] - plain["log_worth_lower"])
    gap = moved["log_worth"].sel(item=["Comm Statist", "JASA", "JRSS-B"])
    np.testing.assert_allclose(gap, [-2.949072, -0.479570, 0.268954], atol=2e-6)
    with pytest.raises(ArmError, match="Did you mean 'JASA'"):
        bf.rank_table(tree, anchor="JAS")


@needs_shared
def test_quasi_standard_errors_of_pudding():
    data = bf.read_comparisons(
        SHARED / "pudding.csv", left="i", right="j", wins=("w_ij", "w_ji", "t_ij")
    )
    tree = bf.fit(data, seed=1, prior_sd=np.inf)
    found = bf.quasi_standard_errors(tree)
    published = [0.1329, 0.1327, 0.1396, 0.1330, 0.1399, 0.1392]
    np.testing.assert_allclose(found.sel(item=list("123456")), published, atol=6e-5)
    assert found.attrs["largest_relative_error"] < 0.01


@needs_shared
def test_case_13_broken_rankings_warn_and_are_too_sure():
    rankings = bf.read_comparisons(SHARED / "netflix.soc")
    with pytest.warns(BayesfairWarning, match="too small"):
        pairs = rankings.to_duels()
    published = {"Beverly Hills Cop": (0.6521, 0.0623), "The Mummy Returns": (-0.2860, 0.0601),
                 "Mission: Impossible II": (-0.5278, 0.0610)}  # fmt: skip
    mode = bf.fit(pairs, seed=1, prior_sd=np.inf, reference="Mean Girls")["mode"].to_dataset()
    whole = bf.fit(rankings, seed=1, prior_sd=np.inf, reference="Mean Girls")["mode"].to_dataset()
    for name, (gap, error) in published.items():
        assert float(mode["log_worth_relative"].sel(item=name)) == pytest.approx(gap, abs=6e-5)
        found = float(mode["standard_error_relative"].sel(item=name))
        assert found == pytest.approx(error, abs=6e-5)
        assert found < float(whole["standard_error_relative"].sel(item=name))
    assert any("broken into pairs" in text for text in pairs.notices)


def test_case_37_cycle_gives_equal_worths():
    rankings = Comparisons.from_rankings([list("abc"), list("bca"), list("cab")])
    table = bf.rank_table(bf.fit(rankings, seed=1, prior_sd=np.inf))
    np.testing.assert_allclose(table["worth"], 1 / 3)
    assert set(table["tier"].values.tolist()) == {1}


def test_wins_are_first_places_alone():
    rankings = Comparisons.from_rankings([["a", "b"], [["a", "b"], "c"]], partial="subset")
    table = bf.rank_table(bf.fit(rankings, seed=1))
    assert {str(i): float(table["n_wins"].sel(item=i)) for i in "abc"} == {"a": 1, "b": 0, "c": 0}
    assert {str(i): float(table["n"].sel(item=i)) for i in "abc"} == {"a": 2, "b": 2, "c": 1}


def test_what_cannot_be_had_is_said():
    duels = Comparisons.from_counts(["a"], ["b"], [7], [3])
    ml = bf.fit(duels, seed=1, prior_sd=np.inf)
    with pytest.raises(OptionError, match="no posterior of ranks"):
        bf.rank_probability(ml)
    with pytest.raises(OptionError, match="at least three items"):
        bf.quasi_standard_errors(ml)
    history = bf.fit(bf.History(["a", "b"], [1, 0]), seed=1)
    with pytest.raises(OptionError, match="no log_worth"):
        bf.rank_table(history)
    with pytest.raises(OptionError, match="tier_probability"):
        bf.rank_table(ml, tier_probability=0.4)
