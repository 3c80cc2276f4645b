"""Plots that set things side by side: arms, groups, rules, powers of a prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.shown import shortened
from bayesfair.errors import OptionError
from bayesfair.plots.base import (
    ACCENT,
    FAINT,
    INK,
    ROW,
    bare,
    grid,
    legend,
    names_on,
    new_axes,
    plot,
    refuse,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

    from bayesfair.typing import Numbered

__all__ = [
    "DRAWN_GROUPS",
    "LABELLED_GROUPS",
    "plot_groups",
    "plot_prior_sensitivity",
    "plot_rewards",
    "plot_rules",
    "plot_shares",
    "plot_tradeoff",
    "plot_value",
]

LABELLED_GROUPS = 60
DRAWN_GROUPS = 1000
_MOST_ARMS = 100
DRAWN_ITEMS = 8
_ESTIMATES = {"ips": INK, "self_normalised": FAINT, "doubly_robust": ACCENT}


@plot("an audit of one log of decisions or its to_dataframe()", "reward_believed",
      mark="over_time", made=lambda audit: audit.to_dataframe())  # fmt: skip
def plot_rewards(audit: Numbered | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw what is believed of each arm's mean reward after the last round, with 95 %.

    Parameters
    ----------
    audit : Audit or pandas.DataFrame
        Of one log, or its ``to_dataframe()``; beliefs given a context have no such table.

    Notes
    -----
    A ring is the mean of the rewards that were logged. Of more than 100 arms the most played are
    drawn.
    """
    table: Any = audit
    if table["reward_lower"].isna().all():
        raise OptionError("beliefs given a context are no single law of each arm: nothing to draw.")
    if len(table) > _MOST_ARMS:
        table = table.sort_values("n", ascending=False, kind="stable")[:_MOST_ARMS]
    table = table.sort_values("reward_believed", ascending=False, kind="stable")
    y = np.arange(len(table))
    axes = new_axes(ax, (6.0, 1.3 + ROW * len(table)))
    axes.hlines(y, table["reward_lower"], table["reward_upper"], color=INK, linewidth=2)
    axes.plot(table["reward_believed"], y, "o", color=INK, markersize=4, label="believed, 95 %")
    axes.plot(table["reward_mean"].astype(float), y, "o", color=ACCENT, markerfacecolor="none",
              markersize=6, label="logged")  # fmt: skip
    names_on(axes, shortened((str(arm) for arm in table.index), 24))
    axes.set_xlabel("mean reward")
    return legend(bare(axes), above=2)


@plot("an audit of several logs (by=) or its to_dict()", "groups",
      mark="to_dict", made=lambda audits: audits.to_dict())  # fmt: skip
def plot_groups(audits: Numbered | Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw the fairness regret per round of each group, with its 95 % interval.

    Parameters
    ----------
    audits : AuditGroup or its ``to_dict()``
        Groups without probabilities have no regret and are left out. Up to 60 groups get a line
        with a name each; more stand in order of their regret, of thousands 1,000 evenly along it.
    """
    numbers: Any = audits
    values = [
        (str(label), one["calibration"]["subjective"]) for label, one in numbers["groups"].items()
    ]
    values = [found for found in values if found[1]["regret_per_round"] is not None]
    if not values:
        raise OptionError("no group has a regret: it needs logged probabilities.")
    few = len(values) <= LABELLED_GROUPS
    if not few:
        values.sort(key=lambda found: found[1]["regret_per_round"])
    if len(values) > DRAWN_GROUPS:
        places = np.linspace(0, len(values) - 1, DRAWN_GROUPS).round().astype(int)
        values = [values[g] for g in places]
    axes = new_axes(ax, (6.0, 1.1 + ROW * len(values) if few else 3.6))
    y = np.arange(len(values))
    middle, low, high = (
        np.array([part[end] for _, part in values])
        for end in ("regret_per_round", "lower", "upper")
    )
    axes.hlines(y, low, high, color=ACCENT, linewidth=1.2)
    axes.plot(middle, y, "o", color=ACCENT, markersize=4 if few else 2)
    if few:
        names_on(axes, shortened((label for label, _ in values), 24))
    else:
        axes.set_ylabel("groups, in order of their regret")
    axes.set_xlim(0, 1.05 * max(high.max(), 0.01))
    axes.set_xlabel("fairness regret per round, 95 %")
    return bare(axes)


@plot("what audit.prior_sensitivity() returns", "powers",
      mark="hangs_on_prior", made=lambda found: found.to_dict())  # fmt: skip
def plot_prior_sensitivity(
    sensitivity: Numbered | Mapping[str, Any], *, ax: Axes | None = None
) -> Axes:
    """Draw the probability of being fair, or the regret, under powers of the prior.

    Parameters
    ----------
    sensitivity : PriorSensitivity or its ``to_dict()``
        What ``audit.prior_sensitivity()`` returned.

    Notes
    -----
    Rings are powers whose weights are not to be trusted. Where smooth fairness cannot be audited,
    the regret per round is drawn.
    """
    numbers: Any = sensitivity
    rows = numbers["powers"]
    known = all(row["probability_fair"] is not None for row in rows)
    name = "probability_fair" if known else "regret_per_round"
    power = np.array([row["power"] for row in rows])
    value = np.array([row[name] for row in rows], dtype=float)
    trusted = np.array([row["trusted"] for row in rows])
    axes = new_axes(ax, (5.0, 3.4))
    axes.plot(power, value, color=FAINT)
    axes.plot(power[trusted], value[trusted], "o", color=INK, label="to be trusted")
    if not trusted.all():
        axes.plot(power[~trusted], value[~trusted], "o", color=INK, markerfacecolor="none",
                  label="k-hat above 0.7")  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(power, [f"{p:g}" for p in power])
    axes.minorticks_off()
    axes.set(xlabel="power of the prior (1 = as it is)", ylabel=name.replace("_", " "))
    axes.set_ylim(-0.02 if known else 0, 1.02 if known else None)
    return legend(grid(axes))


@plot()
def plot_shares(audit: Numbered, *, ax: Axes | None = None) -> Axes:
    """Draw how often each item filled the slot over time, of an audit of duels.

    Parameters
    ----------
    audit : DuelAudit
        The eight items with the largest mean share get a line; where shares stand for
        probabilities, with the limits of each window.
    """
    given: Any = audit
    record = getattr(given, "record", None)
    if record is None:
        raise refuse("plot_shares", "an audit of duels", given, "audit")
    log, windows = record.log, record.law.windows
    edges = np.append(windows.start, windows.stop[-1])
    mean = np.nansum(windows.share * windows.length[:, None], axis=0)
    shown = np.argsort(-mean, kind="stable")[:DRAWN_ITEMS]
    names = shortened(str(log.items[i]) for i in shown)
    axes = new_axes(ax, (6.4, 3.6))
    for place, (i, name) in enumerate(zip(shown, names, strict=True)):
        colour = f"C{place}"
        if not windows.logged:
            axes.stairs(windows.upper[:, i], edges, baseline=windows.lower[:, i], fill=True,
                        color=colour, alpha=0.12, linewidth=0)  # fmt: skip
        axes.stairs(windows.share[:, i], edges, baseline=None, color=colour, label=name)
    axes.set(xlabel="duels", ylabel="probability" if windows.logged else "share of the slot")
    axes.set_ylim(bottom=0)
    return legend(grid(axes), above=2)


@plot()
def plot_rules(audits: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw the cumulative fairness regret of several rules, each over its runs.

    Parameters
    ----------
    audits : mapping of str to Audit or AuditGroup
        Name of a rule -> the audit of its run, or of its runs (``simulate(..., n_runs=)``).

    Notes
    -----
    A line is the mean over runs, its band holds the middle 95 % of them.
    """
    given: Any = audits
    if not isinstance(given, Mapping) or hasattr(given, "attrs") or not given:
        raise refuse("plot_rules", "a mapping of names to audits", given, "audits")
    axes = new_axes(ax, (6.4, 3.6))
    for place, (name, one) in enumerate(given.items()):
        runs = list(one.audits.values()) if hasattr(one, "audits") else [one]
        if not all(hasattr(run, "series") for run in runs):
            raise refuse("plot_rules", f"an audit of a log, or of several, as {name!r}", one,
                         "audits")  # fmt: skip
        series = [run.series() for run in runs]
        rounds = np.asarray(series[0]["round"])
        total = np.array([np.interp(rounds, s["round"], s["regret"]) for s in series])
        if not np.isfinite(total).all():
            raise OptionError(f"the log of {name!r} holds no probabilities: no regret to draw.")
        if len(runs) > 1:
            axes.fill_between(rounds, *np.quantile(total, (0.025, 0.975), axis=0), alpha=0.2,
                              color=f"C{place}", linewidth=0)  # fmt: skip
        axes.plot(rounds, total.mean(axis=0), color=f"C{place}", label=str(name))
    axes.set(xlabel="rounds", ylabel="fairness regret, cumulative")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return legend(grid(axes))


@plot("what tradeoff returns", "fairness_regret", "standard_regret")
def plot_tradeoff(curve: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Draw what calibration costs in reward: standard against fairness regret, per round.

    Parameters
    ----------
    curve : xarray.Dataset
        What `tradeoff` returned.
    """
    axes = new_axes(ax, (4.8, 3.6))
    x, y = curve["fairness_regret"].values, curve["standard_regret"].values
    axes.plot(x, y, "o-", color=INK, markersize=3)
    for i in (0, len(x) - 1):
        axes.annotate(f"w = {float(curve['weight'][i]):g}", (x[i], y[i]), fontsize=8,
                      xytext=(7, -3), textcoords="offset points")  # fmt: skip
    axes.set(xlabel="fairness regret per round", ylabel="standard regret per round")
    axes.margins(0.2, 0.1)
    return grid(axes)


@plot("what policy_value returns of one log", "rules",
      mark="rules", made=lambda value: value.to_dict())  # fmt: skip
def plot_value(value: Numbered | Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw what each rule would have earned per round, by three estimates with 95 % intervals.

    Parameters
    ----------
    value : PolicyValue or its ``to_dict()``
        What `bayesfair.value.policy_value` returned of one log.

    Notes
    -----
    The line across is what the logged rule earned. Estimates that are not known have no mark.
    """
    numbers: Any = value
    rules = numbers["rules"]
    axes = new_axes(ax, (6.0, 1.4 + 0.6 * len(rules)))
    for place, (kind, colour) in enumerate(_ESTIMATES.items()):
        parts = [rule[kind] for rule in rules]
        middle, low, high = (
            np.array([part[end] for part in parts], dtype=float)
            for end in ("value", "lower", "upper")
        )
        y = np.arange(len(rules)) + 0.22 * (place - 1)
        axes.hlines(y, low, high, color=colour, linewidth=1.6)
        axes.plot(middle, y, "os^"[place], color=colour, markersize=4,
                  label=kind.replace("_", " "))  # fmt: skip
    if rules[0]["ips"]["value"] is not None:
        axes.axvline(rules[0]["ips"]["value"], color=FAINT, linewidth=1, zorder=0)
    names_on(axes, shortened((rule["rule"] for rule in rules), 24))
    axes.set_xlabel("reward per round, 95 %")
    return legend(bare(axes), above=3)
