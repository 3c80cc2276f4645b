"""`bayesfair audit LOG --resume FILE`: go on with a saved audit."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayesfair.base.options import AUDIT_OPTIONS, refuse_without_effect
from bayesfair.cli.tools import labels
from bayesfair.errors import OptionError

if TYPE_CHECKING:
    from bayesfair.audit import Audit, AuditGroup
    from bayesfair.audit.saved.checkpoint import Checkpoint

__all__ = ["arms_of", "earlier_audit", "go_on", "unique_of"]

_NOT_ANY_MORE = ("prior", "support", "model", "prior_sensitivity")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _first(earlier: Audit | AuditGroup) -> Audit:
    from bayesfair.audit import Audit

    return earlier if isinstance(earlier, Audit) else next(iter(earlier.audits.values()))


def earlier_audit(path: Path, context: typer.Context) -> Audit | AuditGroup:
    """Return the saved audit, if the options on the command line can go on from it.

    Raises
    ------
    DataError, OptionError
        If the file is no audit, or an option asks what the audit was not asked.
    """
    from bayesfair.audit import AuditGroup, load_audit

    for name in _NOT_ANY_MORE:
        if _is_given(context, name):
            raise OptionError(
                f"--{name.replace('_', '-')} cannot be combined with --resume: the audit goes on "
                "with the beliefs in the file. Audit the whole log to change them."
            )
    earlier = load_audit(path)
    by = context.params.get("by")
    if isinstance(earlier, AuditGroup) and not by:
        raise OptionError(f"{path.name} holds audits of several logs; give --by as when it began.")
    if by and not isinstance(earlier, AuditGroup):
        raise OptionError(f"{path.name} holds the audit of one log; it cannot go on with --by.")
    first = _first(earlier)
    kept = first.summary.criterion
    asked = {
        name: getattr(kept, name)
        for name in (
            "eps1",
            "eps2",
            "delta",
            "divergence",
            "reward_divergence",
            "from_round",
            "judge",
        )
    }
    asked["tolerance"] = kept.tolerance if kept.tolerance_given else None
    asked["family"] = first.settings.family
    asked["unique"] = unique_of(earlier)
    for name, value in asked.items():
        given = context.params.get(name)
        if _is_given(context, name) and given not in (value, "auto"):
            raise OptionError(
                f"--{name.replace('_', '-')} {given} cannot go on from {path.name}, which was made "
                f"with {'the default' if value is None else value}; leave the option out, or audit "
                "the whole log again."
            )
    arms = arms_of(earlier)
    if arms and _is_given(context, "arms") and labels(context.params["arms"], "--arms") != arms:
        raise OptionError(
            f"--arms {context.params['arms']} cannot go on from {path.name}, which was made with "
            f"--arms {_as_labels(arms)}; give these, or leave the option out."
        )
    return earlier


def _as_labels(arms: list[str]) -> str:
    """Return labels as `--arms` takes them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(arms)
    return line.getvalue()


def arms_of(earlier: Audit | AuditGroup | None) -> list[str] | None:
    """Return the arms to read the next part with; None where the logs have different ones."""
    from bayesfair.audit import Audit

    if earlier is None:
        return None
    audits = [earlier] if isinstance(earlier, Audit) else list(earlier.audits.values())
    found = {audit.summary.arms for audit in audits}
    return list(found.pop()) if len(found) == 1 else None


def unique_of(earlier: Audit | AuditGroup | None) -> str | None:
    """Return the column of keys that the earlier audit was made with."""
    keys = None if earlier is None else _first(earlier).summary.guards.keys
    return None if keys is None else keys.column


def go_on(
    earlier: Audit | AuditGroup,
    data: Any,
    context: typer.Context,
    progress: Callable[[int], None],
    keeper: Checkpoint | None = None,
) -> tuple[Audit | AuditGroup, Audit | AuditGroup]:
    """Return the audit of the next part alone, and that of the whole log.

    An interrupted audit goes on with its own log: both are that of all of it.
    """
    from bayesfair.audit.parts import join, next_part

    first = _first(earlier)
    options: dict[str, Any] = {
        name: context.params[name]
        for name in ("objective", "draws", "seed")
        if _is_given(context, name)
    }
    begun = first.unfinished
    had = first.objective is not None if begun is None else begun.objective
    options.setdefault("objective", had)
    asked = {"draws": options["draws"]} if "draws" in options else {}
    drawn = {"drawn"} if options["objective"] else set()
    refuse_without_effect(asked, drawn, AUDIT_OPTIONS, "an audit without objective part")
    options.setdefault("draws", first.settings.draws)
    options.setdefault("seed", first.settings.seed)
    if options["objective"] and first.settings.model not in (None, "conjugate"):
        raise OptionError(
            f"the objective part of the saved audit used the model {first.settings.model}, which "
            "needs the whole log. Audit the whole log again, or give --no-objective."
        )
    if options["seed"] is None:  # it was made with a Generator
        options["seed"] = context.params["seed"]
    if begun is not None:
        if not options["objective"]:
            del options["draws"]
        whole = earlier.resume(data, **options, progress=progress, partial=keeper)
        return whole, whole
    before: Any = earlier  # one log, or several: which it is was checked against --by
    if keeper is not None:
        keeper.joining(before, objective=options["objective"], draws=options["draws"])
    asked = options | {"objective": False}
    part = next_part(before, data, **asked, progress=progress, partial=keeper)
    return part, join(before, part, **options)
