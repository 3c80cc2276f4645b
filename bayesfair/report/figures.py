"""The figures of the pages: what each shows, in a sentence, and how to read it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.checks import counted
from bayesfair.base.shown import number, shortened
from bayesfair.errors import BayesfairError
from bayesfair.plots import (
    plot_cumulative_regret,
    plot_frontier,
    plot_gaps,
    plot_groups,
    plot_pairs,
    plot_predicted_wins,
    plot_rank_probability,
    plot_ranks,
    plot_regret,
    plot_reliability,
    plot_rewards,
    plot_selection,
    plot_shares,
    plot_value,
    plot_violations,
    plot_win_matrix,
)
from bayesfair.plots.audits import LABELLED_ARMS
from bayesfair.plots.base import ROW
from bayesfair.plots.several import DRAWN_GROUPS, DRAWN_ITEMS, LABELLED_GROUPS
from bayesfair.ranking import predicted_wins, rank_table, win_probability
from bayesfair.report.labels import clean
from bayesfair.report.svg import Figure, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "arms_of_group",
    "audit_figures",
    "by_gap",
    "duel_figures",
    "fit_figures",
    "group_figures",
    "rewards_figures",
    "round_figures",
    "selection_gaps",
    "value_figure",
    "windows_figure",
]

_LABEL = 24
_FEW = 10
_A_PAGE = 40  # items of one figure, so that it fits on a printed page


def audit_figures(numbers: dict[str, Any], series: dict[str, Any] | None) -> list[Figure]:
    """Return the figures of one audit, as far as the log carries them.

    Parameters
    ----------
    numbers : dict
        Of ``to_dict()``.
    series : dict or None
        Of ``series()``.
    """
    found = []
    if any(isinstance(row["subjective"], float) for row in numbers["frontier"]):
        found.append(_frontier(numbers))
    if numbers["log"]["n_judged"]:
        if series is not None and numbers["log"]["selection"] != "none":
            found.append(_regret(numbers, series))
        found += _selections(numbers)
    return found


def group_figures(numbers: dict[str, Any]) -> list[Figure]:
    """Return the figure of all groups: regret per round of each, with its interval."""
    regrets = [one["calibration"]["subjective"] for one in numbers["groups"].values()]
    values = [one["regret_per_round"] for one in regrets if one["regret_per_round"] is not None]
    if not values:
        return []
    caption = (
        "Fairness regret per round of each group under its beliefs, with its 95 % interval (a "
        "point where it is exact)."
    )
    if len(values) > DRAWN_GROUPS:
        caption += f" {DRAWN_GROUPS} of {len(values)} groups are drawn, evenly along that order."
    if left_out := len(regrets) - len(values):
        caption += (
            f" {counted(left_out, 'group')} without a value (no probabilities, or no round that is "
            "judged)."
        )
    alt = (
        f"Fairness regret per round of {counted(len(values), 'group')}, from "
        f"{number(min(values))} to {number(max(values))}."
    )
    height = 1.1 + ROW * len(values) if len(values) <= LABELLED_GROUPS else 3.6
    return [figure("groups", lambda axes: plot_groups(numbers, ax=axes), alt, caption, height)]


def windows_figure(found: Any, name: str = "windows") -> Figure:
    """Return the figure of the regret of one log by windows of time (`Audit.over_time`)."""
    values = found["regret"].values
    band = "regret_objective" in found and not found["regret_objective_lower"].equals(
        found["regret_objective_upper"]
    )
    return figure(
        name, lambda axes: plot_regret(found, ax=axes),
        f"Fairness regret per round in {len(values)} windows of time: {number(values[0])} in "
        f"the first, {number(values[-1])} in the last.",
        "Fairness regret per round, by windows of like numbers of rounds."
        + (" The band holds 95 % of the draws of the true rewards." if band else "")
        + ("" if found.attrs["exact"] else " Bands hold 95 %: each term is an estimate."),
    )  # fmt: skip


def round_figures(found: Any, selection: str) -> list[Figure]:
    """Return the figures of what the rounds of one log add up to (`Audit.over_time`)."""
    figures = []
    if selection != "none":
        figures.append(windows_figure(found))
    if selection != "full":
        return figures
    share = found["violating_share"].values
    if share.max() > 0:
        figures.append(figure(
            "violations", lambda axes: plot_violations(found, ax=axes),
            f"Share of violating rounds by windows of time: {number(share[0])} in the first, "
            f"{number(share[-1])} in the last.",
            "Share of the rounds in which two arms' chances were further apart than allowed under "
            "the beliefs, by windows of like numbers of rounds.", 2.8,
        ))  # fmt: skip
        one, other, n = (found[f"pair_{x}"].values[0] for x in ("arm", "arm_other", "rounds"))
        rows = min(len(set(found["pair_arm"].values.tolist())), 40)
        figures.append(figure(
            "pairs", lambda axes: plot_pairs(found, ax=axes),
            f"Most often {clean(one)!r} was favoured over {clean(other)!r}: in "
            f"{counted(int(n), 'violating round')}.",
            "In how many violating rounds each pair was the worst: the arm of the row was favoured "
            "over that of the column.", 2.6 + ROW * rows,
        ))  # fmt: skip
    if "chance" in found:
        gap = number(found.attrs["reliability_gap"])
        figures.append(figure(
            "reliability", lambda axes: plot_reliability(found, ax=axes),
            f"P* by the chance of being chosen; the mean distance from the diagonal is {gap}.",
            "Reliability: of the arms that were chosen with about this chance, how likely they "
            "were to be the best under the beliefs. Calibrated fairness asks for the diagonal. The "
            f"mean distance from it, {gap}, is a lower bound of the regret per round.", 4.0,
        ))  # fmt: skip
    return figures


def fit_figures(tree: Any, comparisons: Any, seed: int) -> list[Figure]:
    """Return the figures of a fit to comparisons; matrices as far as they can be read."""
    table = rank_table(tree)
    ranked = table.isel(item=np.flatnonzero(table["island"].values >= 0))
    k, best = ranked.sizes["item"], clean(str(ranked["item"].values[0]))
    named = table.assign_coords(item=shortened(table["item"].values, _LABEL))
    figures = [figure(
        f"ranks-{first}" if first else "ranks",
        partial(_ranks, named.isel(item=slice(first, first + _A_PAGE))),
        f"Ranks or worths with 95 % intervals, items {first + 1} to "
        f"{min(first + _A_PAGE, table.sizes['item'])}; the best is {best!r}.",
        "A point is the mean, a line the equal-tailed 95 % interval; colours alternate between "
        "tiers.", 1.4 + ROW * min(_A_PAGE, table.sizes["item"] - first),
    ) for first in range(0, min(table.sizes["item"], 200), _A_PAGE)]  # fmt: skip
    if k <= _A_PAGE:
        pairs, islands = win_probability(tree), np.ptp(ranked["island"].values) > 0
        size = 2.4 + ROW * k
        posterior = "posterior" in tree.children
        if posterior:
            figures.append(figure(
                "rank-probability", lambda axes: plot_rank_probability(tree, ax=axes),
                "The posterior probability of each rank of each item; rows add up to 1.",
                "How likely each item is to have each rank.", size,
            ))  # fmt: skip
        figures.append(figure(
            "gaps", lambda axes: plot_gaps(table, ax=axes),
            "By how much the log-worth of each row exceeds that of each column.",
            "Gaps in log-worth: each pair once, in the row of its better item"
            f"{'; none where no comparisons link them' if islands else ''}.",
            size,
        ))  # fmt: skip
        figures.append(figure(
            "wins", lambda axes: plot_win_matrix(pairs, ax=axes),
            "The probability that the item of each row wins its next duel against each column.",
            "How likely the item of the row is to win its next duel against that of the column.",
            size,
        ))  # fmt: skip
    if comparisons is not None:
        try:
            found = predicted_wins(tree, comparisons, seed=seed)
        except BayesfairError:
            return figures
        figures.append(figure(
            "predicted", lambda axes: plot_predicted_wins(found, ax=axes),
            "Wins observed against wins expected under the fit, of every pair that met.",
            "Each pair that met: wins observed against those expected, with what 95 % of "
            "replicated data hold. About one pair in twenty lies outside by chance.", 4.0,
        ))  # fmt: skip
    return figures


def _ranks(table: Any, axes: Axes) -> None:
    plot_ranks(table, ax=axes)
    axes.set_title("", loc="left")  # the caption says it


def duel_figures(audit: Any, numbers: dict[str, Any]) -> list[Figure]:
    """Return the figures of an audit of duels."""
    figures = []
    if any(isinstance(row["subjective"], float) for row in numbers["frontier"]):
        figures.append(_frontier(numbers))
    if numbers["log"]["n_judged"]:
        figures.append(figure(
            "shares", lambda axes: plot_shares(audit, ax=axes),
            "How often each item filled the slot, over the duels.",
            "How often each item filled the slot, over time"
            + ("; the eight items with the most." if len(numbers["items"]) > DRAWN_ITEMS else ".")
            + (" Bands: limits of shares that stand for probabilities."
               if numbers["log"]["selection"] == "windows" else ""),
        ))  # fmt: skip
        items = [numbers["items"][i] for i in by_gap([_gap(item) for item in numbers["items"]])]
        some = items if len(items) <= LABELLED_ARMS else items[:0]
        for first in range(0, len(some), _A_PAGE):
            shown = numbers | {"items": some[first : first + _A_PAGE]}
            figures.append(figure(
                f"selection-{first}" if first else "selection", partial(_draw_selection, shown),
                "Of each item its share of the slot beside P*, believed.",
                "Each item's share of the slot beside P*, the worth on offer; items furthest from "
                "it come first."
                + (f" Items {first + 1} to {first + len(shown['items'])}." if first else ""),
                1.3 + ROW * len(shown["items"]),
            ))  # fmt: skip
        if not some:
            figures.append(figure(
                "selection", lambda axes: plot_selection(numbers, ax=axes),
                "Of each item its share of the slot against P*, believed.",
                "Each item's share of the slot against P*, the worth on offer.", 4.4,
            ))  # fmt: skip
    return figures


def _gap(item: dict[str, Any]) -> float:
    return float(item["selection_mean"] or 0.0) - float(item["p_best_subjective"] or 0.0)


def _frontier(numbers: dict[str, Any]) -> Figure:
    criterion = numbers["criterion"]
    asked = f"eps1 = {criterion['eps1']:g}, eps2 = {criterion['eps2']:g}"
    rows = [row for row in numbers["frontier"] if row["subjective"] is not None]
    alt = "Smallest eps2 by eps1, under the beliefs: " + "; ".join(
        f"{row['eps1']:g}: {number(row['subjective'])}" for row in rows
    )
    caption = (
        f"The eps2 that the log needs, for each eps1. The cross marks what was asked ({asked}): "
        "where the curve passes above it, the log needs more than it was allowed."
    )
    if any(isinstance(row["subjective"], str) for row in rows):
        caption += " Where there is no curve, no finite eps2 is enough."
    return figure("frontier", lambda axes: plot_frontier(numbers, ax=axes), alt, caption)


def _regret(numbers: dict[str, Any], series: dict[str, Any]) -> Figure:
    rounds, total = np.asarray(series["round"]), np.asarray(series["regret"])
    half = float(np.interp(rounds[-1] / 2, np.append(0, rounds), np.append(0.0, total)))
    estimated = "Estimated: " if numbers["log"]["selection"] == "chosen" else ""
    alt = (
        f"{estimated}cumulative fairness regret reaches {number(half)} after half of the rounds "
        f"and {number(float(total[-1]))} after all {numbers['log']['n_judged']}."
    )
    caption = (
        "Fairness regret under the beliefs, added up over the rounds. A curve that flattens says "
        "that the rule came closer to calibrated fairness; a straight one, that it did not."
    )
    if estimated:
        caption += " Estimated from the chosen arm's probabilities."
    return figure("regret", lambda axes: plot_cumulative_regret(series, ax=axes), alt, caption)


def selection_gaps(numbers: dict[str, Any]) -> list[float]:
    """Return by how much the chance (or share) of each arm exceeds its P* believed."""
    n, full = max(numbers["log"]["n_judged"], 1), numbers["log"]["selection"] == "full"
    return [
        float(arm["selection_mean"] if full and arm["selection_mean"] is not None else arm["n"] / n)
        - float(arm["p_best_subjective"] or 0.0)
        for arm in numbers["arms"]
    ]


def by_gap(gaps: list[float]) -> list[int]:
    """Return the arms by how far their chance is from P*; in order where rounding alone differs."""
    return [int(i) for i in np.argsort(-np.round(np.abs(gaps), 9), kind="stable")]


def arms_of_group(numbers: dict[str, Any], place: int) -> list[Figure]:
    """Return the figure of the arms of one of several logs, those furthest from P*."""
    if not numbers["log"]["n_judged"]:
        return []
    arms = [numbers["arms"][i] for i in by_gap(selection_gaps(numbers))[:_FEW]]
    return _selections(numbers | {"arms": arms}, f"arms-of-{place}")


def _selections(numbers: dict[str, Any], kind: str = "selection") -> list[Figure]:
    """Return the figures of the arms, those furthest from P* first."""
    arms = numbers["arms"]
    full = numbers["log"]["selection"] == "full"
    what = "mean selection probability" if full else "share of the choices"
    gaps = selection_gaps(numbers)
    low, high = (int(f(gaps)) for f in (np.argmin, np.argmax))
    alt = (
        f"Of each arm, P* and its {what}. Furthest below P*: {clean(arms[low]['arm'])!r} by "
        f"{number(max(-gaps[low], 0.0))}; furthest above: {clean(arms[high]['arm'])!r} by "
        f"{number(max(gaps[high], 0.0))}."
    )
    caption = (
        f"Each arm's {what} (filled) beside P*, the probability that its reward is the highest. "
        "Calibrated fairness asks that both agree. Arms furthest from it come first."
    )
    found = []
    if len(arms) > LABELLED_ARMS:
        found.append(figure(
            f"{kind}-all", lambda axes: plot_selection(numbers, ax=axes), alt,
            f"Each arm's {what} against P*, the probability that its reward is the highest, all "
            f"{len(arms)} arms. Calibrated fairness asks for the diagonal; an arm below it was "
            "chosen less often than it is likely to be the best.", 4.4,
        ))  # fmt: skip
    names = shortened((arm["arm"] for arm in arms), _LABEL)
    named = [arms[i] | {"arm": names[i]} for i in by_gap(gaps)]
    last = len(arms) if len(arms) <= LABELLED_ARMS else _A_PAGE
    for first in range(0, last, _A_PAGE):
        some = numbers | {"arms": named[first : first + _A_PAGE]}
        found.append(figure(
            f"{kind}-{first}" if first else kind,
            partial(_draw_selection, some), alt,
            caption if not first else f"Arms {first + 1} to {first + len(some['arms'])} of them.",
            1.3 + ROW * len(some["arms"]),
        ))  # fmt: skip
    return found


def rewards_figures(table: Any) -> list[Figure]:
    """Return the figures of what is believed of each arm's mean reward, the best first."""
    if len(table) > LABELLED_ARMS:
        table = table.sort_values("n", ascending=False, kind="stable")[:LABELLED_ARMS]
    table = table.sort_values("reward_believed", ascending=False, kind="stable")
    played = f" The {len(table)} arms that were played most." * (len(table) == LABELLED_ARMS)
    return [figure(
        f"rewards-{first}" if first else "rewards",
        partial(_draw_rewards, table[first : first + _A_PAGE]),
        "What is believed of the mean reward of each arm after the last round.",
        f"Arms {first + 1} to {min(first + _A_PAGE, len(table))} of them." if first else
        "Mean reward of each arm after the last round, as believed, with 95 %; a ring is the mean "
        f"of what was logged. The best first.{played}",
        1.3 + ROW * min(_A_PAGE, len(table) - first),
    ) for first in range(0, len(table), _A_PAGE)]  # fmt: skip


def _draw_rewards(table: Any, axes: Axes) -> None:
    plot_rewards(table, ax=axes)


def value_figure(numbers: dict[str, Any]) -> Figure:
    """Return the figure of what rules would have earned."""
    return figure(
        "value", lambda axes: plot_value(numbers, ax=axes),
        "Reward per round that each rule would have earned, with its 95 % intervals.",
        "Reward per round that each rule would have earned, three estimates of each, with 95 %.",
        1.4 + 0.6 * len(numbers["rules"]),
    )  # fmt: skip


def _draw_selection(numbers: dict[str, Any], axes: Axes) -> None:
    plot_selection(numbers, ax=axes)
