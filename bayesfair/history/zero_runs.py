"""Arms whose logged probability is exactly 0 up to some round, or from one on, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.kernels.log.rows import runs_of_zeros
from bayesfair.typing import Floats, Ints

__all__ = ["ZeroRuns"]

_LONG = 10
"""Rounds with probability 0, and without, from which on a change between them is told of."""
_NOTHING = 0.01
"""A probability that ran down to less than this, or to a unit of its last decimal, became 0."""


class ZeroRuns(NamedTuple):
    """Where each of k arms has probability 0, in the rounds with a probability; mergeable.

    Attributes
    ----------
    n, lead, trail : (k,) array of int
        Rounds with a probability; zeros before the first that is above 0, after the last one.
    begin, end : (k,) array of int
        The first round with a probability above 0, and the one after the last.
    first, last : (k,) array
        The probability in these; NaN = none is above 0.
    broken : (k,) array of bool
        Whether there is a zero between them.
    start, stop : int
        The first round, and the one after the last.
    """

    n: Ints
    lead: Ints
    trail: Ints
    begin: Ints
    end: Ints
    first: Floats
    last: Floats
    broken: NDArray[np.bool_]
    start: int
    stop: int

    @classmethod
    def of(cls, pi: Floats, offset: int = 0) -> Self:
        """Return those of rounds in their order, (T, k); NaN = not on offer."""
        n_rounds, k = pi.shape
        if n_rounds and pi.min() > 0:  # most logs: no zeros, and every arm on offer
            none, all_of = np.zeros(k, np.int64), np.full(k, n_rounds)
            begin, end = np.full((2, k), [[offset], [offset + n_rounds]])
            first, last = pi[0].copy(), pi[-1].copy()
            lasting = np.zeros(k, np.bool_)
            return cls(all_of, none, none, begin, end, first, last, lasting, offset, int(end[0]))
        n, lead, trail, begin, end, broken = runs_of_zeros(pi)
        first, last, some = np.full(k, np.nan), np.full(k, np.nan), np.flatnonzero(end)
        first[some], last[some] = pi[begin[some], some], pi[end[some] - 1, some]
        begin[some] += offset
        end[some] += offset
        stop = offset + n_rounds
        return cls(n, lead, trail, begin, end, first, last, broken > 0, offset, stop)

    def merged(self, later: ZeroRuns) -> ZeroRuns:
        """Return those of these rounds followed by ``later``."""
        mine, other = ~np.isnan(self.first), ~np.isnan(later.first)
        inside = mine & other & ((self.trail > 0) | (later.lead > 0))
        return ZeroRuns(
            self.n + later.n,
            np.where(mine, self.lead, self.n + later.lead),
            np.where(other, later.trail, self.trail + later.n),
            np.where(mine, self.begin, later.begin),
            np.where(other, later.end, self.end),
            np.where(mine, self.first, later.first),
            np.where(other, later.last, self.last),
            self.broken | later.broken | inside,
            self.start,
            later.stop,
        )

    def notices(self, arms: Sequence[str], unit: float = 0.0) -> list[Notice]:
        """Return a notice of the arms with such a run at the beginning, and one at the end.

        Parameters
        ----------
        arms : sequence of str
            Labels.
        unit : float
            Of the last decimal of the probabilities.
        """
        found, least = [], max(_NOTHING, 1.5 * unit)
        above = self.n - self.lead - self.trail
        ends = (self.lead, self.first, self.begin), (self.trail, self.last, self.end)
        for (run, edge, at), place in zip(ends, ("before", "from"), strict=True):
            which = np.flatnonzero(
                ~self.broken & (above >= _LONG) & (run >= _LONG) & (edge >= least)
            )
            if not which.size:
                continue
            j, more = which[0], len(which) - 1
            late = place == "from"
            a, b = (at[j], self.stop) if late else (self.start, at[j])
            text = (
                f"Arm {arms[j]!r} has probability 0 in rounds {a} to {b - 1} (of {self.start} to "
                f"{self.stop - 1}){'' if run[j] == b - a else ', wherever it has one,'} and above "
                f"0 in every {'earlier' if late else 'later'} one"
                f"{f'; so it is with {counted(more, "other arm")}' if more else ''}. As it stands "
                "the rule could have chosen it there and never would. If it was not on offer, "
                "leave its probability empty there (NaN), or name the arms on offer with offered=."
            )
            found.append(Notice(
                text, kind=f"zero_{place}", column="offered", value=arms[j], n=int(run[j])
            ))  # fmt: skip
        return found
