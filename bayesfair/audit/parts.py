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
from bayesfair.audit.saved.checkpoint import Checkpoint
from bayesfair.base.checks import no_seed
from bayesfair.base.notices import Notice
from bayesfair.base.options import AUDIT_OPTIONS, refuse_without_effect, written
from bayesfair.base.progress import tells
from bayesfair.errors import DataError, OptionError
from bayesfair.families.featured import PRIOR_SD
from bayesfair.typing import Progress, Seed

__all__ = ["join", "merge_records", "resume", "resume_parts"]


_LEFT_OUT = {
    name: Notice(text, kind=f"{name}_left_out", column=column)
    for name, column, text in (
        ("modelled", "rule",
         "The rule that was estimated from the choices of a part (rule='estimated') is left out: "
         "its intervals cannot be joined. Audit the whole log with rule= for those of all rounds."),
        ("across", "across",
         "Pairs of rounds across contexts (across='contexts') are left out: those of one part and "
         "the other were not looked at. Audit the whole log with across= for all of them."),
        ("covered", "constant_within",
         "Pairs of arms whose probabilities are known (constant_within=) are left out: those of "
         "one part and the other cannot be joined. Audit the whole log for those of all rounds."),
        ("value", "value",
         "The value of other rules on a part of the log is left out. Give --value, or "
         "policy_value, the whole log for that of all rounds."),
    )
}  # fmt: skip
"""What is not joined, by its name in `Record.extra`."""


def merge_records[T: (Record, GroupRecord)](first: T, second: T, *, seed: Seed | None = None) -> T:
    """Return the record of two consecutive parts; see `bayesfair.merge`."""
    one, other = (_first(audit).question.criterion.judge for audit in (first, second))
    if one != other:
        raise OptionError(
            f"audits with judge={one!r} and {other!r} cannot be merged; make both with the same.",
            kind="not_the_same",
            column="judge",
            value=other,
        )
    for audit in (first, second):
        model = _first(audit).context_model
        if model in PRIOR_SD:
            raise OptionError(
                f"audits with context_model={model!r} cannot be merged: its beliefs depend on the "
                "order of the rewards. Go on with the next part instead: audit.resume(log).",
                kind="excluded", column="context_model", value=model,
            )  # fmt: skip
    return join(first, second, **({} if seed is None else {"seed": seed}))


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


def join[T: (Record, GroupRecord)](first: T, second: T, **asked: Any) -> T:
    """Return `merge` with fields of the question that replace those of `second`."""
    if isinstance(first, GroupRecord) and isinstance(second, GroupRecord):
        return _join_groups(first, second, **asked)
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
        if part.question.beliefs_model is not None:
            raise OptionError(
                "an audit with beliefs_model= holds beliefs of a model that was fitted to its own "
                "rounds and cannot be merged; audit the whole log, or leave beliefs_model out."
            )
    summary = first.summary.merged(second.summary)
    question = replace(
        second.question.begun_as(first.question), criterion=first.question.criterion, **asked
    )
    model = question.model_name
    if model not in (None, "conjugate"):
        why = (
            "judges its rounds by known rewards, which are not kept"
            if model == "truth"
            else "needs the whole log for its posterior"
        )
        raise OptionError(
            f"an audit with model={model!r} {why}, and cannot be merged; audit the parts "
            "with the conjugate posterior (or with objective=False)."
        )
    if question.objective and question.seed is None:
        raise no_seed("the second audit was made with a Generator, which cannot be repeated")
    if (first.arm_groups is None) != (second.arm_groups is None):
        raise OptionError("one of the audits has arm_groups=, the other not; give both the same.")
    extra = first.extra | second.extra
    notes: list[str] = [notice for name, notice in _LEFT_OUT.items() if name in extra]
    whole = replace(conclude(summary, question, notes, None), origin=first.origin)
    if first.arm_groups is None or second.arm_groups is None:
        return whole
    return replace(whole, arm_groups=first.arm_groups.merged(second.arm_groups))


def _join_groups(first: GroupRecord, second: GroupRecord, **asked: Any) -> GroupRecord:
    whole = dict(first.audits)
    for label, later in second.audits.items():
        if label in whole:
            try:
                whole[label] = join(whole[label], later, **asked)
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


def resume[T: (Record, GroupRecord)](earlier: T, data: Any, **options: Any) -> T:
    """Return the audit of an audited log and its next part together; see `Audit.resume`."""
    return resume_parts(earlier, data, **options)[1]


@tells
def resume_parts[T: (Record, GroupRecord)](
    earlier: T,
    data: Any,
    *,
    objective: bool | None = None,
    draws: int | None = None,
    seed: Seed | None = None,
    progress: Progress = None,
    partial: Any = None,
) -> tuple[T, T]:
    """Return the audit of the next part alone, and that of the whole log.

    An interrupted audit goes on with its own log: both are that of all of it.
    """
    first = _first(earlier)
    whole = first.question.next(objective=objective, draws=draws, seed=seed)
    _check_resumed(first, whole, draws)
    if isinstance(earlier, GroupRecord) != isinstance(data, Mapping):
        raise OptionError(
            "the earlier audit is one of several logs: give a mapping of its labels to their next "
            f"parts, {', '.join(map(repr, list(earlier.audits)[:5]))}."
            if isinstance(earlier, GroupRecord)
            else "the earlier audit is one of a single log, and this is a mapping of several."
        )
    asked = replace(whole, earlier=earlier)
    with written(()):  # what was written for the whole has been checked, the part is asked less
        if first.unfinished is not None:
            found = cast(T, run(data, asked, partial))  # a log as it was, or several
            return found, found
        keeper = None
        if partial is not None:
            keeper = partial if isinstance(partial, Checkpoint) else Checkpoint(partial)
            keeper.joining(earlier, whole.begun_as(first.question))
        with contextlib.nullcontext() if keeper is None else keeper.kept_if_interrupted():
            criterion = replace(asked.criterion, judge="both")  # joined, the first one's counts
            alone = replace(asked, objective=False, criterion=criterion)
            part = cast(T, run(data, alone, keeper))
            joined = join(
                earlier, part, objective=whole.objective, draws=whole.draws, seed=whole.seed
            )
    if keeper is not None and keeper is not partial:
        keeper.drop()
    return part, joined


def _check_resumed(first: Record, whole: Question, draws: int | None) -> None:
    """Refuse what cannot be asked of an audit and its next part together."""
    check_judge(whole.criterion.judge, whole.objective)
    asked = {} if draws is None else {"draws": draws}
    refuse_without_effect(
        asked, {"drawn"} if whole.objective else (), AUDIT_OPTIONS,
        "an audit without objective part",
    )  # fmt: skip
    model = first.question.model_name
    if whole.objective and model not in (None, "conjugate"):
        if first.unfinished is None:
            raise OptionError(
                f"the objective part of the earlier audit used model={model!r}, which "
                "needs the whole log. Audit the whole log again, or resume with objective=False."
            )
        raise OptionError(
            f"the interrupted audit was asked for an objective part with {model!r}, which is "
            "not in the file: bayesfair.audit(log, prior=interrupted, ...) goes on with model= or "
            "truth= and the options of the beginning; objective=False leaves that part out.",
            kind="model_not_kept",
            value=model,
        )
    if whole.objective and whole.seed is None:
        raise no_seed("the earlier audit was made with a Generator")
