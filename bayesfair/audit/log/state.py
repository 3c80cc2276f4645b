"""Where an audit stands after the rounds it has seen: all that the next part needs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.context_tables import (
    CONTEXT_MODELS,
    ContextTables,
    iter_cells,
    numbered,
    shared_beliefs,
)
from bayesfair.base.arguments import constructed, instance_of, takes
from bayesfair.base.checks import counted, listed
from bayesfair.base.html import Shown
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.learned import LearnedPrior
from bayesfair.families.logs import coded_of
from bayesfair.history import History
from bayesfair.history.thinned import refuse_thinned
from bayesfair.kernels.log.coefficients import Coefficients
from bayesfair.kernels.log.conjugate import BeliefTable, run_parameters

__all__ = ["AuditState", "Opened", "check_log", "judged_part", "parts_of", "require_fitting"]

_STATE = instance_of("AuditState", called="the state of an audit: audit.state")


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


def parts_of(data: Any) -> Generator[History]:
    """Yield the parts of a log: the history itself, or the chunks of a scan."""
    for part in [data] if isinstance(data, History) else data.chunks():
        refuse_thinned(part, "an audit")
        yield part


class Opened:
    """A log whose first part is at hand: what is read for it is not read again.

    Parameters
    ----------
    data : HistoryScan
        The log, whose parts are asked for once.
    """

    def __init__(self, data: Any) -> None:
        self.source = data.source
        self._parts = parts_of(data)
        self.first = next(self._parts, None)

    def chunks(self) -> Iterator[History]:
        """Yield all parts."""
        if self.first is not None:
            first, self.first = self.first, None  # nothing of it is kept
            yield first
            yield from self._parts

    def close(self) -> None:
        """Read no further."""
        self._parts.close()


@constructed
@dataclass(frozen=True, eq=False)
class AuditState(Shown):
    """Beliefs after a part of a log; give it as ``prior=`` to audit the part that follows.

    Given to ``read_history(prior=...)`` its outcomes count as seen before the log.

    Attributes
    ----------
    arms : tuple of str
        Labels.
    family : str
        Reward family.
    prior : (k, p) array
        Parameters of the prior before the first round of the log; where it is learned, those in
        units of location and scale, which `prior_and_posterior` resolves.
    n_rounds : int
        Rounds seen.
    beliefs : BeliefTable or ContextTables
        Parameters of the beliefs, and rewards that are not known yet; of beliefs given a context
        one table for each; ``()`` for beliefs under a model, of which no state is kept.
    eps2_arms : int or None
        The number of arms for which the default eps2 was made where the log begins: later parts
        keep it. None where it was never needed.
    """

    arms: tuple[str, ...]
    family: str
    prior: NDArray[np.float64]
    n_rounds: int
    beliefs: Any
    eps2_arms: int | None = None

    @property
    def counts(self) -> NDArray[np.float64]:
        """Outcomes that the beliefs rest on beside the prior: (successes, failures), ``(k, 2)``.

        Raises
        ------
        DataError
            For a family other than Bernoulli, whose outcomes are no such counts.
        """
        if not FAMILIES[self.family].binary:
            raise DataError(
                f"the state of a {self.family} audit holds no (successes, failures); give it to "
                "audit(prior=...) instead of read_history(prior=...)."
            )
        return self.posterior - self.prior

    @takes(other=_STATE)
    def same_as(self, other: AuditState) -> bool:
        """Return whether both states are the same to rounding."""
        return (
            self.arms == other.arms
            and self.family == other.family
            and self.n_rounds == other.n_rounds
            and np.array_equal(self.prior, other.prior)
            and _same(self.beliefs, other.beliefs)
        )

    @takes(other=_STATE)
    def require_same(self, other: AuditState) -> None:
        """Raise unless ``other``, the start of a later part, is this state to rounding.

        Raises
        ------
        DataError
            Saying what differs.
        """
        if self.arms != other.arms:
            raise DataError(
                f"the audits have different arms, {listed(self.arms)} and {listed(other.arms)}; "
                "only parts of one log can be merged. Read every part with the same arms=."
            )
        if self.same_as(other):
            return
        ends, starts = counted(self.n_rounds, "round"), counted(other.n_rounds, "round")
        if self.family != other.family:
            why = f"it ended with {self.family} beliefs, the second starts with {other.family} ones"
        elif other.n_rounds == 0:
            why = f"it ended after {ends}, the second starts afresh from a prior"
        elif other.n_rounds > self.n_rounds:
            why = f"it ended after {ends}, the second starts after {starts}: a part is missing"
        elif other.n_rounds < self.n_rounds:
            why = f"it ended after {ends}, the second starts after {starts}: wrong order, or twice"
        else:
            why = f"both stand after {ends}, but with other beliefs: the second follows another log"
        raise DataError(
            f"the second audit does not start where the first one ended: {why}. Make it with "
            "prior=first, and merge parts in the order of the log."
        )

    @takes()
    def after(self, data: Any) -> AuditState:
        """Return where an audit that starts here ends, without auditing: a fraction of its cost.

        With it several machines audit the parts of one log at the same time: one passes over the
        log for the states between the parts, each audits its part from there (``prior=``), and
        `bayesfair.merge` joins the audits in order.

        Parameters
        ----------
        data : History or HistoryScan
            The part that follows.

        Examples
        --------
        >>> from bayesfair import History
        >>> from bayesfair.audit import audit
        >>> log = History(["a", "b", "a"], [1, 0, 1], selection_probability=[[0.5, 0.5]] * 3)
        >>> first = audit(log.before(1), objective=False)
        >>> between = first.state.after(log.rounds(1, 2))
        >>> between.same_as(audit(log.before(2), objective=False).state)
        True
        """
        self.require_beliefs()
        check_log(data)
        state = self
        for part in parts_of(data):
            if tuple(part.arms) != state.arms:
                raise DataError(
                    f"the state has arms {list(state.arms)}, this log has {list(part.arms)}; read "
                    f"it with arms={list(state.arms)}."
                )
            require_fitting(part, state, goes_on=True)
            end = _beliefs_after(part, state)
            state = replace(state, n_rounds=state.n_rounds + part.n_rounds, beliefs=end)
        return state

    @takes(table=instance_of("BeliefTable", called="a BeliefTable"))
    def with_beliefs(self, table: BeliefTable) -> AuditState:
        """Return the same state with other beliefs: those given one context."""
        return replace(self, beliefs=table)

    @property
    def given_context(self) -> bool:
        """Whether there is a table of beliefs for each context."""
        return isinstance(self.beliefs, ContextTables)

    @property
    def by_context(self) -> dict[str, AuditState]:
        """The state of each context, by its label."""
        tables: ContextTables = self.beliefs
        pairs = zip(tables.labels, tables.tables, strict=True)
        return {label: self.with_beliefs(table) for label, table in pairs}

    @takes()
    def taught_by(self, data: Any) -> AuditState:
        """Return what a part adds to the beliefs wherever it stands in the log; see `followed_by`.

        Parameters
        ----------
        data : History or HistoryScan
            The part.
        """
        check_log(data)
        state = self.afresh()
        table: BeliefTable = state.beliefs._replace(
            parameters=np.zeros_like(self.prior), from_data=False, changed=False
        )
        state = replace(state, beliefs=table)
        for part in parts_of(data):
            require_fitting(part, state, goes_on=False, scanned=True)
            end = _beliefs_after(part, state)
            state = replace(state, n_rounds=state.n_rounds + part.n_rounds, beliefs=end)
        return state

    @takes(taught=_STATE)
    def followed_by(self, taught: AuditState) -> AuditState | None:
        """Return where a part ends that starts here, from what it taught (`taught_by`).

        None where that does not tell: while the prior is learned, rewards count in their order.
        """
        family, n = FAMILIES[self.family], taught.n_rounds
        before, found = self.beliefs, taught.beliefs
        if self.prior_is_learned and not LearnedPrior(before.early_reward).settled:
            return None
        if not n:
            return self
        waiting = before._replace(
            parameters=family.joined(before.parameters, found.parameters),
            pending_at=np.concatenate([before.pending_at - n, found.pending_at]),
            pending_arm=np.concatenate([before.pending_arm, found.pending_arm]),
            pending_reward=np.concatenate([before.pending_reward, found.pending_reward]),
        )
        end = run_parameters(family.rule, waiting, np.empty(0, np.int32), np.empty(0), None)
        fresh = found.changed or bool(np.any(before.pending_at == n))
        end = end._replace(last_pi=found.last_pi, changed=fresh)
        return replace(self, n_rounds=self.n_rounds + n, beliefs=end)

    def afresh(self) -> AuditState:
        """Return the state before the first round of another log, under the same prior."""
        self.require_beliefs()
        if isinstance(self.beliefs, ContextTables):
            return replace(self, n_rounds=0, beliefs=self.beliefs.afresh())
        nobody = {
            name: getattr(self.beliefs, name)[:0]
            for name in self.beliefs._fields
            if name.startswith(("pending", "early", "last_pi"))
        }
        begin = self.beliefs._replace(
            parameters=self.prior,
            changed=True,
            n_same=np.zeros_like(self.beliefs.n_same),
            n_learning=0,
            **nobody,
        )
        return replace(self, n_rounds=0, beliefs=begin)

    def require_beliefs(self) -> None:
        """Raise if nothing can go on from this state.

        Raises
        ------
        OptionError
            If the beliefs came from a model, of which no state is kept.
        """
        of_model = self.given_context and self.beliefs.model not in CONTEXT_MODELS
        if of_model or (isinstance(self.beliefs, tuple) and not self.beliefs):
            raise OptionError(
                "an audit with beliefs_model= ends in draws of a model, not in a state that the "
                "next part could start from; audit the whole log, or leave beliefs_model out."
            )

    @property
    def prior_is_learned(self) -> bool:
        """Whether location and scale of the prior are those of the first known rewards."""
        return bool(getattr(self.beliefs, "from_data", False))

    def prior_and_posterior(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], LearnedPrior | None]:
        """Return prior and posterior, ``(k, p)`` each, and what the prior was learned from, if so.

        Both are those of the whole log so far, rewards not known yet included; of beliefs given a
        context those without it, see `by_context`.
        """
        self.require_beliefs()
        if isinstance(self.beliefs, ContextTables):
            return self.with_beliefs(self.beliefs.without).prior_and_posterior()
        if not self.prior_is_learned and not self.beliefs.pending_at.size:
            return self.prior, self.beliefs.parameters, None
        end = run_parameters(
            FAMILIES[self.family].rule, self.beliefs, np.empty(0, np.int32), np.empty(0), None,
            everything=True,
        )  # fmt: skip
        if not self.prior_is_learned:
            return self.prior, end.parameters, None
        learned = LearnedPrior(end.early_reward)
        return learned.table(len(self.arms)), end.parameters, learned

    @property
    def posterior(self) -> NDArray[np.float64]:
        """Parameters from the whole log, rewards not known yet included, ``(k, p)``."""
        return self.prior_and_posterior()[1]


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
    return part.rounds(skipped, part.n_rounds), state.after(part.before(skipped))


def require_fitting(
    part: History, state: AuditState, *, goes_on: bool, scanned: bool = False
) -> None:
    """Raise a DataError if a reward does not fit the family of the audit."""
    family = FAMILIES[state.family]
    remedy = family.remedy + " One scan chooses the family by its first part." * scanned
    if goes_on:
        remedy = f"The audit that this log continues is of family {state.family!r}; audit the "
        remedy += "whole log again for another"
        remedy += ", or list all values (support=) from the start." if family.has_levels else "."
    coded_of(part, family, getattr(state.beliefs, "support", np.empty(0)), remedy=remedy)


def _beliefs_after(part: History, state: AuditState) -> Any:
    """Return the beliefs after a part, and what the first round of the next is compared to."""
    n, table = part.n_rounds, state.beliefs
    if isinstance(table, ContextTables):
        codes, labels = numbered(part, table)
        cells = iter_cells(part, codes, len(labels), table, FAMILIES[state.family].rule)
        ends = [_beliefs_after(own, state.with_beliefs(before)) for _, own, before in cells]
        without = _beliefs_after(part, state.with_beliefs(table.without))
        shared = None
        if table.shared is not None:
            _, shared, moved = shared_beliefs(part, codes, table, len(labels), laws=False)
            ends = [end._replace(changed=bool(x)) for end, x in zip(ends, moved, strict=True)]
        return table._replace(labels=labels, tables=tuple(ends), without=without, shared=shared)
    assert isinstance(table, BeliefTable)
    if not n:
        return table
    family = FAMILIES[state.family]
    coded = coded_of(part, family, table.support)
    end = run_parameters(family.rule, table, part.arm, coded, part.known_at)
    known_at = np.arange(1, n + 1) if part.known_at is None else part.known_at
    fresh = np.any((known_at == n) & ~np.isnan(part.reward)) or np.any(table.pending_at == n)
    pi = part.selection_probability
    last = np.empty(0) if pi is None else pi[-1].copy()
    return end._replace(last_pi=last, changed=bool(fresh))


def _in_one_order(table: BeliefTable) -> tuple[Any, ...]:
    """Return a table whose rewards that become known in one round stand in one order."""
    order = np.lexsort((table.pending_reward, table.pending_arm, table.pending_at))
    early = np.lexsort((table.early_reward, table.early_arm))
    return table._replace(
        pending_at=table.pending_at[order],
        pending_arm=table.pending_arm[order],
        pending_reward=table.pending_reward[order],
        early_arm=table.early_arm[early],
        early_reward=table.early_reward[early],
    )


def _same(a: Any, b: Any, near: float = 0.0) -> bool:
    """``near``: what rounding may do, as a share of the largest value beside its own 1e-12."""
    if a is b:
        return True
    if isinstance(a, BeliefTable) and isinstance(b, BeliefTable):
        a, b = _in_one_order(a), _in_one_order(b)
    if isinstance(a, Coefficients):  # a part sums its products apart, and inverts them anew
        near = 1e-9
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y, near) for x, y in zip(a, b, strict=True))
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.kind in "fiub" and y.dtype.kind in "fiub":
        most = near * float(np.nanmax(np.abs(x), initial=0.0)) if near else 0.0
        return x.shape == y.shape and bool(
            np.allclose(x, y, rtol=max(1e-12, near), atol=most, equal_nan=True)
        )
    return bool(np.array_equal(x, y))
