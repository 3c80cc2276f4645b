"""The audit of duels as plain text for a terminal, from the same values as its JSON."""

from __future__ import annotations

from typing import Any

from bayesfair.audit.duels.record import QUESTIONS
from bayesfair.audit.log.check_words import contradiction_lines
from bayesfair.audit.log.verdict_words import (
    interval_words,
    question_words,
    regret_line,
    verdict_lines,
)
from bayesfair.audit.text import Columns, listing, notice_lines
from bayesfair.base.checks import counted
from bayesfair.base.shown import fitted, number, visible

__all__ = ["duel_answer", "render"]

_SLOT = {
    "first": "slot 'first': law of the item on the left",
    "mean": "slot 'mean': half the probability of taking part",
}
_SHARES = dict.fromkeys(
    ("windows", "chosen"), "simultaneous ones (Clopper-Pearson) for shares in windows"
)
_COLUMNS: Columns = [
    ("item", lambda item: str(item["item"])),
    ("n", lambda item: str(item["n"])),
    ("P*", lambda item: number(item["p_best_objective"])),
    ("mean share", lambda item: number(item["selection_mean"])),
    ("first duel", lambda item: number(item["first_round"])),
    ("last duel", lambda item: number(item["last_round"])),
]


def render(audit: dict[str, Any]) -> str:
    """Return the report of an audit of duels."""
    log, criterion = audit["log"], audit["criterion"]
    logged = {
        "full": "the whole rule logged",
        "windows": f"shares in {log['n_windows']} windows stand for probabilities",
        "chosen": "only the left item's probability logged",
    }[log["selection"]]
    some = "" if log["n_judged"] == log["n_rounds"] else f" ({log['n_judged']} of them judged)"
    skipped = f", {counted(log['n_skipped'], 'row')} left out" if log["n_skipped"] else ""
    asked = "(eps1 = {eps1:g}, eps2 = {eps2:g}, delta = {delta:g})".format_map(criterion)
    calibration = audit["calibration"]
    head = [
        f"Audit of who is compared, {visible(log['source'])}",
        f"  {counted(log['n_rounds'], 'duel')}{some} of {log['n_items']} items, {logged}{skipped}",
        f"  {_SLOT[log['slot']]}; whom an item meets there is not judged",
        "",
        *verdict_lines(audit, asked, "duel", QUESTIONS, duel_answer),
        *contradiction_lines(audit),
        "",
        *_smooth(audit),
        "",
        "Calibrated fairness: shortfall of the slot's law from P*, the worth on offer",
        *(regret_line(title, calibration[name], "duel") for name, title in QUESTIONS.items()),
    ]
    foot = [
        _worths(criterion),
        " ".join(
            [
                "Rewards behind worths: exponential races.",
                *interval_words(audit, "the worths", _SHARES),
            ]
        ),
    ]
    items = sorted(audit["items"], key=lambda item: -(item["p_best_objective"] or 0))
    lines = [*fitted(head), "", *listing(_COLUMNS, items), "", *fitted(foot), *notice_lines(audit)]
    return "\n".join(lines)


def duel_answer(audit: dict[str, Any], name: str, unit: str) -> str:
    """Return the verdict of one question, with what violates."""
    if audit["log"]["selection"] == "full":
        return question_words(audit, name, unit)
    part, n = audit[name], audit["log"]["n_windows"]
    verdict, found = part["verdict"], part["n_violating_windows"]
    chance = ""
    if name == "objective":
        low, high = part["probability_fair_lower"], part["probability_fair_upper"]
        chance = f"probability fair {_from_to(low, high)}; "
        found = round(found["mean"]) if found["lower"] == found["upper"] else found
    if verdict == "fair":
        return f"fair: {chance}in the mean of {_of_all(n)}"
    shown = _shown(found, part, n)
    if verdict == "unfair":
        return f"unfair: {chance}{shown}"
    needed = part["n_duels_for_decision"]
    more = "how many such duels would decide is not known"
    if needed is not None:
        more = f"about {_rounded(needed)} such duels would decide"
    return f"undetermined: {chance}{shown}; {more}"


def _shown(found: Any, part: dict[str, Any], n: int) -> str:
    """Say in how many windows a violation is shown, and between which duels."""
    if isinstance(found, dict):
        return (
            f"shown in {found['mean']:.2g} [{found['lower']:.0f}, {found['upper']:.0f}] of "
            f"{counted(n, 'window')}"
        )
    if not found:
        if part["verdict"] == "unfair":
            return "shown by the log as a whole, by no single window"
        return "no window shows a violation, and the limits leave room for one"
    first, last = (
        end["mean"] if isinstance(end, dict) else end
        for end in (part["first_violating_round"], part["last_violating_round"])
    )
    return f"shown in {found} of {counted(n, 'window')}, between duels {first:.0f} and {last:.0f}"


def _of_all(n: int) -> str:
    return "the one window" if n == 1 else f"all {n} windows"


def _from_to(low: float, high: float) -> str:
    if number(low) == number(high):
        return number(low)
    return f"between {number(low)} and {number(high)}"


def _rounded(n: int) -> str:
    """Return a number of duels with two digits: it is an estimate."""
    digits = max(len(str(n)) - 2, 0)
    return str(round(n, -digits))


def _smooth(audit: dict[str, Any]) -> list[str]:
    subjective, objective = audit["subjective"], audit["objective"]
    eps1, logged = audit["criterion"]["eps1"], audit["log"]["selection"] == "full"
    needs = number(subjective["smallest_eps2"])
    if not logged:
        needs = _from_to(subjective["smallest_eps2"], subjective["smallest_eps2_upper"])
    lines = [
        "Smooth fairness: similar items, similar chances of being compared",
        f"  {QUESTIONS['subjective']:<36} the log needs eps2 = {needs} at eps1 = {eps1:g}",
    ]
    worst = subjective["worst"]
    if worst is not None:
        lines.append(
            f"  {'worst from duel ' + str(worst['round']):<36} {worst['item']!r} was favoured over "
            f"{worst['item_other']!r}"
        )
    eps2, pair = objective["smallest_eps2"], objective["worst"]
    exact = logged and audit["criterion"]["model"] == "truth"
    limits = "" if exact else f" [{number(eps2['lower'])}, {number(eps2['upper'])}]"
    lines += [
        f"  {QUESTIONS['objective']:<36} it needs eps2 = {number(eps2['mean'])}{limits}",
        f"  {'pair furthest from its bound':<36} {pair['item']!r} and {pair['item_other']!r}: "
        f"{'chances' if logged else 'shares'} up to {number(pair['gap'])} apart",
    ]
    return lines


def _worths(criterion: dict[str, Any]) -> str:
    """Say where the true worths and the beliefs come from."""
    beliefs = criterion["beliefs"]
    before = f"modes of {beliefs['model']}, prior_sd = {beliefs['prior_sd']:g}"
    if criterion["model"] == "truth":
        return f"Worths: known. Beliefs: {before}."
    return (
        f"Worths: {criterion['model']} ({criterion['method']}), prior {criterion['prior']}. "
        "Beliefs before a duel: its mode then."
        if beliefs["model"] == criterion["model"]
        else f"Worths: {criterion['model']} ({criterion['method']}). Beliefs: {before}."
    )
