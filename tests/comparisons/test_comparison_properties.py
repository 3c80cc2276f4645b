"""Properties that hold for any comparisons: order of rows, names of items, weights, scale."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesfair.comparisons import Comparisons
from bayesfair.inference.comparison_problem import problem_of
from bayesfair.inference.comparisons import fit_comparisons
from bayesfair.inference.laplace import find_mode

ITEMS = "abcde"

duels = (
    st.lists(
        st.tuples(st.sampled_from(ITEMS), st.sampled_from(ITEMS), st.sampled_from(["left", "tie"])),
        min_size=2,
        max_size=25,
    )
    .map(lambda rows: [r for r in rows if r[0] != r[1]])
    .filter(lambda rows: len(rows) > 1)
)
orderings = st.lists(
    st.permutations(ITEMS).flatmap(lambda order: st.integers(2, 5).map(lambda n: list(order[:n]))),
    min_size=1,
    max_size=8,
)
quick = settings(max_examples=40, deadline=None)


def of(rows, rename=str, **options):
    left, right, outcome = zip(*rows, strict=True)
    return Comparisons.from_duels(
        [rename(i) for i in left], [rename(i) for i in right], list(outcome), **options
    )


def mode(data, **options):
    model = "plackett_luce" if data.kind == "rankings" else "davidson"
    problem = problem_of(data, model, prior_sd=1.0, **options)
    found = find_mode(problem.likelihood, problem.precision)
    log_worth = problem.likelihood.layout.log_worth(found.theta)
    return dict(zip(data.items, log_worth - log_worth.mean(), strict=True))


def same(one, other, atol=1e-8):
    assert one.keys() == other.keys()
    np.testing.assert_allclose([one[i] for i in one], [other[i] for i in one], atol=atol)


@quick
@given(duels, st.randoms(use_true_random=False))
def test_order_of_rows(rows, random):
    shuffled = rows.copy()
    random.shuffle(shuffled)
    one, two = of(rows), of(shuffled)
    np.testing.assert_array_equal(one.win_matrix(), two.win_matrix())
    same(mode(one), mode(two))


@quick
@given(duels)
def test_sides_do_not_matter(rows):
    mirrored = [(b, a, "right" if w == "left" else w) for a, b, w in rows]
    same(mode(of(rows)), mode(of(mirrored)))


@quick
@given(duels)
def test_names_do_not_matter(rows):
    rename = {i: f"item {9 - n}" for n, i in enumerate(ITEMS)}  # reverses the order of items
    one = mode(of(rows))
    two = mode(of(rows, rename.get))
    same({rename[i]: v for i, v in one.items()}, two)


@quick
@given(duels, st.integers(1, 3))
def test_weights_are_repetitions(rows, times):
    repeated = of(rows * times)
    weighted = of(rows, weight=[float(times)] * len(rows))
    np.testing.assert_array_equal(repeated.count, weighted.count)
    same(mode(repeated), mode(weighted), atol=0)


@quick
@given(duels)
def test_every_row_is_counted_once(rows):
    data = of(rows, keep_rows=True)
    assert data.n_comparisons == len(rows)
    table = data.win_matrix().sum() + np.triu(data.tie_matrix()).sum()
    assert table == len(rows)
    assert data.item_counts().sum() == 2 * len(rows)
    for n, (left, right, word) in enumerate(rows):
        cell = data.cell[n]
        assert (data.items[data.left[cell]], data.items[data.right[cell]]) == (left, right)
        assert data.outcome[cell] == (0 if word == "left" else 2)


@quick
@given(orderings, st.sampled_from(["subset", "top"]))
def test_rankings_as_orders_ranks_and_rows(rows, partial):
    one = Comparisons.from_rankings(rows, items=ITEMS, partial=partial)
    ranks = [[row.index(i) + 1 if i in row else 0 for i in ITEMS] for row in rows]
    two = Comparisons.from_rankings(ranks=ranks, items=ITEMS, partial=partial, unranked=0)
    long = [(n, i, row.index(i) + 1) for n, row in enumerate(rows) for i in reversed(row)]
    n, item, rank = zip(*long, strict=True)
    three = Comparisons.from_ranked_rows(n, item, rank, items=ITEMS, partial=partial)
    for other in (two, three):
        assert one.orderings() == other.orderings()
        np.testing.assert_array_equal(one.count, other.count)
        np.testing.assert_array_equal(one.win_matrix(), other.win_matrix())


@quick
@given(orderings)
def test_a_ranking_of_two_is_a_duel(rows):
    pairs = [row[:2] for row in rows]
    ranked = Comparisons.from_rankings(pairs, items=ITEMS, partial="subset")
    duelled = Comparisons.from_duels([p[0] for p in pairs], [p[1] for p in pairs], items=ITEMS)
    trees = [
        fit_comparisons(data, model="plackett_luce", method="laplace", draws=40, seed=3)
        for data in (ranked, duelled)
    ]
    np.testing.assert_allclose(
        trees[0]["posterior"]["log_worth"], trees[1]["posterior"]["log_worth"], atol=1e-12
    )
    logistic = fit_comparisons(duelled, model="bradley_terry", method="laplace", draws=40, seed=3)
    np.testing.assert_allclose(logistic["mode"]["log_worth"], trees[0]["mode"]["log_worth"],
                               atol=1e-8)  # fmt: skip


@quick
@given(orderings)
def test_log_worths_sum_to_zero_and_worths_to_one(rows):
    data = Comparisons.from_rankings(rows, items=ITEMS, partial="subset")
    tree = fit_comparisons(data, method="laplace", draws=40, seed=1)
    for group in ("mode", "posterior"):
        np.testing.assert_allclose(tree[group]["log_worth"].sum("item"), 0, atol=1e-10)
        np.testing.assert_allclose(tree[group]["worth"].sum("item"), 1, atol=1e-12)
        gap = np.log(tree[group]["worth"]) - tree[group]["log_worth"]
        assert float(np.ptp(gap.transpose("item", ...).values, axis=0).max()) < 1e-9


@quick
@given(orderings)
def test_mle_exists_exactly_where_wins_go_round(rows):
    """Against a brute-force search for a split that is never crossed upwards."""
    data = Comparisons.from_rankings(rows, partial="subset")
    beats = data.win_matrix() > 0
    k = data.n_items
    splits = [[i for i in range(k) if mask >> i & 1] for mask in range(1, 2**k - 1)]
    crossed = all(
        beats[np.ix_([i for i in range(k) if i not in low], low)].any()
        and beats[np.ix_(low, [i for i in range(k) if i not in low])].any()
        for low in splits
    )
    assert data.connectivity().mle_exists == crossed
