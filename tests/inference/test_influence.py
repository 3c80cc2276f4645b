"""What the top hangs on is said only where a fit of the changed data says it too."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import bayesfair as bf
from bayesfair.comparisons import Comparisons
from bayesfair.errors import OptionError

ITEMS = ["a", "b", "c", "d"]


def posterior_mode(table, order_sd):
    """Bradley-Terry with order effect by scipy; ``table[i, j]``: i, shown first, beat j."""

    def minus(theta):
        gap = theta[:4, None] - theta[None, :4]
        value = (table[0] * np.log(expit(gap + theta[4]))).sum()
        value += (table[1] * np.log(expit(-gap - theta[4]))).sum()
        return -value + 0.5 * (theta[:4] @ theta[:4] + (theta[4] / order_sd) ** 2)

    return minimize(minus, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x[:4]


def home_log(rng):
    """Four items nearly alike, a strong advantage of the left side, an unbalanced schedule."""
    pairs = rng.integers(4, size=(60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    worth = np.array([0.3, 0.2, 0.1, 0.0])
    won = rng.random(len(pairs)) < expit(worth[pairs[:, 0]] - worth[pairs[:, 1]] + 1.0)
    return pairs, won


def test_every_claimed_flip_of_twenty_logs_is_one_under_the_fits_own_order_sd():
    rng, claimed = np.random.default_rng(7), 0
    for _ in range(20):
        pairs, won = home_log(rng)
        data = Comparisons.from_duels(
            [ITEMS[i] for i in pairs[:, 0]],
            [ITEMS[j] for j in pairs[:, 1]],
            np.where(won, "left", "right"),
            first="left",
            items=ITEMS,
        )
        asked = {"method": "laplace", "model_options": {"order_sd": 0.02}}
        found = bf.influence(bf.fit(data, **asked, draws=400, seed=1), data)
        if np.isnan(float(found["flip_n"])):
            continue
        claimed += 1
        table = np.zeros((2, 4, 4))
        np.add.at(table, (np.where(won, 0, 1), pairs[:, 0], pairs[:, 1]), 1.0)
        before = ITEMS[int(np.argmax(posterior_mode(table, 0.02)))]
        assert before == found.attrs["leader"]
        cells = {int(row): n for row, n in zip(found["row"].values, found["flip_removed"].values,
                                               strict=True)}  # fmt: skip
        for row, n in cells.items():
            table[0 if won[row] else 1, pairs[row, 0], pairs[row, 1]] -= n
        assert table.min() >= 0 and sum(cells.values()) == float(found["flip_n"])
        after = ITEMS[int(np.argmax(posterior_mode(table, 0.02)))]
        assert after == found.attrs["flip_to"] != before
    assert claimed >= 15  # the test is not empty


def test_a_star_without_its_hub_names_nobody():
    data = Comparisons.from_counts(["hub"] * 3, ["a", "b", "c"], [6, 5, 4], [3, 4, 5])
    found = bf.influence(bf.fit(data, seed=1), data)
    assert str(found["top_without"].sel(item="hub").values) == ""
    assert np.isnan(float(found["p_rank1_without"].sel(item="hub")))
    assert str(found["top_without"].sel(item="c").values) == "hub"
    # two arms of a star that never met: nothing ranks them without the hub either
    chain = Comparisons.from_counts(list("ahhc"), list("bacd"), [6, 5, 4, 3], [3, 4, 5, 2])
    found = bf.influence(bf.fit(chain, seed=1), chain)
    assert str(found["top_without"].sel(item="h").values) == ""


def test_a_flip_is_never_claimed_by_taking_all_comparisons_of_the_leader_away():
    data = Comparisons.from_counts(["a"], ["b"], [4], [0])
    found = bf.influence(bf.fit(data, seed=1), data)
    assert np.isnan(float(found["flip_n"])) and found.attrs["flip_to"] == ""


def test_without_a_used_comparison_nobody_leads():
    data = Comparisons.from_duels(["a"], ["b"], ["tie"])
    tree = bf.fit(data, model="bradley_terry", ties="drop", seed=1)
    with pytest.raises(OptionError, match="no item leads"):
        bf.influence(tree, data)
