"""The result of an audit of duels: the numbers, and the report in plain words."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion, finite_or_text
from bayesfair.audit.duel_log import DuelRounds, Windows, seen_from_to
from bayesfair.audit.text import number, table
from bayesfair.notices import Notice, unique

__all__ = ["DuelAudit", "Truth", "named", "slot_notices"]

_SLOT = {
    "first": "slot 'first': law of the item on the left",
    "mean": "slot 'mean': half the probability of taking part",
}
_MOST_ITEMS = 30


@dataclass(frozen=True, eq=False)
class Truth:
    """The worths that the objective half supposes, and the model that beliefs are modes of.

    Attributes
    ----------
    log_worth : (n, k) array
        Draws; one row = known worths.
    model, prior, method : str
        Where they come from, in words.
    seed : int or Generator
    beliefs : dict
        Options of the model of beliefs, see `duel_beliefs.beliefs_at`.
    notices : tuple of Notice
    """

    log_worth: NDArray[np.float64]
    model: str
    prior: str
    method: str
    seed: Any
    beliefs: dict[str, Any]
    notices: tuple[Notice, ...] = ()


def named(rounds: DuelRounds, worst: tuple[float, int, int, int]) -> dict[str, Any]:
    """Return the keys of the worst round: (excess, round, favoured item, other item)."""
    _, t, i, j = worst
    return {"round": t, "item": rounds.items[i], "item_other": rounds.items[j]}


def slot_notices(rounds: DuelRounds) -> list[str]:
    """Return what the choice of slot implies."""
    if rounds.slot == "mean" and not (rounds.left == rounds.right).any():
        return [
            "slot 'mean': a duel has two different items, so no item can have more than 1/2; "
            "regret stays positive if a worth exceeds that."
        ]
    return []


@dataclass(frozen=True, eq=False, repr=False)
class DuelAudit:
    """A finished audit of who gets compared.

    Attributes
    ----------
    numbers : dict
        What `to_dict` returns.
    windows : Windows or None
        Shares of the slot per window with their limits, where these stand for probabilities.
    """

    numbers: dict[str, Any]
    windows: Windows | None = None

    @classmethod
    def make(
        cls,
        rounds: DuelRounds,
        criterion: Criterion,
        truth: Truth,
        *,
        verdict: str,
        subjective: dict[str, Any],
        objective: dict[str, Any],
        calibration: dict[str, Any],
        p_best: NDArray[np.float64],
        believed: NDArray[np.float64],
        selection_mean: NDArray[np.float64],
        frontier: list[dict[str, Any]],
        windows: Windows | None,
        notices: list[str],
    ) -> Self:
        """Put the parts together."""
        import bayesfair

        first, last = seen_from_to(rounds)
        taken = np.bincount(rounds.left, minlength=rounds.n_items) + np.bincount(
            rounds.right, minlength=rounds.n_items
        )
        moved = [
            rounds.items[i]
            for i in range(rounds.n_items)
            if first[i] > rounds.n_rounds / 20 or 0 <= last[i] < 0.95 * rounds.n_rounds
        ]
        if moved and rounds.selection is None and rounds.offered is None:
            shown = ", ".join(repr(item) for item in moved[:5])
            more = f" and {len(moved) - 5} more" if len(moved) > 5 else ""
            notices = [
                *notices,
                f"{len(moved)} items came or went: {shown}{more} (no duel in the first or the last "
                "twentieth of the log). They are held to the windows between their first and last "
                "duel; give offered= if it is known when they were on offer.",
            ]
        said = unique((*rounds.notices, *truth.notices, *notices))
        numbers: dict[str, Any] = {
            "bayesfair": vars(bayesfair)["__version__"],
            "verdict": verdict,
            "log": {
                "source": rounds.source,
                "n_rounds": rounds.n_rounds,
                "n_items": rounds.n_items,
                "items": list(rounds.items),
                "selection": "full" if windows is None else "windows",
                "slot": rounds.slot,
                "n_windows": None if windows is None else len(windows.start),
                "n_skipped": rounds.n_skipped,
            },
            "criterion": {
                "eps1": criterion.eps1,
                "eps2": criterion.eps2,
                "delta": criterion.delta,
                "divergence": "total_variation",
                "reward_divergence": "total_variation of exponential races",
                "family": "plackett_luce",
                "model": truth.model,
                "prior": truth.prior,
                "method": truth.method,
                "seed": int(truth.seed) if isinstance(truth.seed, (int, np.integer)) else None,
                "draws": len(truth.log_worth),
                "tolerance": criterion.tolerance,
            },
            "subjective": subjective,
            "objective": objective,
            "calibration": calibration,
            "items": [
                {
                    "item": item,
                    "n": int(taken[i]),
                    "p_best_subjective": finite_or_text(believed[i]),
                    "p_best_objective": finite_or_text(p_best[i]),
                    "selection_mean": finite_or_text(selection_mean[i]),
                    "first_round": int(first[i]) if first[i] >= 0 else None,
                    "last_round": int(last[i]) if last[i] >= 0 else None,
                }
                for i, item in enumerate(rounds.items)
            ],
            "frontier": frontier,
            "notices": [str(text) for text in said],
            "findings": [text.to_dict() for text in said],
        }
        return cls(numbers, windows)

    @property
    def verdict(self) -> str:
        """``fair``, ``unfair`` or ``undetermined``; the worse of subjective and objective."""
        return str(self.numbers["verdict"])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready; keys as in `Audit.to_dict`, items in place of arms."""
        return self.numbers

    def __str__(self) -> str:
        numbers = self.numbers
        log, criterion = numbers["log"], numbers["criterion"]
        logged = (
            "the whole rule logged"
            if log["selection"] == "full"
            else f"shares in {log['n_windows']} windows stand for probabilities"
            if log["selection"] == "windows"
            else "only the left item's probability logged"
        )
        skipped = f", {log['n_skipped']} rows left out" if log["n_skipped"] else ""
        lines = [
            f"Audit of who is compared, {log['source']}",
            f"  {log['n_rounds']} duels of {log['n_items']} items, {logged}{skipped}",
            f"  {_SLOT[log['slot']]}",
            "",
            f"Verdict: {self.verdict.upper()}   (eps1 = {criterion['eps1']:g}, eps2 = "
            f"{criterion['eps2']:g}, delta = {criterion['delta']:g})",
            "",
            *self._smooth(),
            "",
            *self._calibration(),
            "",
            *self._items(),
            "",
            f"Worths: {criterion['model']} ({criterion['method']}), prior {criterion['prior']}.",
            "Rewards behind worths: exponential races. Intervals are equal-tailed 95 % intervals.",
        ]
        if numbers["notices"]:
            lines += ["", "Notices"]
            for notice in numbers["notices"]:
                lines += textwrap.wrap(notice, 96, initial_indent="  * ", subsequent_indent="    ",
                                       break_long_words=False, break_on_hyphens=False)  # fmt: skip
        return "\n".join(lines)

    def _smooth(self) -> list[str]:
        numbers = self.numbers
        subjective, objective = numbers["subjective"], numbers["objective"]
        eps1 = numbers["criterion"]["eps1"]
        at_least = "at least " if numbers["log"]["selection"] != "full" else ""
        lines = [
            "Smooth fairness: similar items, similar chances of being compared",
            f"  under the beliefs of the time   {subjective['verdict']}: the log needs eps2 = "
            f"{at_least}{number(subjective['smallest_eps2'])} at eps1 = {eps1:g}; "
            f"{subjective['n_violating_rounds']} of {numbers['log']['n_rounds']} rounds violate",
        ]
        worst = subjective["worst"]
        if worst is not None:
            lines.append(
                f"  worst from round {worst['round']}: {worst['item']!r} was favoured over "
                f"{worst['item_other']!r}"
            )
        eps2 = objective["smallest_eps2"]
        fair = objective["probability_fair"]
        chance = (
            f"probability fair {number(fair)}"
            if fair is not None
            else f"probability fair between {number(objective['probability_fair_lower'])} and "
            f"{number(objective['probability_fair_upper'])}"
        )
        lines.append(
            f"  under the true worths           {objective['verdict']}: {chance}; needs eps2 = "
            f"{number(eps2['mean'])} [{number(eps2['lower'])}, {number(eps2['upper'])}]"
        )
        pair = objective["worst"]
        lines.append(
            f"  pair furthest from its bound    {pair['item']!r} and {pair['item_other']!r}: "
            f"chances up to {number(pair['gap'])} apart"
        )
        return lines

    def _calibration(self) -> list[str]:
        lines = ["Calibrated fairness: shortfall of the slot's law from P*, the worth on offer"]
        titles = {"subjective": "under the beliefs", "objective": "under the true worths"}
        for name, title in titles.items():
            part = self.numbers["calibration"][name]
            text = f"  {title:<24} {number(part['regret_per_round'])} per round"
            if not part["exact"]:
                upper = "1" if part["upper"] is None else number(part["upper"])
                text += f" [{number(part['lower'])}, {upper}]"
            lines.append(f"{text}, {number(part['regret_total'], 2)} in total")
        return lines

    def _items(self) -> list[str]:
        items = sorted(self.numbers["items"], key=lambda item: -(item["p_best_objective"] or 0))
        rows = [
            [
                item["item"],
                str(item["n"]),
                number(item["p_best_objective"]),
                number(item["selection_mean"]),
                number(item["first_round"]),
                number(item["last_round"]),
            ]
            for item in items[:_MOST_ITEMS]
        ]
        lines = table(["item", "n", "P*", "mean share", "first round", "last round"], rows)
        if len(items) > _MOST_ITEMS:
            lines.append(f"  ... and {len(items) - _MOST_ITEMS} more items; to_dict() lists all")
        return lines

    def __repr__(self) -> str:
        log = self.numbers["log"]
        return f"DuelAudit({log['source']}: {log['n_rounds']} duels, {self.verdict})"
