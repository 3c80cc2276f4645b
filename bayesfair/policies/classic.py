"""Rules without a claim to calibration, for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import constructed
from bayesfair.base.checks import check_in_range
from bayesfair.policies.base import Policy, State, evenly_among_best
from bayesfair.policies.features import Seen
from bayesfair.policies.marginals import best_mean_probability, posterior_mean

__all__ = [
    "UCB1",
    "EpsilonGreedy",
    "Greedy",
    "RandomisedPlayTheWinner",
    "Softmax",
    "Thompson",
    "Uniform",
]


@constructed
@dataclass(frozen=True)
class Uniform(Policy):
    """Every arm on offer with the same probability; never learns.

    Smoothly fair for every eps1, eps2 = 0; calibrated only where P* is uniform.

    Examples
    --------
    >>> rule = Uniform()
    >>> rule.selection_probability(rule.start(2))
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "uniform"

    def _rule(self, state: State) -> NDArray[np.float64]:
        return np.full(state.n_arms, 1 / state.n_arms)

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        return np.full(seen.n_arms, 1 / seen.n_arms)


@constructed
@dataclass(frozen=True)
class Greedy(Policy):
    """The arm with the highest posterior mean reward, ties evenly.

    Examples
    --------
    >>> rule = Greedy()
    >>> rule.selection_probability(rule.update(rule.start(3), 0, 0.0))
    array([0. , 0.5, 0.5])
    """

    name: ClassVar[str] = "greedy"

    def _rule(self, state: State) -> NDArray[np.float64]:
        return evenly_among_best(posterior_mean(state))

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        return evenly_among_best(seen.mean)


@constructed
@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """Greedy, but with probability `epsilon` any arm on offer, uniformly.

    Parameters
    ----------
    epsilon : float
        In [0, 1].

    Examples
    --------
    >>> rule = EpsilonGreedy(epsilon=0.2)
    >>> rule.selection_probability(rule.update(rule.start(2), 0, 1.0))
    array([0.9, 0.1])
    """

    name: ClassVar[str] = "epsilon_greedy"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        """Validate once."""
        check_in_range(self.epsilon, "epsilon", 0, 1)

    def _rule(self, state: State) -> NDArray[np.float64]:
        return self._spread(evenly_among_best(posterior_mean(state)))

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        return self._spread(evenly_among_best(seen.mean))

    def _spread(self, greedy: NDArray[np.float64]) -> NDArray[np.float64]:
        return (1 - self.epsilon) * greedy + self.epsilon / greedy.size


@constructed
@dataclass(frozen=True)
class UCB1(Policy):
    r"""Highest mean plus :math:`\sqrt{c \log t / n_i}`, ties evenly; arms without data first.

    Parameters
    ----------
    c : float
        > 0; 2 is the value of Auer et al., for rewards in [0, 1]. t counts known rewards.

    References
    ----------
    .. [1] Auer, Cesa-Bianchi, Fischer (2002), Machine Learning 47, 235-256.

    Examples
    --------
    >>> rule = UCB1()
    >>> rule.selection_probability(rule.update(rule.start(2), 0, 1.0))
    array([0., 1.])
    """

    name: ClassVar[str] = "ucb1"
    c: float = 2.0

    def __post_init__(self) -> None:
        """Validate once."""
        check_in_range(self.c, "c", 0, math.inf, low_open=True, high_open=True)

    def _rule(self, state: State) -> NDArray[np.float64]:
        new = state.pulls == 0
        if new.any():
            return np.asarray(new / new.sum())
        bonus = np.sqrt(self.c * math.log(state.pulls.sum()) / state.pulls)
        return evenly_among_best(state.mean + bonus)


@constructed
@dataclass(frozen=True)
class Thompson(Policy):
    r"""Thompson sampling: each arm with its posterior probability of the largest *mean*.

    .. math:: \pi_t(i) = P(\theta_i = \max_j \theta_j \mid h^{t-1})

    Notes
    -----
    By quadrature (absolute error below 1e-10, whatever the prior), not from draws; with several
    reward levels it takes some 50 to 200 milliseconds a round. Probabilities that miss 1 by more
    than 1e-9 are a `ConvergenceError`. Given features (`bayesfair.simulate` with
    ``context_model="linear"``) it is linear Thompson sampling. Not SD_TS: it compares means, not
    realised rewards. Its standard regret is logarithmic, its fairness regret linear.

    Examples
    --------
    >>> rule = Thompson()
    >>> rule.selection_probability(rule.start(2)).round(8)
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "thompson"

    def _rule(self, state: State) -> NDArray[np.float64]:
        return best_mean_probability(state)

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        return seen.best_mean


@constructed
@dataclass(frozen=True)
class RandomisedPlayTheWinner(Policy):
    r"""Urn rule RPW(u, b): a success adds b balls of its arm, a failure b balls of the others.

    Parameters
    ----------
    start_balls : float
        u > 0 balls of each arm at the start.
    added_balls : float
        b > 0 balls after each known reward; a failure shares them among the other arms.

    Notes
    -----
    Failures with arms not on offer add nothing while those arms are away.

    References
    ----------
    .. [1] Wei and Durham (1978), JASA 73, 840-843.

    Examples
    --------
    >>> rule = RandomisedPlayTheWinner()
    >>> rule.selection_probability(rule.update(rule.start(2), 0, 1.0)).round(4)
    array([0.6667, 0.3333])
    """

    name: ClassVar[str] = "randomised_play_the_winner"
    families: ClassVar[tuple[str, ...]] = ("bernoulli",)
    start_balls: float = 1.0
    added_balls: float = 1.0

    def __post_init__(self) -> None:
        """Validate once."""
        check_in_range(self.start_balls, "start_balls", 0, math.inf, low_open=True, high_open=True)
        check_in_range(self.added_balls, "added_balls", 0, math.inf, low_open=True, high_open=True)

    def _rule(self, state: State) -> NDArray[np.float64]:
        failures = state.pulls - state.total
        others = (failures.sum() - failures) / max(state.n_arms - 1, 1)
        balls = self.start_balls + self.added_balls * (state.total + others)
        return np.asarray(balls / balls.sum())


@constructed
@dataclass(frozen=True)
class Softmax(Policy):
    r"""Boltzmann rule: :math:`\pi_t(i) \propto \exp(\bar m_i / \tau)`, posterior mean rewards.

    Parameters
    ----------
    temperature : float
        tau > 0, in reward units.

    Examples
    --------
    >>> rule = Softmax(temperature=1.0)
    >>> rule.selection_probability(rule.update(rule.start(2), 0, 1.0)).round(4)
    array([0.5622, 0.4378])
    """

    name: ClassVar[str] = "softmax"
    temperature: float = 0.1

    def __post_init__(self) -> None:
        """Validate once."""
        check_in_range(self.temperature, "temperature", 0, math.inf, low_open=True, high_open=True)

    def _rule(self, state: State) -> NDArray[np.float64]:
        return self._of(posterior_mean(state))

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        return self._of(seen.mean)

    def _of(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = mean / self.temperature
        weight = np.exp(logits - logits.max())
        return np.asarray(weight / weight.sum())
