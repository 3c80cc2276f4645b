"""Do users keep the arm once drawn? What is remembered of each of them, mergeable over parts.

A user's choice is held against the same user's choice before: whether it is the same arm again
should happen as often as the logged probabilities say. Users may interleave in any way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.repeats import Common, grouped
from bayesfair.kernels.log.guards import Prints
from bayesfair.typing import Floats

__all__ = ["Again", "Users"]


class Again(NamedTuple):
    """How often users were given the arm that they had the time before.

    Attributes
    ----------
    n_pairs : int
        Rounds of users who had come before, their arm of then being on offer again.
    n_same : int
        Those with that arm again.
    excess, variance : float
        Of `n_same` over the sum of its logged probabilities, a martingale. Where only the chosen
        arm's probability p was logged: the sum of 1/p - 1 over those rounds less the number of the
        others.
    low, high : float
        Smallest and largest probability among the terms; inf and -inf for none.
    """

    n_pairs: int = 0
    n_same: int = 0
    excess: float = 0.0
    variance: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, same: NDArray[np.bool_], x: Floats, *, chosen: bool) -> Again:
        """Sum up rounds (n,).

        Parameters
        ----------
        same : (n,) array of bool
            Whether the arm of the time before was chosen again.
        x : (n,) array
            Its logged probability; NaN = not on offer. With ``chosen`` that of the arm that was
            chosen now.
        """
        there = ~np.isnan(x)
        same, x = same[there], x[there]
        if not len(x):
            return cls()
        if chosen:
            again = x[same]
            excess = float((1 / again).sum()) - len(x)
            variance = float(((1 - again) / again**2).sum())
        else:
            excess, variance = float(same.sum() - x.sum()), float((x * (1 - x)).sum())
        return cls(len(x), int(same.sum()), excess, variance, float(x.min()), float(x.max()))

    def joined(self, other: Again) -> Again:
        """Return both as one."""
        return Again(
            self.n_pairs + other.n_pairs, self.n_same + other.n_same,
            self.excess + other.excess, self.variance + other.variance,
            min(self.low, other.low), max(self.high, other.high),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Users:
    """The users of a log or a part of one, by fingerprint.

    Attributes
    ----------
    column : str
        Where they stand.
    start : int
        Rounds before the part.
    prints : (n,) array
        Different users, ascending.
    last_arm : (n,) array of int32
        What each was given last.
    first_arm : (m,) array of int32
        What each was given first: m = n in a part that rounds come before; m = 0 where the log
        begins, for nobody will ask.
    first_p : (m,) array
        Its logged probability, NaN for none.
    first_pi : (m, k) array
        The rule of that round; k = 0 where it was not logged.
    again : Again
        Sums over users who came back.
    """

    column: str
    start: int
    prints: Prints
    last_arm: NDArray[np.int32]
    first_arm: NDArray[np.int32]
    first_p: Floats
    first_pi: Floats
    again: Again

    @classmethod
    def of(
        cls, column: str, start: int, users: Prints, arm: NDArray[np.int32], p: Floats | None,
        pi: Floats | None,
    ) -> Users:  # fmt: skip
        """Remember the users (n,) of a part; 0 = none.

        Parameters
        ----------
        start : int
            Rounds before the part.
        p : (n,) array or None
            Logged probability of each choice.
        pi : (n, k) array or None
            The whole rule.
        """
        order, again, firsts, lasts = grouped(users)
        repeated = np.flatnonzero(again)
        before, now = arm[order[repeated - 1]], order[repeated]
        sums = _sums(before, arm[now], None if p is None else p[now],
                     None if pi is None else pi[now])  # fmt: skip
        kept = order[firsts] if start else np.zeros(0, np.int64)
        return cls(
            column, start, users[order[firsts]], arm[order[lasts]], arm[kept],
            np.full(len(kept), np.nan) if p is None else np.array(p[kept]),
            np.empty((len(kept), 0)) if pi is None else np.array(pi[kept]),
            sums,
        )  # fmt: skip

    def merged(self, later: Users) -> Users:
        """Return what is remembered of both parts."""
        met = Common.of(self.prints, later.prints)
        pi, p = later.first_pi[met.theirs], later.first_p[met.theirs]
        step = _sums(self.last_arm[met.mine], later.first_arm[met.theirs], p,
                     pi if pi.shape[1] else None)  # fmt: skip
        both = replace(
            self,
            prints=met.first(self.prints, later.prints),
            last_arm=met.last(self.last_arm, later.last_arm),
            again=self.again.joined(step).joined(later.again),
        )
        if not self.start:
            return both
        return replace(
            both,
            first_arm=met.first(self.first_arm, later.first_arm),
            first_p=met.first(self.first_p, later.first_p),
            first_pi=met.first(self.first_pi, later.first_pi),
        )


def _sums(
    before: NDArray[np.int32], now: NDArray[np.int32], p: Floats | None, pi: Floats | None
) -> Again:
    same = before == now
    if pi is not None:
        return Again.of(same, np.asarray(pi[np.arange(len(now)), before], np.float64), chosen=False)
    if p is None:
        return Again()
    return Again.of(same, np.asarray(p, np.float64), chosen=True)
