"""`bayesfair audit LOG --resume FILE`: go on with a saved audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayesfair.cli.options import Values, is_written
from bayesfair.cli.tools import show_progress
from bayesfair.cli.wording import csv_line
from bayesfair.errors import OptionError

if TYPE_CHECKING:
    from bayesfair.audit import Audit, AuditGroup
    from bayesfair.audit.saved.checkpoint import Checkpoint

__all__ = ["arms_of", "earlier_audit", "followed_of", "go_on"]

_NOT_ANY_MORE = ("prior", "support", "model", "sampler", "prior_sensitivity", "rule", "rule_window",
                 "across", "rule_version")  # fmt: skip
_KEPT = ("eps1", "eps2", "delta", "divergence", "reward_divergence", "from_round", "judge",
         "propensity_draws")  # fmt: skip


def _audits(earlier: Audit | AuditGroup) -> list[Audit]:
    from bayesfair.audit import Audit

    return [earlier] if isinstance(earlier, Audit) else list(earlier.audits.values())


def earlier_audit(path: Path, columns: Values, shell: typer.Context) -> Audit | AuditGroup:
    """Return the saved audit, if the options on the command line can go on from it.

    Raises
    ------
    DataError, OptionError
        If the file is no audit, or an option asks what the audit was not asked.
    """
    from bayesfair.audit import AuditGroup, load_audit

    for name in _NOT_ANY_MORE:
        if is_written(shell, name):
            raise OptionError(
                f"--{name.replace('_', '-')} cannot be combined with --resume: the audit goes on "
                "with the beliefs in the file. Audit the whole log to change them.",
                kind="not_the_same",
                column=name,
            )
    earlier = load_audit(path)
    several = isinstance(earlier, AuditGroup)
    if several and not columns.by:
        raise OptionError(f"{path.name} holds audits of several logs; give --by as when it began.")
    if columns.by and not several:
        raise OptionError(f"{path.name} holds the audit of one log; it cannot go on with --by.")
    first = _audits(earlier)[0]
    kept = first.question.criterion
    asked = {name: getattr(kept, name) for name in _KEPT}
    asked["tolerance"] = kept.tolerance if kept.tolerance_given else None
    asked["family"] = first.family
    asked["context_model"] = first.context_model or "none"
    asked |= followed_of(earlier)
    arms = arms_of(earlier)
    if arms:
        asked["arms"] = arms
    for name, value in asked.items():
        given = getattr(columns, name) if name in ("arms", "context") else shell.params.get(name)
        if is_written(shell, name) and given not in (value, "auto"):
            flag = f"--{name.replace('_', '-')}"
            was = "the default" if value is None else value
            if name in ("arms", "context") and value is not None:
                was = f"{flag} {csv_line(value)}"
            raise OptionError(
                f"{flag} {shell.params[name]} cannot go on from {path.name}, which was made with "
                f"{was}; leave the option out, or audit the whole log again.",
                kind="not_the_same",
                column=name,
                value=shell.params[name],
            )
    return earlier


def arms_of(earlier: Audit | AuditGroup | None) -> list[str] | None:
    """Return the arms to read the next part with; None where the logs have different ones."""
    found = set() if earlier is None else {audit.summary.arms for audit in _audits(earlier)}
    return list(found.pop()) if len(found) == 1 else None


def followed_of(earlier: Audit | AuditGroup | None) -> dict[str, Any]:
    """Return the columns of keys, users and context that the earlier audit was made with."""
    if earlier is None:
        return {}
    guards = _audits(earlier)[0].summary.guards
    return {
        "unique": None if guards.keys is None else guards.keys.column,
        "user": None if guards.users is None else guards.users.column,
        "context": _context_of(_audits(earlier)[0]),
    }


def _context_of(audit: Audit) -> list[str] | None:
    """Return the columns of the context that the beliefs are given."""
    state = audit.summary.start
    return list(state.beliefs.columns) if state.given_context else None


def go_on(
    earlier: Audit | AuditGroup,
    data: Any,
    shell: typer.Context,
    keeper: Checkpoint | None = None,
) -> tuple[Audit | AuditGroup, Audit | AuditGroup]:
    """Return the audit of the next part alone, and that of the whole log."""
    from bayesfair.audit.parts import resume_parts
    from bayesfair.audit.result import as_audit

    options: dict[str, Any] = {
        name: shell.params[name]
        for name in ("objective", "draws", "seed")
        if is_written(shell, name)
    }
    if _audits(earlier)[0].question.seed is None:  # it was made with a Generator
        options["seed"] = shell.params["seed"]
    which: Any = earlier  # one log, or several: it was checked against --by
    part, whole = resume_parts(which, data, **options, progress=show_progress(), partial=keeper)
    return as_audit(part), as_audit(whole)
