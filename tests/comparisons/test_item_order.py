"""A seed gives each item the same numbers, in whatever order the items are declared."""

from __future__ import annotations

import numpy as np
import pytest

import bayesfair as bf

ITEMS = ("a", "b", "c", "d", "e")
ORDERS = (("c", "a", "e", "b", "d"), ("e", "d", "c", "b", "a"))


def duels(items, ties=False, n=150, **options):
    rng = np.random.default_rng(4)
    pairs = [rng.choice(5, 2, replace=False) for _ in range(n)]
    left, right = ([ITEMS[pair[side]] for pair in pairs] for side in (0, 1))
    words = ["left", "right", "tie"] if ties else ["left", "right"]
    winner = rng.choice(words, n)
    return bf.Comparisons.from_duels(left, right, winner, items=items, first="left", **options)


def rankings(items):
    rng = np.random.default_rng(6)
    table = np.argsort(rng.gumbel(size=(40, 5)) + np.arange(5) / 2, axis=1) + 1.0
    table[:10, :3] = 1.0  # shared places
    table[10:20, 2] = np.nan
    at = [ITEMS.index(item) for item in items]
    return bf.Comparisons.from_rankings(ranks=table[:, at], items=items, partial="top")


def matrix(items):
    wins = np.random.default_rng(7).integers(0, 9, (5, 5))
    np.fill_diagonal(wins, 0)
    at = [ITEMS.index(item) for item in items]
    return bf.Comparisons.from_win_matrix(wins[np.ix_(at, at)], items)


DATA = {
    "duels": duels,
    "duels with ties": lambda items: duels(items, ties=True),
    "rankings": rankings,
    "win matrix": matrix,
}


@pytest.mark.parametrize("order", ORDERS, ids="".join)
@pytest.mark.parametrize("kind", DATA)
def test_cells_in_label_order_are_those_of_items_declared_in_it(kind, order):
    one, other = DATA[kind](ITEMS), DATA[kind](order).in_label_order()
    assert other.items == ITEMS
    for name in ("left", "right", "outcome", "first", "count", "row", "start", "item", "level"):
        if name == "row" and kind == "win matrix":
            continue  # its rows are those of the matrix as it was given
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_rows_keep_their_cells():
    one = duels(ITEMS, keep_rows=True)
    other = duels(ORDERS[0], keep_rows=True).in_label_order()
    assert np.array_equal(one.cell, other.cell)


@pytest.mark.parametrize("order", ORDERS, ids="".join)
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("method", ["auto", "nuts"])
def test_draws_and_modes_of_a_fit_go_with_the_items(kind, order, method):
    asked = {"seed": 5, "draws": 200, "method": method}
    one, other = (bf.fit(DATA[kind](items), **asked) for items in (ITEMS, order))
    assert one.attrs == other.attrs
    for group, dims in (("posterior", ("item",)), ("mode", ("item", "item_other")),
                        ("constant_data", ("item",))):  # fmt: skip
        assert tuple(other[group]["item"].values) == order
        for name, values in one[group].data_vars.items():
            at = {dim: list(ITEMS) for dim in dims if dim in values.dims}
            assert np.array_equal(values.values, other[group][name].sel(at).values), (group, name)


def test_the_worth_of_an_item_stays_with_its_label():
    """Two items: the log-odds of 7 to 3, whichever is named first (closed form)."""
    for items in (("x", "y"), ("y", "x")):
        fit = bf.fit(
            bf.Comparisons.from_counts(["x"], ["y"], [7], [3], items=items), prior_sd=np.inf, seed=1
        )
        worth = fit["mode"]["log_worth"]
        assert float(worth.sel(item="x") - worth.sel(item="y")) == pytest.approx(np.log(7 / 3))


def test_checks_of_a_fit_go_with_the_items():
    found, pairs = [], []
    for items in (ITEMS, *ORDERS):
        data = duels(items, ties=True)
        fit = bf.fit(data, seed=1)
        found.append(bf.pl_consistency(fit, data, seed=2, replicates=40))
        pairs.append(bf.predicted_wins(fit, data, seed=2, replicates=40))
        assert tuple(found[-1]["item"].values) == items
    for other, table in zip(found[1:], pairs[1:], strict=True):
        np.testing.assert_allclose(
            found[0]["top1"].values, other["top1"].sel(item=list(ITEMS)).values, atol=1e-12
        )
        for name in ("p_value", "inconsistency_expected", "cycles_expected"):
            assert float(found[0][name]) == pytest.approx(float(other[name]), abs=1e-12)
        again = table.sel(item=list(ITEMS), item_other=list(ITEMS))
        for name in ("observed", "expected", "lower", "upper", "p_value"):
            np.testing.assert_allclose(pairs[0][name].values, again[name].values, atol=1e-12)


def test_an_audit_of_duels_goes_with_the_items():
    """With probabilities and in windows; the halves, the items, and how many duels decide."""
    even = (1 - np.eye(5)) / 20
    for asked in ({"pair_probability": even}, {"window": 40}):
        one, other = (
            bf.audit_comparisons(
                duels(items, keep_rows=True), seed=3, draws=200, eps2=0.1, slot="mean", **asked
            ).to_dict()
            for items in (ITEMS, ORDERS[0])
        )
        table = {item["item"]: item for item in other["items"]}
        for item in one["items"]:
            for name, value in item.items():
                if isinstance(value, float):
                    assert table[item["item"]][name] == pytest.approx(value, abs=1e-12), name
        for part in ("subjective", "objective"):
            for name, value in one[part].items():
                if isinstance(value, (int, float)):
                    assert other[part][name] == pytest.approx(value, abs=1e-12), (part, name)
                if isinstance(value, dict) and name == "smallest_eps2":
                    for key, number in value.items():
                        if isinstance(number, float):
                            assert other[part][name][key] == pytest.approx(number, abs=1e-12)
