"""Where the objective is no likelihood, errors are those of a bootstrap, and posteriors say so."""

import numpy as np
import pytest
from comparison_tools import mle
from scipy.special import expit

import bayesfair as bf
from bayesfair.base.notices import notices_from_json
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError
from bayesfair.ranking import fit_summary

ITEMS = list("abcd")
PAIRS = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
WORTH = np.array([0.6, 0.2, -0.1, -0.7])


def estimates(score, total):
    """Bradley-Terry by Newton for many data sets at once, ``(n, 4)``.

    `score`, `total`: points of the first of each pair, and duels, ``(n, 6)``.
    """
    design = np.zeros((6, 4))
    design[np.arange(6), PAIRS[:, 0]], design[np.arange(6), PAIRS[:, 1]] = 1, -1
    theta = np.zeros((len(score), 4))
    for _ in range(8):
        p = expit(theta @ design.T)
        slope = (score - total * p) @ design
        weight = total * p * (1 - p)
        curvature = np.einsum("nc,ci,cj->nij", weight, design, design) + 1.0  # sum is pinned
        theta += np.linalg.solve(curvature, slope[..., None])[..., 0]
    return theta - theta.mean(axis=1, keepdims=True)


def counted(ties, seed):
    """1000 duels of four items: wins of the first, of the second, ties, ``(3, 6)``."""
    rng = np.random.default_rng(seed)
    p = (1 - ties) * expit(WORTH[PAIRS[:, 0]] - WORTH[PAIRS[:, 1]])
    law = np.stack([p, 1 - ties - p, np.full(6, ties)]) / 6
    return rng.multinomial(1000, law.ravel()).reshape(3, 6)


@pytest.mark.parametrize("ties", [0.0, 0.3, 0.6])
def test_errors_with_half_ties_are_those_of_4000_bootstrap_fits(ties):
    counts = counted(ties, seed=2)
    names = np.array(ITEMS)[PAIRS]
    data = Comparisons.from_counts(names[:, 0], names[:, 1], *counts)
    mode = mle(data, ties="half", model="bradley_terry")
    rng = np.random.default_rng(3)
    again = rng.multinomial(1000, counts.ravel() / 1000, size=4000).reshape(4000, 3, 6)
    found = estimates(again[:, 0] + again[:, 2] / 2, again.sum(axis=1))
    np.testing.assert_allclose(mode["standard_error"], found.std(axis=0), rtol=0.05)
    gaps = found[:, :, None] - found[:, None, :]
    covariance = mode["covariance"].values
    variance = np.diag(covariance)
    error = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0))
    np.testing.assert_allclose(error, gaps.std(axis=0), rtol=0.05, atol=1e-8)
    # a tempered posterior has the same spread, here under a weak prior
    tree = bf.fit(data, ties="half", model="bradley_terry", prior_sd=10, seed=1)
    spread = tree["posterior"]["log_worth"].std(("chain", "draw"))
    np.testing.assert_allclose(spread, found.std(axis=0), rtol=0.1)
    assert ("power" in tree.attrs) == (ties > 0)
    if ties:
        assert tree.attrs["power"] == pytest.approx(1 / (1 - ties), rel=0.1)


@pytest.mark.parametrize("model", ["bradley_terry", "plackett_luce"])
def test_half_ties_of_two_items_by_hand(model):
    data = Comparisons.from_counts(["a"], ["b"], [30], [30], [40])
    found = mle(data, model=model, ties="half", reference="b")
    error = float(found["standard_error_relative"].sel(item="a"))
    assert (
        error == pytest.approx(np.sqrt(60 * 0.25) / 25, abs=1e-9) == pytest.approx(0.1549, abs=5e-5)
    )
    tree = bf.fit(data, model=model, ties="half", prior_sd=50, seed=1)
    # 60 decided duels; the correction for the fitted parameter is 1 part in 100
    assert tree.attrs["power"] == pytest.approx(0.99 * 100 / 60, rel=1e-3)
    gap = tree["posterior"]["log_worth"].sel(item="a") - tree["posterior"]["log_worth"].sel(
        item="b"
    )
    assert float(gap.std()) == pytest.approx(0.1549, rel=0.05)


def test_ties_alone_leave_no_uncertainty_and_no_posterior():
    data = Comparisons.from_counts(["a"], ["b"], [0], [0], [100])
    found = mle(data, ties="half", model="bradley_terry", reference="b")
    assert float(found["standard_error_relative"].sel(item="a")) == pytest.approx(0, abs=1e-12)
    with pytest.raises(DataError, match="there is no posterior here: ties are counted as half"):
        bf.fit(data, ties="half", model="bradley_terry", seed=1)
    # Davidson's model has a likelihood for them
    assert "power" not in bf.fit(data, seed=1).attrs


def test_decay_weights_have_the_errors_of_a_weighted_estimate():
    rng = np.random.default_rng(8)
    weight = 0.5 ** (rng.uniform(0, 90, 400) / 30)
    won = np.where(rng.random(400) < 0.5, "a", "b")
    lost = np.where(won == "a", "b", "a")
    data = Comparisons.from_duels(won, lost, weight=weight)
    found = mle(data, reference="b")
    share = weight[won == "a"].sum() / weight.sum()
    # the gap is the logit of a weighted mean
    score = weight * ((won == "a") - share)
    by_hand = np.sqrt((score**2).sum()) / (weight.sum() * share * (1 - share))
    error = float(found["standard_error_relative"].sel(item="a"))
    assert error == pytest.approx(by_hand, rel=1e-9)
    # resampled duel by duel
    pick = rng.integers(400, size=(4000, 400))
    top = np.where(won[pick] == "a", weight[pick], 0).sum(axis=1) / weight[pick].sum(axis=1)
    assert error == pytest.approx(np.log(top / (1 - top)).std(), rel=0.05)
    tree = bf.fit(data, prior_sd=50, seed=1)
    assert tree.attrs["power"] == pytest.approx(weight.sum() / (weight**2).sum(), rel=0.05)
    gap = tree["posterior"]["log_worth"].sel(item="a") - tree["posterior"]["log_worth"].sel(
        item="b"
    )
    assert float(gap.std()) == pytest.approx(by_hand, rel=0.05)


def test_weights_of_one_size_say_nothing_of_the_size():
    # 2.5 for every duel is no 2.5 duels: errors and posterior are those of the duels
    won, lost = list("ab" * 30 + "aaaa"), list("ba" * 30 + "bbbb")
    plain = Comparisons.from_duels(won, lost)
    weighed = Comparisons.from_duels(won, lost, weight=[2.5] * 64)
    error = [float(mle(d)["standard_error"][0]) for d in (plain, weighed)]
    assert error[0] == pytest.approx(error[1], rel=1e-9)
    draws = [bf.fit(d, seed=1)["posterior"]["log_worth"].sel(item="a") for d in (plain, weighed)]
    assert float(draws[0].std()) == pytest.approx(float(draws[1].std()), rel=0.03)
    whole = Comparisons.from_duels(won, lost, weight=[2] * 64)
    assert whole.square is None and weighed.square.tolist() == pytest.approx([34 * 6.25, 30 * 6.25])


def test_weighted_choices_and_rankings_have_sandwich_errors():
    rng = np.random.default_rng(9)
    utility = WORTH + rng.gumbel(size=(300, 4))
    orders = [[ITEMS[i] for i in row] for row in np.argsort(-utility, axis=1)]
    weight = rng.uniform(0.1, 1.9, 300)
    data = Comparisons.from_rankings(orders, weight=weight)
    found = mle(data)
    lam = found["log_worth"].values
    # scores and curvature of every ranking, written out
    outer, curvature = np.zeros((2, 4, 4))
    for row, w in zip(np.argsort(-utility, axis=1), weight, strict=True):
        score = np.zeros(4)
        for p in range(3):
            rest = row[p:]
            share = np.zeros(4)
            share[rest] = np.exp(lam[rest]) / np.exp(lam[rest]).sum()
            score += np.eye(4)[row[p]] - share
            curvature += w * (np.diag(share) - np.outer(share, share))
        outer += w**2 * np.outer(score, score)
    inverse = np.linalg.pinv(curvature)
    expected = inverse @ outer @ inverse
    np.testing.assert_allclose(found["covariance"], expected, atol=1e-8)
    picked = [order[0] for order in orders]
    choices = Comparisons.from_choices(picked, [ITEMS] * 300, weight=weight)
    table = np.array([weight[[c == i for c in picked]].sum() for i in ITEMS]) / weight.sum()
    score = weight[:, None] * (np.array([[c == i for i in ITEMS] for c in picked]) - table)
    inverse = np.linalg.pinv(weight.sum() * (np.diag(table) - np.outer(table, table)))
    np.testing.assert_allclose(
        mle(choices)["covariance"], inverse @ (score.T @ score) @ inverse, atol=1e-8
    )


def test_shared_places_averaged_over_orders_are_half_ties_too():
    # of two items a shared place is half a win each
    ranked = Comparisons.from_rankings(
        [["a", "b"]] * 30 + [["b", "a"]] * 30 + [[["a", "b"]]] * 40, last_tie="tie"
    )
    found = mle(ranked, reference="b")
    assert float(found["standard_error_relative"].sel(item="a")) == pytest.approx(0.15492, abs=1e-5)
    rng = np.random.default_rng(5)
    utility = np.round((WORTH + rng.gumbel(size=(250, 4))) / 2)
    data = Comparisons.from_rankings(
        ranks=utility, items=ITEMS, lowest_is_best=False, last_tie="tie"
    )
    assert data.n_ties > 150
    error = mle(data)["standard_error"].values
    boot = np.empty((100, 4))
    for b in range(100):
        again = data.with_counts(rng.multinomial(250, data.count / 250).astype(float))
        boot[b] = mle(again)["log_worth"]
    np.testing.assert_allclose(error, boot.std(axis=0), rtol=0.25)  # 100 fits: 7 % each
    tree = bf.fit(data, seed=1)
    assert tree.attrs["power"] > 1.2
    spread = tree["posterior"]["log_worth"].std(("chain", "draw"))
    np.testing.assert_allclose(spread, error, rtol=0.15)


def test_too_few_comparisons_for_a_sandwich_get_errors_that_are_rather_too_large():
    # one ranking with a tie: nothing can be said of how rankings vary
    ranked = Comparisons.from_rankings([["a", ["b", "c"], "d"]])
    tree = bf.fit(ranked, seed=1)
    assert tree.attrs["power"] == 1.0 and "rather too wide" in tree.attrs["notices"]
    assert "tempered to the power 1" in bf.rank_table(tree).attrs["interval"]
    few = Comparisons.from_counts(["a"], ["b"], [3], [2], [2])
    mode = mle(few, ties="half", model="bradley_terry", reference="b")
    # 4 : 3 of seven duels, as if they were decided
    by_hand = np.sqrt(1 / 4 + 1 / 3)
    assert float(mode["standard_error_relative"].sel(item="a")) == pytest.approx(by_hand)
    # weights above 1 are never taken for several comparisons
    heavy = Comparisons.from_duels(list("abab"), list("baba"), weight=[2.5] * 4)
    plain = Comparisons.from_duels(list("abab"), list("baba"))
    errors = [float(mle(d)["standard_error"][0]) for d in (heavy, plain)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    assert bf.fit(heavy, seed=1).attrs["power"] == pytest.approx(1 / 2.5)


def test_what_is_no_likelihood_is_named_wherever_it_is_shown():
    data = Comparisons.from_counts(["a", "b"], ["b", "c"], [18, 16], [14, 15], [13, 19])
    named = {"model": "bradley_terry", "ties": "half"}
    sampled, best = bf.fit(data, seed=1, **named), bf.fit(data, seed=1, prior_sd=np.inf, **named)
    for tree, word in ((sampled, "tempered"), (best, "robust")):
        said = {note.kind: str(note) for note in notices_from_json(tree.attrs["notices"])}
        assert word in said["half_ties"]
        assert word in bf.rank_table(tree).attrs["interval"]
        assert any(word in text for text in fit_summary(tree, data)["notices"])
    assert bf.rank_table(bf.fit(data, seed=1)).attrs["interval"] == "equal-tailed 95 %"


def test_influence_of_a_tempered_fit_refits_the_tempered_one():
    rng = np.random.default_rng(4)
    weight = rng.uniform(0.2, 1.0, 120)
    left, right = rng.integers(4, size=(2, 120))
    keep = left != right
    names = np.array(ITEMS)
    won = np.where(rng.random(120) < expit(WORTH[left] - WORTH[right]), "left", "right")
    data = Comparisons.from_duels(
        names[left][keep], names[right][keep], won[keep], weight=weight[keep]
    )
    tree = bf.fit(data, seed=1)
    found = bf.influence(tree, data)
    assert tree.attrs["power"] != 1.0 and found.attrs["flip_to"] in {*ITEMS, ""}


def test_consistency_is_judged_against_data_with_as_many_ties():
    # many ties: without them the pairs would vary more than they do
    data = Comparisons.from_counts(list("aab"), list("bcc"), [9, 9, 8], [8, 7, 9], [83, 84, 83])
    tree = bf.fit(data, model="bradley_terry", ties="half", seed=1)
    pairs = bf.predicted_wins(tree, data, seed=1)
    # 17 decided duels: a standard deviation of sqrt(17) / 2, and that of the worths
    width = (pairs["upper"] - pairs["lower"]).sel(item="a", item_other="b")
    assert 3.92 * np.sqrt(17) / 2 * 0.9 < float(width) < 3.92 * np.sqrt(17) / 2 * 1.6
    assert float(pairs["expected"].sel(item="a", item_other="b")) == pytest.approx(50.3, abs=0.8)
    weighed = Comparisons.from_duels(["a", "b"] * 9, ["b", "a"] * 9, weight=[0.4, 0.7] * 9)
    with pytest.raises(DataError, match="do not count them"):
        bf.pl_consistency(bf.fit(weighed, seed=1), weighed, seed=1)
