"""Plots show every item and the numbers they are given."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import bayesfair as bf
from bayesfair import examples
from bayesfair.comparisons import Comparisons
from bayesfair.errors import OptionError
from bayesfair.plots import rank_figure_size


@pytest.fixture(autouse=True)
def no_display():
    """Draw without a screen, and close what pyplot opened."""
    from matplotlib import pyplot

    with mpl.rc_context({"backend": "agg"}):
        yield
        pyplot.close("all")


def chain(k, **options):
    """Return k items, each beating the next 3 of 4 times."""
    items = [f"item {i:03d}" for i in range(k)]
    return Comparisons.from_counts(items[:-1], items[1:], [3] * (k - 1), [1] * (k - 1), **options)


@pytest.mark.parametrize("k", [2, 59, 200])
def test_every_item_has_its_line_and_label(k):
    tree = bf.fit(chain(k), seed=1, method="laplace", draws=400)
    axes = bf.plots.plot_ranks(tree)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    table = bf.rank_table(tree)
    assert labels == table["item"].values.tolist()
    lines = sum(len(c.get_segments()) for c in axes.collections)
    assert lines == k
    assert axes.figure.get_size_inches()[1] == pytest.approx(rank_figure_size(k)[1])
    # best on top: the y axis runs downwards
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_intervals_are_those_of_the_table():
    tree = bf.fit(chain(6), seed=1)
    table = bf.rank_table(tree)
    for quantity in ("rank", "log_worth", "worth"):
        axes = bf.plots.plot_ranks(table, ax=Figure().subplots(), quantity=quantity)
        found = {}
        for collection in axes.collections:
            for segment in collection.get_segments():
                found[round(segment[0][1])] = (segment[0][0], segment[1][0])
        for i in range(6):
            low, high = (float(table[f"{quantity}_{end}"][i]) for end in ("lower", "upper"))
            assert found[i] == pytest.approx((low, high))


def test_no_data_and_islands_are_marked():
    duels = Comparisons.from_counts(
        ["a", "x"], ["b", "y"], [3, 3], [1, 1], items=list("abxyz")
    )  # fmt: skip
    axes = bf.plots.plot_ranks(bf.fit(duels, seed=1), ax=Figure().subplots())
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[-1] == "z (no data)"
    assert {label[-3:] for label in labels[:-1]} == {"[1]", "[2]"}
    assert "share no comparison" in axes.get_title(loc="left")


def test_maximum_likelihood_shows_log_worths():
    tree = bf.fit(Comparisons.from_counts(["a"], ["b"], [7], [3]), seed=1, prior_sd=np.inf)
    axes = bf.plots.plot_ranks(tree, ax=Figure().subplots())
    assert axes.get_xlabel().startswith("log-worth")


def test_cumulative_regret_ends_at_the_total():
    audit = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    axes = bf.plots.plot_cumulative_regret(audit.rounds(), ax=Figure().subplots())
    y = axes.lines[0].get_ydata()
    assert len(y) == 12
    assert y[-1] == pytest.approx(audit.to_dict()["calibration"]["subjective"]["regret_total"])
    twice = bf.plots.plot_cumulative_regret(np.full(12, 0.1), ax=axes, label="other")
    assert twice is axes
    assert len(axes.lines) == 2
    with pytest.raises(OptionError, match="one finite number per round"):
        bf.plots.plot_cumulative_regret(np.array([0.1, np.nan]))


def test_cumulative_regret_of_a_thinned_series_is_that_of_the_rounds():
    n = 3000
    log = bf.History(["a", "b"] * (n // 2), [1, 0, 1] * (n // 3),
                     selection_probability=[[0.5, 0.5]] * n)  # fmt: skip
    audit = bf.audit(log, seed=1, draws=100)
    path = np.cumsum(audit.rounds()["fairness_regret"].values)
    line = bf.plots.plot_cumulative_regret(audit.series(), ax=Figure().subplots()).lines[0]
    x, y = line.get_xdata(), line.get_ydata()
    assert (x[0], y[0], x[-1]) == (0, 0, n)
    assert len(x) < 1100
    np.testing.assert_allclose(y[1:], path[x[1:] - 1], rtol=1e-9)


def test_selection_beside_p_best():
    audit = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    axes = bf.plots.plot_selection(audit, ax=Figure().subplots())
    arms = audit.to_dict()["arms"]
    drawn = {line.get_label(): line.get_xdata().tolist() for line in axes.lines}
    assert drawn["mean selection probability"] == [a["selection_mean"] for a in arms]
    assert drawn["P*, believed"] == [a["p_best_subjective"] for a in arms]
    assert drawn["P*, posterior"] == [a["p_best_objective"] for a in arms]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["ECMO", "conventional"]


def test_selection_of_many_arms_and_of_choices_alone():
    arms = [f"arm {i}" for i in range(120)]
    many = bf.audit(bf.History(arms * 2 + arms[:20], [1, 0] * 130, arms=arms), seed=1, draws=50)
    axes = bf.plots.plot_selection(many.to_dict(), ax=Figure().subplots())
    points = next(line for line in axes.lines if line.get_label() == "an arm")
    # 260 rounds: the first 20 arms were chosen three times, the others twice
    np.testing.assert_allclose(points.get_ydata(), [3 / 260] * 20 + [2 / 260] * 100)
    assert axes.get_ylabel() == "share of the choices"
    chosen = bf.audit(bf.History(["a", "b", "a", "a"], [1, 0, 1, 1], propensity=[0.5] * 4), seed=1)
    lines = bf.plots.plot_selection(chosen, ax=Figure().subplots()).lines
    found = {line.get_label(): line.get_xdata().tolist() for line in lines}
    assert found["share of the choices"] == [0.75, 0.25]


def test_frontier_without_finite_values_draws_none():
    log = bf.History(["a", "b"] * 9, [1, 0] * 9, selection_probability=[[1, 0], [0, 1]] * 9)
    axes = bf.plots.plot_frontier(bf.audit(log, divergence="kl", seed=1), ax=Figure().subplots())
    exact = next(line for line in axes.lines if line.get_label() == "subjective, exact")
    assert np.isnan(exact.get_ydata()).all()
    low, high = axes.get_xlim()
    assert low < 0
    assert high > 2


def test_frontier_of_both_kinds_of_audit():
    audit = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    axes = bf.plots.plot_frontier(audit, ax=Figure().subplots())
    rows = audit.to_dict()["frontier"]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["subjective, exact"], [row["subjective"] for row in rows])
    np.testing.assert_allclose(
        drawn["objective, mean and 95 %"], [row["objective"]["mean"] for row in rows]
    )
    log = Comparisons.from_duels(["a", "b"] * 40, ["b", "a"] * 40, ["left"] * 80, keep_rows=True)
    duels = bf.audit_comparisons(log, selection_probability=[0.5, 0.5], seed=1)
    assert bf.plots.plot_frontier(duels, ax=Figure().subplots()).get_xlabel() == "eps1"
    plain = bf.audit(bf.History(["a", "b"], [1, 0]), seed=1)
    with pytest.raises(OptionError, match="no frontier"):
        bf.plots.plot_frontier(plain)
