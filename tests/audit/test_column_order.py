"""Seeded numbers go with labels: the order of columns or items changes none of them."""

from __future__ import annotations

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.inference.arms import options_in_label_order

ARMS = ("a", "b", "c", "d")
ORDERS = (("b", "a", "c", "d"), ("d", "c", "b", "a"))


def rewards_of(family, rng, n):
    if family == "bernoulli":
        return rng.integers(0, 2, n)
    if family == "finite":
        return rng.choice([1.0, 2.5, 4.0], n)
    return rng.poisson(3, n) if family == "poisson" else rng.normal(0.3, 1, n)


def log_of(family="bernoulli", selection="full", n=80):
    """One log, as a function of the order of its arms."""
    rng = np.random.default_rng(5)
    pi = rng.dirichlet(np.ones(4) * 3, n)
    pi[n // 2 :, 3] = np.nan  # an arm that leaves
    pi[n // 2 :] /= np.nansum(pi[n // 2 :], axis=1, keepdims=True)
    arm = np.array([rng.choice(4, p=np.nan_to_num(row)) for row in pi])
    reward = rewards_of(family, rng, n)
    chosen = pi[np.arange(n), arm]

    def ordered(arms):
        at = [ARMS.index(label) for label in arms]
        rule = {"full": {"selection_probability": pi[:, at]}, "chosen": {"propensity": chosen},
                "none": {}}[selection]  # fmt: skip
        return bf.History([ARMS[i] for i in arm], reward, arms=arms, **rule)

    return ordered


def by_label(numbers):
    """All numbers of an audit; lists of arms, pairs and items by their labels."""
    found = {}

    def walk(value, path):
        if isinstance(value, dict):
            label = value.get("arm", value.get("item"))
            for key, entry in value.items():
                walk(entry, (*path, key) if label is None else (*path, label, key))
        elif isinstance(value, list):
            named = all(isinstance(v, dict) and ("arm" in v or "item" in v) for v in value)
            for i, entry in enumerate(value):
                walk(entry, path if named else (*path, i))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[path] = value

    walk(numbers, ())
    return found


def same(one, other, tolerance=1e-12):
    one, other = by_label(one), by_label(other)
    assert one.keys() == other.keys()
    differ = {
        path: (value, other[path])
        for path, value in one.items()
        if value != other[path] and not abs(value - other[path]) <= tolerance
    }
    assert not differ


@pytest.mark.parametrize("order", ORDERS, ids="".join)
@pytest.mark.parametrize(
    ("family", "selection"),
    [
        ("bernoulli", "full"), ("bernoulli", "chosen"), ("bernoulli", "none"), ("finite", "full"),
        ("poisson", "full"), ("poisson", "chosen"), ("normal", "full"),
    ],
)  # fmt: skip
def test_an_audit_does_not_depend_on_the_order_of_columns(family, selection, order):
    log = log_of(family, selection)
    asked = {"family": family, "seed": 7, "draws": 500, "eps1": 1, "eps2": 0.1}
    same(bf.audit(log(ARMS), **asked).to_dict(), bf.audit(log(order), **asked).to_dict())


@pytest.mark.parametrize("family", ["bernoulli", "finite", "poisson", "normal"])
def test_draws_of_a_fit_go_with_the_labels(family):
    log = log_of(family)
    one, other = (bf.fit(log(arms), family=family, seed=3, draws=80) for arms in (ARMS, ORDERS[0]))
    for name, drawn in one["posterior"].data_vars.items():
        again = other["posterior"][name].sel(arm=list(ARMS))
        assert np.array_equal(drawn.values, again.values), name
    assert tuple(other["posterior"]["arm"].values) == ORDERS[0]


def test_files_scans_and_resumed_audits_too(tmp_path):
    """Three orders of the columns, read whole, in parts, and gone on with."""
    log = log_of()(ARMS)
    rows = [
        [ARMS[i], int(r), *("" if np.isnan(p) else repr(p) for p in row.tolist())]
        for i, r, row in zip(log.arm, log.reward, log.selection_probability, strict=True)
    ]
    found = []
    for arms in (ARMS, *ORDERS):
        at = [ARMS.index(label) for label in arms]
        path = tmp_path / f"{''.join(arms)}.csv"
        lines = [["arm", "reward", *(f"p_{label}" for label in arms)]]
        lines += [[*row[:2], *(row[2 + i] for i in at)] for row in rows]
        path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
        asked = {"seed": 2, "draws": 300, "eps1": 1, "eps2": 0.1}
        read = bf.read_history(path)
        parts = bf.scan_history(path)
        first = bf.audit(read.before(30), **asked)
        found += [
            bf.audit(read, **asked),
            bf.audit(parts, **asked),
            first.resume(read.rounds(30, read.n_rounds)),
        ]
    for other in found[1:]:
        one, two = (
            {key: audit.to_dict()[key] for key in ("objective", "subjective", "arms", "frontier")}
            for audit in (found[0], other)
        )
        same(one, two)


def test_the_probability_of_fairness_is_the_same_in_three_orders():
    """The order b, a, c once gave probability fair .29975 where a, b, c gave .3025."""
    rng = np.random.default_rng(1)
    pi = rng.dirichlet(np.ones(3) * 5, 200)
    arm = [rng.choice(3, p=row) for row in pi]
    reward = rng.integers(0, 2, 200)
    found = []
    for order in ("abc", "bac", "cab"):
        at = ["abc".index(label) for label in order]
        log = bf.History(
            ["abc"[i] for i in arm], reward, arms=list(order), selection_probability=pi[:, at]
        )
        found.append(bf.audit(log, eps1=2, eps2=0.57, seed=1).to_dict()["objective"])
    assert 0.02 < found[0]["probability_fair"] < 0.98
    assert found[0]["probability_fair"] == found[1]["probability_fair"]
    assert found[0]["probability_fair"] == found[2]["probability_fair"]


def test_priors_given_arm_by_arm_follow_their_arms():
    prior = [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert options_in_label_order({"prior": prior}, ["d", "b", "a", "c"])["prior"] == [
        [5, 6], [3, 4], [7, 8], [1, 2],
    ]  # fmt: skip
    for same_for_all in ({}, {"prior": (1, 2)}, {"prior": {"a": (1, 2)}}):
        assert options_in_label_order(same_for_all, ["b", "a"]) == same_for_all


@pytest.mark.statistical
def test_sampled_fits_of_shipped_models_go_with_the_labels():
    arm, reward = np.tile(list("abc"), 20), np.random.default_rng(5).integers(0, 2, 60)
    one, other = (
        bf.fit(bf.History(arm, reward, arms=tuple(arms)), model="bernoulli_hierarchical", seed=3)
        for arms in ("abc", "cab")
    )
    assert tuple(other["posterior"]["arm"].values) == tuple("cab")
    again = other["posterior"]["theta"].sel(arm=list("abc"))
    np.testing.assert_allclose(one["posterior"]["theta"].values, again.values, atol=1e-12)
