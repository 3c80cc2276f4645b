"""What an audit given the context says of each of them, and of the log without it, as text."""

from __future__ import annotations

from typing import Any

from bayesfair.audit.log.verdict_words import VERDICT_WORDS
from bayesfair.base.checks import counted, listed
from bayesfair.base.shown import MOST_ROWS, fitted, number, shortened, table, visible

__all__ = ["WITHOUT", "across_lines", "context_lines", "context_table", "without_words"]

WITHOUT = (
    "Without the context the same choices are held against beliefs that never saw it: such numbers "
    "bound the fairness given the context neither from above nor from below."
)

_SHARED = {
    "cells": "beliefs of each value are independent of the others",
    "pooled": "an arm's beliefs at each value share what is learned at the others",
    "linear": "an arm's reward is linear in the features, its beliefs learn from all rounds",
    "probit": "an arm's chance is Phi(linear in the features), its beliefs learn from all rounds",
    "logit": "an arm's log odds are linear in the features, its beliefs learn from all rounds",
}


def without_words(context: dict[str, Any]) -> str:
    """Return what the log amounts to without its context, in one line."""
    found = context["without"]
    said = [f"verdict under the beliefs {found['subjective_verdict'].replace('_', ' ')}"]
    if found["smallest_eps2"] is not None:
        said.append(f"eps2 {number(found['smallest_eps2'])}")
    if found["regret_per_round"] is not None:
        said.append(f"fairness regret {number(found['regret_per_round'])} per round")
    return f"Without it: {', '.join(said)}."


def context_table(audit: dict[str, Any]) -> tuple[str, list[str], list[list[str]], str]:
    """Return title, heading and rows of the contexts, the worst first where not all are shown."""
    context, cells, rest = audit["context"], audit["cells"], ""
    if len(cells) > MOST_ROWS:
        need = "smallest_eps2" if cells[0]["smallest_eps2"] is not None else "regret_per_round"
        cells = sorted(cells, key=lambda cell: -float(cell[need] or 0))
        rest = "which need less eps2" if need == "smallest_eps2" else "with less regret"
    header = ["context", "rounds", "under the beliefs", "eps2 needed", "regret per round"]
    known = any(cell["probability_fair"] is not None for cell in cells)
    rows = [
        [
            str(cell["context"]),
            str(cell["n_rounds"]),
            VERDICT_WORDS[cell["subjective_verdict"]].lower(),
            number(cell["smallest_eps2"]),
            number(cell["regret_per_round"]),
            *([number(cell["probability_fair"])] if known else []),
        ]
        for cell in cells
    ]
    what = "bin" if context["model"] in ("linear", "probit", "logit") else "value"
    model = context["model"] + ", by weighted draws" * context["switched"]
    title = (
        f"Given the context {listed(context['columns'])} ({counted(context['n_cells'], what)}, "
        f"{model}): {_SHARED.get(context['model'], 'beliefs are those of this model')}"
    )
    return title, header + ["probability fair"] * known, rows, rest


def context_lines(audit: dict[str, Any]) -> list[str]:
    """Return the table of contexts, where beliefs are given one."""
    if "context" not in audit:
        return []
    title, header, rows, rest = context_table(audit)
    names = shortened(row[0] for row in rows)
    rows = [[name, *row[1:]] for name, row in zip(names, rows, strict=True)]
    return [
        *fitted([title]),
        *table(header, rows, rest=rest),
        *fitted([f"  {without_words(audit['context'])}", f"  {WITHOUT}"]),
        "",
    ]


def across_lines(audit: dict[str, Any]) -> list[str]:
    """Return what is said of pairs of rounds across contexts, where that was asked."""
    found = audit.get("across")
    if found is None:
        return []
    within = "all rounds"
    if found["rule_version"] is not None:
        versions = counted(found["n_versions"], "version")
        within = f"rounds of the same {found['rule_version']} ({versions})"
    need = number(found["smallest_eps2"]) + (" or more" if found["at_least"] else "")
    lines = [
        "",
        f"Across contexts, pairs of {within} (a verdict of its own): "
        f"{VERDICT_WORDS[found['verdict']].lower()}",
        f"  The decisions of two rounds against their rewards need eps2 {need}; "
        f"{counted(found['n_violating_rounds'], 'round')} in pairs that violate",
    ]
    if (worst := found["worst"]) is not None:
        lines.append(
            f"  Worst: round {worst['round']} ({visible(worst['context'])}) and round "
            f"{worst['round_other']} ({visible(worst['context_other'])})"
        )
    if found["arms_as_individuals"] is not None:
        lines.append(
            f"  Arms of two rounds against each other: eps2 {number(found['arms_as_individuals'])} "
            "(no verdict: a calibrated rule needs more where rivals differ)"
        )
    return lines
