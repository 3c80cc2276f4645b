"""The paper's rules for one arm a round: SD_TS, its mixture, Fair_SD_TS, and the oracle."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import COUNT, PLAIN, constructed, each, takes
from bayesfair.base.checks import check_choice, check_in_range
from bayesfair.errors import BayesfairWarning, OptionError
from bayesfair.families import FAMILIES
from bayesfair.policies import exploration
from bayesfair.policies.base import Policy, State
from bayesfair.policies.features import Seen
from bayesfair.policies.marginals import best_arm_probability
from bayesfair.rewards import Bernoulli, Rewards

__all__ = ["SDTS", "CalibratedOracle", "FairSDTS", "SDTSMixture"]


@constructed
@dataclass(frozen=True)
class SDTS(Policy):
    r"""Stochastic-dominance Thompson sampling: play each arm as often as it is believed best.

    .. math:: \pi_t(i) = P^*(i)

    under the posterior predictive of independent arms, ties split evenly: sampling parameters,
    then rewards, then the highest one, with both steps integrated out exactly.

    Notes
    -----
    :math:`|\pi_t(i)-\pi_t(j)| \le 2d - d^2`, d the total variation between subjective marginals,
    in every round with certainty (constant 1 for Bernoulli rewards). Proved for independent arms,
    with the history before the round. Fairness regret grows as :math:`\sqrt{T}`.

    References
    ----------
    .. [1] Liu, Radanovic, Dimitrakakis, Mandal, Parkes (2017), arXiv:1707.01875, Algorithm 1.

    Examples
    --------
    >>> rule = SDTS()
    >>> rule.selection_probability(rule.start(4))
    array([0.25, 0.25, 0.25, 0.25])
    """

    name: ClassVar[str] = "sd_ts"

    def _rule(self, state: State) -> NDArray[np.float64]:
        return best_arm_probability(state)

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        return seen.rewards.best_arm_probability()


@constructed
@dataclass(frozen=True)
class SDTSMixture(Policy):
    r"""SD_TS with weight w, otherwise one of all k arms uniformly.

    .. math:: \pi_t = w\,\pi^{\mathrm{SD\_TS}}_t + (1 - w)/k

    Parameters
    ----------
    weight : float, optional
        w in [0, 1]. Give `weight` or `eps1`.
    eps1 : float, optional
        Wanted constant in (0, 2]: w = eps1/2 for rewards in general, w = min(eps1, 1) for
        Bernoulli rewards (known when a run starts).

    Raises
    ------
    OptionError
        If none or both are given, or a value is out of range.

    Notes
    -----
    (eps1, 0, 0)-subjectively fair under total variation; proved. The paper's display does not sum
    to 1; "another arm" has to mean any of the k arms, else the order of arms can be reversed.
    Fairness regret is (1 - w) TV(P*, uniform) per round in the limit: linear.

    Examples
    --------
    >>> rule = SDTSMixture(weight=0.5)
    >>> rule.selection_probability(rule.update(rule.start(2), 0, 1.0))
    array([0.5625, 0.4375])
    """

    name: ClassVar[str] = "sd_ts_mixture"
    weight: float | None = None
    eps1: float | None = None

    def __post_init__(self) -> None:
        """Validate once."""
        if (self.weight is None) == (self.eps1 is None):
            raise OptionError(
                "sd_ts_mixture needs either weight= (in [0, 1]) or eps1= (in (0, 2]); on the "
                "command line --param weight=.5."
            )
        if self.weight is not None:
            check_in_range(self.weight, "weight", 0, 1)
        else:
            check_in_range(self.eps1, "eps1", 0, 2, low_open=True)

    def weight_for(self, family: str) -> float:
        """Return w under a reward family."""
        if self.weight is not None:
            return float(self.weight)
        assert self.eps1 is not None
        return min(self.eps1 / FAMILIES[family].constant, 1.0)

    def _rule(self, state: State) -> NDArray[np.float64]:
        w = self.weight_for(state.family)
        return w * best_arm_probability(state) + (1 - w) / state.n_arms

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        w = self.weight_for(seen.family)
        return w * seen.rewards.best_arm_probability() + (1 - w) / seen.n_arms


_C_OPTIONS = ("union", "union-with-prior", "paper", "paper-worst-case", "sqrt")


@constructed
@dataclass(frozen=True)
class FairSDTS(Policy):
    r"""SD_TS after uniform exploration, for fairness towards the true reward distributions.

    Uniform while an arm on offer has at most C known rewards (counted before the round), then
    SD_TS on all of them. Exploitation, once begun, never ends.

    Parameters
    ----------
    eps2 : float
        > 0. The guarantee is 2 eps2.
    delta : float
        In (0, 1]: allowed share of runs, at fixed truth, in which some round violates.
    C : str or float
        ``"union"`` (corrected, default), ``"union-with-prior"`` (pays for the prior too),
        ``"paper"`` (needs the true largest total variation), ``"paper-worst-case"`` (sets it
        to 1), ``"sqrt"`` (:math:`\sqrt{T/k}`), or a number. See `bayesfair.theory`.
    n_rounds : int, optional
        T, needed by ``"sqrt"``; `simulate` fills it in.
    max_divergence : float, optional
        Needed by ``"paper"``; `simulate` fills it in from the truth.

    Notes
    -----
    (1, 2 eps2, delta)-fair for Bernoulli rewards with ``C="union"``, and
    (2, 2 eps2, delta)-fair for finitely many levels. Exploration costs about TV(P*, uniform) in
    each of its k C rounds: far more fairness regret than SD_TS itself has.

    References
    ----------
    .. [1] Liu et al. (2017), arXiv:1707.01875, Algorithm 2 and its theorem.

    Examples
    --------
    >>> rule = FairSDTS(eps2=0.5, delta=0.5, C=1)
    >>> state = rule.update(rule.start(2), 0, 1.0)
    >>> rule.selection_probability(state)
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "fair_sd_ts"
    eps2: float = 0.1
    delta: float = 0.1
    C: str | float = "union"
    n_rounds: int | None = None
    max_divergence: float | None = None

    def __post_init__(self) -> None:
        """Validate once."""
        check_in_range(self.eps2, "eps2", 0, math.inf, low_open=True, high_open=True)
        check_in_range(self.delta, "delta", 0, 1, low_open=True)
        if isinstance(self.C, str):
            check_choice(self.C, "C", _C_OPTIONS)
        else:
            check_in_range(self.C, "C", 0, math.inf, high_open=True)
        if self.max_divergence is not None:
            check_in_range(self.max_divergence, "max_divergence", 0, 1)

    def exploration_constant(
        self, n_arms: int, family: str = "bernoulli", n_levels: int = 2
    ) -> float:
        """Return C as a number.

        Raises
        ------
        OptionError
            If the formula needs something that is not known, or does not hold for the family.
        """
        if not isinstance(self.C, str):
            return float(self.C)
        if self.C == "sqrt":
            if self.n_rounds is None:
                raise OptionError("C='sqrt' is sqrt(T/k): give n_rounds=, the length of the run.")
            return exploration.sqrt_C(self.n_rounds, n_arms)
        if FAMILIES[family].n_values(n_levels) is None:
            raise OptionError(
                f"C={self.C!r} holds for rewards with finitely many values; for {family} rewards "
                "no constant is known. Give C as a number (there is then no guarantee)."
            )
        if self.C == "union":
            return exploration.union_C(
                self.eps2, self.delta, n_arms=n_arms, family=family, n_levels=n_levels
            )
        if not FAMILIES[family].binary:
            raise OptionError(f"C={self.C!r} is for Bernoulli rewards; use C='union'.")
        if self.C == "union-with-prior":
            return exploration.union_with_prior_C(self.eps2, self.delta, n_arms=n_arms)
        if self.C == "paper-worst-case":
            return exploration.paper_worst_case_C(self.eps2, self.delta)
        if self.max_divergence is None:
            raise OptionError(
                "C='paper' needs max_divergence=, the largest total variation between the true "
                "reward distributions; without knowing them use C='paper-worst-case' or 'union'."
            )
        return exploration.paper_C(self.eps2, self.delta, max_divergence=self.max_divergence)

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
        n_levels = state.support.size or 2
        constant = self.exploration_constant(state.n_arms, family, n_levels)
        return replace(state, exploration=constant)

    def _rule(self, state: State) -> NDArray[np.float64]:
        if np.any(state.pulls <= state.exploration):
            return np.full(state.n_arms, 1 / state.n_arms)
        return best_arm_probability(state)

    def _given(self, seen: Seen) -> NDArray[np.float64]:
        if np.any(seen.plays <= seen.exploration):
            return np.full(seen.n_arms, 1 / seen.n_arms)
        return seen.rewards.best_arm_probability()

    @takes(**each(COUNT, "n_arms", "n_rounds"), family=PLAIN)
    def for_run(
        self, n_arms: int, n_rounds: int, rewards: Any, *, family: str | None = None
    ) -> Self:
        """Return the rule with T and the largest divergence filled in; warn where it is vacuous."""
        rule = self
        if self.C == "sqrt" and self.n_rounds is None:
            rule = replace(rule, n_rounds=n_rounds)
        if self.C == "paper" and self.max_divergence is None:
            rule = replace(rule, max_divergence=float(np.max(rewards.divergence())))
        family = family or type(rewards).__name__.lower()
        n_levels = len(getattr(rewards, "support", (0.0, 1.0)))
        constant = rule.exploration_constant(n_arms, family, n_levels)
        needed = n_arms * (math.floor(constant) + 1)
        if needed >= n_rounds:
            warnings.warn(
                f"{self.name}: exploration needs at least {needed} rounds (C = {constant:.6g} for "
                f"{n_arms} arms), the run has {n_rounds}: it explores throughout, as the uniform "
                "rule. Raise eps2 or delta, or give C as a number.",
                BayesfairWarning,
                stacklevel=3,
            )
        if 2 * self.eps2 >= 1:
            warnings.warn(
                f"{self.name}: the guarantee 2 eps2 = {2 * self.eps2:g} is vacuous, as "
                "probabilities never differ by more than 1.",
                BayesfairWarning,
                stacklevel=3,
            )
        return rule


@constructed
@dataclass(frozen=True)
class CalibratedOracle(Policy):
    r"""The calibrated policy: :math:`\pi_t = P^*` of the true rewards, which it knows.

    Parameters
    ----------
    truth : reward family or (k,) array, optional
        True rewards (an array: Bernoulli means). `simulate` fills it in.

    Notes
    -----
    Its fairness regret is 0 by definition; its standard regret is that of calibration itself.

    Examples
    --------
    >>> rule = CalibratedOracle([0.9, 0.5, 0.1])
    >>> rule.selection_probability(rule.start(3)).round(12)
    array([0.66, 0.28, 0.06])
    """

    name: ClassVar[str] = "calibrated_oracle"
    truth: Any = None

    def start(
        self,
        arms: Any,
        family: str = "bernoulli",
        *,
        prior: Any = None,
        support: ArrayLike | None = None,
    ) -> State:
        """Return the state, which carries the number of each arm; nothing is learned."""
        state = super().start(arms, family, prior=prior, support=support)
        truth = self._rewards()
        if truth.n_arms != state.n_arms:
            raise OptionError(f"truth has {truth.n_arms} arms, the run {state.n_arms}.")
        return replace(state, memory=np.arange(state.n_arms, dtype=np.float64)[None])

    def _rewards(self) -> Rewards:
        if self.truth is None:
            raise OptionError("calibrated_oracle needs truth=, the true rewards.")
        truth = self.truth if isinstance(self.truth, Rewards) else Bernoulli(self.truth)
        if truth.batch_shape:
            raise OptionError("calibrated_oracle knows one truth; it cannot follow a drifting one.")
        return truth

    def _rule(self, state: State) -> NDArray[np.float64]:
        assert state.memory is not None
        here = np.isin(np.arange(self._rewards().n_arms), state.memory[0].astype(int))
        return self._rewards().best_arm_probability(offered=here)[here]

    @takes(**each(COUNT, "n_arms", "n_rounds"), family=PLAIN)
    def for_run(
        self, n_arms: int, n_rounds: int, rewards: Any, *, family: str | None = None
    ) -> Self:
        """Return the rule with the truth filled in."""
        return self if self.truth is not None else replace(self, truth=rewards)
