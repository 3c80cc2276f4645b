"""What an audit keeps of the rounds of a log: named records, each of one part, each merges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.series import Series
from bayesfair.audit.log.violations import JudgedRounds, Violations
from bayesfair.history import History
from bayesfair.history.probabilities import Repairs, Resolution
from bayesfair.kernels.log.log_pass import LogPass
from bayesfair.kernels.log.pairs import PAIR_TIE
from bayesfair.kernels.log.part_result import PairSums, PartRounds, RoundSums
from bayesfair.kernels.log.row_terms import term_sums

__all__ = ["ChosenChecks", "Facts", "Moments", "Pairs", "Sums", "Terms", "Worst", "merged_by_key"]

_TO = " ... "


class _Merges(Protocol):
    def merged(self, later: Self, /) -> Self: ...


def merged_by_key[K, M: _Merges](first: Mapping[K, M], later: Mapping[K, M]) -> dict[K, M]:
    """Return what is kept under each key, of both parts where both have it."""
    both = {k: first[k].merged(value) if k in first else value for k, value in later.items()}
    return {**first, **both}


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
    def of(cls, n: int, sums: NDArray[np.float64]) -> Moments:
        """Join ``sums`` (segment, 3) of ``n`` terms: their sum, of squares, the largest."""
        if not n:
            return cls(0, 0.0, 0.0, -np.inf)
        return cls(n, float(sums[:, 0].sum()), float(sums[:, 1].sum()), float(sums[:, 2].max()))

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
    """Plain sums over rounds; merged by addition.

    Those of `kernels.log.part_result.RoundSums`, and of the log itself.
    """

    n_rounds: int
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

    @classmethod
    def of(cls, part: History, found: RoundSums, rows: LogPass) -> Sums:
        """Return those of a part from what was found of beliefs and rows."""
        return cls(
            n_rounds=part.n_rounds,
            n_unobserved=rows.n_unobserved,
            reward_total=rows.reward_total,
            concentration=rows.concentration,
            **found._asdict(),
        )

    def merged(self, other: Sums) -> Sums:
        """Return those of both."""
        return Sums(**{name: a + getattr(other, name) for name, a in self._asdict().items()})


class Pairs(NamedTuple):
    """What pairs of arms amount to under the beliefs.

    Attributes
    ----------
    frontier : (E,) array
        Smallest eps2 at each eps1 of ``criterion.grid``.
    worst : Worst or None
        Worst round and pair; None where smooth fairness cannot be audited.
    violations : Violations
        Violating rounds, for every tolerance of the ladder.
    judged : JudgedRounds or None
        The rounds that may violate under some truth; None unless the whole rule was logged.
    """

    frontier: NDArray[np.float64]
    worst: Worst | None
    violations: Violations
    judged: JudgedRounds | None

    @classmethod
    def of(
        cls, part: History, found: PairSums, rows: LogPass, start: int, criterion: Criterion,
        context: NDArray[np.int32] | None = None,
    ) -> Pairs:  # fmt: skip
        """Return those of a part, which ``start`` rounds of the log precede.

        ``context`` (T,): the number of each round's context, where beliefs are given one.
        """
        judged = None
        if part.selection_probability is not None:
            judged = JudgedRounds.of(
                part.selection_probability, start, criterion, rows.may,
                np.empty(0, np.int32) if context is None else context,
            )  # fmt: skip
        return cls.kept(part, found, start, judged)

    @classmethod
    def kept(
        cls, part: History, found: PairSums, start: int, judged: JudgedRounds | None = None
    ) -> Pairs:
        """Return what is kept of the pairs of a part, which ``start`` rounds precede."""
        worst = None
        if part.selection_probability is not None:
            (arm, other), t = found.worst_pair, found.worst_round
            row = None if part.row is None or t < 0 else int(part.row[t])
            worst = Worst(found.worst_excess, start + t, row, arm, other, part.source)
        rounds = Violations(found.n_violating, found.first_violating, found.last_violating)
        return cls(found.frontier, worst, rounds.shifted(start), judged)

    def merged(self, later: Pairs) -> Pairs:
        """Return those of this part followed by ``later``."""
        judged = None
        if self.judged is not None and later.judged is not None:
            judged = self.judged.merged(later.judged)
        return Pairs(
            np.maximum(self.frontier, later.frontier),
            _worst_of(self.worst, later.worst),
            self.violations.merged(later.violations),
            judged,
        )


class Terms(NamedTuple):
    """Terms of the fairness regret, one per round.

    Attributes
    ----------
    regret : Moments
        Fairness regret per round (exact), or its unbiased terms (``"chosen"``).
    weights : Moments
        Of P*_a / pi_a.
    chosen : ChosenChecks or None
        For ``"chosen"`` logs.
    series : Series
        Cumulative regret and plays, thinned.
    """

    regret: Moments
    weights: Moments
    chosen: ChosenChecks | None
    series: Series

    @classmethod
    def of(cls, part: History, rounds: PartRounds, rows: LogPass, threads: int) -> Terms:
        """Return those of a part from what was found of its rounds and rows."""
        k, n = part.n_arms, part.n_rounds
        stride = Series.stride_of(n, k)
        sums, plays = term_sums(
            part.arm, rounds.regret, rounds.p_best_chosen, rows.p, k, stride, threads
        )
        known = 0 if part.selection == "none" else n
        return cls(
            Moments.of(known, sums[:, :3]),
            Moments.of(known, sums[:, 3:]),
            ChosenChecks.of(part.arm, rows.p, k) if part.selection == "chosen" else None,
            Series.of(n, stride, sums[:, 0], plays),
        )

    def merged(self, later: Terms) -> Terms:
        """Return those of this part followed by ``later``."""
        chosen = None
        if self.chosen is not None and later.chosen is not None:
            chosen = self.chosen.merged(later.chosen)
        return Terms(
            self.regret.merged(later.regret),
            self.weights.merged(later.weights),
            chosen,
            self.series.merged(later.series),
        )


class Facts(NamedTuple):
    """What was found while a log was read.

    Attributes
    ----------
    source : str
        Name of the log.
    n_skipped : int
        Rows left out.
    missing : str
        How missing rewards were treated.
    notices : tuple of str
        From reading it.
    repairs : Repairs
        Rows rescaled and propensities clipped, counted.
    resolution : Resolution
        How finely probabilities were logged.
    unused_columns : tuple of str
        Columns that were not read.
    by_time : bool
        Every round came with its time, or its place in the order; else rows count as they stand.
    """

    source: str
    n_skipped: int
    missing: str
    notices: tuple[str, ...]
    repairs: Repairs
    resolution: Resolution
    unused_columns: tuple[str, ...]
    by_time: bool

    @classmethod
    def of(cls, part: History) -> Facts:
        """Return those of a part."""
        return cls(
            source=part.source,
            n_skipped=part.n_skipped,
            missing=part.missing,
            notices=tuple(n for n in part.notices if n not in part.repairs.sentences()),
            repairs=part.repairs,
            resolution=part.resolution,
            unused_columns=part.unused_columns,
            by_time=part.time is not None,
        )

    def noted(self, *notices: str) -> Facts:
        """Return the facts with more notices, ahead of their own."""
        return self._replace(notices=(*notices, *self.notices))

    @property
    def last_source(self) -> str:
        """Name of the last log, where several were merged."""
        return self.source.rsplit(_TO, maxsplit=1)[-1]

    def merged(self, later: Facts) -> Facts:
        """Return those of this part followed by ``later``."""

        def each(name: str) -> Any:
            return tuple(dict.fromkeys((*getattr(self, name), *getattr(later, name))))

        return Facts(
            source=_span(self.source, later.source),
            n_skipped=self.n_skipped + later.n_skipped,
            missing=_span(self.missing, later.missing),
            notices=each("notices"),
            repairs=self.repairs.merged(later.repairs),
            resolution=self.resolution.merged(later.resolution),
            unused_columns=each("unused_columns"),
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
