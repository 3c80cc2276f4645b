"""How an audit ends: status 1 where a verdict, the log or the regret is bad enough."""

from __future__ import annotations

from typing import Any

import typer

from bayesfair.base.shown import MOST_ROWS
from bayesfair.cli.tools import complain

__all__ = ["check_level", "end_on_regret", "end_on_verdict"]

_EXIT = {
    "unfair": ("unfair",),
    "inconsistent": ("unfair", "inconsistent"),
    "undetermined": ("unfair", "inconsistent", "undetermined", "not_auditable"),
}
"""--fail-on -> what ends with status 1; a log that contradicts itself is no fair one."""


def check_level(level: str | None) -> None:
    """Refuse a level that is none, before any work."""
    if level is not None:
        from bayesfair.base.checks import check_choice

        check_choice(level, "--fail-on", tuple(_EXIT))


def end_on_verdict(
    numbers: dict[str, Any], level: str | None, questions: dict[str, str] | None = None
) -> None:
    """End with status 1 where the verdict, or the log itself, is bad enough."""
    from bayesfair.audit.log.verdict_words import one_line

    if level is None:
        return
    found = []
    if numbers["verdict"] in _EXIT[level]:
        found.append(one_line(numbers, questions) if questions else one_line(numbers))
    if not numbers["consistent"] and "inconsistent" in _EXIT[level]:
        found.append("the log contradicts itself")
    if found:
        complain(f"{', '.join(found)} (--fail-on {level})")
        raise typer.Exit(1)


def end_on_regret(numbers: dict[str, Any], limit: float | None) -> None:
    """End with status 1 where the lower bound of a fairness regret is above the limit."""
    if limit is None:
        return
    failed = 0
    for label, audit in (numbers.get("groups") or {"": numbers}).items():
        lower = audit["calibration"]["subjective"]["lower"]
        if lower is not None and lower > limit:
            group = f" of group {label}" if label else ""
            failed += 1
            if failed <= MOST_ROWS:
                complain(
                    f"fairness regret per round{group} is at least {lower:.6g}, above {limit:g} "
                    "(--max-regret-per-round)"
                )
    if failed > MOST_ROWS:
        complain(f"... and of {failed - MOST_ROWS} more groups")
    if failed:
        raise typer.Exit(1)
