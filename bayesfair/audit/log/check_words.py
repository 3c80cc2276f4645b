"""The tests of a log in words: what failed, what it means, and what usually causes it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from bayesfair.audit.log.checks import (
    CONTRADICTIONS,
    LEVEL,
    Check,
    arm_checks,
    best_moved,
    log_checks,
)
from bayesfair.audit.log.summary import Summary
from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice

__all__ = [
    "CHECK_NAMES",
    "check_findings",
    "check_line",
    "check_rows",
    "contradiction_lines",
    "unused_findings",
]

CHECK_NAMES = {
    "choices": "arms chosen as often as logged",
    "strength": "choices follow the probabilities",
    "propensities": "propensities not too small",
    "sticky": "choices do not hang on the one before",
    "sticky_users": "users do not keep their arm",
    "repeated_rows": "no rows stand there twice",
    "repeated_keys": "no key comes twice",
    "context": "rewards unrelated to the probabilities",
    "movement": "the rule moves no more than beliefs",
}
"""What each test asks, for tables."""

_CAUSES = (
    "Usual causes: the logged probabilities are not those that the choices were drawn with "
    "(rounded, or of another version or moment of the rule); rows are missing from the log, for "
    "instance thinned by outcome; rows stand in it twice; a user keeps the arm once drawn (sticky "
    "assignment). Distrust every number that uses the probabilities."
)
#: Names of columns that tell rows apart or say when: poor examples of what a rule sees.
_IDLE = re.compile(
    r"(^|[_. -])(id|ids|uuid|guid|key|hash|index|row|at|on|time|timestamp|ts|date|day|ip|url)$",
    re.I,
)
#: Names of columns that say when a reward was known: no context, since the rule could not see it.
_LATE = re.compile(
    r"(^|.*[_. -])((reward|outcome|feedback|conversion|click)(s|ed)?[_. -]?(time\w*|at|date|ts)"
    r"|known([_. -]?(at|since|from|time))?)",
    re.I,
)
_KEPT = re.compile(
    r"(keep|kept|drop|pdrop|retention|retained|sampling|sample|subsampl\w*|downsampl\w*)"
    r"[ _.-]?(p|prob\w*|rate|ratio|frac\w*|weight)?|(p|prob\w*)[ _.-]?(keep|kept|drop|sampled)"
    r"|1 - pdrop",
    re.IGNORECASE,
)
_MOST_COLUMNS = 8


def check_findings(summary: Summary) -> list[Notice]:
    """Return a notice for each test that a log fails."""
    checks = log_checks(summary)
    words = {
        "choices": _choices, "strength": _strength, "propensities": _propensities,
        "sticky": _sticky, "sticky_users": _sticky_users, "repeated_rows": _repeated_rows,
        "repeated_keys": _repeated_keys, "context": _context, "movement": _movement,
    }  # fmt: skip
    found = [
        Notice(words[name](summary, check), kind=name, value=check.statistic
               if check.statistic is None or math.isfinite(check.statistic) else None, n=check.n)
        for name, check in checks.items()
        if check.passed is False and not (name == "movement" and checks["context"].passed is False)
    ]  # fmt: skip
    return [*found, *_hardly_chosen(summary, checks["propensities"]), *_unjudged(summary)]


def _number(check: Check) -> str:
    p = check.p_value or 0.0
    shown = "below 1e-12" if p < 1e-12 else f"= {p:.2g}"
    return f"z = {check.statistic:.1f}, p {shown}"


def _choices(summary: Summary, check: Check) -> str:
    sums, arms = summary.sums, summary.arms
    looks = len([c for c in arm_checks(summary)])
    bad = [c for c in arm_checks(summary) if (c.p_value or 0.0) * looks < LEVEL][:3]
    bad = bad or arm_checks(summary)[:1]
    if summary.selection == "full" and len(bad) == looks == 2:
        bad = [max(bad, key=lambda c: c.statistic or 0.0)]  # the other one is its mirror image
    said = []
    for c in bad:
        i = arms.index(str(c.arm))
        if summary.selection == "full":
            said.append(
                f"arm {c.arm!r} was chosen {c.n} times, the probabilities add up to "
                f"{sums.selection[i]:.1f} (z = {c.statistic:.1f})"
            )
        elif c.method == "exact":
            assert summary.terms.chosen is not None
            expected = float(summary.terms.chosen.highest[i]) * float(sums.n_offered[i])
            said.append(
                f"arm {c.arm!r} was chosen {c.n} times, the probabilities add up to "
                f"{expected:.1f} (z = {c.statistic:.1f})"
            )
        else:
            assert summary.terms.chosen is not None
            said.append(
                f"propensities of arm {c.arm!r} look too small: its {c.n} plays stand for "
                f"{summary.terms.chosen.inverse[i]:.0f} rounds of {sums.n_offered[i]} "
                f"(z = {c.statistic:.1f})"
            )
    return f"The choices do not fit the logged probabilities: {'; '.join(said)}. {_CAUSES}"


def _strength(summary: Summary, check: Check) -> str:
    how = "less" if (check.statistic or 0.0) < 0 else "more"
    return (
        f"The choices follow the logged probabilities {how} than they say ({_number(check)}): "
        f"arms are chosen {how} often in the rounds that give them much. {_CAUSES}"
    )


def _propensities(summary: Summary, check: Check) -> str:
    w = summary.terms.weights
    return (
        f"The mean of P*_a/pi_a is {w.total / w.n:.4f}, significantly above 1, which no true "
        f"propensities allow: the logged propensities are too small. {_CAUSES}"
    )


def _sticky(summary: Summary, check: Check) -> str:
    if (check.statistic or 0.0) > 0:
        width = "narrow"
        what = "the arm of the round before is chosen again more often"
        cause = (
            "users keep the arm once drawn and their rounds stand together (sticky assignment), "
            "rows stand there twice, or rows are sorted by arm"
        )
    else:
        width = "wide"
        what = "the arm of the round before is chosen again less often"
        cause = "arms are dealt out in turn, or in blocks that balance them"
    return (
        f"A choice depends on the one before: {what} than the logged probabilities say "
        f"({_number(check)}). Usual causes: {cause}. Such rounds are no separate draws, and "
        f"intervals that take them for it are too {width}."
    )


def _sticky_users(summary: Summary, check: Check) -> str:
    users = summary.guards.users
    assert users is not None
    seen = users.again
    if seen.excess > 0:
        often, width = "more", "narrow"
        cause = "users keep the arm once drawn (sticky assignment), or rows stand there twice"
    else:
        often, width = "less", "wide"
        cause = "each user is given the arms in turn, or in blocks that balance them"
    return (
        f"A user's choice depends on the one before: in {seen.n_same} of {seen.n_pairs} rounds of "
        f"users who had come before (column {users.column!r}) their arm was chosen again, {often} "
        f"often than the logged probabilities say ({_number(check)}). Usual causes: {cause}. Such "
        f"rounds are no separate draws, and intervals that take them for it are too {width}."
    )


def _repeated_rows(summary: Summary, check: Check) -> str:
    if check.row is not None:
        first, n = check.row, check.n or 0
        what = (
            f"the {n} rounds from round {first} on repeat earlier rounds of this log: same arms, "
            "same rewards, same probabilities, in the same order. Drawn anew in each round as was "
            "logged, the choices would coincide with probability below "
            f"{max(check.p_value or 0.0, 1e-300):.1g}"
        )
    else:
        what = (
            f"{counted(check.n or 0, 'row')} that share their time stamp with the row before are "
            f"the same in arm, reward and probability too, more than chance allows "
            f"({_number(check)})"
        )
    return (
        "Rows stand in the log more than once, or the choices were not drawn as was logged: "
        f"{what}. Usual causes: an export that was added twice, events that were delivered twice, "
        "or users who keep their arm. Beliefs count rewards that stand there twice as two: "
        "remove copies."
    )


def _repeated_keys(summary: Summary, check: Check) -> str:
    keys = summary.guards.keys
    assert keys is not None
    return (
        f"Column {keys.column!r} was said to be unique, but in {counted(keys.n_repeated, 'round')} "
        f"its value had come before (first in round {keys.row}; {keys.n_same} of them chose the "
        "arm of the time before). Usual causes: rows stand there twice, or one user stands for "
        "several rounds and keeps the arm once drawn (sticky assignment): then rounds are no "
        "separate draws."
    )


def _context(summary: Summary, check: Check) -> str:
    more = (
        "If a column holds the context, context= audits the log given it, and by= each of its "
        "values apart."
    )
    if summary.contexts:
        more = "The context that was read is not all of it: the test was made within each context."
        if summary.start.beliefs.featured is not None:
            more = "The context that was read, or how rewards are said to depend on it, is not all "
            more += "of it: the test was made on what the beliefs given it leave of the rewards."
    return (
        f"The rule knows something that this audit does not see: arm {check.arm!r} pays more in "
        f"the rounds that give it a higher probability ({_number(check)} over {check.n} plays). "
        "That may be a context (who the user is), drift, or another signal. The audit holds a rule "
        "that used it against beliefs that did not: its numbers bound the fairness given the "
        f"context neither from above nor from below. {more}"
    )


def _movement(summary: Summary, check: Check) -> str:
    rule = summary.guards.rule
    steps = rule.n_steps
    return (
        f"The selection probabilities move by {rule.moved / steps:.3g} a round on average, while "
        f"what is learned from the logged rewards moves P* by {best_moved(summary) / steps:.2g} at "
        "most: the rule uses a context or the time, learns from something else, or reacts to "
        "rewards far more sharply than beliefs do (greedy rules, UCB). Fairness given a context is "
        "not tested."
    )


def _hardly_chosen(summary: Summary, check: Check) -> list[Notice]:
    """Say where arms with a chance to be best are hardly chosen, or propensities are too large."""
    p = check.p_value
    if check.statistic is None or p is None or check.statistic >= 0 or 1 - p >= LEVEL:
        return []
    w = summary.terms.weights
    return [Notice(
        f"The mean of P*_a/pi_a is {w.total / w.n:.4f}, below 1: some arms with a chance to be "
        "best are never or hardly ever chosen, or the propensities are too large.",
        kind="hardly_chosen", value=w.total / w.n,
    )]  # fmt: skip


def _unjudged(summary: Summary) -> list[Notice]:
    """Count rows that look like copies where no probability can tell."""
    ties = summary.guards.ties.whole()
    if summary.selection != "none" or 2 * ties.n_alike < ties.n_stamps or ties.n_alike < 3:
        return []
    return [Notice(
        f"At {ties.n_alike} of {counted(ties.n_stamps, 'time stamp')} that several rows share, "
        "these rows have the same arm and reward as well. Without probabilities chance cannot be "
        "ruled out; if a row stands there twice, remove its copy.",
        kind="repeated_rows", n=ties.n_rows,
    )]  # fmt: skip


def unused_findings(summary: Summary) -> list[Notice]:
    """Name the columns of a log that were not used, and what would use them."""
    columns = summary.facts.unused_columns
    if not columns:
        return []
    n, late = len(columns), [column for column in columns if _LATE.fullmatch(column)]
    seen = [column for column in columns if column not in late]
    one = next((c for c in seen if not _IDLE.search(c)), [*seen, *late][0])
    verb, it = ("column was", "it") if n == 1 else ("columns were", f"one of them (say {one!r})")
    said = (
        f"The verdict is given the context alone; if the rule saw {it} too, name it in context= "
        "as well" if summary.start.given_context else
        f"The verdict is about all rounds together; if the rule saw {it}, context={one!r} audits "
        "the log given it"
    )  # fmt: skip
    said += f", and by={one!r} audits each of its values apart."
    when = (
        f" {late[0]!r} may say when the reward was known, which the rule could not see: with "
        f"known_at={late[0]!r} no round before uses it." if late else ""
    )  # fmt: skip
    thinned = [column for column in columns if _KEPT.fullmatch(column)]
    found = [Notice(
        f"{n} {verb} not used: {listed(columns, _MOST_COLUMNS)}."
        f"{f' {said}' if seen else ''}{when}",
        kind="unused_columns", column=one, n=n,
    )]  # fmt: skip
    if thinned:
        found.append(Notice(
            f"Column {thinned[0]!r} looks like the chance of a row to be kept: a log that was "
            "thinned by arm or outcome cannot be audited as it stands, since beliefs, plays and "
            "probabilities of the rows that are left are not those of the rule. Audit the full "
            f"log; with keep_prob={thinned[0]!r} the value of rules is reweighted.",
            kind="thinned", column=thinned[0],
        ))  # fmt: skip
    return found


# -- for the report --------------------------------------------------------------------------------


def _outcome(check: Mapping[str, Any]) -> str:
    if check["passed"] is None:
        return "not tested"
    return "passed" if check["passed"] else "FAILED"


def check_rows(checks: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return question, outcome and evidence of every test that was made, from its JSON."""
    rows = []
    for name, check in checks.items():
        if check["passed"] is None:
            continue
        evidence = ""
        if "p_value" in check:
            evidence = f"p = {check['p_value']:.2g}, level {check['threshold']:g}"
        else:
            number = check["statistic"]
            shown = number if isinstance(number, str) else f"{number:.3g}"
            evidence = f"{shown}, at most {check['threshold']:g}"
        rows.append((CHECK_NAMES[name], _outcome(check), evidence))
    return rows


def check_line(checks: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return all tests of a log in one line, from its JSON; None where none could be made."""
    made = {name: check for name, check in checks.items() if check["passed"] is not None}
    if not made:
        return None
    failed = [name.replace("_", " ") for name, check in made.items() if not check["passed"]]
    if not failed:
        return f"Checks of the log: {counted(len(made), 'test')}, {'all ' * (len(made) > 1)}passed."
    return f"Checks of the log: {len(failed)} of {len(made)} failed ({', '.join(failed)})."


def contradiction_lines(numbers: Mapping[str, Any]) -> list[str]:
    """Return what stands below the verdict of a log, or of several, that contradicts itself."""
    if numbers["consistent"]:
        return []
    if "groups" in numbers:
        bad = [label for label, audit in numbers["groups"].items() if not audit["consistent"]]
        do = "contradicts itself" if len(bad) == 1 else "contradict themselves"
        return [
            f"{len(bad)} of {len(numbers['groups'])} logs {do} ({listed(bad, 5)}): do not rely on "
            "this verdict before that is explained."
        ]
    checks = numbers["checks"]
    failed = [name.replace("_", " ") for name in CONTRADICTIONS
              if name in checks and checks[name]["passed"] is False]  # fmt: skip
    return [
        f"The log contradicts itself ({', '.join(failed)}): do not rely on this verdict before "
        "that is explained; see the notices."
    ]
