"""Kernels against finite differences, enumeration and each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError
from bayesfair.inference import comparison_likelihood
from bayesfair.inference.comparison_likelihood import DuelLikelihood
from bayesfair.inference.comparison_problem import problem_of
from bayesfair.inference.comparisons import fit_comparisons
from bayesfair.inference.existence import require_maximum
from bayesfair.inference.laplace import find_mode
from bayesfair.kernels.laws.gauss_best import gauss_best_probability
from bayesfair.kernels.orders import duels as duel_kernels
from bayesfair.kernels.orders import plackett_luce as kernel
from bayesfair.kernels.orders.graph import components, recession_direction
from bayesfair.kernels.orders.plackett_luce_stages import Chains


def rankings(seed, k=7, n=25, ties=True):
    """Random rankings of subsets, with ties, so that both chains and merged sets occur."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        order = [f"i{j}" for j in rng.permutation(k)[: rng.integers(2, k + 1)]]
        if ties and rng.random() < 0.4 and len(order) > 2:
            at = rng.integers(len(order) - 1)
            order[at : at + 2] = [order[at : at + 2]]
        rows.append(order)
    items = [f"i{j}" for j in range(k)]
    weight = rng.gamma(2.0, size=n)
    return Comparisons.from_rankings(rows, items=items, partial="subset", weight=weight)


def long_rankings():
    """Few rankings of many items: chains stay chains, sets are not worth merging."""
    rng = np.random.default_rng(0)
    items = [f"i{j:02d}" for j in range(40)]
    return Comparisons.from_rankings([[items[j] for j in rng.permutation(40)] for _ in range(3)])


def choices():
    rng = np.random.default_rng(1)
    items = [f"i{j}" for j in range(6)]
    sets = [list(rng.permutation(items)[: rng.integers(2, 7)]) for _ in range(30)]
    return Comparisons.from_choices([s[0] for s in sets], sets, items=items)


def naive(data, log_worth):
    """Average over the orders of each tie, item by item; no choice sets are merged."""
    w = np.exp(log_worth)
    position = {item: i for i, item in enumerate(data.items)}
    total = 0.0
    for u, order in enumerate(data.orderings()):
        inside = data.item[data.start[u] : data.start[u + 1]]
        orders = list(
            itertools.chain.from_iterable(p)
            for p in itertools.product(*(itertools.permutations(place) for place in order))
        )
        for one in orders:
            left = w[inside].sum()
            value = 0.0
            for item in one:
                value += math.log(w[position[item]] / left)
                left -= w[position[item]]
                if left < 1e-12:
                    break
            total += data.count[u] / len(orders) * value
    return total


SOURCES = {"ties": rankings(3), "no ties": rankings(4, ties=False), "long": long_rankings(),
           "choices": choices()}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_chain_value_gradient_curvature(name):
    data = SOURCES[name]
    chains = data.chains()
    rng = np.random.default_rng(9)
    log_worth = rng.normal(size=data.n_items)
    value, gradient = kernel.value_gradient(chains, log_worth)
    assert value == pytest.approx(naive(data, log_worth), rel=1e-10)
    step = 1e-5
    table = kernel.information(chains, log_worth)
    for i in range(data.n_items):
        e = np.eye(data.n_items)[i] * step
        up, down = (kernel.value_gradient(chains, log_worth + s * e) for s in (1, -1))
        assert gradient[i] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(table[i], (down[1] - up[1]) / (2 * step), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-10)
    vectors = rng.normal(size=(data.n_items, 3))
    np.testing.assert_allclose(
        kernel.information_product(chains, log_worth, vectors), table @ vectors, atol=1e-10
    )
    np.testing.assert_allclose(
        kernel.information_diagonal(chains, log_worth), np.diag(table), atol=1e-10
    )


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("block", [1, 7, 512])
def test_chain_draws_are_the_value_at_each_draw(name, block):
    chains = SOURCES[name].chains()
    draws = np.random.default_rng(2).normal(size=(20, chains.n_items)) * 3
    found = kernel.log_likelihood_draws(chains, draws, block=block)
    np.testing.assert_allclose(found, [kernel.log_likelihood(chains, d) for d in draws], rtol=1e-12)


def test_far_worths_stay_finite():
    data = Comparisons.from_duels(["a", "b"], ["b", "c"])
    log_worth = np.array([400.0, 0.0, -300.0])
    # 700 apart: log P(a beats b) is 0 to double precision, log P(b beats a) is -400
    assert kernel.log_likelihood(data.chains(), log_worth) == pytest.approx(0.0, abs=1e-12)
    problem = problem_of(data, "bradley_terry", prior_sd=1.0)
    found = problem.likelihood.draws(np.array([log_worth, -log_worth]))
    np.testing.assert_allclose(found, [0.0, -700.0], atol=1e-9)


def test_repeated_sets_are_merged():
    data = Comparisons.from_rankings([["a", "b", "c", "d"]] * 3 + [["b", "a", "d", "c"]] * 2)
    chains = data.chains()
    # {a,b,c,d} five times, {b,c,d} three times, {a,c,d} twice, {c,d} five times
    sizes = np.diff(chains.start)
    weight = chains.weight[chains.start[:-1]]
    assert sorted(zip(sizes.tolist(), weight.tolist(), strict=True)) == [
        (2, 5.0), (3, 2.0), (3, 3.0), (4, 5.0),
    ]  # fmt: skip


def test_ties_beyond_the_limit_are_refused():
    items = [f"i{j}" for j in range(13)]
    data = Comparisons.from_rankings([[items]])
    with pytest.raises(DataError, match="13 items share one place"):
        data.chains()


def duels(seed=0, *, ties=True):
    rng = np.random.default_rng(seed)
    a = rng.integers(5, size=80)
    b = (a + rng.integers(1, 5, size=80)) % 5
    words = rng.choice(["left", "right", "tie"] if ties else ["left", "right"], size=80)
    shown = rng.choice(["left", "right", "neither"], size=80)
    made = Comparisons.from_duels(a, b, words, first=shown, items=range(5))
    return made.with_covariates({"x": [1.0, 2, 4, 8, 9]})


@pytest.mark.parametrize("model", ["bradley_terry", "thurstone", "davidson"])
@pytest.mark.parametrize("order_effect", [False, True])
def test_duel_value_gradient_curvature(model, order_effect):
    data = duels(ties=model == "davidson")
    problem = problem_of(data, model, prior_sd=1.0, order_effect=order_effect)
    likelihood = problem.likelihood
    rng = np.random.default_rng(3)
    theta = rng.normal(size=likelihood.layout.size) * 0.7
    value, gradient = likelihood.value_gradient(theta)
    assert value == pytest.approx(_by_hand(data, model, likelihood, theta), rel=1e-12)
    table = likelihood.information(theta)
    step = 1e-5
    for i in range(len(theta)):
        e = np.eye(len(theta))[i] * step
        up, down = (likelihood.value_gradient(theta + s * e) for s in (1, -1))
        assert gradient[i] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(table[i], (down[1] - up[1]) / (2 * step), rtol=1e-5, atol=1e-6)
    product, diagonal = likelihood.operator(theta)
    vectors = rng.normal(size=(len(theta), 4))
    np.testing.assert_allclose(product(vectors), table @ vectors, atol=1e-10)
    np.testing.assert_allclose(diagonal, np.diag(table), atol=1e-10)
    draws = rng.normal(size=(9, len(theta)))
    np.testing.assert_allclose(
        likelihood.draws(draws), [likelihood.value_gradient(d)[0] for d in draws], rtol=1e-12
    )
    # the slow path for far worths is the same function
    far = draws * 1.0
    far[:, 0] += 650
    np.testing.assert_allclose(
        likelihood.draws(far), [likelihood.value_gradient(d)[0] for d in far], rtol=1e-10
    )


def _by_hand(data, model, likelihood, theta):
    """Duel by duel, from the definitions."""
    layout = likelihood.layout
    worth = layout.log_worth(theta)
    total = 0.0
    for u, count in enumerate(data.count):
        gap = worth[data.left[u]] - worth[data.right[u]]
        if layout.order:
            gap += data.first[u] * theta[layout.order_at]
        if model == "davidson":
            weights = [math.exp(gap / 2), math.exp(-gap / 2), math.exp(theta[-1])]
            total += count * math.log(weights[data.outcome[u]] / sum(weights))
        else:
            up = norm.cdf(gap) if model == "thurstone" else 1 / (1 + math.exp(-gap))
            total += count * math.log(up if data.outcome[u] == 0 else 1 - up)
    return total


def test_covariates_in_plackett_luce():
    data = rankings(3).with_covariates({"x": np.arange(7.0) ** 2, "y": [1, 0, 1, 0, 1, 1, 0]})
    likelihood = problem_of(data, "plackett_luce", prior_sd=1.0).likelihood
    rng = np.random.default_rng(4)
    theta = rng.normal(size=likelihood.layout.size)
    table = likelihood.information(theta)
    gradient = likelihood.value_gradient(theta)[1]
    step = 1e-5
    for i in range(len(theta)):
        e = np.eye(len(theta))[i] * step
        up, down = (likelihood.value_gradient(theta + s * e) for s in (1, -1))
        assert gradient[i] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(table[i], (down[1] - up[1]) / (2 * step), rtol=1e-5, atol=1e-6)
    product, diagonal = likelihood.operator(theta)
    vectors = rng.normal(size=(len(theta), 2))
    np.testing.assert_allclose(product(vectors), table @ vectors, atol=1e-10)
    np.testing.assert_allclose(diagonal, np.diag(table), atol=1e-10)


def test_links_far_out():
    counts = np.array([[1.0], [0.0], [0.0]])
    for link, value in (("logit", -40.0), ("probit", norm.logcdf(-40.0))):
        found = duel_kernels.curves(link, counts, np.array([-40.0]))
        assert found.value[0] == pytest.approx(value, rel=1e-12)
        assert np.isfinite(found.gap2).all() and found.gap2[0] >= 0


def test_normal_performances_by_simulation_and_pairs():
    mean = np.array([0.4, 0.0, -0.2, -0.9])
    found = gauss_best_probability(mean)
    rng = np.random.default_rng(1)
    n = 400_000
    best = np.argmax(mean + rng.normal(size=(n, 4)) * np.sqrt(0.5), axis=1)
    share = np.bincount(best, minlength=4) / n
    assert np.all(np.abs(share - found) < 5 * np.sqrt(found * (1 - found) / n))
    pair = gauss_best_probability(np.array([1.3, 0.0]))
    np.testing.assert_allclose(pair, [norm.cdf(1.3), norm.cdf(-1.3)], atol=1e-10)
    many = gauss_best_probability(np.tile(mean, (3, 2, 1)))
    np.testing.assert_allclose(many, np.broadcast_to(found, (3, 2, 4)), atol=1e-15)


def test_components_by_hand():
    none = np.array([], dtype=np.int32)
    # 0 > 1 > 2 > 0 is a cycle, 3 only loses to it, 4 ~ 5 only tie, 6 has no data
    parts = components(
        7, np.array([0, 1, 2, 0]), np.array([1, 2, 0, 3]), np.array([4]), np.array([5])
    )
    assert parts.strong.tolist() == [0, 0, 0, 2, 1, 1, 3]
    assert parts.weak.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert parts.never_win.tolist() == [False, False, False, True, True, True, False]
    assert parts.never_lose.tolist() == [False, False, False, False, True, True, False]
    assert parts.no_data.tolist() == [False] * 6 + [True]
    assert components(2, none, none, none, none).no_data.all()


def test_recession_of_davidson_without_a_cycle():
    # one win and one tie between two items: the tie and the win probabilities can both reach 1/2
    data = Comparisons.from_counts(["a"], ["b"], [1], [0], [1])
    likelihood = DuelLikelihood(data, "davidson", order_effect=False, ties="keep")
    gauge = np.array([[1.0, 1.0, 0.0]])
    direction = recession_direction(likelihood.recession_rows(), gauge)
    assert direction is not None
    far = [likelihood.value_gradient(s * direction)[0] for s in (1, 5, 20)]
    assert far[0] < far[1] < far[2] < 2 * math.log(0.5) + 1e-6
    both = Comparisons.from_counts(["a"], ["b"], [1], [1], [1])
    likelihood = DuelLikelihood(both, "davidson", order_effect=False, ties="keep")
    assert recession_direction(likelihood.recession_rows(), gauge) is None


@pytest.mark.parametrize("small", [0, 1 << 17])
@pytest.mark.parametrize("model", ["bradley_terry", "davidson"])
def test_curvature_is_the_slope_of_the_gradient_whichever_way_the_design_is_kept(
    model, small, monkeypatch
):
    monkeypatch.setattr(comparison_likelihood, "_SMALL", small)
    rng = np.random.default_rng(8)
    left = rng.integers(0, 4, 40)
    right = (left + rng.integers(1, 4, 40)) % 4
    words = rng.choice(["left", "right", "tie"], 40)
    data = Comparisons.from_duels(left, right, words, items=range(4))
    data = data.with_covariates({"size": rng.normal(size=4)})
    likelihood = DuelLikelihood(
        data, model, order_effect=True, ties="half" if model[0] == "b" else "keep"
    )
    theta = rng.normal(size=likelihood.layout.size)
    _, gradient = likelihood.value_gradient(theta)
    moved = 1e-5 * np.eye(len(theta))
    ends = [[likelihood.value_gradient(theta + s * m) for m in moved] for s in (-1, 1)]
    slope = (np.array([v for v, _ in ends[1]]) - [v for v, _ in ends[0]]) / 2e-5
    np.testing.assert_allclose(gradient, slope, atol=1e-8)
    bend = (np.array([g for _, g in ends[1]]) - [g for _, g in ends[0]]) / 2e-5
    table = likelihood.information(theta)
    np.testing.assert_allclose(table, -bend, atol=1e-8)
    product, diagonal = likelihood.operator(theta)
    np.testing.assert_allclose(product(np.eye(len(theta))), table, atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diag(table), atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_existence_agrees_with_where_newton_goes(seed):
    # few duels of four items: some have an estimate, some not. Oracle: a nearly flat prior, whose
    # mode stays put as it gets flatter if the estimate exists, and runs off if not
    rng = np.random.default_rng(seed)
    n = 9
    # the first three duels link all items: what nothing links stays at the prior's mode as well
    left = np.concatenate([[0, 1, 2], rng.integers(0, 4, n - 3)])
    right = np.concatenate([[1, 2, 3], (left[3:] + rng.integers(1, 4, n - 3)) % 4])
    words = rng.choice(["left", "right", "tie"], n, p=[0.4, 0.4, 0.2])
    data = Comparisons.from_duels(left, right, words, items=range(4))
    exists = True
    try:
        fit_comparisons(data, model="davidson", prior_sd=np.inf, seed=0)
    except DataError:
        exists = False
    sizes = []
    for sd in (1e2, 1e4):
        problem = problem_of(data, "davidson", prior_sd=sd, tie_sd=sd)
        sizes.append(np.abs(find_mode(problem.likelihood, problem.precision).theta).max())
    assert exists == (sizes[1] < sizes[0] + 1)


def test_existence_of_many_items_takes_memory_of_the_data():
    # a ring of wins closes 1500 items; dense tables of rows and columns would take 700 MB
    import tracemalloc

    rng = np.random.default_rng(1)
    k, n = 1500, 10_000
    left = np.concatenate([np.arange(k), rng.integers(0, k, n)])
    right = np.concatenate([(np.arange(k) + 1) % k, (left[k:] + rng.integers(1, k, n)) % k])
    words = np.concatenate([np.repeat("left", k), rng.choice(["left", "right", "tie"], n)])
    data = Comparisons.from_duels(left, right, words)
    likelihood = DuelLikelihood(data, "davidson", order_effect=False, ties="keep")
    tracemalloc.start()
    require_maximum(data, likelihood)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # two tables of k x k bytes and the cells


def test_empty_chains():
    empty = Chains(np.zeros(0, np.int32), np.zeros(0), np.zeros(1, np.int64), np.zeros(3))
    assert kernel.log_likelihood(empty, np.zeros(3)) == 0.0
    assert kernel.log_likelihood_draws(empty, np.zeros((2, 3))).tolist() == [0.0, 0.0]
