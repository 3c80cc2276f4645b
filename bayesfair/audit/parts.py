"""Audits part by part: join two, or go on with the next part of a log."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from bayesfair.audit.conclusion import conclude
from bayesfair.audit.criterion import check_judge
from bayesfair.audit.group import GroupRecord
from bayesfair.audit.question import Question
from bayesfair.audit.record import Record
from bayesfair.audit.run import run
from bayesfair.audit.saved.checkpoint import Checkpoint, checkpoint_for
from bayesfair.base.checks import no_seed
from bayesfair.base.options import AUDIT_OPTIONS, refuse_without_effect, written
from bayesfair.errors import DataError, OptionError
from bayesfair.typing import Progress, Seed

__all__ = ["join", "merge_records", "resume", "resume_parts"]


def merge_records[T: (Record, GroupRecord)](first: T, second: T, *, seed: Seed | None = None) -> T:
    """Return the record of two consecutive parts; see `bayesfair.merge`."""
    one, other = _first(first).criterion.judge, _first(second).criterion.judge
    if one != other:
        raise OptionError(
            f"audits with judge={one!r} and {other!r} cannot be merged; make both with the same.",
            kind="not_the_same",
            column="judge",
            value=other,
        )
    return join(first, second, seed=seed)


def _first(audit: Any) -> Record:
    """Return the audit, or the first of several logs.

    Raises
    ------
    OptionError
        If it is something else.
    """
    found = next(iter(audit.audits.values())) if isinstance(audit, GroupRecord) else audit
    if not isinstance(found, Record):
        raise OptionError(
            f"cannot merge {type(audit).__name__}: both parts must be an audit of one log, or both "
            "of several (by=)."
        )
    return found


def join[T: (Record, GroupRecord)](
    first: T,
    second: T,
    *,
    objective: bool | None = None,
    draws: int | None = None,
    seed: Seed | None = None,
) -> T:
    """Return `merge` with options of the objective part, default those of `second`."""
    if isinstance(first, GroupRecord) and isinstance(second, GroupRecord):
        return _join_groups(first, second, objective=objective, draws=draws, seed=seed)
    if not isinstance(first, Record) or not isinstance(second, Record):
        raise OptionError(
            f"cannot merge {type(first).__name__} and {type(second).__name__}: both parts must be "
            "an audit of one log, or both of several (by=)."
        )
    for part in (first, second):
        if part.unfinished is not None:
            raise OptionError(
                f"the audit of {part.summary.facts.source!r} was interrupted and cannot be merged: "
                "finish it with resume, giving its log again.",
                kind="unfinished",
                value=part.summary.facts.source,
            )
        if part.settings.beliefs_model is not None:
            raise OptionError(
                "an audit with beliefs_model= holds beliefs of a model that was fitted to its own "
                "rounds and cannot be merged; audit the whole log, or leave beliefs_model out."
            )
    summary = first.summary.merged(second.summary)
    settings = second.settings
    if objective is None:
        objective = second.objective is not None
    if objective and settings.model not in (None, "conjugate"):
        why = (
            "judges its rounds by known rewards, which are not kept"
            if settings.model == "truth"
            else "needs the whole log for its posterior"
        )
        raise OptionError(
            f"an audit with model={settings.model!r} {why}, and cannot be merged; audit the parts "
            "with the conjugate posterior (or with objective=False)."
        )
    if objective and seed is None and settings.seed is None:
        raise no_seed("the second audit was made with a Generator, which cannot be repeated")
    if (first.arm_groups is None) != (second.arm_groups is None):
        raise OptionError("one of the audits has arm_groups=, the other not; give both the same.")
    kept = summary.criterion
    question = Question(
        criterion=kept,
        tolerance=kept.tolerance if kept.tolerance_given else None,
        family=settings.family,
        objective=objective,
        draws=settings.draws if draws is None else draws,
        seed=settings.seed if seed is None else seed,
    )
    whole = replace(conclude(summary, question, [], None), origin=first.origin)
    if first.arm_groups is None or second.arm_groups is None:
        return whole
    return replace(whole, arm_groups=first.arm_groups.merged(second.arm_groups))


def _join_groups(first: GroupRecord, second: GroupRecord, **options: Any) -> GroupRecord:
    whole = dict(first.audits)
    for label, later in second.audits.items():
        if label in whole:
            try:
                whole[label] = join(whole[label], later, **options)
            except (DataError, OptionError) as error:
                raise type(error)(f"group {label!r}: {error}") from None
        elif later.summary.start.n_rounds:
            raise DataError(
                f"group {label!r}: the first audit has no such group, the second starts after "
                f"{later.summary.start.n_rounds} rounds of it. Merge with the part before."
            )
        else:
            whole[label] = later
    return GroupRecord(whole, first.origin)


def _had_objective(audit: Record) -> bool:
    """Whether an audit has an objective part, or was to have one when it was interrupted."""
    if audit.unfinished is not None:
        return audit.unfinished.objective
    return audit.objective is not None


def _require_objective(audit: Record, objective: bool) -> None:
    """Refuse an objective part that the file of an interrupted audit does not hold."""
    begun = audit.unfinished
    if begun is None or begun.model is None or not objective:
        return
    raise OptionError(
        f"the interrupted audit was asked for an objective part with {begun.model!r}, which is "
        "not in the file: bayesfair.audit(log, prior=interrupted, ...) goes on with model= or "
        "truth= and the options of the beginning; objective=False leaves that part out.",
        kind="model_not_kept",
        value=begun.model,
    )


def next_part[T: (Record, GroupRecord)](
    earlier: T,
    data: Any,
    *,
    objective: bool | None = None,
    draws: int | None = None,
    seed: Seed | None = None,
    progress: Progress | None = None,
    partial: Any = None,
) -> T:
    """Return the audit of the rounds that follow alone, asked what the earlier one was asked.

    That of an interrupted audit is the whole one: its log is given again.
    """
    first = _first(earlier)
    begun = first.unfinished
    if isinstance(earlier, GroupRecord) != isinstance(data, Mapping):
        raise OptionError(
            "the earlier audit is one of several logs: give a mapping of its labels to their next "
            f"parts, {', '.join(map(repr, list(earlier.audits)[:5]))}."
            if isinstance(earlier, GroupRecord)
            else "the earlier audit is one of a single log, and this is a mapping of several."
        )
    kept, settings = first.summary.criterion, first.settings
    arm_groups = None
    if first.arm_groups is not None:
        arm_groups = dict(zip(first.summary.arms, first.arm_groups.member, strict=True))
    seed = settings.seed if seed is None else seed
    if begun is not None:
        arm_groups = begun.arm_groups
    objective = _had_objective(first) if objective is None else objective
    judge = kept.judge if objective else "both"  # the part alone; joined, the first one's counts
    question = Question(
        criterion=replace(kept, judge=judge),
        tolerance=kept.tolerance if kept.tolerance_given else None,
        family="auto",
        prior=earlier,
        objective=objective,
        draws=settings.draws if draws is None else draws,
        seed=seed,
        progress=progress,
        checkpoint=checkpoint_for(partial, data, earlier, None),
    )
    with written(()):  # what was written for the whole has been checked, the part is asked less
        found = run(data, question, arm_groups, partial)
    return cast(T, found)  # a mapping gives a group, a log an audit


def resume[T: (Record, GroupRecord)](earlier: T, data: Any, **options: Any) -> T:
    """Return the audit of an audited log and its next part together; see `Audit.resume`."""
    return resume_parts(earlier, data, **options)[1]


def resume_parts[T: (Record, GroupRecord)](
    earlier: T,
    data: Any,
    *,
    objective: bool | None = None,
    draws: int | None = None,
    seed: Seed | None = None,
    progress: Progress | None = None,
    partial: Any = None,
) -> tuple[T, T]:
    """Return the audit of the next part alone, and that of the whole log.

    An interrupted audit goes on with its own log: both are that of all of it.
    """
    first = _first(earlier)
    if objective is None:
        objective = _had_objective(first)
    _require_objective(first, objective)
    check_judge(first.summary.criterion.judge, objective)
    asked = {} if draws is None else {"draws": draws}
    refuse_without_effect(
        asked, {"drawn"} if objective else (), AUDIT_OPTIONS, "an audit without objective part"
    )
    if objective and first.settings.model not in (None, "conjugate"):
        raise OptionError(
            f"the objective part of the earlier audit used model={first.settings.model!r}, which "
            "needs the whole log. Audit the whole log again, or resume with objective=False."
        )
    seed = first.settings.seed if seed is None else seed
    if objective and seed is None:
        raise no_seed("the earlier audit was made with a Generator")
    draws = first.settings.draws if draws is None else draws
    if first.unfinished is not None:
        whole = next_part(
            earlier, data, objective=objective, draws=draws, seed=seed, progress=progress,
            partial=partial,
        )  # fmt: skip
        return whole, whole
    keeper = None
    if partial is not None:
        keeper = partial if isinstance(partial, Checkpoint) else Checkpoint(partial)
        keeper.joining(earlier, objective=objective, draws=draws)
    with contextlib.nullcontext() if keeper is None else keeper.kept_if_interrupted():
        part = next_part(
            earlier, data, objective=False, draws=draws, seed=seed, progress=progress,
            partial=keeper,
        )  # fmt: skip
        whole = join(earlier, part, objective=objective, draws=draws, seed=seed)
    if keeper is not None and keeper is not partial:
        keeper.drop()
    return part, whole
