"""Plots of what the rounds of an audit add up to: over time, by pair, by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.shown import number
from bayesfair.errors import OptionError
from bayesfair.plots.base import ACCENT, FAINT, INK, ROW, grid, heat, legend, new_axes, plot

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from bayesfair.typing import Numbered

__all__ = ["plot_pairs", "plot_regret", "plot_reliability", "plot_violations"]

_MOST_NAMES = 40

_of_rounds = plot(
    "an audit of one log of decisions, or its over_time()", "violating_share",
    mark="over_time", made=lambda audit: audit.over_time(),
)  # fmt: skip


def _steps(axes: Axes, found: Any, name: str, **options: Any) -> None:
    """Draw a value of each window as steps, from the first round to the last."""
    edges = np.append(found["start"].values, found["stop"].values[-1])
    axes.stairs(found[name].values, edges, baseline=None, **options)


def _band(axes: Axes, found: Any, name: str, colour: str) -> None:
    edges = np.append(found["start"].values, found["stop"].values[-1])
    low, high = found[f"{name}_lower"].values, found[f"{name}_upper"].values
    axes.stairs(high, edges, baseline=low, fill=True, color=colour, alpha=0.22, linewidth=0)


@_of_rounds
def plot_regret(audit: Numbered | xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw the fairness regret per round by windows of time, with 95 % where it is uncertain.

    Parameters
    ----------
    audit : Audit or xarray.Dataset
        An audit whose log is at hand, or its ``over_time()``.

    Raises
    ------
    OptionError
        If the log is not at hand, or holds no probabilities.
    """
    found: Any = audit
    if np.isnan(found["regret"].values).all():
        raise OptionError("this log holds no probabilities: the regret of a window is not known.")
    axes = new_axes(ax, (6.0, 3.4))
    if "regret_objective" in found:
        known = found["regret_objective_lower"].equals(found["regret_objective_upper"])
        _band(axes, found, "regret_objective", ACCENT)
        label = f"under the true rewards, {'exact' if known else 'mean and 95 %'}"
        _steps(axes, found, "regret_objective", color=ACCENT, label=label)
    label = "under the beliefs, exact" if found.attrs["exact"] else "under the beliefs, 95 %"
    if not found.attrs["exact"]:
        _band(axes, found, "regret", INK)
    _steps(axes, found, "regret", color=INK, linewidth=1.6, label=label)
    axes.set(xlabel="rounds", ylabel="fairness regret per round")
    axes.set_ylim(bottom=0)
    return legend(grid(axes))


@_of_rounds
def plot_violations(audit: Numbered | xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw the share of violating rounds by windows of time.

    Parameters
    ----------
    audit : Audit or xarray.Dataset
        An audit whose log is at hand and holds the whole rule, or its ``over_time()``.
    """
    found: Any = audit
    _need_rule(found)
    axes = new_axes(ax, (6.0, 3.0))
    _steps(axes, found, "violating_share", color=ACCENT, linewidth=1.6)
    axes.set(xlabel="rounds", ylabel="share of rounds that violate", ylim=(0, 1.02))
    return grid(axes)


def _need_rule(found: Any) -> None:
    if np.isnan(found["violating_share"].values).all():
        raise OptionError("smooth fairness needs the probabilities of all arms in each round.")


@_of_rounds
def plot_pairs(audit: Numbered | xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw in how many violating rounds each pair was the worst: rows favoured over columns.

    Parameters
    ----------
    audit : Audit or xarray.Dataset
        An audit whose log is at hand and holds the whole rule, or its ``over_time()``.

    Notes
    -----
    Up to 40 arms on either side, those of the most frequent pairs.
    """
    found: Any = audit
    _need_rule(found)
    if not found.sizes["pair"]:
        raise OptionError("no round violates: there is no pair to draw.")
    rows, columns = (_first(found[name].values) for name in ("pair_arm", "pair_arm_other"))
    table = np.full((len(rows), len(columns)), np.nan)
    for one, other, n in zip(
        found["pair_arm"].values, found["pair_arm_other"].values, found["pair_rounds"].values,
        strict=True,
    ):  # fmt: skip
        if one in rows and other in columns:
            table[rows.index(one), columns.index(other)] = n
    axes = new_axes(ax, (3.6 + ROW * len(columns), 2.0 + ROW * len(rows)))
    heat(axes, table, rows, columns, "violating rounds", vmin=0)
    axes.set(xlabel="over", ylabel="favoured")
    return axes


def _first(names: Any) -> list[Any]:
    return list(dict.fromkeys(names.tolist()))[:_MOST_NAMES]


@_of_rounds
def plot_reliability(audit: Numbered | xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw how likely arms were to be the best, by the chance with which they were chosen.

    Parameters
    ----------
    audit : Audit or xarray.Dataset
        An audit whose log is at hand and holds the whole rule, or its ``over_time()``.

    Notes
    -----
    Calibrated fairness asks for the diagonal. The mean distance from it is a lower bound of the
    fairness regret per round.
    """
    found: Any = audit
    if "chance" not in found:
        raise OptionError(
            "reliability needs the probabilities of all arms in each round, and the log at hand."
        )
    axes = new_axes(ax, (4.6, 4.2))
    x, y = found["chance"].values, found["p_best"].values
    top = min(1.05 * max(x.max(), y.max()), 1.02)
    axes.plot([0, top], [0, top], color=FAINT, linewidth=1, label="calibrated")
    axes.plot(x, y, "o-", color=ACCENT, markersize=4, linewidth=1.2, label="a tenth of all chances")
    axes.set(xlabel="chance of being chosen, mean", ylabel="P*, mean of the beliefs")
    axes.set(xlim=(0, top), ylim=(0, top))
    gap = found.attrs["reliability_gap"]
    axes.set_title(f"regret per round at least {number(gap)}", fontsize=9, loc="left")
    return legend(grid(axes))
