"""The default prior of measurements, whose unit no fixed prior can know: learned from the first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice
from bayesfair.families.normal import NormalFamily
from bayesfair.kernels.log.conjugate import FIRST, location_and_scale
from bayesfair.typing import Floats

__all__ = ["LearnedPrior"]


@dataclass(frozen=True, eq=False)
class LearnedPrior:
    """The default prior of measurements, from the first known rewards of a log, whatever their arm.

    Mean = their median, kappa 1, shape 1, scale = spread^2, where spread is 1.4826 times the median
    absolute deviation from the median (if that is 0, 1.2533 times the mean absolute deviation). The
    first 20 count; if they are all equal, the first other reward as well.

    Attributes
    ----------
    reward : (n,) array
        The first known rewards, in the order in which they became known.

    Examples
    --------
    >>> learned = LearnedPrior(np.array([300.0, 302.0, 301.0, 305.0]))
    >>> learned.location, learned.spread, learned.settled
    (301.5, 1.4826, False)
    """

    reward: Floats

    @classmethod
    def of(cls, reward: Floats, known_at: NDArray[np.int64] | None) -> LearnedPrior:
        """Return the prior of a whole log: its rewards, and from which round on each is known."""
        seen = ~np.isnan(reward)
        order = slice(None) if known_at is None else np.argsort(known_at[seen], kind="stable")
        first = reward[seen][order]
        return cls(np.empty(0)).after(*first[:FIRST], *_first_other(first))

    def after(self, *rewards: float) -> LearnedPrior:
        """Return the prior once more rewards are known, in the order in which they became so."""
        found = self.reward
        for reward in rewards:
            if found.size >= FIRST and (reward == found[0] or self._differ(found)):
                continue
            found = np.append(found, reward)
        return self if found is self.reward else LearnedPrior(found)

    @staticmethod
    def _differ(reward: Floats) -> bool:
        return bool(reward.size and np.ptp(reward) > 0)

    @property
    def location(self) -> float:
        """Their median; 0 before the first."""
        return float(location_and_scale(self.reward)[0]) if self.reward.size else 0.0

    @property
    def spread(self) -> float:
        """Their robust standard deviation; 0 as long as no two of them differ."""
        return float(location_and_scale(self.reward)[1]) if self.reward.size else 0.0

    @property
    def is_open(self) -> bool:
        """Whether no two rewards differ yet: then there is no scale, and all arms are alike."""
        return not self._differ(self.reward)

    @property
    def settled(self) -> bool:
        """Whether no later reward changes it."""
        return self.reward.size >= FIRST and not self.is_open

    def table(self, k: int) -> Floats:
        """Return the parameters, ``(k, 4)``; in the unit 1 as long as there is no scale."""
        _, kappa, shape, scale = NormalFamily.default
        spread = 1.0 if self.is_open else self.spread
        return np.tile([self.location, kappa, shape, scale * spread**2], (k, 1))

    def words(self) -> str:
        """Say where location and scale come from."""
        n = self.reward.size
        if not n:
            return "to be centred and scaled by the first known rewards, of which there are none"
        if self.is_open:
            return (
                f"centred by the {counted(n, 'known reward')}, which tell no scale since no two of "
                "them differ: in the unit 1"
            )
        more = "" if self.settled else f" (fewer than {FIRST} are known)"
        return (
            f"centred and scaled by the first {n} known rewards{more}: median {self.location:g}, "
            f"robust standard deviation {self.spread:.4g}"
        )

    def notice(self, rounds: tuple[int, int] | None = None, more: str = "") -> Notice:
        """Return the notice of what rests on this prior.

        Parameters
        ----------
        rounds : (int, int), optional
            First and last of the rounds whose beliefs rest on part of the rewards only.
        more : str
            What else is to be said of these rounds.
        """
        said = [f"The prior of these measurements is {self.words()}."]
        if rounds is not None and rounds[0] <= rounds[1]:
            said.append(
                f"The beliefs of rounds {rounds[0]} to {rounds[1]} rest on those known by then "
                "alone, and the prior was learned anew with each; as long as no two differ, every "
                f"arm has the same law and P* is shared evenly.{more}"
            )
        return Notice(
            " ".join([*said, "prior= gives another prior."]),
            kind="prior_learned",
            column="prior",
            value=[self.location, self.spread],
            n=self.reward.size,
        )


def _first_other(reward: Floats) -> Floats:
    """Return the first reward that differs from all before it, where that is not a first one."""
    other = np.flatnonzero(reward != reward[0])[:1] if reward.size else np.empty(0, np.int64)
    return reward[other[other >= FIRST]]
