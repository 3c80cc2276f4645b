"""The audits of several logs as plain text for a terminal, from the same values as their JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bayesfair.audit.criterion import VERDICTS
from bayesfair.audit.group_pooling import pooled_line
from bayesfair.audit.log.check_words import contradiction_lines
from bayesfair.audit.log.verdict_words import VERDICT_WORDS, prior_title, verdict_lines
from bayesfair.audit.text import Columns, asked, hangs_words, modelled_words
from bayesfair.base.checks import counted
from bayesfair.base.shown import MOST_ROWS, fitted, number, shortened, table, visible, wrapped

__all__ = ["collected_notices", "group_columns", "render_group", "worst_first"]

_GROUP_MEANINGS = (
    "regret/round: subjective fairness regret; ESS: effective size of the weights P*_a/pi_a, a "
    "check of the logged probabilities that the regret does not use, where only the chosen arm's "
    "probability was logged."
)


def group_columns() -> Columns:
    """Return the columns of the table of groups: a heading, and the text of an audit's cell."""

    def size(audit: dict[str, Any]) -> Any:
        chosen = audit["log"]["selection"] == "chosen"
        return audit["calibration"]["effective_sample_size"] if chosen else None

    def regret(audit: dict[str, Any], name: str) -> str:
        return number(audit["calibration"]["subjective"][name])

    def interval(audit: dict[str, Any]) -> str:
        exact = audit["calibration"]["subjective"]["exact"]
        return "exact" if exact else f"[{regret(audit, 'lower')}, {regret(audit, 'upper')}]"

    return [
        ("verdict", lambda a: str(a["verdict"])),
        ("beliefs", lambda a: str(a["subjective"]["verdict"])),
        ("true rewards", lambda a: str((a["objective"] or {}).get("verdict", "-"))),
        ("rounds", lambda a: str(a["log"]["n_rounds"])),
        ("eps2 needed", lambda a: number(a["subjective"]["smallest_eps2"])),
        ("p(fair)", lambda a: number((a["objective"] or {}).get("probability_fair"))),
        ("regret/round", lambda a: regret(a, "regret_per_round")),
        ("95 %", interval),
        ("ESS", lambda a: number(size(a), 1)),
    ]


def collected_notices(group: dict[str, Any], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the notices of the groups, with where they apply, groups by their `names`.

    Of few groups each notice once; of many each kind once, in the words of one of them.
    """
    groups = group["groups"]
    if len(groups) > MOST_ROWS:
        return [(_where_of_kind(entry, len(groups), names), entry["text"])
                for entry in group["notices_by_kind"]]  # fmt: skip
    notices: dict[str, list[str]] = {}
    for label, audit in groups.items():
        for notice in audit["notices"]:
            notices.setdefault(notice, []).append(names[label])
    found = []
    for notice, labels in notices.items():
        where = "all" if len(labels) == len(groups) else ", ".join(labels[:5])
        more = "" if len(labels) <= 5 or where == "all" else f" and {len(labels) - 5} more"
        found.append((where + more, notice))
    return found


def _where_of_kind(entry: dict[str, Any], n: int, names: Mapping[str, str]) -> str:
    """Say in how many groups there is a notice of a kind, and whose words stand for them."""
    if entry["alike"]:
        return "all"
    first = names[entry["groups"][0]]
    return first if entry["n"] == 1 else f"{entry['n']} of {n} groups, {first} for one"


def worst_first(groups: Mapping[str, Any]) -> list[str]:
    """Return the labels of the groups by verdict, then the eps2 needed, then the regret."""

    def badness(label: str) -> tuple[int, float, float]:
        audit = groups[label]
        needed = audit["subjective"]["smallest_eps2"] or 0.0
        regret = audit["calibration"]["subjective"]["lower"] or 0.0
        return VERDICTS.index(audit["verdict"]), -float(needed), -float(regret)

    return sorted(groups, key=badness)


def render_group(group: dict[str, Any]) -> str:
    """Return the report of several audits: a line each, then the share of violating runs."""
    columns, groups = group_columns(), group["groups"]
    few = len(groups) <= MOST_ROWS
    shown = list(groups) if few else worst_first(groups)[:MOST_ROWS]
    asked_prior = {label: audit for label, audit in groups.items() if "prior_sensitivity" in audit}
    named = dict.fromkeys([*shown, *asked_prior])
    if not few:
        named |= dict.fromkeys(entry["groups"][0] for entry in group["notices_by_kind"])
    names = dict(zip(named, shortened(named), strict=True))
    rows = [[names[label], *(cell(groups[label]) for _, cell in columns)] for label in shown]
    runs = group["runs"]
    criterion = group["criterion"]
    logs = [audit["log"] for audit in group["groups"].values()]
    ends = dict.fromkeys(visible(logs[at]["source"]) for at in (0, -1))
    lines = [
        *fitted(
            [
                f"Fairness audit of {counted(len(groups), 'log')}: {' to '.join(ends)}",
                "",
                *verdict_lines(group, asked(criterion)),
                *contradiction_lines(group),
                "",
            ]
        ),
        *table(
            ["group", *(name for name, _ in columns)],
            rows,
            n=len(groups),
            rest="none of them worse",
        ),
        "",
        *fitted([f"{prior_title(criterion)}: {criterion['prior']}."]),
        *wrapped(_GROUP_MEANINGS, "", 90),
    ]
    if all(log["order"] == "rows" for log in logs):
        lines += fitted(["Rounds in the order of the rows: no times were read."])
    if runs["n"]:
        share, lower, upper = (number(runs[name]) for name in ("share", "lower", "upper"))
        unfair = f"{runs['n_violating']} of {runs['n']} logs that can be audited are unfair"
        lines += fitted(
            [f"{unfair}: share {share} [{lower}, {upper}] if they are runs of one rule"]
        )
    lines += fitted(pooled_line(group["pooled"]))
    if asked_prior:
        lines += ["", "Sensitivity to the prior (numbers: --json)"]
        lines += _at_most(
            f"[{names[label]}] {hangs_words(audit['prior_sensitivity'])}"
            for label, audit in asked_prior.items()
        )
    modelled = {label: audit["modelled"] for label, audit in groups.items() if "modelled" in audit}
    if modelled:
        lines += ["", "Rules estimated from the choices (a model, no part of the verdict)"]
        lines += _at_most(
            modelled_words(found, f"[{visible(label)}] as estimated")
            for label, found in modelled.items()
        )
    pairs = {label: audit["across"] for label, audit in groups.items() if "across" in audit}
    if pairs:
        lines += ["", "Pairs of rounds across contexts (verdicts of their own)"]
        lines += _at_most(
            f"[{visible(label)}] {VERDICT_WORDS[found['verdict']].lower()}, it needs eps2 "
            f"{number(found['smallest_eps2'])}"
            for label, found in pairs.items()
        )
    notices = [f"[{where}] {notice}" for where, notice in collected_notices(group, names)]
    if notices or group["notices"]:
        lines += ["", "Notices", *_at_most([*group["notices"], *notices])]
    return "\n".join(lines)


def _at_most(sentences: Iterable[str]) -> list[str]:
    """Return sentences as paragraphs, as many as a table may have rows, the others counted."""
    every = list(sentences)
    lines = [line for sentence in every[:MOST_ROWS] for line in wrapped(sentence)]
    more = len(every) - MOST_ROWS
    return lines if more <= 0 else [*lines, f"  ... {more} more; --json has all"]
