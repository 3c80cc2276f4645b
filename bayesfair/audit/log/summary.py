"""All that an audit keeps of a log: sums, maxima and counts that merge, whatever its length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.cells import ChosenCell, FullCell
from bayesfair.audit.log.guards import Guards
from bayesfair.audit.log.series import Series
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.violations import JudgedRounds, Violations
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.history.probabilities import Repairs, Resolution
from bayesfair.kernels.log.pairs import PAIR_TIE
from bayesfair.kernels.log.part_result import PartResult

__all__ = ["Moments", "Summary", "Worst", "cells_of", "summarise"]


_TO = " ... "


class Worst(NamedTuple):
    """The worst round and pair at the asked eps1.

    ``round`` counts from the start of the log, ``row`` within the file ``source``.
    """

    excess: float
    round: int
    row: int | None
    arm: int
    arm_other: int
    source: str


class Moments(NamedTuple):
    """Number, sum, sum of squares and largest of some terms."""

    n: int
    total: float
    squares: float
    largest: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Moments:
        """Summarise ``values`` (n,)."""
        largest = float(values.max()) if values.size else -np.inf
        return cls(values.size, float(values.sum()), float((values * values).sum()), largest)

    def merged(self, other: Moments) -> Moments:
        """Return those of both."""
        return Moments(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            max(self.largest, other.largest),
        )


class ChosenChecks(NamedTuple):
    """Sums over an arm's plays of functions of its logged propensity p, ``(k,)`` each."""

    inverse: NDArray[np.float64]  # sum 1/p
    variance: NDArray[np.float64]  # sum (1 - p)/p^2
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    @classmethod
    def of(cls, arm: NDArray[np.int32], p: NDArray[np.float64], k: int) -> ChosenChecks:
        """Summarise the rounds of a part."""
        lowest, highest = np.full(k, np.inf), np.full(k, -np.inf)
        np.minimum.at(lowest, arm, p)
        np.maximum.at(highest, arm, p)
        return cls(
            np.bincount(arm, weights=1 / p, minlength=k),
            np.bincount(arm, weights=(1 - p) / p**2, minlength=k),
            lowest,
            highest,
        )

    def merged(self, other: ChosenChecks) -> ChosenChecks:
        """Return those of both."""
        return ChosenChecks(
            self.inverse + other.inverse,
            self.variance + other.variance,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )


class Sums(NamedTuple):
    """Plain sums over rounds; merged by addition."""

    n_rounds: int
    n_skipped: int
    plays: NDArray[np.int64]
    n_unobserved: NDArray[np.int64]
    reward_total: NDArray[np.float64]
    p_best: NDArray[np.float64]
    selection: NDArray[np.float64]
    selection_variance: NDArray[np.float64]
    n_offered: NDArray[np.int64]
    all_zero: float
    concentration: float
    n_still: int
    n_moved: int

    def merged(self, other: Sums) -> Sums:
        """Return those of both."""
        pairs: Iterator[tuple[Any, Any]] = zip(self, other, strict=True)
        return Sums(*(a + b for a, b in pairs))


@dataclass(frozen=True, eq=False)
class Summary:
    """What is kept of a part of a log; see `merged`.

    Attributes
    ----------
    criterion : Criterion
        What was asked.
    selection : str
        ``"full"``, ``"chosen"`` or ``"none"``.
    source : str
        Name of the log.
    start, end : AuditState
        Beliefs before its first and after its last round.
    sums : Sums
        Additive quantities.
    frontier : (E,) array
        Smallest eps2 at each eps1 of ``criterion.grid``.
    worst : Worst or None
        Worst round and pair; None where smooth fairness cannot be audited.
    violations : Violations
        Violating rounds under the beliefs, for every tolerance of the ladder.
    judged : JudgedRounds or None
        The rounds that may violate under some truth; None unless the whole rule was logged.
    regret : Moments
        Fairness regret per round (exact), or its unbiased terms (``"chosen"``).
    weights : Moments
        Of P*_a / pi_a.
    chosen : ChosenChecks or None
        For ``"chosen"`` logs.
    resolution : Resolution
        How finely probabilities were logged.
    series : Series
        Cumulative regret and plays, thinned.
    cells : dict
        Offered set (bytes of the mask; empty = all) -> summary for the objective audit.
    missing : str
        How missing rewards were treated.
    notices : tuple of str
        From reading the log.
    repairs : Repairs
        Rows rescaled and propensities clipped while reading, counted.
    guards : Guards
        For the checks of the log itself.
    unused_columns : tuple of str
        Columns of the log that were not read.
    by_time : bool
        Every round came with its time, or its place in the order; else rows count as they stand.
    """

    criterion: Criterion
    selection: str
    source: str
    start: AuditState
    end: AuditState
    sums: Sums
    frontier: NDArray[np.float64]
    worst: Worst | None
    violations: Violations
    judged: JudgedRounds | None
    regret: Moments
    weights: Moments
    chosen: ChosenChecks | None
    resolution: Resolution
    series: Series
    cells: dict[bytes, FullCell | ChosenCell]
    missing: str
    notices: tuple[str, ...]
    repairs: Repairs
    guards: Guards
    unused_columns: tuple[str, ...] = ()
    by_time: bool = False

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
        return max((k if key == b"" else sum(key) for key in self.cells), default=0)

    @property
    def last_source(self) -> str:
        """Name of the last log, where several were merged."""
        return self.source.rsplit(_TO, maxsplit=1)[-1]

    def merged(self, later: Summary) -> Summary:
        """Return the summary of this part followed by ``later``.

        Raises
        ------
        DataError, OptionError
            If ``later`` did not start from the end of this part, or asked something else.
        """
        self.criterion.require_same(later.criterion)
        if not self.end.same_as(later.start) and later.end.same_as(self.start):
            raise DataError(
                f"the audit of {self.source!r} starts where that of {later.source!r} ended: they "
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
        cells = dict(self.cells)
        for key, cell in later.cells.items():
            known = cells.get(key)
            # one kind of cell: both parts logged the same of the rule
            cells[key] = cell if known is None else known.merged(cell)  # type: ignore[arg-type]
        return replace(
            self,
            source=_span(self.source, later.source),
            missing=_span(self.missing, later.missing),
            end=later.end,
            sums=self.sums.merged(later.sums),
            frontier=np.maximum(self.frontier, later.frontier),
            worst=_worst_of(self.worst, later.worst),
            violations=self.violations.merged(later.violations),
            judged=None
            if self.judged is None or later.judged is None
            else self.judged.merged(later.judged),
            regret=self.regret.merged(later.regret),
            weights=self.weights.merged(later.weights),
            chosen=None
            if self.chosen is None or later.chosen is None
            else self.chosen.merged(later.chosen),
            resolution=self.resolution.merged(later.resolution),
            series=self.series.merged(later.series),
            cells=cells,
            notices=tuple(dict.fromkeys((*self.notices, *later.notices))),
            repairs=self.repairs.merged(later.repairs),
            guards=self.guards.merged(later.guards),
            unused_columns=tuple(dict.fromkeys((*self.unused_columns, *later.unused_columns))),
            by_time=self.by_time and later.by_time,
        )


def _span(first: str, last: str) -> str:
    """Return the first and the last of several names in a row, or the one that they share."""
    first, last = first.split(_TO, maxsplit=1)[0], last.rsplit(_TO, maxsplit=1)[-1]
    return first if first == last else f"{first}{_TO}{last}"


def _worst_of(first: Worst | None, later: Worst | None) -> Worst | None:
    """Return the worse; the earlier one where they are equal to rounding."""
    if first is None or first.arm < 0:
        return later if later is not None else first
    if later is None or later.arm < 0 or later.excess <= first.excess + PAIR_TIE:
        return first
    return later


def cells_of(
    part: History, criterion: Criterion, threads: int = 1
) -> dict[bytes, FullCell | ChosenCell]:
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
        For the histograms.
    """
    k = part.n_arms
    propensity = part.propensity
    pairs, rounds, totals = result.pairs, result.rounds, result.sums
    regret = Moments.of(rounds.regret)
    weights = Moments.of(np.empty(0))
    chosen = None
    offset = start.n_rounds
    per_round = rounds.regret
    if part.selection == "full":
        assert part.selection_probability is not None
        propensity = np.take_along_axis(
            part.selection_probability, part.arm[:, None].astype(np.intp), axis=1
        )[:, 0]
        weights = Moments.of(rounds.p_best_chosen / propensity)
    elif propensity is not None:
        ratio = rounds.p_best_chosen / propensity
        weights = Moments.of(ratio)
        per_round = np.maximum(1 - ratio, 0.0)
        regret = Moments.of(per_round)
        chosen = ChosenChecks.of(part.arm, propensity, k)
    else:
        per_round = np.zeros(part.n_rounds)
    worst = judged = None
    if part.selection == "full":
        assert part.selection_probability is not None
        judged = JudgedRounds.of(part.selection_probability, offset, criterion)
        i, j = (int(x) for x in pairs.worst_pair)
        t = int(pairs.worst_round)
        row = None if part.row is None or t < 0 else int(part.row[t])
        worst = Worst(float(pairs.worst_excess), offset + t, row, i, j, part.source)
    unseen = np.isnan(part.reward)
    rewards = np.where(unseen, 0.0, part.reward)
    sums = Sums(
        part.n_rounds,
        part.n_skipped,
        np.asarray(totals.plays, np.int64),
        np.bincount(part.arm[unseen], minlength=k),
        np.bincount(part.arm, weights=rewards, minlength=k),
        totals.p_best,
        totals.selection,
        totals.selection_variance,
        np.asarray(totals.n_offered, np.int64),
        totals.all_zero,
        float(propensity.sum()) if propensity is not None else 0.0,
        totals.n_still,
        totals.n_moved,
    )
    end = replace(start, n_rounds=offset + part.n_rounds, beliefs=result.end)
    return Summary(
        criterion,
        part.selection,
        part.source,
        start,
        end,
        sums,
        pairs.frontier,
        worst,
        Violations(pairs.n_violating, pairs.first_violating, pairs.last_violating).shifted(offset),
        judged,
        regret,
        weights,
        chosen,
        part.resolution,
        Series.empty(k).extended(per_round, part.arm),
        cells_of(part, criterion, threads),
        part.missing,
        tuple(n for n in part.notices if n not in part.repairs.sentences()),
        part.repairs,
        Guards.of(part, offset, propensity, result.path),
        part.unused_columns,
        part.time is not None,
    )
