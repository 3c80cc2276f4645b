"""Brute-force reference values: likelihoods of every ranking, estimates; agreement with choix."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import choix
import numpy as np
import pytest

from bayesfair.comparisons import Comparisons
from bayesfair.inference.comparisons import fit_comparisons
from bayesfair.kernels.orders.plackett_luce import log_likelihood

REFERENCE = json.loads(
    (Path(__file__).resolve().parents[1] / "reference" / "plackett_luce.json").read_text()
)
MODELS, DATASETS = REFERENCE["models"], REFERENCE["datasets"]


def names(k):
    return [f"i{j}" for j in range(k)]


def probability(model, order, **options):
    """P(order) through our own path from labels to log-likelihood."""
    k = len(model["nu"]["float"])
    labels = [names(k)[i] for i in order]
    data = Comparisons.from_rankings([labels], items=names(k), **options)
    return math.exp(log_likelihood(data.chains(), np.log(model["nu"]["float"])))


@pytest.mark.parametrize("model", MODELS, ids=[m["id"] for m in MODELS])
def test_probability_of_rankings(model):
    for entry in model["rankings"]:
        assert probability(model, entry["order"]) == pytest.approx(entry["prob_float"], rel=1e-12)
    for entry in model["top_m"]:
        found = probability(model, entry["top"], partial="top")
        assert found == pytest.approx(_fraction(entry["prob"]), rel=1e-12)
    for entry in model["subset_orders"]:
        if len(entry["order"]) > 1:
            found = probability(model, entry["order"], partial="subset")
            assert found == pytest.approx(_fraction(entry["prob"]), rel=1e-12)


def _fraction(text):
    top, _, bottom = text.partition("/")
    return int(top) / int(bottom or 1)


@pytest.mark.parametrize("model", MODELS, ids=[m["id"] for m in MODELS])
def test_rankings_are_a_distribution(model):
    k = len(model["nu"]["float"])
    if k > 5:
        pytest.skip("more than 120 orders")
    total = sum(probability(model, order) for order in itertools.permutations(range(k)))
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=[m["id"] for m in MODELS])
def test_duels_and_choices(model):
    worth = np.array(model["nu"]["float"])
    k = len(worth)
    for i, j in itertools.permutations(range(k), 2):
        duel = Comparisons.from_duels([names(k)[i]], [names(k)[j]], items=names(k))
        found = math.exp(log_likelihood(duel.chains(), np.log(worth)))
        assert found == pytest.approx(model["pairwise"][i]["float"][j], rel=1e-12)
    for i in range(k):
        choice = Comparisons.from_choices([names(k)[i]], [names(k)], items=names(k))
        found = math.exp(log_likelihood(choice.chains(), np.log(worth)))
        assert found == pytest.approx(model["top1"]["float"][i], rel=1e-12)


def read(dataset):
    items = names(dataset["k"])
    if dataset["kind"] == "pairwise":
        winners, losers = zip(*dataset["data"], strict=True)
        return Comparisons.from_duels(
            [items[i] for i in winners], [items[i] for i in losers], items=items
        )
    if dataset["kind"] == "ranking":
        return Comparisons.from_rankings(
            [[items[i] for i in order] for order in dataset["data"]], items=items, partial="subset"
        )
    chosen = []
    for top, among in dataset["data"]:
        # an ordered top of a set that need not hold all items: stage by stage
        rest = list(among)
        for item in top:
            chosen.append((items[item], [items[i] for i in rest]))
            rest.remove(item)
    first, sets = zip(*[pair for pair in chosen if len(pair[1]) > 1], strict=True)
    return Comparisons.from_choices(list(first), list(sets), items=items)


@pytest.mark.parametrize("dataset", DATASETS, ids=[d["id"] for d in DATASETS])
def test_maximum_likelihood(dataset):
    data = read(dataset)
    at_nu = log_likelihood(data.chains(), np.log(dataset["nu"]["float"]))
    assert at_nu == pytest.approx(dataset["loglik_at_nu"], rel=1e-12)
    tree = fit_comparisons(data, prior_sd=np.inf, seed=0)
    np.testing.assert_allclose(
        tree["mode"]["log_worth"], dataset["mle_log_nu_sum_zero"], atol=1e-8, rtol=0
    )
    np.testing.assert_allclose(tree["mode"]["worth"], dataset["mle_top1"], atol=1e-8, rtol=0)
    value = float(tree["mode"]["log_likelihood"])
    assert value == pytest.approx(dataset["loglik_at_mle"], rel=1e-12)
    assert "posterior" not in tree.children


@pytest.mark.parametrize("seed", range(3))
def test_choix_agrees_on_the_mode_with_a_prior(seed):
    """choix maximises the same penalised likelihood: alpha = 1 / (2 prior_sd^2) of ours."""
    rng = np.random.default_rng(seed)
    k, n, prior_sd = 7, 60, 0.8
    orders = [list(map(int, rng.permutation(k)[: rng.integers(2, k + 1)])) for _ in range(n)]
    # choix's `alpha` penalises with alpha * |params|^2
    theirs = choix.opt_rankings(k, orders, alpha=1 / (2 * prior_sd**2), tol=1e-12)
    items = names(k)
    data = Comparisons.from_rankings(
        [[items[i] for i in order] for order in orders], items=items, partial="subset"
    )
    tree = fit_comparisons(data, prior_sd=prior_sd, method="laplace", seed=0)
    np.testing.assert_allclose(tree["mode"]["log_worth"], theirs, atol=2e-5)


def test_choix_agrees_on_duels():
    rng = np.random.default_rng(5)
    k = 12
    a = rng.integers(k, size=900)
    b = (a + rng.integers(1, k, size=900)) % k
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    theirs = choix.ilsr_pairwise(k, pairs, tol=1e-12)
    items = names(k)
    data = Comparisons.from_duels([items[i] for i in a], [items[i] for i in b], items=items)
    for model in ("bradley_terry", "plackett_luce"):
        tree = fit_comparisons(data, model=model, prior_sd=np.inf, seed=0)
        np.testing.assert_allclose(tree["mode"]["log_worth"], theirs, atol=1e-8)
