"""What every decision rule shares: an explicit state, and pure functions on it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import (
    COUNT,
    PLAIN,
    REWARD,
    Abstract,
    Kind,
    constructed,
    each,
    instance_of,
    takes,
    within,
)
from bayesfair.base.labels import labels_of
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES, Known, family_named
from bayesfair.families.learned import LearnedPrior
from bayesfair.families.priors import prior_table

__all__ = ["Policy", "State", "evenly_among_best"]

STATE = instance_of("State", called="a State, as start and update return it")


def _are_flags(value: Any) -> bool:
    if value is None:
        return True
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except (TypeError, ValueError):
        return False


@constructed
@dataclass(frozen=True, eq=False)
class State:
    """All that a rule knows before a round: sufficient statistics of the known rewards.

    Parameters
    ----------
    pulls : (k,) array
        Number of known rewards per arm.
    total : (k,) array
        Sum of known rewards per arm, in reward units.
    spread : (k,) array
        Sum of squared deviations of known rewards from their mean, per arm.
    added : (k, p) array
        What the known rewards add to the parameters of the prior; of ``"finite"`` rewards how many
        there are per level.
    family : str
        Name of the reward family, such as ``"bernoulli"``.
    prior : (k, p) array
        Prior parameters per arm.
    learned : LearnedPrior or None
        What `prior` was learned from so far: measurements without a given prior.
    support : (L,) array
        Values of the levels of ``"finite"`` rewards; empty for other families.
    exploration : float
        An arm with at most this many known rewards is still to be explored; -1 = none ever is.
    memory : (m, k) array or None
        What the rule must remember beyond the statistics.

    Notes
    -----
    Frozen: `Policy.update` returns a new state. The current round is never part of it.
    """

    pulls: NDArray[np.float64]
    total: NDArray[np.float64]
    spread: NDArray[np.float64]
    added: NDArray[np.float64]
    family: str
    prior: NDArray[np.float64]
    support: NDArray[np.float64]
    exploration: float = -1.0
    memory: NDArray[np.float64] | None = None
    learned: LearnedPrior | None = None

    @property
    def n_arms(self) -> int:
        """Number of arms, k."""
        return self.pulls.size

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean known reward per arm, ``(k,)``; NaN where nothing is known."""
        with np.errstate(invalid="ignore"):
            return np.where(self.pulls > 0, self.total / np.maximum(self.pulls, 1), np.nan)

    @property
    def table(self) -> NDArray[np.float64]:
        """Parameters of the posterior, ``(k, p)``; of the prior as long as that has no scale."""
        if self.learned is not None and self.learned.is_open:
            return self.prior  # every arm has the same law
        known = Known(self.pulls, self.total, self.spread, self.added)
        return FAMILIES[self.family].posterior(self.prior, known)

    def among(self, offered: NDArray[np.bool_]) -> State:
        """Return the state of the arms on offer alone."""
        return replace(
            self,
            pulls=self.pulls[offered],
            total=self.total[offered],
            spread=self.spread[offered],
            added=self.added[offered],
            prior=self.prior[offered],
            memory=None if self.memory is None else self.memory[:, offered],
        )


def evenly_among_best(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the law that is even among the arms of the highest value."""
    best = value == value.max()
    return np.asarray(best / best.sum())


@dataclass(frozen=True)
class Policy(Abstract, ABC):
    """A decision rule: parameters only; what it has learned lives in a `State`.

    A rule is three pure functions: `start`, `selection_probability` (exact given the known
    history: quadrature where needed, never an internal draw) and `update`.
    """

    name: ClassVar[str] = ""
    #: reward families under which the rule is defined; None = all
    families: ClassVar[tuple[str, ...] | None] = None

    @takes()
    def start(
        self,
        arms: int | Sequence[str],
        family: str = "bernoulli",
        *,
        prior: Any = None,
        support: ArrayLike | None = None,
    ) -> State:
        """Return the state before the first round.

        Parameters
        ----------
        arms : int or sequence of str
            Number of arms, k >= 1, or their labels.
        family : str
            Reward family the rule learns under.
        prior : sequence, (k, p) array or mapping of label to sequence, optional
            Prior parameters, see `bayesfair.families.priors`. Default: Beta(1/2, 1/2),
            Dirichlet(1/2), Gamma(1/2, rate 1/2), or a normal-inverse-gamma law that is centred and
            scaled by the first 20 known rewards (`bayesfair.families.learned.LearnedPrior`).
        support : (L,) array_like
            Values of the levels, increasing; required for ``"finite"`` only.

        Raises
        ------
        OptionError
            If the rule is not defined for the family, or the prior does not fit.

        Examples
        --------
        >>> from bayesfair.policies import SDTS
        >>> rule = SDTS()
        >>> state = rule.update(rule.start(2), 0, 1.0)
        >>> rule.selection_probability(state)
        array([0.625, 0.375])
        """
        labels = labels_of(range(arms) if isinstance(arms, (int, np.integer)) else arms)
        if not labels:
            raise OptionError(f"arms={arms!r} must be at least one.")
        of = family_named(family)
        if self.families is not None and family not in self.families:
            raise OptionError(
                f"{self.name} is not defined for {family} rewards, only for: "
                f"{', '.join(self.families)}."
            )
        values = np.array([] if support is None else support, dtype=np.float64).ravel()
        if not of.has_levels:
            values = of.levels(support, values)
        elif values.size < 1 or np.any(np.diff(values) <= 0):
            raise OptionError(f"support={support!r} must list the reward values, increasing.")
        table, zeros = prior_table(prior, of, labels, values.size), np.zeros(len(labels))
        return State(
            pulls=zeros,
            total=zeros,
            spread=zeros,
            added=np.zeros_like(table),
            family=family,
            prior=table,
            support=values,
            learned=LearnedPrior(zeros[:0]) if of.learns_prior and prior is None else None,
        )

    @takes(state=STATE, offered=Kind(_are_flags, "True or False for each arm"))
    def selection_probability(
        self, state: State, offered: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        r"""Return :math:`\pi_t(i)`, the exact probability of each arm given the known history.

        Parameters
        ----------
        state : State
            Before this round.
        offered : (k,) array of bool, optional
            Arms on offer; the rule is applied to them alone.

        Returns
        -------
        (k,) array
            Sums to 1; NaN = not on offer.

        Raises
        ------
        DataError
            If no arm is on offer.
        """
        if offered is None:
            return self._rule(state)
        mask = np.asarray(offered, dtype=bool)
        if mask.shape != state.pulls.shape or not mask.any():
            raise DataError(
                f"offered={offered!r} must say for each of the {state.n_arms} arms whether it is "
                "on offer, with at least one that is."
            )
        pi = np.full(state.n_arms, np.nan)
        pi[mask] = self._rule(state if mask.all() else state.among(mask))
        return pi

    @abstractmethod
    def _rule(self, state: State) -> NDArray[np.float64]:
        """Return the probabilities of all arms of ``state``."""

    @takes(offered=Kind(_are_flags, "True or False for each arm"))
    def given_features(self, seen: Any, offered: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the exact probability of each arm in a round whose features the rule sees.

        Parameters
        ----------
        seen : bayesfair.policies.features.Seen
            Beliefs on every arm at these features.
        offered : (k,) array of bool, optional
            Arms on offer; the rule is applied to them alone.

        Returns
        -------
        (k,) array
            Sums to 1; NaN = not on offer.

        Raises
        ------
        OptionError
            If the rule is not defined given features.
        """
        if offered is None:
            return self._given(seen)
        mask = np.asarray(offered, dtype=bool)
        pi = np.full(len(mask), np.nan)
        pi[mask] = self._given(seen.among(mask))
        return pi

    def _given(self, seen: Any) -> NDArray[np.float64]:
        """Return the probabilities of all arms where their rewards depend on features."""
        raise OptionError(
            f"{self.name} is not defined given features: give context_model='cells', or a rule "
            "that is: sd_ts, sd_ts_mixture, fair_sd_ts, thompson, lin_ucb, greedy, epsilon_greedy, "
            "softmax, uniform.",
            kind="unused_option", column="context_model", value=self.name,
        )  # fmt: skip

    @takes(state=STATE, arm=within(0, whole=True), reward=REWARD)
    def update(self, state: State, arm: int, reward: float) -> State:
        """Return the state after the reward of ``arm`` became known; NaN changes nothing.

        Parameters
        ----------
        state : State
            Before.
        arm : int
            0-based position.
        reward : float
            In reward units.

        Raises
        ------
        DataError
            If the reward is impossible under the family, or there is no such arm.
        """
        if arm >= state.n_arms:
            raise DataError(f"arm={arm!r}: positions of the {state.n_arms} arms count from 0.")
        if np.isnan(reward):
            return state
        one = np.array([arm], np.int32)
        family, where = FAMILIES[state.family], f"reward of arm {arm}"
        coded = family.coded(np.array([reward], np.float64), state.support, lambda _: where)
        added = state.added + family.sums(one, coded, state.added.shape)
        pulls, total, spread = state.pulls.copy(), state.total.copy(), state.spread.copy()
        before = reward - total[arm] / pulls[arm] if pulls[arm] else 0.0
        pulls[arm] += 1
        total[arm] += reward
        spread[arm] += before * (reward - total[arm] / pulls[arm])
        learned, prior = state.learned, state.prior
        if learned is not None and not learned.settled:
            learned = learned.after(reward)
            prior = learned.table(state.n_arms)
        return replace(
            state, pulls=pulls, total=total, spread=spread, added=added, prior=prior,
            learned=learned,
        )  # fmt: skip

    @takes(**each(COUNT, "n_arms", "n_rounds"), family=PLAIN)
    def for_run(
        self, n_arms: int, n_rounds: int, rewards: Any, *, family: str | None = None
    ) -> Self:
        """Return the rule with what it needs to know of a coming run; warn of what will not work.

        Parameters
        ----------
        n_arms, n_rounds : int
            Size of the run.
        rewards : reward family
            True rewards, from which only what the rule is entitled to is read.
        family : str, optional
            Family the rule learns under; default that of the rewards.
        """
        return self

    def describe(self) -> str:
        """Return name and parameters in one line, as in ``fair_sd_ts(eps2=0.1, delta=0.1)``."""
        parts = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in dataclasses.fields(self)
            if getattr(self, f.name) is not None
        ]
        return f"{self.name}({', '.join(parts)})"
