"""What an audit keeps of a log to check the log itself: sums that merge, whatever its length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.repeats import Blocks, Keys, Ties, stamps_of
from bayesfair.audit.log.users import Users
from bayesfair.history import History
from bayesfair.kernels.log.guards import (
    RewardMoments,
    RuleSums,
    joined_moments,
    row_prints,
)
from bayesfair.kernels.log.log_pass import LogPass
from bayesfair.kernels.log.part_result import BestPath
from bayesfair.typing import Floats

__all__ = ["Edge", "Guards"]

_NOTHING = RuleSums(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0.0, 0)


class Edge(NamedTuple):
    """A round at the border of a part: arm, its probability, the rule and P* as far as known."""

    arm: int
    p: float
    pi: Floats  # (k,) or empty
    best: Floats  # (k,) or empty


@dataclass(frozen=True, eq=False)
class Guards:
    """Sums for the checks of a log; see `bayesfair.audit.log.checks`.

    Attributes
    ----------
    moments : RewardMoments
        Of rewards and logged probabilities, by arm.
    rule : RuleSums
        How the choices follow the rule. Where only the chosen arm's probability p was logged,
        ``same`` is the sum of 1{a_t = a_{t-1}}/p_t - 1 and nothing else is known.
    lowest : float
        Smallest logged probability of a choice.
    best_moved : float
        Sum of the total variation between P* of two rounds in a row; NaN where it was not traced.
    n_zero : (k,) array
        Rewards of 0, by arm.
    first, last : Edge
        First and last round.
    blocks, ties, keys : Blocks, Ties, Keys or None
        Of rows that may stand there more than once.
    users : Users or None
        Who came back, and whether with the same arm.
    """

    moments: RewardMoments
    rule: RuleSums
    lowest: float
    best_moved: float
    n_zero: NDArray[np.int64]
    first: Edge
    last: Edge
    blocks: Blocks
    ties: Ties
    keys: Keys | None = None
    users: Users | None = None

    @classmethod
    def of(cls, part: History, start: int, found: LogPass, best: BestPath | None = None) -> Guards:
        """Sum up a part.

        Parameters
        ----------
        part : History
            Its rounds.
        start : int
            Rounds before it.
        found : LogPass
            Of its rows.
        best : BestPath, optional
            How P* moved, where it was traced.
        """
        pi, arm = part.selection_probability, part.arm
        p = found.p if part.selection != "none" else None
        rule = found.rule
        if pi is None and p is not None:
            again = arm[1:] == arm[:-1]
            x = p[1:][again]
            rule = rule._replace(
                same=float((1 / x).sum()) - len(again),
                same_variance=float(((1 - x) / x**2).sum()),
                n_pairs=len(again),
            )
        keys = users = None
        if part.unique is not None:
            keys = Keys.of(part.unique_column, start, part.unique, arm)
        stamps, ties = stamps_of(part.time), Ties()
        if stamps is not None:
            ties = Ties.of(stamps, row_prints(arm, part.reward, p), p)
        if part.user is not None:
            users = Users.of(part.user_column, start, part.user, arm, p, pi)
        return cls(
            found.moments,
            rule,
            found.lowest,
            np.nan if best is None else best.moved,
            found.n_zero,
            _edge(part, p, None if best is None else best.first, 0),
            _edge(part, p, None if best is None else best.last, part.n_rounds - 1),
            Blocks.of(start, part, found),
            ties,
            keys,
            users,
        )

    def merged(self, later: Guards) -> Guards:
        """Return the sums of this part followed by ``later``."""
        if self.first.arm < 0 or later.first.arm < 0:  # a part without rounds
            return later if self.first.arm < 0 else self
        step = _across(self.last, later.first)
        moved = self.best_moved + later.best_moved
        if self.last.best.size and later.first.best.size:
            moved += 0.5 * float(np.abs(np.nan_to_num(later.first.best)
                                        - np.nan_to_num(self.last.best)).sum())  # fmt: skip
        keys, users = self.keys, self.users
        if keys is not None:
            keys = None if later.keys is None else keys.merged(later.keys)
        if users is not None:
            users = None if later.users is None else users.merged(later.users)
        return replace(
            self,
            moments=joined_moments(self.moments, later.moments),
            rule=self.rule.joined(step).joined(later.rule),
            lowest=min(self.lowest, later.lowest),
            best_moved=moved,
            n_zero=self.n_zero + later.n_zero,
            last=later.last,
            blocks=self.blocks.merged(later.blocks),
            ties=self.ties.merged(later.ties),
            keys=keys,
            users=users,
        )


def _edge(part: History, p: Floats | None, best: Floats | None, t: int) -> Edge:
    none = np.empty(0)
    if not part.n_rounds:
        return Edge(-1, float("nan"), none, none)
    pi = part.selection_probability
    return Edge(
        int(part.arm[t]),
        float("nan") if p is None else float(p[t]),
        none if pi is None else np.array(pi[t]),
        none if best is None else np.array(best),
    )


def _across(last: Edge, first: Edge) -> RuleSums:
    """Return what the step from one part to the next adds."""
    same: float = last.arm == first.arm
    if not first.pi.size:
        if np.isnan(first.p):
            return _NOTHING
        p = first.p
        return _NOTHING._replace(
            same=same / p - 1, same_variance=same * (1 - p) / p**2, n_pairs=1
        )  # fmt: skip
    x = float(first.pi[last.arm])
    on = not np.isnan(x)
    moved, n_steps = 0.0, 0
    if np.array_equal(np.isnan(first.pi), np.isnan(last.pi)):
        moved, n_steps = 0.5 * float(np.nansum(np.abs(first.pi - last.pi))), 1
    if on:
        found = _NOTHING._replace(same=same - x, same_variance=x * (1 - x), n_pairs=1)
    else:
        found = _NOTHING
    return found._replace(moved=moved, n_steps=n_steps)
