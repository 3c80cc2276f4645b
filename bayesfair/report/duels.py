"""What the page of an audit of duels shows."""

from __future__ import annotations

from typing import Any

from bayesfair.audit.duels.record import QUESTIONS
from bayesfair.audit.duels.text import duel_answer
from bayesfair.audit.log.check_words import check_rows
from bayesfair.audit.log.verdict_words import regret_words, remarks
from bayesfair.base.checks import counted
from bayesfair.base.shown import number
from bayesfair.report.figures import duel_figures

__all__ = ["duel_context"]

_MOST_ITEMS = 200
_HEADLINE = {
    "fair": "Who was compared kept to the criterion.",
    "unfair": "Who was compared did not keep to the criterion.",
    "undetermined": "The log does not settle whether who was compared kept to the criterion.",
    "not_auditable": "The log does not hold what is needed to judge who was compared.",
}
_LIMITS = (
    "Judged is how often an item fills the slot, not whom it meets there.",
    "The verdict under the beliefs supposes that the rule knew the duels before each round and "
    "nothing else.",
    "The verdict under the true worths depends on worths that nobody knows exactly: the "
    "probability is that all rounds and all pairs keep to the criterion at once.",
    "Shares in windows stand for probabilities where none were logged: they leave more open.",
    "The audit takes the duels as logged. It is no legal opinion.",
)


def duel_context(audit: Any, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return what the page of an audit of duels shows."""
    log, criterion = numbers["log"], numbers["criterion"]
    items = sorted(numbers["items"], key=lambda item: -(item["p_best_objective"] or 0))
    answers = []
    for name, question in QUESTIONS.items():
        verdict, said = numbers[name]["verdict"], duel_answer(numbers, name, "duel")
        answers.append((question, verdict, said.removeprefix(verdict).lstrip(": ")))
    return {
        "audit": numbers,
        "headline": _HEADLINE[numbers["verdict"]],
        "answers": answers,
        "regret_line": regret_words(numbers),
        "remarks": remarks(numbers, "duel", QUESTIONS),
        "sentences": [],
        "limits": _LIMITS,
        "size": f"{counted(log['n_rounds'], 'duel')} of {counted(log['n_items'], 'item')}",
        "check_rows": check_rows(numbers["checks"]),
        "criterion_lines": [
            ("eps1", f"{criterion['eps1']:g}", "How much a difference of worth counts: items whose "
             "chances of winning differ by D may differ in their chance of the slot by eps1 D."),
            ("eps2", f"{criterion['eps2']:g}", "What is allowed on top, even to items of the same "
             "worth."),
            ("delta", f"{criterion['delta']:g}", "How sure the verdict under the true worths has "
             f"to be: fair from {1 - criterion['delta']:g} on, unfair up to "
             f"{criterion['delta']:g}."),
            ("worths", f"{criterion['model']} ({criterion['method']})",
             f"Prior: {criterion['prior']}."),
        ],
        "rows": [
            [item["item"], str(item["n"]), number(item["p_best_objective"]),
             number(item["p_best_subjective"]), number(item["selection_mean"]),
             number(item["first_round"]), number(item["last_round"])]
            for item in items[:_MOST_ITEMS]
        ],
        "n_unlisted": max(len(items) - _MOST_ITEMS, 0),
        "figures": duel_figures(audit, numbers),
    }  # fmt: skip
