"""Plots of fits to comparisons: ranks, orders, wins, and what a fit hangs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.checks import check_choice
from bayesfair.base.shown import shortened
from bayesfair.plots.base import (
    ACCENT,
    FAINT,
    INK,
    NAME,
    ROW,
    bare,
    grid,
    heat,
    legend,
    names_on,
    new_axes,
    plot,
    rank_figure_size,
    title,
)
from bayesfair.ranking import rank_probability, rank_table, win_probability

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = [
    "plot_gaps",
    "plot_influence",
    "plot_predicted_wins",
    "plot_rank_probability",
    "plot_ranks",
    "plot_win_matrix",
]

_MOST_KINDS = 30

_of_ranks = plot(
    "a fit of comparisons or its rank_table", "island", mark="children", made=rank_table
)


@_of_ranks
def plot_ranks(
    fit: xr.DataTree | xr.Dataset, *, ax: Axes | None = None, quantity: str = "rank"
) -> Axes:
    """Draw one interval per item, best on top; every item gets its line.

    Parameters
    ----------
    fit : xarray.DataTree or xarray.Dataset
        A fit to comparisons, or its `rank_table`.
    ax : matplotlib Axes, optional
        Default: a new figure whose height grows with the number of items.
    quantity : {"rank", "log_worth", "worth"}
        What is drawn: posterior mean and equal-tailed 95 % interval. A fit without draws has no
        ranks and shows log-worths.

    Notes
    -----
    Colours alternate between tiers; items without data are listed at the bottom without interval.
    """
    check_choice(quantity, "quantity", ("rank", "log_worth", "worth"))
    table: Any = fit
    if quantity == "rank" and not np.isfinite(table["rank_mean"]).any():
        quantity = "log_worth"
    items = [str(item) for item in table["item"].values]
    axes = new_axes(ax, rank_figure_size(len(items)))
    middle = table["rank_mean" if quantity == "rank" else quantity].values
    low, high = (table[f"{quantity}_{end}"].values for end in ("lower", "upper"))
    y = np.arange(len(items))
    ranked = table["island"].values >= 0
    islands = len(set(table["island"].values[ranked].tolist()))
    for parity, colour in ((1, INK), (0, ACCENT)):
        at = ranked & (table["tier"].values % 2 == parity)
        axes.hlines(y[at], low[at], high[at], color=colour, linewidth=2)
        axes.plot(middle[at], y[at], "o", color=colour, markersize=4)
    names = shortened(items)
    for i in np.flatnonzero(~ranked):
        names[i] += " (no data)"
    if islands > 1:
        for i in np.flatnonzero(ranked):
            names[i] += f" [{int(table['island'].values[i]) + 1}]"
    names_on(axes, names)
    label = {"rank": "rank (1 = best)", "log_worth": "log-worth", "worth": "worth"}[quantity]
    axes.set_xlabel(f"{label}, {table.attrs.get('interval', '95 %')}")
    text = f"{table.attrs.get('model', '')}; colours alternate between tiers"
    if islands > 1:
        text += "\n[islands] share no comparison: between them only the prior speaks"
    axes.set_title(text, fontsize=9, loc="left")
    if quantity == "rank":
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        last = int(table.attrs.get("n_ranked", ranked.sum()))  # of the whole table, not a part
        axes.set_xlim(0.5, last + 0.5)
        axes.set_xticks(sorted({1, *(int(t) for t in axes.get_xticks() if 1 < t <= last)}))
    return bare(axes)


def _order(worth: Any) -> Any:
    """Return the items by their worth, best first; those without a number last."""
    return np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable")


@plot("a fit or its rank_probability", "rank_probability", mark="children", made=rank_probability)
def plot_rank_probability(fit: xr.DataTree | xr.DataArray, *, ax: Axes | None = None) -> Axes:
    """Draw the posterior probability of each rank of each item, best item on top.

    Parameters
    ----------
    fit : xarray.DataTree or xarray.DataArray
        A fit to comparisons with draws, or its `rank_probability`.
    """
    given: Any = fit
    known = given[np.isfinite(given.values).all(axis=1)]
    mean = (known.values * known["rank"].values).sum(axis=1)
    order = np.argsort(mean, kind="stable")
    names = [str(item) for item in known["item"].values[order]]
    size = 1.8 + ROW * len(names)
    axes = new_axes(ax, (2.6 + size, size))
    heat(axes, known.values[order], names, [str(r) for r in known["rank"].values],
         "posterior probability", vmin=0, vmax=1)  # fmt: skip
    axes.set_xlabel("rank (1 = best)")
    return axes


@plot("a fit or its win_probability", "p_better", mark="children", made=win_probability)
def plot_win_matrix(
    fit: xr.DataTree | xr.Dataset, *, ax: Axes | None = None, quantity: str = "p_beats"
) -> Axes:
    """Draw, for each pair, the probability that the row wins or is better, best item first.

    Parameters
    ----------
    fit : xarray.DataTree or xarray.Dataset
        A fit to comparisons, or its `win_probability`.
    quantity : {"p_beats", "p_better"}
        That the item of the row wins the next duel, or that its worth is the larger one.

    Notes
    -----
    Pairs that no chain of comparisons links are left empty.
    """
    check_choice(quantity, "quantity", ("p_beats", "p_better"))
    table: Any = fit
    values = table[quantity].where(table["linked"]).values
    beats = table["p_beats"].values
    seen = np.isfinite(beats).sum(axis=1)
    order = _order(np.nansum(beats, axis=1) / np.maximum(seen, 1))
    names = [str(item) for item in table["item"].values[order]]
    size = 1.8 + ROW * len(names)
    axes = new_axes(ax, (2.6 + size, size))
    label = {"p_beats": "P(row beats column)", "p_better": "P(row is better than column)"}
    heat(axes, values[np.ix_(order, order)], names, names, label[quantity], vmin=0, vmax=1)
    return axes


@_of_ranks
def plot_gaps(fit: xr.DataTree | xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw by how much the log-worth of each row exceeds that of each column, best item first.

    Parameters
    ----------
    fit : xarray.DataTree or xarray.Dataset
        A fit to comparisons, or its `rank_table`. Items without data, and pairs that no chain of
        comparisons links, are left out.
    """
    table: Any = fit
    table = table.isel(item=np.flatnonzero(table["island"].values >= 0))
    worth, island = table["log_worth"].values, table["island"].values
    gap = worth[:, None] - worth[None, :]
    gap[(island[:, None] != island[None, :]) | (gap < 0) | np.eye(len(gap), dtype=bool)] = np.nan
    names = [str(item) for item in table["item"].values]
    size = 1.8 + ROW * len(names)
    axes = new_axes(ax, (2.6 + size, size))
    return heat(axes, gap, names, names, "log-worth of row less that of column", vmin=0)


@plot("what predicted_wins returns", "observed", "expected", "lower")
def plot_predicted_wins(predicted: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw observed against expected wins of every pair, with their 95 % interval under the fit.

    Parameters
    ----------
    predicted : xarray.Dataset
        What `predicted_wins` returned.

    Notes
    -----
    Pairs outside their interval are marked: about one in twenty is by chance.
    """
    met = np.triu(predicted["n"].values > 0, 1)
    seen, expected, low, high = (
        predicted[name].values[met] for name in ("observed", "expected", "lower", "upper")
    )
    out = (seen < low) | (seen > high)
    axes = new_axes(ax, (4.8, 4.4))
    top = 1.05 * max(seen.max(initial=1), high.max(initial=1))
    axes.plot([0, top], [0, top], color=FAINT, linewidth=1)
    axes.vlines(expected, low, high, color=FAINT, linewidth=1, label="95 % under the fit")
    axes.plot(expected[~out], seen[~out], "o", color=INK, markersize=3.5, label="within")
    if out.any():
        axes.plot(expected[out], seen[out], "o", color=ACCENT, markersize=4.5,
                  label=f"outside: {int(out.sum())} of {len(out)} pairs")  # fmt: skip
    axes.set(xlabel="wins expected", ylabel="wins observed", xlim=(0, top), ylim=(0, top))
    return legend(grid(axes))


@plot("what influence returns", "lead_change", "flip_removed")
def plot_influence(influence: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw how the lead of the top item changes without each kind of comparison.

    Parameters
    ----------
    influence : xarray.Dataset
        What `influence` returned. The 30 kinds that matter most are drawn.
    """
    # a > b is one kind, on whichever side of its row each stood
    kinds, at, kind = np.unique(influence["comparison"], return_index=True, return_inverse=True)
    change = influence["lead_change"].values[at]
    count, flip = (np.bincount(kind, influence[name]) for name in ("count", "flip_removed"))
    shown = np.argsort(-np.abs(np.nan_to_num(change)), kind="stable")[:_MOST_KINDS]
    shown = shown[np.argsort(change[shown], kind="stable")]
    axes = new_axes(ax, (6.4, 1.3 + ROW * len(shown)))
    y, flips = np.arange(len(shown)), flip[shown] > 0
    for part, colour in ((flips, ACCENT), (~flips, INK)):
        axes.hlines(y[part], 0, change[shown][part], color=colour, linewidth=2)
        axes.plot(change[shown][part], y[part], "o", color=colour, markersize=4)
    names_on(axes, shortened(f"{count[i]:g} x {kinds[i]}" for i in shown))
    axes.axvline(0, color=FAINT, linewidth=1)
    leader, other = influence.attrs["leader"], influence.attrs["runner_up"]
    leader, other = shortened((leader, other), NAME)
    axes.set_xlabel("change of the lead (log-worth) without them", loc="right")
    text = f"lead of {leader} over {other}: {float(influence['lead']):.3g}"
    title(axes, text)
    return bare(axes)
