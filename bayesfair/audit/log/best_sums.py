"""P* of every round, chunk by chunk, and what an audit keeps of it."""

from __future__ import annotations

import numpy as np

from bayesfair.audit.log.shared_laws import Laws
from bayesfair.history import History
from bayesfair.typing import Floats

__all__ = ["BestSums"]


class BestSums:
    """Sums of P* over the rounds of a part, without P* of all arms in all rounds.

    Parameters
    ----------
    part : History
        The rounds.
    keep : bool
        Also keep P* of every round.

    Attributes
    ----------
    total : (k,) array
        Sum of P* over rounds.
    chosen, regret : (T,) array
        P* of the chosen arm; sum max(P* - pi, 0), where the rule was logged.
    moved : float
        Total variation of P* from round to round, summed.
    first, last : (k,) array
        P* of the first and of the last round, NaN = not on offer; empty without rounds.
    rows : (T, k) array or None
        P* of every round.
    """

    def __init__(self, part: History, *, keep: bool) -> None:
        n, k = part.n_rounds, part.n_arms
        self.part = part
        self.total = np.zeros(k)
        self.chosen, self.moved = np.empty(n), 0.0
        self.regret = np.empty(n if part.selection_probability is not None else 0)
        self.first = self.last = np.empty(0)
        self.rows = np.empty((n, k)) if keep else None

    def add(self, start: int, stop: int, best: Floats, laws: Laws | None = None) -> None:
        """Add rounds: P* by arm, or by law where ``laws`` are given, (stop - start, k or n)."""
        if stop == start:
            return
        part, arm = self.part, self.part.arm[start:stop]
        pi = part.selection_probability
        offered = None if part.offered is None else part.offered[start:stop]
        by_arm = pi is not None or offered is not None or self.rows is not None
        if laws is not None and (by_arm or not laws.shared):
            best, laws = laws.best(best, offered), None
        of = np.arange(part.n_arms) if laws is None else laws.of
        copies = 1 if laws is None else laws.counts(None)[0]
        known = np.nan_to_num(best)
        self.total += known.sum(axis=0)[of]
        self.chosen[start:stop] = best[np.arange(stop - start), of[arm]]
        self.moved += 0.5 * float((np.abs(np.diff(known, axis=0)) * copies).sum())
        first = best[0][of]
        if start:
            step = np.abs(np.nan_to_num(first) - np.nan_to_num(self.last))
            self.moved += 0.5 * float(step.sum())
        else:
            self.first = first
        self.last = best[-1][of]
        if pi is not None:
            lack = known - np.nan_to_num(pi[start:stop])
            self.regret[start:stop] = np.maximum(lack, 0).sum(axis=1)
        if self.rows is not None:
            self.rows[start:stop] = best
