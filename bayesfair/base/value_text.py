"""The value of rules as plain text for a terminal, from the same values as its JSON."""

from __future__ import annotations

from typing import Any

from bayesfair.base.checks import counted
from bayesfair.base.shown import MOST_ROWS, fitted, number, shortened, table, visible, wrapped

__all__ = ["MEANINGS", "render_value", "value_table"]

MEANINGS = (
    "IPS: mean of weight x reward, weight = the rule's probability of the chosen arm / the logged "
    "one. Self-normalised: divided by the mean weight. Doubly robust: the means believed before "
    "each round, corrected by the weighted errors. ESS: rounds of equal weight worth as much. "
    "Regret: fairness regret per round under the beliefs. A rule that learns is held against "
    "the rounds of this log."
)


def render_value(value: dict[str, Any]) -> str:
    """Return the table of one log, or one for each of several (``{"groups": {label: ...}}``)."""
    if "groups" not in value:
        return "\n".join([*_lines(value, ""), *wrapped(MEANINGS, "", 90), *_notice_lines(value)])
    groups = value["groups"]
    labels = list(groups)[:MOST_ROWS]
    names = dict(zip(labels, shortened(labels), strict=True))
    lines: list[str] = []
    for label in labels:
        lines += [*_lines(groups[label], f" [{names[label]}]"), *_notice_lines(groups[label]), ""]
    if len(groups) > len(labels):
        lines += [f"... {len(groups) - len(labels)} more groups; --json has all", ""]
    return "\n".join([*lines, *wrapped(MEANINGS, "", 90)])


def value_table(value: dict[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    """Return what the table of one log is of, its headings, and its rows with whole names."""
    used = counted(value["n_used"], "round")
    left = "" if value["n_used"] == value["n_rounds"] else f" of {value['n_rounds']}"
    rows = [
        [
            rule["rule"],
            *(_cell(rule[part]) for part in ("ips", "self_normalised", "doubly_robust")),
            number(rule["effective_sample_size"], 1),
            number(rule["fairness_regret"]),
        ]
        for rule in value["rules"]
    ]
    header = ["rule", "IPS, 95 %", "self-normalised", "doubly robust", "ESS", "regret"]
    return f"reward per round, {used}{left}", header, rows


def _lines(value: dict[str, Any], of: str) -> list[str]:
    size, header, rows = value_table(value)
    names = shortened((row[0] for row in rows), 24)
    shown = [[name, *row[1:]] for name, row in zip(names, rows, strict=True)]
    title = f"Value of rules on {visible(value['source'])}{of}: {size}"
    return [*fitted([title]), *table(header, shown)]


def _cell(estimate: dict[str, Any]) -> str:
    if estimate["value"] is None:
        return "-"
    value, lower, upper = (number(estimate[name], 3) for name in ("value", "lower", "upper"))
    return f"{value} [{lower}, {upper}]"


def _notice_lines(value: dict[str, Any]) -> list[str]:
    return [line for notice in value["notices"] for line in wrapped(notice)]
