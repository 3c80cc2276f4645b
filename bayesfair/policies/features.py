"""What a rule believes of the arms in a round whose features it sees, and a rule made for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import constructed
from bayesfair.base.checks import check_in_range
from bayesfair.policies.base import Policy, State, evenly_among_best
from bayesfair.rewards import Bernoulli, Normal, Rewards, StudentT

__all__ = ["LinUCB", "Seen"]


@dataclass(frozen=True, eq=False)
class Seen:
    r"""Beliefs at the features z of a round, where coefficients tell what an arm pays.

    Attributes
    ----------
    law : (k, 3) or (k, 1) array
        Of the next reward: df, location and scale of Student t; or the probability of a reward
        of 1.
    centre, width : (k,) array
        :math:`z'm_i` and :math:`\sqrt{z'V_iz}`, of the coefficients.
    unit : (k,) array
        Scale of the noise, :math:`\sqrt{b_i/a_i}`; 1 for rewards 0 and 1.
    plays : (k,) array
        Known rewards.
    exploration : float
        An arm with at most so many is still to be explored; -1 = none ever is.
    """

    law: NDArray[np.float64]
    centre: NDArray[np.float64]
    width: NDArray[np.float64]
    unit: NDArray[np.float64]
    plays: NDArray[np.float64]
    exploration: float = -1.0

    @property
    def n_arms(self) -> int:
        """Number of arms, k."""
        return self.plays.size

    @property
    def family(self) -> str:
        """Reward family of the beliefs."""
        return "normal" if self.measured else "bernoulli"

    @property
    def measured(self) -> bool:
        """Whether rewards are measurements, not 0 and 1."""
        return bool(self.law.shape[1] == 3)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Expected reward of each arm, (k,)."""
        return self.law[:, 1] if self.measured else self.law[:, 0]

    @property
    def rewards(self) -> Rewards:
        """Posterior predictive laws."""
        return StudentT(*self.law.T) if self.measured else Bernoulli(self.law[:, 0])

    @property
    def best_mean(self) -> NDArray[np.float64]:
        """Probability that an arm's expected reward at z is the largest, (k,)."""
        spread = self.unit * self.width
        if self.measured:
            return StudentT(self.law[:, 0], self.centre, spread).best_arm_probability()
        return Normal(self.centre, spread).best_arm_probability()

    def among(self, offered: NDArray[np.bool_]) -> Seen:
        """Return the beliefs on the arms on offer alone."""
        names = ("law", "centre", "width", "unit", "plays")
        return replace(self, **{name: getattr(self, name)[offered] for name in names})


@constructed
@dataclass(frozen=True)
class LinUCB(Policy):
    r"""Upper confidence bounds over features: :math:`z'm_i + \alpha\sqrt{z'V_iz}`, ties evenly.

    Parameters
    ----------
    alpha : float
        > 0.

    Notes
    -----
    For `bayesfair.simulate` with ``context_model="linear"``: each arm has a ridge regression of
    its own, :math:`V_i = (D + Z_i'Z_i)^{-1}`, D the precision of the prior. Without features there
    is the intercept alone: the mean of n rewards and one of 0, plus :math:`\alpha/\sqrt{1 + n}`.
    Deterministic but for ties, so no fairer than `Greedy`.

    References
    ----------
    .. [1] Li, Chu, Langford, Schapire (2010), A Contextual-Bandit Approach to Personalized News
       Article Recommendation, WWW, Algorithm 1.

    Examples
    --------
    >>> rule = LinUCB(alpha=1.0)
    >>> rule.selection_probability(rule.update(rule.start(2), 0, 0.0))
    array([0., 1.])
    """

    name: ClassVar[str] = "lin_ucb"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Validate once."""
        check_in_range(self.alpha, "alpha", 0, math.inf, low_open=True, high_open=True)

    def _rule(self, state: State) -> NDArray[np.float64]:
        n = state.pulls + 1
        return evenly_among_best(state.total / n + self.alpha / np.sqrt(n))

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        return evenly_among_best(seen.centre + self.alpha * seen.width)
