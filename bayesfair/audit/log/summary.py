"""All that an audit keeps of a log: sums, maxima and counts that merge, whatever its length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log import repeats
from bayesfair.audit.log.accumulators import Facts, Pairs, Sums, Terms, merged_by_key
from bayesfair.audit.log.cells import Cells, ChosenCell, FullCell, RowsByCode
from bayesfair.audit.log.contexts import Seen, Without, seen_in
from bayesfair.audit.log.guards import Guards
from bayesfair.audit.log.intervals import joint_share_distance
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.violations import JudgedRounds
from bayesfair.base.checks import listed
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.kernels.log.log_pass import log_pass
from bayesfair.kernels.log.part_result import CellResult, PartResult

__all__ = ["Summary", "cells_of", "summarise"]


@dataclass(frozen=True, eq=False)
class Summary:
    """What is kept of a part of a log; see `merged`.

    Attributes
    ----------
    criterion : Criterion
        What was asked.
    selection : str
        ``"full"``, ``"chosen"`` or ``"none"``.
    start, end : AuditState
        Beliefs before its first and after its last round.
    sums : Sums
        Additive quantities.
    pairs : Pairs
        Under the beliefs.
    terms : Terms
        Of the fairness regret.
    cells : dict
        Offered set (bytes of the mask; empty = all) -> summary for the objective audit.
    guards : Guards
        For the checks of the log itself.
    facts : Facts
        From reading the log.
    contexts : dict of str to Seen
        What is kept of each context, in the order of `start` and `end`; then `cells` is empty.
    without : Without or None
        The log without its context, where beliefs are given it.
    """

    criterion: Criterion
    selection: str
    start: AuditState
    end: AuditState
    sums: Sums
    pairs: Pairs
    terms: Terms
    cells: Cells
    guards: Guards
    facts: Facts
    contexts: dict[str, Seen] = field(default_factory=dict)
    without: Without | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """Labels of the arms."""
        return self.start.arms

    @property
    def n_rounds(self) -> int:
        """Rounds of the log, judged or not."""
        return self.end.n_rounds - self.start.n_rounds

    @property
    def most_offered(self) -> int:
        """The most arms on offer in one of the judged rounds, by the probabilities logged."""
        k = len(self.arms)
        return max((k if key == b"" else sum(key) for key in self.offers), default=0)

    @property
    def offers(self) -> set[bytes]:
        """The sets of arms on offer in the judged rounds, as `cells` names them."""
        return {*self.cells, *(key for seen in self.contexts.values() for key in seen.cells)}

    def share_distance(self) -> tuple[float, float]:
        """Return how far mean P* lies from the shares of the choices, and what noise may do.

        Given a context that of each context, weighted by its rounds: convexity again.
        """
        parts: list[Seen | Sums] = [*self.contexts.values()] or [self.sums]
        return joint_share_distance([(s.p_best / max(s.n_rounds, 1), s.plays) for s in parts])

    def tolerated(self, asked: Criterion) -> Criterion:
        """Return a criterion with the tolerance that is used for this log."""
        return asked.at_resolution(self.facts.resolution.unit if self.selection == "full" else 0.0)

    def noted(self, *notices: str) -> Summary:
        """Return the summary with more notices, ahead of its own."""
        return replace(self, facts=self.facts.noted(*notices))

    def merged(self, later: Summary) -> Summary:
        """Return the summary of this part followed by ``later``.

        Raises
        ------
        DataError, OptionError
            If ``later`` did not start from the end of this part, or asked something else.
        """
        self.criterion.require_same(later.criterion)
        first, second = self.facts.source, later.facts.source
        if not self.end.same_as(later.start) and later.end.same_as(self.start):
            raise DataError(
                f"the audit of {first!r} starts where that of {second!r} ended: they "
                "come in the other order, merge(second, first)."
            )
        self.end.require_same(later.start)
        if self.selection != later.selection:
            raise DataError(
                f"one part logged selection={self.selection!r}, the next {later.selection!r}; "
                "audit them apart."
            )
        for option, mine, other in (
            ("unique", self.guards.keys, later.guards.keys),
            ("user", self.guards.users, later.guards.users),
        ):
            if (mine is None) != (other is None):
                raise OptionError(
                    f"one part was read with {option}=, the other without: read both with the same "
                    "column, so that its values can be followed through all of the log.",
                    kind="not_the_same",
                    column=option,
                )
        without = self.without
        if without is not None and later.without is not None:
            without = without.merged(later.without)
        return replace(
            self,
            end=later.end,
            sums=self.sums.merged(later.sums),
            pairs=self.pairs.merged(later.pairs),
            terms=self.terms.merged(later.terms),
            cells=merged_by_key(self.cells, later.cells),
            contexts=merged_by_key(self.contexts, later.contexts),
            without=without,
            guards=self.guards.merged(later.guards),
            facts=self.facts.merged(later.facts),
        )


def cells_of(part: History, criterion: Criterion, threads: int = 1) -> Cells:
    """Return the summaries for the objective audit, by the arms on offer."""
    if part.selection == "none" or not part.n_rounds:
        return {}

    def cell(rounds: Any) -> FullCell | ChosenCell:
        if part.selection_probability is not None:
            return FullCell.of(part.selection_probability[rounds], criterion.divergence, threads)
        assert part.propensity is not None
        return ChosenCell.of(part.arm[rounds], part.propensity[rounds], part.n_arms)

    if part.offered is None:
        return {b"": cell(slice(None))}
    masks, which = np.unique(np.packbits(part.offered, axis=1), axis=0, return_inverse=True)
    which = which.ravel()
    found = {}
    for c in range(len(masks)):
        rounds = np.flatnonzero(which == c)
        mask = part.offered[rounds[0]]
        found[b"" if mask.all() else mask.tobytes()] = cell(rounds)
    return found


def _kept_by_context(
    part: History, result: PartResult, criterion: Criterion, threads: int
) -> Callable[[CellResult], Cells]:
    """Return what gives the summaries for the objective audit of the rounds with one context."""
    if part.selection_probability is None or result.codes is None or part.offered is not None:
        return lambda cell: cells_of(cell.rounds, criterion, threads)
    rows = RowsByCode(part.selection_probability, result.codes, len(result.end.labels))

    def kept(cell: CellResult) -> Cells:
        asked = criterion.divergence, threads
        return {b"": FullCell.of_code(cell.n_rounds, rows, cell.number, *asked)}

    return kept


def _context_unused(part: History, start: AuditState, criterion: Criterion) -> list[Notice]:
    """Say that a context was read and no belief is given it, and why."""
    if part.context is None or start.given_context:
        return []
    columns = listed(part.context.columns)
    shares = criterion.propensity_draws is not None
    why = (
        "Monte Carlo error (propensity_draws=) is not allowed for by context yet. Without it"
        if shares
        else "beliefs are those of all rounds together. Where no model=, beliefs_model= or "
        "arm_groups= is given,"
    )
    return [Notice(
        f"The context {columns} was read and is not used: {why} context_model= gives beliefs the "
        "context.",
        kind="context_unused", column="propensity_draws" if shares else "context",
        value=list(part.context.columns),
    )]  # fmt: skip


def summarise(
    part: History, start: AuditState, criterion: Criterion, result: PartResult, threads: int = 1
) -> Summary:
    """Return the summary of one part from what the belief kernels found in it.

    Parameters
    ----------
    part : History
        The rounds.
    start : AuditState
        Beliefs before them.
    criterion : Criterion
        What is asked.
    result : PartResult
        What was found in them.
    threads : int
        Blocks of rounds are shared among so many; the numbers do not depend on it.
    """
    offset = start.n_rounds
    rows = log_pass(
        part.arm, part.reward, part.selection_probability, part.propensity, part.n_arms,
        apart=JudgedRounds.apart(criterion), most=repeats.MOST, threads=threads,
    )  # fmt: skip
    contexts: dict[str, Seen] = {}
    if start.given_context:
        kept = _kept_by_context(part, result, criterion, threads)
        contexts = seen_in(part, result, rows.p, kept)
    return Summary(
        criterion=criterion,
        selection=part.selection,
        start=start,
        end=replace(start, n_rounds=offset + part.n_rounds, beliefs=result.end),
        sums=Sums.of(part, result.sums, rows),
        pairs=Pairs.of(part, result.pairs, rows, offset, criterion, result.codes),
        terms=Terms.of(part, result.rounds, rows, threads),
        cells={} if start.given_context else cells_of(part, criterion, threads),
        guards=Guards.of(part, offset, rows, result.path),
        facts=Facts.of(part).noted(*_context_unused(part, start, criterion)),
        contexts=contexts,
        without=result.without,
    )
