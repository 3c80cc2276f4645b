"""Arms whose beliefs are equal throughout a part of a log stand for one another.

Arms without a reward in a part keep their beliefs in all of it; those among them that begin with
equal ones share a *law*: one factor of P*, with a multiplicity. Of pairs within a law and between
two laws only the arms with the largest and the least probability can be the worst.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.history import History
from bayesfair.kernels.log.conjugate import BeliefTable
from bayesfair.typing import Floats, Ints

__all__ = ["Laws", "laws_of"]


class Laws(NamedTuple):
    """Which arms share a law.

    Attributes
    ----------
    of : (k,) array of int
        Law of each arm, 0..n-1.
    arm : (n,) array of int
        An arm with each law.
    """

    of: Ints
    arm: Ints

    @classmethod
    def apart(cls, n_arms: int) -> Laws:
        """Return a law of its own for each arm."""
        return cls(np.arange(n_arms), np.arange(n_arms))

    @property
    def shared(self) -> bool:
        """Whether any two arms share one."""
        return len(self.arm) < len(self.of)

    def table(self, table: BeliefTable) -> BeliefTable:
        """Return beliefs by law."""
        return table._replace(
            parameters=table.parameters[self.arm],
            pending_arm=self.of[table.pending_arm].astype(np.int32),
            early_arm=self.of[table.early_arm].astype(np.int32),
            n_same=table.n_same[self.arm] if table.from_data else table.n_same,
        )

    def counts(self, offered: NDArray[np.bool_] | None) -> Ints:
        """Return how many arms on offer have each law, (1 or T, n)."""
        if offered is None:
            return np.bincount(self.of, minlength=len(self.arm))[None]
        order, starts = self._runs()
        return np.add.reduceat(offered[:, order].astype(np.int64), starts, axis=1)

    def best(self, by_law: Floats, offered: NDArray[np.bool_] | None) -> Floats:
        """Return P* by arm, (T, k), from P* by law; NaN = not on offer."""
        rows = by_law[:, self.of]
        return rows if offered is None else np.where(offered, rows, np.nan)

    def extremes(self, pi: Floats) -> tuple[Floats, Ints, Ints]:
        """Return the arms of each law with the largest and the least probability, in arm order.

        Parameters
        ----------
        pi : (T, k) array
            NaN = not on offer.

        Returns
        -------
        rows, arm, law : (T, m) arrays
            Their probabilities (NaN: no such arm), positions and laws.
        """
        order, starts = self._runs()
        ends = np.append(starts[1:], len(order))
        rounds = np.arange(len(pi))
        arms, rows = [], []
        for a, b in zip(starts, ends, strict=True):
            members = order[a:b]
            if b - a == 1:
                arms.append(np.full(len(pi), members[0]))
                rows.append(pi[:, members[0]])
                continue
            mine = pi[:, members]
            off = np.isnan(mine)
            high = np.where(off, -np.inf, mine).argmax(axis=1)
            # the largest stands for itself: the least of the others
            rest = np.where(off, np.inf, mine)
            rest[rounds, high] = np.inf
            low = rest.argmin(axis=1)
            none = np.isinf(rest[rounds, low])
            arms += [members[high], members[low]]
            rows += [mine[rounds, high], np.where(none, np.nan, mine[rounds, low])]
        arm, row = np.stack(arms, axis=1), np.stack(rows, axis=1)
        place = np.argsort(arm, axis=1, kind="stable")
        arm = np.take_along_axis(arm, place, axis=1)
        return np.take_along_axis(row, place, axis=1), arm, self.of[arm]

    def _runs(self) -> tuple[Ints, Ints]:
        """Return the arms law by law, each in arm order, and where each law begins."""
        order = np.argsort(self.of, kind="stable")
        return order, np.searchsorted(self.of[order], np.arange(len(self.arm)))


def laws_of(part: History, table: BeliefTable) -> Laws:
    """Return which arms share their beliefs before every round of a part.

    Where none do, laws are the arms in their order.
    """
    k = part.n_arms
    learns = np.zeros(k, dtype=bool)
    learns[part.arm[~np.isnan(part.reward)]] = True
    learns[table.pending_arm] = True
    if table.from_data:  # arms with rewards that no scale tells apart yet
        learns[table.early_arm] = True
        learns[table.n_same > 0] = True
    idle = np.flatnonzero(~learns)
    alone = np.flatnonzero(learns)
    if idle.size < 2:
        return Laws.apart(k)
    _, first, same = np.unique(
        table.parameters[idle], axis=0, return_index=True, return_inverse=True
    )
    if first.size == idle.size:
        return Laws.apart(k)
    of = np.empty(k, np.int64)
    of[alone] = np.arange(alone.size)
    of[idle] = alone.size + same.ravel()
    return Laws(of, np.concatenate([alone, idle[first]]))
