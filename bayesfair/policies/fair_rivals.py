"""Two other notions of fairness in bandits, as rules to compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import constructed, takes
from bayesfair.base.checks import check_choice, check_in_range
from bayesfair.errors import OptionError
from bayesfair.policies.base import Policy, State

__all__ = ["ChainedConfidence", "FairnessOfExposure"]


def _chained(
    lower: NDArray[np.float64], upper: NDArray[np.float64], active: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the active arms whose intervals chain to the active arm with the highest upper end."""
    order = np.argsort(-np.where(active, upper, -np.inf), kind="stable")
    chain = np.zeros_like(active)
    floor = np.inf
    for i in order[: int(active.sum())]:
        if chain.any() and upper[i] < floor:
            break
        chain[i] = True
        floor = min(floor, lower[i])
    return chain


@constructed
@dataclass(frozen=True)
class ChainedConfidence(Policy):
    r"""Weak meritocratic fairness: uniform among arms chained to the apparent best one.

    Two arms are linked if their confidence intervals overlap; the rule is uniform over the arms
    that chain to the one with the highest upper end, and an arm once left out stays out.

    Parameters
    ----------
    delta : float
        In (0, 1]. After the t-th known reward the arm's interval is its mean
        :math:`\pm\sqrt{\log((\pi (t+1))^2 / (3\delta)) / (2 n_i)}`.

    Notes
    -----
    With probability at least 1 - delta, no arm with a lower mean is ever selected with higher
    probability than one with a higher mean. That is neither smooth nor calibrated fairness.
    Rewards must lie in [0, 1]. Of the arms on offer, those never left out take part; where none
    is, all of them.

    References
    ----------
    .. [1] Joseph, Kearns, Morgenstern, Roth (2016), Fairness in Learning: Classic and Contextual
       Bandits, NIPS.

    Examples
    --------
    >>> rule = ChainedConfidence(delta=0.1)
    >>> rule.selection_probability(rule.start(4))
    array([0.25, 0.25, 0.25, 0.25])
    """

    name: ClassVar[str] = "chained_confidence"
    families: ClassVar[tuple[str, ...] | None] = ("bernoulli", "finite")
    delta: float = 0.1

    def __post_init__(self) -> None:
        """Validate once."""
        check_in_range(self.delta, "delta", 0, 1, low_open=True)

    def start(
        self,
        arms: Any,
        family: str = "bernoulli",
        *,
        prior: Any = None,
        support: ArrayLike | None = None,
    ) -> State:
        """Return the state: the intervals are [0, 1], no arm is left out."""
        state = super().start(arms, family, prior=prior, support=support)
        _require_unit_interval(self.name, state)
        ones = np.ones(state.n_arms)
        return replace(state, memory=np.stack([0 * ones, ones, ones]))

    @takes()
    def update(self, state: State, arm: int, reward: float) -> State:
        """Return the state with the arm's interval renewed and the chain drawn again."""
        new = super().update(state, arm, reward)
        if new is state:  # the reward is not known
            return state
        assert state.memory is not None
        lower, upper, active = (row.copy() for row in state.memory)
        t = float(new.pulls.sum())
        square = math.log((math.pi * (t + 1)) ** 2 / (3 * self.delta))
        half = math.sqrt(square / (2 * new.pulls[arm]))
        mean = new.total[arm] / new.pulls[arm]
        lower[arm], upper[arm] = mean - half, mean + half
        chain = _chained(lower, upper, active > 0)
        return replace(new, memory=np.stack([lower, upper, chain.astype(np.float64)]))

    def _rule(self, state: State) -> NDArray[np.float64]:
        assert state.memory is not None
        lower, upper, active = state.memory
        here = active > 0 if active.any() else np.ones(state.n_arms, dtype=bool)
        chain = _chained(lower, upper, here)
        return np.asarray(chain / chain.sum())


@constructed
@dataclass(frozen=True)
class FairnessOfExposure(Policy):
    r"""Merit-proportional exposure: :math:`\pi_t(i) = f(\mu_i) / \sum_j f(\mu_j)`, optimistically.

    The means are the most favourable ones in the box :math:`|\mu_i - \bar r_i| \le w/\sqrt{n_i}`:
    those that maximise the expected reward :math:`\sum_i \pi(i) \mu_i`. Arms without known
    rewards come first, uniformly.

    Parameters
    ----------
    merit : str
        ``"exp"``: f = exp(sharpness x mean); ``"power"``: f = mean ** sharpness.
    sharpness : float
        > 0.
    width : float
        w >= 0; 0 takes the means as they are. The regret bound wants
        :math:`\sqrt{2\log(4 T k/\delta)}`; smaller values work better in practice.

    Notes
    -----
    Deterministic given the history. The maximum lies at a corner of the box, as
    :math:`f(x)(x - \lambda)` falls, then rises: Dinkelbach's iteration finds it. The target is
    proportionality to merit, not P*: it is calibrated only by coincidence.

    References
    ----------
    .. [1] Wang, Bai, Sun, Joachims (2021), Fairness of Exposure in Stochastic Bandits, ICML.

    Examples
    --------
    >>> rule = FairnessOfExposure(sharpness=1.0, width=0.0)
    >>> state = rule.update(rule.update(rule.start(2), 0, 1.0), 1, 0.0)
    >>> rule.selection_probability(state).round(4)
    array([0.7311, 0.2689])
    """

    name: ClassVar[str] = "fairness_of_exposure"
    families: ClassVar[tuple[str, ...] | None] = ("bernoulli", "finite")
    merit: str = "exp"
    sharpness: float = 4.0
    width: float = 1.0

    def __post_init__(self) -> None:
        """Validate once."""
        check_choice(self.merit, "merit", ("exp", "power"))
        check_in_range(self.sharpness, "sharpness", 0, math.inf, low_open=True, high_open=True)
        check_in_range(self.width, "width", 0, math.inf, high_open=True)

    def start(
        self,
        arms: Any,
        family: str = "bernoulli",
        *,
        prior: Any = None,
        support: ArrayLike | None = None,
    ) -> State:
        """Return the state before the first round; see `Policy.start`."""
        state = super().start(arms, family, prior=prior, support=support)
        _require_unit_interval(self.name, state)
        return state

    def merit_of(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f(mean), up to a common factor."""
        if self.merit == "exp":
            return np.asarray(np.exp(self.sharpness * (mean - 1.0)))
        return np.asarray(np.maximum(mean, 0.0) ** self.sharpness)

    def _rule(self, state: State) -> NDArray[np.float64]:
        new = state.pulls == 0
        if new.any():
            return np.asarray(new / new.sum())
        half = self.width / np.sqrt(state.pulls)
        low, high = np.maximum(state.mean - half, 0.0), np.minimum(state.mean + half, 1.0)
        f_low, f_high = self.merit_of(low), self.merit_of(high)
        take_high, value = np.ones(state.n_arms, dtype=bool), -np.inf
        for _ in range(100):
            merit = np.where(take_high, f_high, f_low)
            if not merit.sum() > 0:
                return np.full(state.n_arms, 1 / state.n_arms)  # no arm has any merit
            reached = float(merit @ np.where(take_high, high, low) / merit.sum())
            if reached <= value:
                break
            value = reached
            take_high = f_high * (high - value) >= f_low * (low - value)
        return np.asarray(merit / merit.sum())


def _require_unit_interval(name: str, state: State) -> None:
    if state.support.size and (state.support[0] < 0 or state.support[-1] > 1):
        raise OptionError(
            f"{name} needs rewards in [0, 1]; the support is {state.support.tolist()}. Rescale it."
        )
