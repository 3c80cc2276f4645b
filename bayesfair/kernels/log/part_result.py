"""What one part of a log amounts to: named records that the streaming and the general path fill."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.typing import Floats, Ints

__all__ = [
    "ROUNDING", "TOLERANCES", "BestPath", "CellResult", "PairSums", "PartResult", "PartRounds",
    "RoundSums",
]  # fmt: skip


ROUNDING = 1e-9
"""What double precision may add to a difference, generously."""

TOLERANCES = (
    ROUNDING,
    *(unit + ROUNDING for unit in (1e-8, 1e-7, 2.0**-23, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)),
)
"""Violating rounds are counted for each of these: the log's resolution is known only at its end."""


class PairSums(NamedTuple):
    """What pairs of arms amount to, for E values of eps1; rounds count from the part's start.

    Attributes
    ----------
    frontier : (E,) array
        Largest excess over rounds and pairs, cut at 0, for each eps1 of the grid.
    worst_excess : float
        Largest excess at the asked eps1 with its sign; -inf where there is no pair or no pi.
    worst_round : int
        First round within 1e-12 of it; -1 where there is none.
    worst_pair : (int, int)
        First pair of that round in arm order; the arm chosen more often comes first.
    n_violating : (len(TOLERANCES),) array of int
        Rounds whose excess at the asked eps1 is above eps2 + tolerance.
    first_violating, last_violating : (len(TOLERANCES),) array of int
        The first and the last of them; -1 where there is none.
    """

    frontier: Floats
    worst_excess: float
    worst_round: int
    worst_pair: tuple[int, int]
    n_violating: Ints
    first_violating: Ints
    last_violating: Ints

    @classmethod
    def empty(cls, n_grid: int) -> PairSums:
        """Return those of no pair in no round."""
        nowhere = np.full(len(TOLERANCES), -1)
        none = np.zeros(len(TOLERANCES), np.int64)
        return cls(np.zeros(n_grid), -np.inf, -1, (-1, -1), none, nowhere, nowhere)


class RoundSums(NamedTuple):
    """Sums over rounds, by arm where an array.

    Attributes
    ----------
    p_best, selection, selection_variance : (k,) array
        Of P*, pi and pi (1 - pi).
    plays, n_offered : (k,) array of int
        Rounds in which the arm was chosen, was on offer.
    all_zero : float
        Of prod(1 - m): how much of P* is the tie of all-zero rewards.
    n_still, n_moved : int
        Rounds with the beliefs (and arms on offer) of the round before; those among them in which
        pi moved by more than 1e-9.
    """

    p_best: Floats
    selection: Floats
    selection_variance: Floats
    plays: Ints
    n_offered: Ints
    all_zero: float
    n_still: int
    n_moved: int

    @classmethod
    def empty(cls, k: int) -> RoundSums:
        """Return those of no round."""
        zeros, none = np.zeros(k), np.zeros(k, np.int64)
        return cls(zeros, zeros, zeros, none, none, 0.0, 0, 0)


class PartRounds(NamedTuple):
    """Numbers of every round, T rounds.

    Attributes
    ----------
    regret : (T,) array
        sum_i max(P*_i - pi_i, 0) over the arms on offer; empty without pi.
    p_best_chosen : (T,) array
        P* of the chosen arm.
    smallest_eps2 : (T,) array or None
        Largest excess of each round cut at 0 (on request, with pi).
    pair : (T, 2) array of int or None
        Worst pair of each round, as `PairSums.worst_pair`; -1, -1 where there is none.
    p_best : (T, k) array or None
        P* of each round (on request); NaN = not on offer.
    """

    regret: Floats
    p_best_chosen: Floats
    smallest_eps2: Floats | None = None
    pair: Ints | None = None
    p_best: Floats | None = None


class BestPath(NamedTuple):
    """How P* moved over a part: total variation from round to round; its first and last row."""

    moved: float
    first: Floats
    last: Floats


class CellResult(NamedTuple):
    """What the rounds with one context amount to.

    Attributes
    ----------
    number : int
        Of the context.
    plays : (k,) array of int
        Rounds in which an arm was chosen.
    p_best : (k,) array
        Sum of P*; not kept (0) where the whole rule was logged.
    needed : float
        Largest excess at the asked eps1, cut at 0.
    n_violating : (len(TOLERANCES),) array of int
        Rounds whose excess is above eps2 + tolerance.
    rounds : object or None
        These rounds as a log; None where it is not at hand.
    """

    number: int
    plays: Ints
    p_best: Floats
    needed: float
    n_violating: Ints
    rounds: Any = None

    @property
    def n_rounds(self) -> int:
        """How many rounds have the context."""
        return int(self.plays.sum())


class PartResult(NamedTuple):
    """What one part of a log amounts to.

    Attributes
    ----------
    end : BeliefTable
        Start of the next part; a table for each context where beliefs are given one, ``()`` for
        beliefs of which no state is kept.
    pairs : PairSums
    sums : RoundSums
    rounds : PartRounds
    path : BestPath or None
        How far P* moves, where it was traced.
    codes : (T,) array of int32 or None
        Number of each round's context, where beliefs are given one.
    cells : tuple of CellResult
        What the rounds of each context amount to.
    without : object or None
        What the same part amounts to against beliefs that know no context.
    expected : (T,) array or None
        Expected reward of the arm that was chosen, where contexts are features.
    """

    end: Any
    pairs: PairSums
    sums: RoundSums
    rounds: PartRounds
    path: BestPath | None = None
    codes: NDArray[np.int32] | None = None
    cells: tuple[CellResult, ...] = ()
    without: Any = None
    expected: Floats | None = None
