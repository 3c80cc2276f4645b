"""Rewards that are 0 or 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import constructed, takes
from bayesfair.base.labels import by_label
from bayesfair.kernels.laws.best_arm import bernoulli_best_arm
from bayesfair.kernels.laws.divergences import bernoulli_divergence, finite_divergence
from bayesfair.rewards.base import Rewards
from bayesfair.typing import Floats, Labels

__all__ = ["Bernoulli", "as_rewards"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(Rewards):
    r"""Arms that pay 1 with probability `mean`, else 0.

    Parameters
    ----------
    mean : (..., k) array
        :math:`m_i = P(r_i = 1)`, in [0, 1], dimensionless.
    complement : (..., k) array, optional
        1 - mean; give it where the mean is so close to 1 that the difference is known better.
    arms : sequence of str, keyword
        Labels; default "0".."k-1".

    Raises
    ------
    DataError, ArmError
        Naming the arm whose mean is no probability.

    Notes
    -----
    :math:`P^*(i) = m_i E[1/(1+N_{-i})] + \tfrac1k\prod_j(1-m_j)`, exact by Gauss-Legendre on the
    tie integral (see `bayesfair.kernels.laws.best_arm`). Divergences are closed forms; total
    variation
    and Wasserstein are both :math:`|m_i-m_j|`.

    Infinite divergences: kl and chi2 where :math:`m_j` is 0 or 1 and :math:`m_i` differs.

    Examples
    --------
    >>> rewards = Bernoulli([0.9, 0.5, 0.1], arms=["north", "south", "east"])
    >>> rewards.best_arm_probability().round(12)
    array([0.66, 0.28, 0.06])
    >>> Bernoulli([0.75, 0.25]).divergence("total_variation")
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    mean: Floats
    complement: Floats | None = None

    _parameters: ClassVar[tuple[str, ...]] = ("mean", "complement")

    if TYPE_CHECKING:

        def __init__(
            self, mean: ArrayLike, complement: ArrayLike | None = None, *, arms: Labels = ()
        ) -> None: ...

    def __post_init__(self) -> None:
        """Validate once."""
        if self.complement is None:
            self._store(mean=self.mean)
        else:
            self._store(mean=self.mean, complement=self.complement)
        inside = (self.mean >= 0) & (self.mean <= 1)
        self._require("mean", inside, "a probability lies in [0, 1].")
        if self.complement is not None:
            near = np.abs(self.mean + self.complement - 1) <= 1e-12
            self._require("complement", near & (self.complement >= 0), "it must be 1 - mean.")

    @property
    def _failure(self) -> Floats:
        return 1.0 - self.mean if self.complement is None else self.complement

    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return P*(i), ``(..., arm)``, exact; see the class for the formula.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """
        mask = self._offered(offered)
        if mask is None:
            return bernoulli_best_arm(self.mean, self._failure)
        # An absent arm never pays: only the share of the outcome "nobody pays" changes.
        m, q = np.where(mask, self.mean, 0.0), np.where(mask, self._failure, 1.0)
        n_offered = np.maximum(mask.sum(axis=-1, keepdims=True), 1)
        none = q.prod(axis=-1, keepdims=True)
        best = bernoulli_best_arm(m, q) + none * (1 / n_offered - 1 / self.n_arms)
        return np.where(mask, best, np.nan)

    @takes()
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return log P(r_i = reward), broadcast to ``(..., arm)``; -inf unless 0 or 1."""
        value = self._rewards(reward)
        with np.errstate(divide="ignore"):
            log = np.where(value == 1, np.log(self.mean), np.log(self._failure))
        log = np.where((value == 0) | (value == 1), log, -np.inf)
        return np.where(np.isnan(value), np.nan, log)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return (rng.random(shape) < self.mean).astype(np.float64)

    def _divergence(self, name: str) -> Floats:
        if self.complement is None or name in ("total_variation", "wasserstein"):
            return bernoulli_divergence(self.mean, name)
        # 1 - mean would lose the digits that the complement keeps
        pmf = np.stack([self.complement, self.mean], axis=-1)
        return finite_divergence(pmf, np.array([0.0, 1.0]), name)


def as_rewards(rewards: Any) -> Rewards:
    """Return a reward family; arrays and mappings of label to mean are Bernoulli."""
    if isinstance(rewards, Rewards):
        return rewards
    if isinstance(rewards, Mapping):
        named = by_label(rewards, "arm", "rewards")
        means: Any = list(named.values())
        return Bernoulli(means, arms=tuple(named))
    return Bernoulli(rewards)
