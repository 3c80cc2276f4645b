"""Beliefs before a round are modes of the fit's own model, against Newton-free scipy modes."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import bayesfair as bf
from bayesfair.audit.duels.beliefs import beliefs_at, checkpoints, options_of
from bayesfair.comparisons import Comparisons, DuelLog
from bayesfair.errors import OptionError


def mode(left, right, outcome, k, *, prior_sd, order_sd=None, tie_sd=None, slopes=None):
    """Return log-worths that maximise the posterior of Bradley-Terry or Davidson, by BFGS.

    outcome: 0 left, 1 right, 2 tie; the left item has the order effect; slopes: (sd, (k, C)).
    """
    count = np.zeros((3, k, k))
    np.add.at(count, (outcome, left, right), 1)
    z = np.zeros((k, 0)) if slopes is None else slopes[1]
    sds = [prior_sd] * k + [1.0 if slopes is None else slopes[0]] * z.shape[1]
    sds += [order_sd] * bool(order_sd) + [tie_sd] * bool(tie_sd)
    at = k + z.shape[1]

    def minus_log_posterior(theta):
        worth = theta[:k] + z @ theta[k:at]
        eta = worth[:, None] - worth + (theta[at] if order_sd else 0.0)
        tie = np.full((k, k), theta[-1]) if tie_sd else np.full((k, k), -1e9)
        parts = np.stack([eta / 2, -eta / 2, tie])
        total = logsumexp(parts, axis=0)
        n = count.sum(axis=0)
        value = np.sum((theta / sds) ** 2) / 2 + (n * total).sum() - (count * parts).sum()
        surplus = n * np.exp(parts - total) - count
        by_eta = (surplus[0] - surplus[1]) / 2
        by_worth = by_eta.sum(axis=1) - by_eta.sum(axis=0)
        slope = [by_worth, z.T @ by_worth]
        slope += [[by_eta.sum()]] * bool(order_sd) + [[surplus[2].sum()]] * bool(tie_sd)
        return value, np.concatenate(slope) + theta / np.square(sds)

    start = np.zeros(len(sds))
    best = minimize(minus_log_posterior, start, jac=True, method="BFGS", options={"gtol": 1e-8})
    return best.x[:k] + z @ best.x[k:at]


def shares(log_worth):
    return np.exp(log_worth - logsumexp(log_worth))


def names_of(codes):
    return np.array(list("abcdefgh"), dtype=object)[codes]


def drawn(rng, n, share, worth, order=0.0, tie=0.0):
    """Left by `share`, right evenly among the others; Davidson outcomes with an order effect."""
    k = len(share)
    left = rng.choice(k, n, p=share)
    right = (left + rng.integers(1, k, n)) % k
    eta = worth[left] - worth[right] + order
    weight = np.stack([np.exp(eta / 2), np.exp(-eta / 2), np.full(n, tie)])
    outcome = (rng.random(n) > (weight / weight.sum(axis=0)).cumsum(axis=0)).sum(axis=0)
    return left, right, outcome


def log_of(left, right, outcome, k, **options):
    words = np.array(["left", "right", "tie"], dtype=object)[outcome]
    return Comparisons.from_duels(
        names_of(left), names_of(right), words, items=list("abcdefgh")[:k], keep_rows=True,
        **options,
    )  # fmt: skip


def regret_by_hand(left, right, outcome, law, **model):
    """Mean shortfall of the law from the believed P*, refitted at every refresh."""
    n, k = len(left), len(law)
    at = [*checkpoints(n).tolist(), n]
    total = 0.0
    for begin, end in pairwise(at):
        known = slice(0, begin)
        worth = mode(left[known], right[known], outcome[known], k, **model)
        total += (end - begin) * np.maximum(shares(worth) - law, 0).sum()
    return total / n


def test_beliefs_are_refreshed_early_and_often():
    at = checkpoints(100_000)
    assert at[0] == 0 and at[-1] < 100_000
    assert set(np.arange(0, 100_000, 2000)) <= set(at.tolist())
    steps = np.diff(at)
    assert (steps <= np.maximum(1, at[:-1] / 2)).all()  # the log never grows by more than half
    assert checkpoints(30).tolist() == list(range(30))


@pytest.mark.parametrize("prior_sd", [0.01, 1.0, 10.0])
def test_the_prior_reaches_the_beliefs(prior_sd):
    rng = np.random.default_rng(8)
    left, right, outcome = drawn(rng, 120, np.full(3, 1 / 3), np.log([4.0, 2.0, 1.0]))
    law = np.full(3, 1 / 3)
    expected = regret_by_hand(left, right, outcome, law, prior_sd=prior_sd)
    log = log_of(left, right, outcome, 3)
    for options in (
        {"prior_sd": prior_sd},
        {"prior_sd": prior_sd, "worth": [1, 1, 1]},
        {"fit": bf.fit(log, prior_sd=prior_sd, seed=1)},
    ):
        audit = bf.audit_comparisons(log, selection_probability=law, eps1=0, seed=1, **options)
        found = audit.to_dict()["calibration"]["subjective"]["regret_per_round"]
        assert found == pytest.approx(expected, abs=1e-6)
    if prior_sd == 0.01:  # nothing is learnt: P* stays 1/3 each
        assert expected < 0.001
    else:
        assert expected > 0.1


def test_prior_and_model_reach_the_beliefs_of_windows_and_of_single_probabilities():
    rng = np.random.default_rng(9)
    left, right, outcome = drawn(rng, 200, np.full(3, 1 / 3), np.log([6.0, 2.0, 1.0]))
    log = log_of(left, right, outcome, 3)
    for logged in ({}, {"propensity": np.full(200, 1 / 3)}):
        regret = [
            bf.audit_comparisons(log, prior_sd=sd, seed=1, **logged).to_dict()["calibration"][
                "subjective"
            ]["regret_per_round"]
            for sd in (0.01, 1.0)
        ]
        # under the narrow prior P* is even, which only the noise of shares departs from
        assert regret[0] < 0.15 < regret[1]


def test_order_effect_of_the_fit_is_that_of_the_beliefs():
    # a favoured item on the left wins by the order effect alone
    rng = np.random.default_rng(11)
    law = np.array([0.4, 0.2, 0.2, 0.2])
    left, right, outcome = drawn(rng, 20_000, law, np.zeros(4), order=1.5)
    log = log_of(left, right, outcome, 4, first="left")
    audit = bf.audit_comparisons(log, selection_probability=law, seed=1).to_dict()
    by_hand = regret_by_hand(left, right, outcome, law, prior_sd=1.0, order_sd=1.0)
    found = audit["calibration"]["subjective"]["regret_per_round"]
    assert found == pytest.approx(by_hand, abs=1e-6)
    assert found == pytest.approx(0.15, abs=0.015)  # of equal items: .4 against .25
    blind = log_of(left, right, outcome, 4)
    fooled = bf.audit_comparisons(blind, selection_probability=law, seed=1).to_dict()
    assert fooled["calibration"]["subjective"]["regret_per_round"] < 0.1


def test_scales_ties_and_covariates_of_a_fit_are_those_of_the_beliefs():
    rng = np.random.default_rng(12)
    left, right, outcome = drawn(
        rng, 300, np.full(4, 0.25), np.log([4.0, 2.0, 2.0, 1.0]), order=1.0, tie=0.8
    )
    size = np.array([2.0, 1.0, 1.5, 0.0])
    log = log_of(left, right, outcome, 4, first="left").with_covariates({"size": size})
    z = ((size - size.mean()) / size.std())[:, None]
    tree = bf.fit(
        log, model="davidson", prior_sd=0.5, seed=1,
        model_options={"order_sd": 0.1, "tie_sd": 0.3, "coefficient_sd": 0.2},
    )  # fmt: skip
    options, notices = options_of(log, tree=tree)
    assert notices == []
    rounds = DuelLog.from_comparisons(log)
    ends = np.array([0, 40, 300])
    found = beliefs_at(rounds, ends, options)
    for row, end in zip(found, ends, strict=True):
        expected = mode(
            left[:end], right[:end], outcome[:end], 4,
            prior_sd=0.5, order_sd=0.1, tie_sd=0.3, slopes=(0.2, z),
        )  # fmt: skip
        assert row - row.mean() == pytest.approx(expected - expected.mean(), abs=1e-5)
    at_end = tree["mode"]["log_worth"].values
    assert found[2] - found[2].mean() == pytest.approx(at_end, abs=1e-7)
    with pytest.raises(OptionError, match="covariates 'size', these duels have none"):
        bf.audit_comparisons(log_of(left, right, outcome, 4, first="left"), fit=tree, seed=1)
    dropped = bf.fit(log, model="bradley_terry", ties="drop", seed=1)
    untied = outcome < 2
    found = beliefs_at(rounds, np.array([300]), options_of(log, tree=dropped)[0])[0]
    expected = mode(
        left[untied], right[untied], outcome[untied], 4,
        prior_sd=1.0, order_sd=1.0, slopes=(1.0, z),
    )  # fmt: skip
    assert found - found.mean() == pytest.approx(expected - expected.mean(), abs=1e-5)


def test_a_fit_that_cannot_be_repeated_is_said():
    rng = np.random.default_rng(13)
    left, right, outcome = drawn(rng, 100, np.full(3, 1 / 3), np.zeros(3))
    log = log_of(left, right, outcome, 3)
    tree = bf.fit(log, seed=1)
    tree.attrs["model"] = "mine.build"
    audit = bf.audit_comparisons(log, fit=tree, seed=1).to_dict()
    (found,) = [f for f in audit["findings"] if f["kind"] == "beliefs_of_another_model"]
    assert "'mine.build'" in found["text"] and "modes of bradley_terry" in found["text"]


@pytest.mark.parametrize(
    ("options", "column"),
    [({"prior_sd": 2.0}, "prior_sd"), ({"draws": 500}, "draws"), ({"model": "davidson"}, "model")],
)
def test_options_of_a_fit_that_was_given_are_refused(options, column):
    rng = np.random.default_rng(14)
    log = log_of(*drawn(rng, 60, np.full(3, 1 / 3), np.zeros(3)), 3)
    with pytest.raises(OptionError, match=f"{column}=.* belongs to a fit") as caught:
        bf.audit_comparisons(log, fit=bf.fit(log, seed=1), seed=1, **options)
    assert caught.value.column == column


def test_weighted_duels_are_no_decisions():
    log = Comparisons.from_duels(
        list("abc"), list("bca"), ["left"] * 3, weight=[1, 2, 1], keep_rows=True
    )
    with pytest.raises(OptionError, match="carry weights"):
        bf.audit_comparisons(log, seed=1)
