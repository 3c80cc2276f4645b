"""What the pages of audits of decisions show: one log, or several side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesfair.audit.context_text import WITHOUT, context_table, without_words
from bayesfair.audit.group_text import collected_notices, group_columns, worst_first
from bayesfair.audit.log.check_words import check_rows
from bayesfair.audit.log.verdict_words import lead, regret_words, remarks
from bayesfair.audit.text import arm_columns, show_worst
from bayesfair.base.checks import counted
from bayesfair.base.shown import MOST_ROWS, number
from bayesfair.errors import OptionError
from bayesfair.report import words
from bayesfair.report.figures import (
    arms_of_group,
    audit_figures,
    by_gap,
    group_figures,
    rewards_figures,
    round_figures,
    selection_gaps,
    value_figure,
    windows_figure,
)
from bayesfair.report.labels import Labels

__all__ = ["MOST_QUANTITIES", "group_context", "groups_in_full", "log_context", "most_sensitive"]

_MOST_ARMS = 100
_MOST_ARMS_OF_A_GROUP = 10
_MOST_BELIEVED = 1000  # arms; of more the page has no intervals of rewards
_MOST_GROUPS_IN_FULL = 12
_MOST_GROUPS = 1000
MOST_QUANTITIES = 40


def log_context(audit: Any, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return what the page of one log shows."""
    context = _audit_context(audit, numbers, _MOST_ARMS) | _top(numbers)
    series = audit.series() if hasattr(audit, "series") else None
    figures = audit_figures(numbers, series)
    if context["believed"] is not None:
        figures += rewards_figures(context["believed"])
    if "value" in numbers:
        figures.append(value_figure(numbers["value"]))
    found, why = _over_time(audit)
    figures += round_figures(found, numbers["log"]["selection"]) if found is not None else []
    span: Any = getattr(getattr(audit, "data", None), "time", None)
    dated = span is not None and np.asarray(span).dtype.kind == "M" and len(span)
    first_last = [str(end(span)) for end in (np.min, np.max)] if dated else []
    return context | {
        "figures": figures, "worst_rows": _worst_rows(found), "no_rounds": why,
        "first_last": first_last,
    }  # fmt: skip


def _over_time(audit: Any) -> tuple[Any, str]:
    """Return what the rounds add up to; None and the reason where they are not at hand."""
    try:
        return (audit.over_time() if hasattr(audit, "over_time") else None), ""
    except OptionError as reason:
        return None, str(reason)


def _group_in_full(audit: Any, numbers: dict[str, Any], place: int) -> dict[str, Any]:
    """Return what is shown of one of several logs."""
    found, _ = _over_time(audit)
    figures = arms_of_group(numbers, place)
    if found is not None and numbers["log"]["selection"] != "none":
        figures.append(windows_figure(found, f"windows-of-{place}"))
    return _audit_context(audit, numbers, _MOST_ARMS_OF_A_GROUP) | {
        "figures": figures, "worst_rows": _worst_rows(found),
    }  # fmt: skip


def _worst_rows(found: Any) -> list[dict[str, Any]]:
    """Return the worst rounds of `Audit.over_time`."""
    if found is None:
        return []
    names = ("round", "row", "eps2", "arm", "arm_other")
    columns = [found[f"worst_{name}"].values.tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _top(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return what the box of the verdict says of an audit of decisions."""
    return {
        "regret_line": regret_words(numbers),
        "answers": lead(numbers),
        "remarks": remarks(numbers),
        "limits": words.limits(numbers["criterion"]),
    }


def _audit_context(audit: Any, numbers: dict[str, Any], most_arms: int) -> dict[str, Any]:
    columns = arm_columns(numbers)
    arms, chosen_how = _shown_arms(numbers, most_arms)
    if numbers["log"]["selection"] == "chosen":
        n = max(numbers["log"]["n_judged"], 1)
        columns.append(("share of choices", lambda arm: number(arm["n"] / n)))
    believed, few = None, len(numbers["arms"]) <= _MOST_BELIEVED and hasattr(audit, "to_dataframe")
    if few and not (table := audit.to_dataframe())["reward_lower"].isna().any():
        believed = table
        columns.insert(3, ("believed, 95 %", lambda arm: _with_ends(table.loc[arm["arm"]])))
    return {
        "audit": numbers,
        "believed": believed,
        "sentences": words.verdict_sentences(numbers),
        "headline": words.HEADLINE[numbers["verdict"]],
        "worst_shown": show_worst(numbers),
        "unchecked": words.unchecked(numbers),
        "check_rows": check_rows(numbers["checks"]),
        "arm_headings": [name for name, _ in columns],
        "arm_rows": [[cell(arm) for _, cell in columns] for arm in arms],
        "arm_statement": chosen_how,
        "contexts": _contexts(numbers),
    }


def _with_ends(arm: Any) -> str:
    mean, low, high = (number(arm[f"reward_{end}"], 3) for end in ("believed", "lower", "upper"))
    return f"{mean} [{low}, {high}]"


def _contexts(numbers: dict[str, Any]) -> dict[str, Any] | None:
    """Return the table of contexts, where beliefs are given one."""
    if "context" not in numbers:
        return None
    title, headings, rows, _ = context_table(numbers)
    more = max(len(rows) - MOST_ROWS, 0)
    return {
        "title": title, "headings": headings, "rows": rows[:MOST_ROWS], "n_unlisted": more,
        "without": f"{without_words(numbers['context'])} {WITHOUT}",
    }  # fmt: skip


def _shown_arms(numbers: dict[str, Any], most: int) -> tuple[list[dict[str, Any]], str]:
    """Return the arms of the table and, where it is not all of them, how they were chosen."""
    arms, known = numbers["arms"], numbers["log"]["selection"] == "full"
    shown = [arms[i] for i in by_gap(selection_gaps(numbers))[:most]]
    what = "mean selection probability" if known else "share of the choices"
    order = f"whose {what} lies furthest from P* believed"
    if len(arms) <= most:
        return shown, f"Every arm of the log, first those {order}."
    return shown, (
        f"{most} of {len(arms)} arms are shown, those {order}, "
        f"furthest first; {counted(len(arms) - most, 'arm')} not shown. The JSON in this file "
        "lists all of them."
    )


def groups_in_full(audit: Any, numbers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return everything of the groups that are shown in full: of all, or of the worst."""
    groups = numbers["groups"]
    shown = list(groups) if len(groups) <= _MOST_GROUPS_IN_FULL else (
        worst_first(groups)[:_MOST_GROUPS_IN_FULL]
    )  # fmt: skip
    brief = numbers["detail"] == "brief"
    return {label: audit[label].to_dict() if brief else groups[label] for label in shown}


def group_context(
    audits: Any, numbers: dict[str, Any], in_full: dict[str, dict[str, Any]], labels: Labels
) -> dict[str, Any]:
    """Return what the page of several logs shows, those of `in_full` with everything."""
    groups: dict[str, dict[str, Any]] = numbers["groups"]
    listed = list(groups) if len(groups) <= _MOST_GROUPS else worst_first(groups)[:_MOST_GROUPS]
    columns = group_columns()
    return _top(numbers) | {
        "audit": numbers,
        "sentences": words.group_sentences(numbers),
        "headline": words.GROUP_HEADLINE[numbers["verdict"]],
        "group_headings": ["group", *(name for name, _ in columns)],
        "group_rows": [
            [label, groups[label]["verdict"], *(cell(groups[label]) for _, cell in columns[1:])]
            for label in listed
        ],
        "n_unlisted": len(groups) - len(listed),
        "in_full": [
            (label, _group_in_full(audits[label], one, i))
            for i, (label, one) in enumerate(in_full.items())
        ],
        "n_in_brief": len(groups) - len(in_full),
        "notices": collected_notices(numbers, {label: labels.text(label) for label in groups}),
        "first": next(iter(in_full.values())),
        "figures": group_figures(numbers),
    }  # fmt: skip


def most_sensitive(quantities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the quantities of the table of sensitivities: in order, or the most sensitive."""
    if len(quantities) <= MOST_QUANTITIES:
        return quantities
    return sorted(quantities, key=lambda q: -float(q["prior"] or 0.0))[:MOST_QUANTITIES]
