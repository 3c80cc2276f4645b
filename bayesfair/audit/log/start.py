"""Where the audit of a log starts: its family, its prior, the beliefs before the first round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayesfair.audit.log.state import AuditState, check_log, parts_of
from bayesfair.base.checks import check_choice, first_where, listed
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.finite import check_support
from bayesfair.families.logs import choose_family, earlier_counts
from bayesfair.history import History
from bayesfair.inference.beliefs import belief_start

__all__ = ["few_strays", "most_offered", "refuse_strays", "start_of"]

_MANY_REWARDS = 20

MOST_WITHOUT_MATTER = 10
"""Up to so many arms the default eps2 is the same."""


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
    stray = first_where(~np.isnan(log.reward) & (log.reward != 0) & (log.reward != 1))
    if few_strays(n, n_seen) and stray:
        t = stray.at
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
    beliefs, table = belief_start(arms, of, prior, first, support)
    if of.has_levels and support is None:
        seen = listed([f"{v:g}" for v in beliefs.support])
        looked = f"The values {seen} are those seen in the log, which looks ahead: others "
        looked += "count as impossible. Give support= to fix them."
        note = Notice(
            looked if note is None else f"{note} {looked}", kind="levels_seen", column="support"
        )
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
        begin = state.beliefs._replace(parameters=state.prior + counts)
        return replace(state, beliefs=begin), None
    if not np.allclose(counts, began, rtol=1e-9, atol=1e-9):
        raise DataError(
            "outcomes before the log belong to its first part; the audit that this one continues "
            f"began with {began.sum():.12g} of them, {part.source} has {counts.sum():.12g} others. "
            "Read it without prior=, or audit the whole log again."
        )
    return state, None
