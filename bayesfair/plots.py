"""Plots: Axes in, Axes out; matplotlib is imported when a plot is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.checks import check_choice
from bayesfair.errors import OptionError
from bayesfair.ranking import rank_table

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["plot_cumulative_regret", "plot_frontier", "plot_ranks", "rank_figure_size"]

_INK, _FAINT, _ACCENT = "#22313f", "#9aa5b1", "#b5482a"
_ROW = 0.24  # inches per item
_TALLEST = 600  # inches; at 100 dots per inch near the largest image that can be written


def rank_figure_size(n_items: int) -> tuple[float, float]:
    """Return width and height in inches of a plot with one line per item.

    Examples
    --------
    >>> rank_figure_size(10) < rank_figure_size(100)
    True
    """
    return 7.0, min(1.1 + _ROW * n_items, _TALLEST)


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]  # type: ignore[no-any-return]


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

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Colours alternate between tiers; items without data are listed at the bottom without interval.
    """
    check_choice(quantity, "quantity", ("rank", "log_worth", "worth"))
    # a tree, or the table made of it
    table: Any = rank_table(fit) if hasattr(fit, "children") else fit  # type: ignore[arg-type]
    if quantity == "rank" and not np.isfinite(table["rank_mean"]).any():
        quantity = "log_worth"
    items = [str(item) for item in table["item"].values]
    axes = _axes(ax, rank_figure_size(len(items)))
    middle = table["rank_mean" if quantity == "rank" else quantity].values
    low, high = (table[f"{quantity}_{end}"].values for end in ("lower", "upper"))
    y = np.arange(len(items))
    ranked = table["island"].values >= 0
    islands = len(set(table["island"].values[ranked].tolist()))
    for parity, colour in ((1, _INK), (0, _ACCENT)):
        at = ranked & (table["tier"].values % 2 == parity)
        axes.hlines(y[at], low[at], high[at], color=colour, linewidth=2)
        axes.plot(middle[at], y[at], "o", color=colour, markersize=4)
    names = list(items)
    for i in np.flatnonzero(~ranked):
        names[i] += " (no data)"
    if islands > 1:
        for i in np.flatnonzero(ranked):
            names[i] += f" [{int(table['island'].values[i]) + 1}]"
    axes.set_yticks(y, names, fontsize=8)
    axes.set_ylim(len(items) - 0.4, -0.6)
    label = {"rank": "rank (1 = best)", "log_worth": "log-worth", "worth": "worth"}[quantity]
    axes.set_xlabel(f"{label}, {table.attrs.get('interval', '95 %')}")
    title = f"{table.attrs.get('model', '')}; colours alternate between tiers"
    if islands > 1:
        title += "\n[islands] share no comparison: between them only the prior speaks"
    axes.set_title(title, fontsize=9, loc="left")
    axes.grid(axis="x", color=_FAINT, alpha=0.35, linewidth=0.6)
    if quantity == "rank":
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.set_xlim(0.5, int(ranked.sum()) + 0.5)
        axes.set_xticks(sorted({1, *(int(t) for t in axes.get_xticks() if 1 < t <= ranked.sum())}))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return axes


def plot_cumulative_regret(
    regret: Any, *, ax: Axes | None = None, label: str | None = None
) -> Axes:
    r"""Draw the fairness regret summed up to each round.

    Parameters
    ----------
    regret : (T,) array or xarray.Dataset
        Fairness regret per round, or what ``audit.rounds()`` returns.
    ax : matplotlib Axes, optional
    label : str, optional
        For a legend.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    OptionError
        If regret is not known for every round.
    """
    values = regret["fairness_regret"].values if hasattr(regret, "data_vars") else regret
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise OptionError(
            "a cumulative regret needs one finite number per round; with only the chosen arm's "
            "probability logged, regret per round is an estimate, not a path."
        )
    axes = _axes(ax, (6.0, 3.6))
    n = np.arange(1, len(values) + 1)
    axes.plot(n, np.cumsum(values), color=None if label else _INK, linewidth=1.6, label=label)
    axes.set_xlabel("rounds")
    axes.set_ylabel("fairness regret, cumulative")
    axes.set_xlim(0, max(len(values), 1))
    axes.set_ylim(bottom=0)
    axes.grid(color=_FAINT, alpha=0.35, linewidth=0.6)
    if label:
        axes.legend(frameon=False)
    return axes


def plot_frontier(audit: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the smallest eps2 against eps1: what smooth fairness the log does satisfy.

    Parameters
    ----------
    audit : Audit, duel audit, or their ``to_dict()``
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    OptionError
        If the audit has no frontier: the probabilities of all arms were not logged.
    """
    numbers = audit if isinstance(audit, dict) else audit.to_dict()
    rows = numbers["frontier"]
    exact = [(row["eps1"], row["subjective"]) for row in rows if row.get("subjective") is not None]
    drawn = [(row["eps1"], row["objective"]) for row in rows if row.get("objective") is not None]
    if not exact and not drawn:
        raise OptionError("this audit has no frontier: it needs the probabilities of all arms.")
    axes = _axes(ax, (6.0, 3.6))
    if drawn:
        x = [eps1 for eps1, _ in drawn]
        low, high = ([float(found[end]) for _, found in drawn] for end in ("lower", "upper"))
        mean = [float(found["mean"]) for _, found in drawn]
        axes.fill_between(x, low, high, color=_ACCENT, alpha=0.25, linewidth=0)
        axes.plot(x, mean, color=_ACCENT, label="objective, mean and 95 %")
    if exact:
        axes.plot(*zip(*exact, strict=True), color=_INK, label="subjective, exact")
    criterion = numbers["criterion"]
    axes.plot(criterion["eps1"], criterion["eps2"], "x", color=_INK, label="asked for")
    axes.set_xlabel("eps1")
    axes.set_ylabel("smallest eps2")
    axes.set_ylim(bottom=0)
    axes.grid(color=_FAINT, alpha=0.35, linewidth=0.6)
    axes.legend(frameon=False)
    return axes
