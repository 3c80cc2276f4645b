"""Plots of an audit: selection beside P*, the frontier, regret added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import PLAIN
from bayesfair.base.checks import as_numbers
from bayesfair.base.shown import shortened
from bayesfair.errors import BayesfairError, OptionError
from bayesfair.plots.base import (
    ACCENT,
    FAINT,
    INK,
    ROW,
    audit_numbers,
    bare,
    legend,
    names_on,
    new_axes,
    plot,
    refuse,
)
from bayesfair.typing import Numbered

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["LABELLED_ARMS", "plot_cumulative_regret", "plot_frontier", "plot_selection"]

LABELLED_ARMS = 100
"""With more arms `plot_selection` draws points."""


@plot(label=PLAIN)
def plot_cumulative_regret(
    regret: ArrayLike | xr.Dataset | Numbered | Mapping[str, Any],
    *,
    ax: Axes | None = None,
    label: str | None = None,
) -> Axes:
    r"""Draw the fairness regret summed up to each round.

    Parameters
    ----------
    regret : (T,) array, xarray.Dataset, dict or Audit
        Fairness regret per round, or what ``audit.rounds()`` or ``audit.series()`` returns. The
        last is thinned for long logs, and at hand for scanned and loaded audits too; an audit is
        asked for it.
    label : str, optional
        For a legend.

    Raises
    ------
    OptionError
        If regret is not known for every round.
    """
    given: Any = regret
    if hasattr(given, "series") and hasattr(given, "to_dict"):
        given = given.series()
    if isinstance(given, dict) and {"round", "regret"} <= set(given):
        n, total = np.asarray(given["round"]), np.asarray(given["regret"], dtype=np.float64)
        return _draw_cumulative(np.append(0, n), np.append(0.0, total), ax, label)
    wrong = refuse(
        "plot_cumulative_regret", "the regret of every round: an audit of one log of decisions, or "
        "what its rounds() or series() return", regret, "regret",
    )  # fmt: skip
    if "fairness_regret" in getattr(given, "data_vars", ()) and "round" in given.dims:
        given = given["fairness_regret"].values
    if not hasattr(given, "__len__") or isinstance(given, Mapping) or hasattr(given, "columns"):
        raise wrong
    try:
        values = as_numbers(given, "regret")
    except BayesfairError:
        raise wrong from None
    if values.ndim != 1:
        raise wrong
    if not np.isfinite(values).all():
        raise OptionError(
            "a cumulative regret needs one finite number per round; with only the chosen arm's "
            "probability logged, regret per round is an estimate, not a path."
        )
    return _draw_cumulative(np.arange(1, len(values) + 1), np.cumsum(values), ax, label)


def _draw_cumulative(n: Any, total: Any, ax: Axes | None, label: str | None) -> Axes:
    axes = new_axes(ax, (6.0, 3.6))
    axes.plot(n, total, color=None if label else INK, linewidth=1.6, label=label)
    axes.set_xlabel("rounds")
    axes.set_ylabel("fairness regret, cumulative")
    axes.set_xlim(0, max(n[-1] if len(n) else 1, 1))
    dust = len(n) and total[-1] <= 1e-9 * n[-1]  # rounding, nothing that was measured
    axes.set_ylim(0, 1 if dust else None)
    axes.grid(color=FAINT, alpha=0.35, linewidth=0.6)
    return legend(axes) if label else axes


@plot()
def plot_frontier(audit: Numbered | Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw the smallest eps2 against eps1: what smooth fairness the log does satisfy.

    Parameters
    ----------
    audit : Audit, duel audit, or their ``to_dict()``

    Raises
    ------
    OptionError
        If the audit has no frontier: the probabilities of all arms were not logged.
    """
    numbers = audit_numbers(audit, "plot_frontier", "frontier")
    rows = numbers["frontier"]
    exact = [
        (row["eps1"], _finite(row["subjective"])) for row in rows
        if row.get("subjective") is not None
    ]  # fmt: skip
    drawn = [(row["eps1"], row["objective"]) for row in rows if row.get("objective") is not None]
    if not exact and not drawn:
        raise OptionError("this audit has no frontier: it needs the probabilities of all arms.")
    axes = new_axes(ax, (6.0, 3.6))
    if drawn:
        x = [eps1 for eps1, _ in drawn]
        low, high = ([_finite(found[end]) for _, found in drawn] for end in ("lower", "upper"))
        mean = [_finite(found["mean"]) for _, found in drawn]
        axes.fill_between(x, low, high, color=ACCENT, alpha=0.25, linewidth=0)
        known = numbers["criterion"].get("model") == "truth"
        label = "objective, exact" if known else "objective, mean and 95 %"
        axes.plot(x, mean, color=ACCENT, label=label)
    if exact:
        axes.plot(*zip(*exact, strict=True), color=INK, label="subjective, exact")
    criterion = numbers["criterion"]
    axes.plot(
        criterion["eps1"],
        criterion["eps2"],
        "x",
        color=INK,
        label="asked for",
        clip_on=False,
        zorder=5,
    )
    axes.set_xlabel("eps1")
    axes.set_ylabel("smallest eps2")
    axes.set_ylim(bottom=0)
    width = max(row["eps1"] for row in rows) or 1.0
    axes.set_xlim(-0.03 * width, 1.05 * width)
    axes.grid(color=FAINT, alpha=0.35, linewidth=0.6)
    return legend(axes, above=3)


def _finite(value: Any) -> float:
    """Return a number, NaN for an infinite one: it has no place on an axis."""
    number = float("nan" if value is None else value)
    return number if np.isfinite(number) else float("nan")


@plot()
def plot_selection(audit: Numbered | Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw how often each arm was to be chosen beside its probability of being best.

    Up to 100 arms get a line each, labelled; more are drawn as points against the diagonal, all of
    them. Where only choices or the chosen arm's probability were logged, shares of the choices
    take the place of selection probabilities.

    Parameters
    ----------
    audit : Audit, loaded audit, duel audit, or its ``to_dict()``
    ax : matplotlib Axes, optional
        Default: a new figure whose height grows with the number of arms up to 100.

    Raises
    ------
    OptionError
        If the audit has no rounds.
    """
    numbers = audit_numbers(audit, "plot_selection", "arms", "items")
    of_duels = "arms" not in numbers
    n_rounds, arms = numbers["log"]["n_judged"], numbers["items" if of_duels else "arms"]
    if not n_rounds:
        raise OptionError("an audit of no rounds has no selection to draw.")
    logged = numbers["log"]["selection"] == "full"
    name = "mean selection probability" if logged else "share of the choices"
    if of_duels and not logged:
        name = "share of the slot"
    by_mean = logged or of_duels
    shares = [a["selection_mean"] if by_mean else a["n"] / n_rounds for a in arms]
    chosen = np.array(shares, dtype=np.float64)  # NaN of an item that was never on offer
    believed = np.array([a["p_best_subjective"] for a in arms], dtype=np.float64)
    if len(arms) > LABELLED_ARMS:
        axes = new_axes(ax, (4.8, 4.4))
        top = 1.05 * max(np.nanmax(chosen), np.nanmax(believed))
        axes.plot([0, top], [0, top], color=FAINT, linewidth=1, label="calibrated")
        axes.plot(
            believed,
            chosen,
            "o",
            color=ACCENT,
            markersize=3,
            alpha=0.6,
            label="an item" if of_duels else "an arm",
        )
        axes.set(xlabel="mean P*, believed", ylabel=name, xlim=(0, top), ylim=(0, top))
        axes.grid(color=FAINT, alpha=0.35, linewidth=0.6)
        return legend(axes)
    axes = new_axes(ax, (6.0, 1.4 + ROW * len(arms)))
    y = np.arange(len(arms))
    axes.hlines(y, np.minimum(believed, chosen), np.maximum(believed, chosen), color=FAINT)
    axes.plot(believed, y, "o", color=INK, markerfacecolor="none", label="P*, believed")
    posterior = np.array([a["p_best_objective"] for a in arms], dtype=np.float64)
    if not np.isnan(posterior).all():
        true = numbers["criterion"]["model"] == "truth"
        axes.plot(posterior, y, "|", color=INK, label="P*, true" if true else "P*, posterior")
    axes.plot(chosen, y, "o", color=ACCENT, markersize=5, label=name)
    names_on(axes, shortened(a["item" if of_duels else "arm"] for a in arms))
    axes.set_xlim(left=0)
    axes.set_xlabel("probability, mean over the rounds")
    return legend(bare(axes), above=2)
