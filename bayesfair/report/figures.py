"""The figures of the report as inline SVG: the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesfair.base.checks import counted
from bayesfair.base.shown import number, shortened
from bayesfair.plots import (
    ACCENT,
    FAINT,
    INK,
    LABELLED_ARMS,
    bare,
    plot_cumulative_regret,
    plot_frontier,
    plot_selection,
)
from bayesfair.report.labels import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Figure", "audit_figures", "group_figures"]

_WIDTH = 4.7  # inches; narrow, so that the writing stays legible on a phone
_LABEL = 24
_LABELLED_GROUPS = 40
_DRAWN_GROUPS = 1000
_COLOURS = {INK: "var(--ink)", FAINT: "var(--faint)", ACCENT: "var(--accent)",
            "#000000": "var(--ink)"}  # fmt: skip


class Figure(NamedTuple):
    """One figure: its SVG, what it shows in a sentence, and how to read it."""

    name: str
    svg: str
    alt: str
    caption: str


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
        found.append(_selection(numbers))
    return found


def group_figures(numbers: dict[str, Any]) -> list[Figure]:
    """Return the figure of all groups: regret per round of each, with its interval."""
    values = [
        (str(label), audit["calibration"]["subjective"])
        for label, audit in numbers["groups"].items()
        if audit["calibration"]["subjective"]["regret_per_round"] is not None
    ]
    if not values:
        return []
    few = len(values) <= _LABELLED_GROUPS
    if not few:
        values.sort(key=lambda found: found[1]["regret_per_round"])
    n_values = len(values)
    if n_values > _DRAWN_GROUPS:  # as many of them as can be told apart, in order
        places = np.linspace(0, n_values - 1, _DRAWN_GROUPS).round().astype(int)
        values = [values[g] for g in places]
    middle = np.array([part["regret_per_round"] for _, part in values])

    def draw(axes: Axes) -> None:
        y = np.arange(len(values))
        axes.hlines(y, *(np.array([part[end] for _, part in values]) for end in ("lower", "upper")),
                    color=ACCENT, linewidth=1.2)  # fmt: skip
        axes.plot(middle, y, "o", color=ACCENT, markersize=4 if few else 2)
        if few:
            names = shortened((label for label, _ in values), _LABEL)
            axes.set_yticks(y, names, fontsize=8, parse_math=False)
            axes.set_ylim(len(values) - 0.4, -0.6)
        else:
            axes.set_ylabel("groups, in order of their regret")
        axes.set_xlim(left=0)
        axes.set_xlabel("fairness regret per round, 95 %")
        bare(axes)

    left_out = len(numbers["groups"]) - n_values
    caption = (
        "Fairness regret per round of each group under its beliefs, with its 95 % interval (a "
        "point where it is exact)."
    )
    if n_values > len(values):
        caption += f" {len(values)} of {n_values} groups are drawn, evenly along that order."
    if left_out:
        caption += (
            f" {counted(left_out, 'group')} without a value (no probabilities, or no round that is "
            "judged)."
        )
    alt = (
        f"Fairness regret per round of {counted(n_values, 'group')}, from "
        f"{number(middle.min())} to {number(middle.max())}."
    )
    height = 1.1 + 0.24 * len(values) if few else 3.6
    return [Figure("groups", _svg("groups", draw, height), alt, caption)]


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
    return Figure(
        "frontier", _svg("frontier", lambda axes: plot_frontier(numbers, ax=axes)), alt, caption
    )


def _regret(numbers: dict[str, Any], series: dict[str, Any]) -> Figure:
    rounds, total = np.asarray(series["round"]), np.asarray(series["regret"])
    half = float(np.interp(rounds[-1] / 2, np.append(0, rounds), np.append(0.0, total)))
    estimated = "" if numbers["calibration"]["subjective"]["exact"] else "Estimated: "
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
    return Figure(
        "regret", _svg("regret", lambda axes: plot_cumulative_regret(series, ax=axes)), alt, caption
    )


def _selection(numbers: dict[str, Any]) -> Figure:
    arms = numbers["arms"]
    names = shortened((arm["arm"] for arm in arms), _LABEL)
    shown = {
        **numbers,
        "arms": [{**arm, "arm": name} for arm, name in zip(arms, names, strict=True)],
    }
    full = numbers["log"]["selection"] == "full"
    what = "mean selection probability" if full else "share of the choices"
    n = numbers["log"]["n_judged"]
    chosen = [a["selection_mean"] if full else a["n"] / n for a in arms]
    gap = [c - a["p_best_subjective"] for c, a in zip(chosen, arms, strict=True)]
    low, high = (int(f(gap)) for f in (np.argmin, np.argmax))
    alt = (
        f"Of each arm, P* and its {what}. Furthest below P*: {clean(arms[low]['arm'])!r} by "
        f"{number(max(-gap[low], 0.0))}; furthest above: {clean(arms[high]['arm'])!r} by "
        f"{number(max(gap[high], 0.0))}."
    )
    caption = (
        f"Each arm's {what} (filled) beside P*, the probability that its reward is the highest. "
        "Calibrated fairness asks that both agree."
    )
    many = len(arms) > LABELLED_ARMS
    if many:
        caption = (
            f"Each arm's {what} against P*, the probability that its reward is the highest, all "
            f"{len(arms)} arms. Calibrated fairness asks for the diagonal; an arm below it was "
            "chosen less often than it is likely to be the best."
        )
    height = 4.4 if many else 1.3 + 0.24 * len(arms)
    return Figure(
        "selection", _svg("selection", lambda axes: plot_selection(shown, ax=axes), height), alt,
        caption,
    )  # fmt: skip


def _svg(name: str, draw: Callable[[Axes], Any], height: float = 3.3) -> str:
    """Return the drawing as SVG to stand inside HTML, with ids of its own and the page's colours.

    Writing stays writing, in the reader's fonts: it can be searched and read aloud, and labels
    in any script are shown.
    """
    import matplotlib as mpl
    from matplotlib import style
    from matplotlib.figure import Figure as Canvas

    out = io.StringIO()
    with warnings.catch_warnings(), style.context("default", after_reset=True):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        options = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9,
                   "text.parse_math": False, "legend.fontsize": 8.5}  # fmt: skip
        with mpl.rc_context(options):
            canvas = Canvas(figsize=(_WIDTH, height), layout="constrained")
            canvas.patch.set_visible(False)
            axes = canvas.subplots()
            axes.patch.set_visible(False)
            draw(axes)
            axes.yaxis.label.set_rotation_mode("anchor")
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(out.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.S)
    head, body = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    body = re.sub(r'<style type="text/css">.*?</style>', "", body, flags=re.S)
    body = re.sub(r"<[^>]+>", lambda tag: _own(tag.group(), name), body)  # writing is left alone
    return f'<svg {box.group()} role="img" aria-labelledby="{name}-alt">{body}'


def _own(tag: str, name: str) -> str:
    """Return a tag whose ids, colours and fonts are those of the page."""
    tag = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', tag)
    tag = re.sub(r'xlink:href="#([^"]*)"', rf'href="#{name}-\1"', tag)
    tag = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", tag)
    # matplotlib names its own font family; without it the page's is inherited
    tag = re.sub(r"font: (\d+(?:\.\d+)?px) [^;\"]*", r"font-size: \1", tag)
    for colour, variable in _COLOURS.items():
        tag = tag.replace(colour, variable)
    return tag
