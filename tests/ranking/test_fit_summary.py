"""The JSON of a fit holds what its table prints, and the numbers are those of other libraries."""

import json

import numpy as np
import pytest
from scipy import stats

import bayesfair as bf
from bayesfair import examples
from bayesfair.comparisons import Comparisons
from bayesfair.ranking import fit_summary


def baseball():
    return bf.read_comparisons(
        examples.path("baseball"), left="home", right="away", wins=("home_wins", "away_wins"),
        first="left",
    )  # fmt: skip


def test_maximum_likelihood_of_baseball_as_published():
    # Agresti (2013), section 11.6; as BradleyTerry2 gives it: home effect 0.302 (0.131)
    games = baseball()
    summary = fit_summary(bf.fit(games, seed=1, prior_sd=np.inf), games)
    edge = summary["parameters"]["order_effect"]
    assert edge["mean"] == pytest.approx(0.3023, abs=5e-5)
    assert edge["sd"] == pytest.approx(0.131, abs=5e-4)
    z = stats.norm.ppf(0.975)
    assert edge["lower"] == pytest.approx(edge["mean"] - z * edge["sd"], abs=1e-9)
    assert summary["parameters"]["log_tie"] is None and summary["parameters"]["coefficients"] == {}
    worth = {row["item"]: row["log_worth"]["mean"] for row in summary["items"]}
    value = 0.0
    for left, right, outcome, n in zip(games.left, games.right, games.outcome, games.count,
                                       strict=True):  # fmt: skip
        gap = worth[games.items[left]] - worth[games.items[right]] + edge["mean"]
        value -= n * np.log1p(np.exp(-gap if outcome == 0 else gap))
    assert summary["log_likelihood"] == pytest.approx(value, abs=1e-6)
    json.dumps(summary, allow_nan=False)


def test_items_carry_what_the_table_shows():
    data = Comparisons.from_duels(
        ["a"] * 60 + ["b"] * 50 + ["x", "y"], ["b"] * 60 + ["a"] * 50 + ["y", "x"],
        items=["a", "b", "x", "y", "z"],
    )  # fmt: skip
    tree = bf.fit(data, seed=1)
    summary, table = fit_summary(tree, data), bf.rank_table(tree)
    for row in summary["items"]:
        at = table.sel(item=row["item"])
        assert row["n_wins"] == float(at["n_wins"])
        if row["item"] == "z":
            assert (row["tier"], row["island"], row["rank"]["shared"]) == (None, None, None)
            continue
        assert (row["tier"], row["island"]) == (int(at["tier"]), int(at["island"]))
        assert row["rank"]["shared"] == float(at["rank_shared"])
    wins = {row["item"]: row["n_wins"] for row in summary["items"]}
    assert wins == {"a": 60, "b": 50, "x": 1, "y": 1, "z": 0}
    assert {row["item"]: row["island"] for row in summary["items"]}["x"] == 1


def test_parameters_of_a_posterior_are_those_of_its_draws():
    duels = Comparisons.from_counts(list("aab"), list("bcc"), [8, 9, 7], [4, 3, 5], [5, 4, 6])
    data = duels.with_covariates({"size": {"a": 2.0, "b": 1.0, "c": 4.0}})
    tree = bf.fit(data, seed=1)
    parameters = fit_summary(tree, data)["parameters"]
    draws = tree["posterior"].to_dataset()
    for name, found in (("log_tie", parameters["log_tie"]),
                        ("coefficient", parameters["coefficients"]["size"])):  # fmt: skip
        value = np.ravel(draws[name].values)
        expected = (value.mean(), value.std(ddof=1), *np.percentile(value, [2.5, 97.5]))
        assert tuple(found[key] for key in ("mean", "sd", "lower", "upper")) == pytest.approx(
            expected, rel=1e-12
        )
    assert parameters["order_effect"] is None
    half = bf.fit(duels, model="bradley_terry", ties="half", seed=1)
    summary = fit_summary(half, duels)
    assert summary["power"] == half.attrs["power"] and "tempered" in summary["interval"]
