"""Run beliefs over a log: part by part, each from the state where the one before ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.state import AuditState
from bayesfair.base.checks import check_choice, listed
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.finite import check_support
from bayesfair.families.logs import choose_family, coded_of, earlier_counts
from bayesfair.families.priors import prior_table
from bayesfair.history import History
from bayesfair.kernels.log.stream import end_state, start_state, stream_bernoulli

__all__ = [
    "check_log",
    "end_of",
    "few_strays",
    "iter_results",
    "judged_part",
    "most_offered",
    "n_threads",
    "parts_of",
    "refuse_strays",
    "start_of",
]

_MANY_REWARDS = 20

MOST_WITHOUT_MATTER = 10
"""Up to so many arms the default eps2 is the same."""


def n_threads() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def check_log(data: Any) -> None:
    """Raise unless this is a log.

    Raises
    ------
    DataError
        Saying what is.
    """
    if not isinstance(data, History) and not hasattr(data, "chunks"):
        raise DataError(
            f"cannot audit a {type(data).__name__}: give a History (bayesfair.read_history), a "
            "scan (bayesfair.scan_history), or a mapping of labels to them."
        )


def parts_of(data: Any) -> Iterator[History]:
    """Yield the parts of a log: the history itself, or the chunks of a scan."""
    if isinstance(data, History):
        yield data
    else:
        yield from data.chunks()


def most_offered(data: Any) -> int:
    """Return for how many arms the default eps2 of a log is made.

    The most arms on offer in one round. Up to ten arms it does not matter, and their number is
    taken. A scan is read up to the first round that offers every arm, to its end if none does.
    """
    check_log(data)
    k = int(data.n_arms)
    if k <= MOST_WITHOUT_MATTER:
        return k
    most = 0
    for part in parts_of(data):
        offered = part.offered
        most = max(most, k if offered is None else int(offered.sum(axis=1).max(initial=0)))
        if most == k:
            break
    return most


def judged_part(part: History, state: AuditState, from_round: int) -> tuple[History, AuditState]:
    """Return the judged rounds of a part, and where their beliefs start.

    Parameters
    ----------
    part : History
        The rounds from ``state.n_rounds`` on.
    state : AuditState
        Beliefs before them.
    from_round : int
        First judged round, counted from the start of the log.
    """
    skipped = min(max(from_round - state.n_rounds, 0), part.n_rounds)
    if not skipped:
        return part, state
    return part.rounds(skipped, part.n_rounds), end_of(part.before(skipped), state)


def require_fitting(
    part: History, state: AuditState, *, goes_on: bool, scanned: bool = False
) -> None:
    """Raise a DataError if a reward does not fit the family of the audit."""
    family = FAMILIES[state.family]
    remedy = family.remedy + " One scan chooses the family by its first part." * scanned
    if goes_on:
        remedy = f"The audit that this log continues is of family {state.family!r}; audit the "
        remedy += "whole log again for another."
    coded_of(part, family, getattr(state.beliefs, "support", np.empty(0)), remedy=remedy)


def few_strays(n: int, seen: int) -> bool:
    """Whether `n` rewards beside 0 and 1 are too few of those seen to tell a family."""
    return 0 < n <= max(2, 0.01 * seen) and seen >= _MANY_REWARDS


def refuse_strays(log: History, n: int, n_seen: int) -> None:
    """Refuse logs of 0/1 rewards with a few others: more likely a code for missing than a family.

    Parameters
    ----------
    log : History
        One of the logs, or a part of it.
    n, n_seen : int
        How many rewards are others, and all observed ones, of all logs together.

    Raises
    ------
    DataError
        Naming the first of them in this log; none there, none named.
    """
    stray = ~np.isnan(log.reward) & (log.reward != 0) & (log.reward != 1)
    if few_strays(n, n_seen) and stray.any():
        t = int(np.flatnonzero(stray)[0])
        raise DataError(
            f"{log.where_reward(t)} is {log.reward[t]:g}, but all rewards "
            f"except {n} are 0 or 1. If it stands for a missing reward, mark it so "
            "(missing=); if rewards can really be that, say which they are: family='finite', "
            "'poisson' or 'normal'.",
            kind="stray_reward",
            column=log.reward_column,
            value=float(log.reward[t]),
        )


def start_of(
    data: Any, family: str, prior: Any, first: History | None, support: Any = None
) -> tuple[AuditState, str | None]:
    """Return the state before the first round, and a notice where the family was chosen.

    Parameters
    ----------
    data : History or HistoryScan
        The log.
    family : str
        Reward family or ``"auto"``.
    prior : AuditState, Audit, or the parameters of a conjugate prior
        See `bayesfair.audit`.
    first : History or None
        First part, from which ``"auto"`` chooses.
    support : sequence of float or None
        All values of a finite reward; default those seen in `first`.
    """
    arms = tuple(data.arms)
    earlier: Any = getattr(prior, "state", prior)
    if isinstance(earlier, AuditState):
        if earlier.arms != arms:
            raise DataError(
                f"prior is the state of an audit with arms {list(earlier.arms)}, this log has "
                f"{list(arms)}; read it with arms={list(earlier.arms)}."
            )
        if family not in ("auto", earlier.family):
            raise OptionError(
                f"family={family!r} cannot go on from an audit with family {earlier.family!r}; "
                "leave family= out."
            )
        earlier.require_beliefs()
        if support is not None and not np.array_equal(
            check_support(support), getattr(earlier.beliefs, "support", ())
        ):
            raise OptionError(
                "support= differs from that of the earlier audit; leave it out, or audit the "
                "whole log with it."
            )
        return _with_earlier_outcomes(earlier, prior, first)
    note = None
    if support is not None and family == "auto":
        family = "finite"
    if family == "auto":
        family, note = ("bernoulli", None) if first is None else choose_family(first)
        if FAMILIES[family].binary:
            note = None
        elif first is not None:
            observed = first.reward[~np.isnan(first.reward)]
            n_strays = int(np.count_nonzero((observed != 0) & (observed != 1)))
            refuse_strays(first, n_strays, observed.size)
    check_choice(family, "family", ("auto", *FAMILIES))
    of = FAMILIES[family]
    if not of.binary:
        from bayesfair.audit.log.general import general_start

        state = general_start(arms, family, prior, first, support)
        if of.has_levels and support is None:
            seen = listed([f"{v:g}" for v in state.beliefs.support])
            looked = f"The values {seen} are those seen in the log, which looks ahead: others "
            looked += "count as impossible. Give support= to fix them."
            note = Notice(
                looked if note is None else f"{note} {looked}", kind="levels_seen", column="support"
            )
        return state, note
    of.levels(support, np.empty(0))  # refuses values of its own
    table = begin = prior_table(prior, of, arms)
    if first is not None:
        begin = table + earlier_counts(first, of, whole=False)
    beliefs = start_state(begin[:, 0], begin[:, 1])
    return AuditState(arms, family, table, 0, beliefs), note


def _with_earlier_outcomes(
    state: AuditState, prior: Any, part: History | None
) -> tuple[AuditState, str | None]:
    """Return where a part goes on if it has outcomes from before the log, and a notice.

    Only an audit from the start of its log knows which ones that began with.
    """
    if part is None or part.prior_counts is None or not part.prior_counts.any():
        return state, None
    counts = earlier_counts(part, FAMILIES[state.family], whole=False)
    start: AuditState = state if state is prior else prior.summary.start
    if start.n_rounds:
        return state, Notice(
            f"{part.source} has outcomes from before the log ({counts.sum():.12g} of them); they "
            "belong to its first part and were not counted again.",
            kind="outcomes_before",
            n=float(counts.sum()),
        )
    began = start.counts
    if state.n_rounds == 0 and not began.any():  # a log that starts here
        begin = state.prior + counts
        return replace(state, beliefs=start_state(begin[:, 0], begin[:, 1])), None
    if not np.allclose(counts, began, rtol=1e-9, atol=1e-9):
        raise DataError(
            "outcomes before the log belong to its first part; the audit that this one continues "
            f"began with {began.sum():.12g} of them, {part.source} has {counts.sum():.12g} others. "
            "Read it without prior=, or audit the whole log again."
        )
    return state, None


def end_of(data: Any, start: AuditState) -> AuditState:
    """Return where an audit of a log would end, from its rewards alone; see `AuditState.after`."""
    check_log(data)
    state = start
    for part in parts_of(data):
        if tuple(part.arms) != state.arms:
            raise DataError(
                f"the state has arms {list(state.arms)}, this log has {list(part.arms)}; read it "
                f"with arms={list(state.arms)}."
            )
        require_fitting(part, state, goes_on=True)
        if FAMILIES[state.family].binary:
            beliefs: Any = end_state(
                part.arm, part.reward, part.selection_probability,
                state=state.beliefs, known_at=part.known_at,
            )  # fmt: skip
        else:
            from bayesfair.audit.log.general import general_end

            beliefs = general_end(part, state)
        state = replace(state, n_rounds=state.n_rounds + part.n_rounds, beliefs=beliefs)
    return state


def iter_results(
    data: Any,
    start: AuditState,
    criterion: Criterion,
    *,
    want_rounds: bool = False,
    threads: int | None = None,
) -> Iterator[tuple[History, Any, AuditState]]:
    """Yield the judged rounds of each part, what the kernels found in them, and where they start.

    With `want_rounds` rounds that are not judged are among them.
    """
    state = start
    for whole in parts_of(data):
        binary = FAMILIES[state.family].binary
        scanned = not isinstance(data, History)
        require_fitting(whole, state, goes_on=start.n_rounds > 0, scanned=scanned)
        part = whole
        if not want_rounds:
            part, state = judged_part(whole, state, criterion.from_round)
        if binary:
            result: Any = stream_bernoulli(
                part.arm,
                part.reward,
                part.selection_probability,
                state=state.beliefs,
                eps1_grid=np.array(criterion.grid),
                eps1_index=criterion.grid_index,
                eps2=criterion.counting_eps2,
                offered=part.offered if part.selection_probability is None else None,
                known_at=part.known_at,
                want_rounds=want_rounds or not criterion.is_total_variation,
                threads=threads or n_threads(),
            )
            if not criterion.is_total_variation and part.selection == "full":
                from bayesfair.audit.log.general import with_divergences

                result = with_divergences(part, state, criterion, result)
        else:
            from bayesfair.audit.log.general import general_result

            result = general_result(part, state, criterion, want_rounds=want_rounds)
        yield part, result, state
        state = replace(state, n_rounds=state.n_rounds + part.n_rounds, beliefs=result.state)
