"""From the question of an audit to its record: of one log, or of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesfair.audit.cluster import summarise_on
from bayesfair.audit.conclusion import conclude
from bayesfair.audit.criterion import finite_or_text
from bayesfair.audit.group import GroupRecord
from bayesfair.audit.log.arm_groups import with_arm_groups
from bayesfair.audit.log.common_rewards import common_rewards
from bayesfair.audit.log.context_tables import FEW, ContextTables
from bayesfair.audit.log.doubts import Doubts
from bayesfair.audit.log.limits import check_size, in_parts
from bayesfair.audit.log.model_beliefs import audit_with_beliefs_model
from bayesfair.audit.log.rounds import iter_results
from bayesfair.audit.log.start import start_of
from bayesfair.audit.log.state import AuditState, Opened, check_log
from bayesfair.audit.log.summary import Summary, summarise
from bayesfair.audit.question import Question
from bayesfair.audit.record import Record
from bayesfair.audit.saved.checkpoint import (
    Checkpoint,
    as_begun,
    begun,
    check_logs,
    checkpoint_for,
)
from bayesfair.audit.saved.unfinished import Followed
from bayesfair.audit.together import Audits, pass_over
from bayesfair.base.labels import by_label
from bayesfair.base.notices import Notice
from bayesfair.base.progress import Steps, steps
from bayesfair.base.workers import spread
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.featured import PRIOR_SD
from bayesfair.history import History
from bayesfair.history.logs import Logs, logs_in
from bayesfair.inference.carried import MOST_CARRIED
from bayesfair.kernels.team import usable_cores
from bayesfair.performance import utility

__all__ = ["run"]

_NO_FILE = ("memory", "data frame")
"""Sources that are no names of files."""


@dataclass(frozen=True)
class _Watched:
    """Who follows an audit on its way."""

    rounds: Steps = field(default_factory=lambda: Steps("rounds"))
    checkpoint: Checkpoint | None = None
    client: Any = None


def run(
    data: Any,
    question: Question,
    partial: Any = None,
    client: Any = None,
) -> Record | GroupRecord:
    """Return the record of a log, or of each of several.

    Parameters
    ----------
    data : History, HistoryScan, or mapping of label to them
        What was logged.
    question : Question
        What is asked.
    partial : str, Path or Checkpoint, optional
        Where the audit is kept on its way. A file that was named is removed when the audit is
        complete, a checkpoint of the caller's is not.
    client : distributed.Client, optional
        Of the cluster that shares the work.
    """
    question = as_begun(question)
    keeper = checkpoint_for(partial, data, question)
    counts = [getattr(log, "n_rounds", None) for log in logs_in(data)]
    total = None if None in counts else sum(n for n in counts if n is not None)
    watched = _Watched(steps("rounds", total), keeper, client)
    if keeper is None:
        return _answer(data, question, watched)
    keeper.begin(question.earlier, several=isinstance(data, Mapping))
    with keeper.kept_if_interrupted():
        found = _answer(data, question, watched)
    if keeper is not partial:
        keeper.drop()
    return found


def _answer(data: Any, question: Question, watched: _Watched) -> Record | GroupRecord:
    if isinstance(data, Mapping):
        if not data:
            raise DataError("there is no log to audit: the mapping of groups is empty.")
        logs = data if isinstance(data, Logs) else by_label(data, "group", "data")
        question = common_rewards(logs, question)
        check_logs(logs, question.earlier)
        if isinstance(question.seed, np.random.Generator):  # the same draws whatever the order
            question = replace(question, seed=int(question.seed.integers(1 << 63)))
        here = watched.client is None
        if here and isinstance(logs, Logs) and (found := _together(logs, question, watched)):
            return found
        if watched.client is not None:
            alone = _Watched()
            each = spread(
                watched.client, list(logs), _audit_next,
                lambda label: (logs[label], question, alone),
            )  # fmt: skip
            return GroupRecord(each)
        return GroupRecord(
            {label: _audit_next(label, log, question, watched) for label, log in logs.items()}
        )
    if isinstance(question.earlier, GroupRecord):
        raise OptionError(
            "prior= is an audit of several logs, and this is one log: give prior=earlier[label]."
        )
    return _audit_one(data, question, watched)


def _together(logs: Logs, question: Question, watched: _Watched) -> GroupRecord | None:
    """Return the audits of many logs by one pass over all of them, where that can be."""
    if watched.checkpoint is not None:
        return None
    audits = Audits(logs, lambda label: _audit_next(label, logs[label], question, _Watched()))
    found = pass_over(logs, question, audits, watched.rounds)
    if found is None:
        return None
    return GroupRecord(audits, together=found)


def _audit_one(data: Any, question: Question, watched: _Watched, label: str = "") -> Record:
    check_log(data)
    if question.truth is not None:
        question = replace(question, truth=question.truth.for_arms(data.arms))
    earlier = begun(question)
    resumed = question.earlier is not None and earlier is None  # else the whole log is there
    for name in ("model", "fit", "beliefs_model"):
        if resumed and getattr(question, name) is not None:
            raise OptionError(
                f"{name}= needs the whole log for its posterior and cannot go on from an earlier "
                f"audit (prior=); audit the whole log, or leave {name} out."
            )
    notes: list[str] = []
    if question.beliefs_model is not None:
        summary, notes = audit_with_beliefs_model(data, question)
        notes += Doubts.of(data, 0).notices(data.arms)
    else:
        summary = _summarise_log(data, question, watched, label)
    joined = earlier is not None and earlier.unfinished is not None and earlier.unfinished.before
    result = conclude(summary, question, notes, data)
    few = summary.n_rounds * len(summary.arms) <= MOST_CARRIED
    if summary.start.given_context and few and not result.beliefs_hold:
        carried = _summarise_log(data, question, _Watched(), label, carried=True)
        if carried.end.beliefs.shared.holds:
            result = conclude(carried, question, notes, data)
    result = replace(result, data=None if joined else data)
    first = min(question.criterion.from_round, data.n_rounds) if isinstance(data, History) else 0
    if question.truth is not None and isinstance(data, History) and first < data.n_rounds:
        truth = question.truth[first:] if question.truth.batch_shape else question.truth
        found = utility(data.rounds(first, data.n_rounds), truth).to_dict()
        finite = {name: finite_or_text(value) for name, value in found.items()}
        result = replace(result, extra={"utility": finite})
    return result if question.arm_groups is None else with_arm_groups(result, question.arm_groups)


def _audit_next(label: str, log: Any, question: Question, watched: _Watched) -> Record:
    """Audit one of several logs, from where the earlier audit of the same label ended."""
    group = question.earlier
    if not isinstance(group, GroupRecord):
        return _audit_one(log, question, watched, label)
    if label in group.audits:
        return _audit_one(log, replace(question, earlier=group[label]), watched, label)
    if group.unfinished:  # it was not begun
        return _audit_one(log, replace(question, earlier=None), watched, label)
    check_log(log)
    start = group.start_for(label, log.arms)
    result = _audit_one(log, replace(question, earlier=start), watched, label)
    note = Notice(
        "The earlier audit had no such group: its beliefs start from the prior.", kind="new_group"
    )
    summary = result.summary.noted(note)
    return replace(result, summary=summary, findings=(note, *result.findings))


def _summarise_log(
    data: Any, question: Question, watched: _Watched, label: str, *, carried: bool = False
) -> Summary:
    """Return what is kept of a log; ``carried``: by weighted draws in place of a filter."""
    earlier, keeper = begun(question), watched.checkpoint
    total: Summary | None = None
    notes: list[str] = []
    log = data
    if earlier is None:
        start, notes, log = _begin(data, question)
        if carried:
            start = replace(start, beliefs=start.beliefs.carried())
    else:
        total, start = earlier.summary, earlier.summary.start
        total.criterion.require_same(question.criterion)
    if watched.client is not None:
        if log is not data:
            log.close()  # the workers read it
        return summarise_on(watched.client, data, question, start, notes, watched.rounds)
    kept = earlier is not None or keeper is not None
    if isinstance(data, History) and (kept or watched.rounds.heard):
        log = in_parts(data, start.family)
    if kept:
        log = Followed(log, None if earlier is None else earlier.unfinished)
    if total is not None:
        watched.rounds.done += total.end.n_rounds - start.n_rounds
    threads = usable_cores()
    state = start if total is None else total.end
    doubts: Doubts | None = None
    for part, result, begin in iter_results(log, state, question.criterion, threads=threads):
        doubts = Doubts.of(part, begin.n_rounds, doubts)
        summary = summarise(part, begin, question.criterion, result, threads)
        summary = replace(summary, start=state)
        if total is None:  # notes belong to the summary, so that merged audits keep them
            total = summary.noted(*notes)
        else:
            total = total.merged(summary)
        state = summary.end
        if keeper is not None:
            keeper.seen(label, total, question, log)
        watched.rounds.add(part.n_rounds)
    assert total is not None
    return total if doubts is None else total.noted(*doubts.notices(total.arms))


def _begin(data: Any, question: Question) -> tuple[AuditState, list[str], Any]:
    """Return the beliefs before the first round, notices, and the log with its parts to come."""
    if isinstance(data, History):
        return (*_start(data, data, question), data)
    log = Opened(data)
    try:
        start, notes = _start(data, log.first, question)
    except BaseException:
        log.close()
        raise
    return start, notes, log


def _start(data: Any, first: History | None, question: Question) -> tuple[AuditState, list[str]]:
    """Return the beliefs before the first round of a log, whose first part this is, and notices."""
    if first is None or first.n_rounds == 0:
        raise DataError(f"{getattr(data, 'source', 'the log')} has no rounds to audit.")
    start, note = start_of(data, question.family, question.start, first, question.support)
    notes: list[str] = list(check_size(data, start.family, draws=question.n_drawn))
    model = question.context_model or _default_context_model(data, question, start, first)
    if model is not None:
        start = _given_context(start, model, first, prior=question.start)
    n_draws = question.criterion.propensity_draws
    if n_draws is not None and start.given_context:
        raise OptionError(
            "propensity_draws= cannot go on from an audit given the context: Monte Carlo error is "
            "not allowed for by context yet. Audit the log without it.",
            kind="excluded", column="propensity_draws", value=n_draws,
        )  # fmt: skip
    if question.criterion.eps2_arms is not None:
        start = replace(start, eps2_arms=question.criterion.eps2_arms)
    notes += [note] if note else []
    if isinstance(question.earlier, Record):
        notes += _same_log_again(question.earlier.summary, first)
    if first.prior_counts is not None and start.n_rounds == 0:
        before = float(first.prior_counts.sum())
        notes.append(Notice(
            f"The log starts mid-run: {before:.12g} outcomes from before it count in the beliefs, "
            "not in its rounds.",
            kind="outcomes_before", n=before,
        ))  # fmt: skip
    return start, notes


def _default_context_model(
    data: Any, question: Question, start: AuditState, first: History
) -> str | None:
    """Return how a log that was read with a context is audited where nothing is asked.

    None where it has none, where the start or a model knows none, for pairs of groups of arms, and
    for probabilities that are shares of draws.
    """
    before = first.prior_counts is not None and first.prior_counts.any()
    if first.context is None or start.n_rounds or start.given_context or before:
        return None
    shares = question.criterion.propensity_draws is not None
    if shares or question.by_model or question.arm_groups is not None:
        return None
    if not FAMILIES[start.family].binary:
        return "cells"
    known = len(first.context.cells[1]) if isinstance(data, History) else np.inf
    return "cells" if known <= FEW else "pooled"


def _given_context(
    start: AuditState, model: str, first: History, *, prior: Any = None
) -> AuditState:
    """Return the state with beliefs for each context, or for none of them.

    Raises
    ------
    OptionError
        If there is no context, or the state comes from an audit that knew none, or of before it.
    """
    if start.given_context:
        if start.beliefs.model != model:
            raise OptionError(
                f"context_model={model!r} cannot go on from an audit with "
                f"{start.beliefs.model!r}; leave it out.",
                kind="not_the_same", column="context_model", value=model,
            )  # fmt: skip
        return start
    if model == "none" and first.context is not None:
        return start
    why, family = None, FAMILIES[start.family]
    if first.context is None:
        why = "needs a context: read the log with context=, the columns of what the rule saw"
    elif model == "linear" and not family.continuous:
        why = f"is of measurements, and these rewards are of family {start.family!r}; take "
        why += "'probit'" if family.binary else "family='normal', or 'cells'"
    elif model not in ("cells", "linear") and not family.binary:
        why = f"is of rewards 0 and 1, and these are of family {start.family!r}; take "
        why += "'linear' or 'cells'" if family.continuous else "'cells'"
    elif start.n_rounds:
        why = "cannot go on from an audit that knew no context; audit the whole log"
    elif first.prior_counts is not None and first.prior_counts.any():
        why = "cannot use outcomes from before the log, whose context is not known; leave out prior"
    elif model in PRIOR_SD and prior is not None:
        why = "has a prior of its own, on coefficients; leave out prior"
    if why is not None or first.context is None:
        raise OptionError(
            f"context_model={model!r} {why}.",
            kind="unused_option", column="context_model", value=model,
        )  # fmt: skip
    tables = ContextTables.start(model, first.context, start.beliefs)
    return replace(start, beliefs=tables)


def _same_log_again(earlier: Summary, part: History) -> list[str]:
    """Return a notice if the earlier audit ended with a log of the same name.

    There is none if all rows of the part lie behind those seen: then it is a slice of one log.
    """
    source, worst = part.source, earlier.pairs.worst
    if source in _NO_FILE or source != earlier.facts.last_source:
        return []
    if part.row is not None:  # a chosen log has no worst round; not every format has a header
        here = worst is not None and worst.source == source
        seen = max((worst.row if here and worst else 0) or 0, earlier.end.n_rounds)
        if part.row.min() > seen:
            return []
    return [
        Notice(
            f"{source} is the name of the last log in the audit that this one continues: is it the "
            "same log again? Then its rounds count twice.",
            kind="same_log_again",
            value=source,
        )
    ]
