"""The value of rules as plain text for a terminal, from the same values as its JSON."""

from __future__ import annotations

from typing import Any

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.base.shown import MOST_ROWS, fitted, number, shortened, table, visible, wrapped
from bayesfair.history import History

__all__ = ["MEANINGS", "render_value", "thinned_notice", "value_table"]

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


def thinned_notice(log: History) -> Notice:
    """Return what the values of a thinned log rest on."""
    assert log.keep_prob is not None
    total = float((1 / log.keep_prob).sum())
    return Notice(
        f"The log is thinned: {counted(log.n_rounds, 'round')} kept with "
        f"{_chances(float(log.keep_prob.min()), float(log.keep_prob.max()))} (keep_prob) stand for "
        "about "
        f"{total:.0f}, each for 1 / keep_prob. Values are reweighted so. What the rule had seen "
        "before each round cannot be followed, so no fairness regret is told; the doubly robust "
        "estimate expects what the kept rounds taught.",
        kind="thinned", column="keep_prob", value=total, n=log.n_rounds,
    )  # fmt: skip


def _chances(low: float, high: float) -> str:
    return f"chance {low:g}" if low == high else f"chances from {low:g} to {high:g}"
