"""Rewards that are counts with a known rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayesfair.base.arguments import constructed, takes
from bayesfair.kernels.laws.count_laws import count_best_arm, levels_needed
from bayesfair.kernels.laws.divergences_counts import poisson_divergence
from bayesfair.rewards.base import Rewards, as_float
from bayesfair.typing import Floats, Labels

__all__ = ["Poisson"]

MOST_LEVELS = 2e7
"""Levels times arms that one round may occupy; beyond, a normal law is as good and faster."""

TOO_MANY = (
    "its law spreads over too many counts to add up; change the unit of the rewards or use Normal."
)


def counts_in(reward: ArrayLike) -> tuple[Floats, Floats]:
    """Return rewards as counts, and what a log mass gains: -inf off the counts, NaN where unknown.

    Examples
    --------
    >>> counts_in([2, 0.5, np.nan])
    (array([2., 0., 0.]), array([  0., -inf,  nan]))
    """
    value = as_float(reward)
    whole = (value >= 0) & (value < np.inf) & (value == np.floor(value))
    off = np.where(np.isnan(value), np.nan, np.where(whole, 0.0, -np.inf))
    return np.where(whole, value, 0.0), off


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Rewards):
    r"""Arms with Poisson rewards.

    Parameters
    ----------
    rate : (..., k) array
        Mean count :math:`\lambda_i`, >= 0, finite.
    arms : sequence of str, keyword
        Labels; default "0".."k-1".

    Raises
    ------
    DataError, ArmError
        Naming the arm whose rate is not allowed.

    Notes
    -----
    P* is the sum over counts with ties split evenly (`kernels.count_laws`); what truncation leaves
    out is below 1e-15. Divergences are closed forms (Wasserstein :math:`|\lambda_i-\lambda_j|`),
    Jensen-Shannon a sum over counts.

    Infinite divergences: kl and chi2 where :math:`\lambda_j=0<\lambda_i` (chi2 also where the
    finite value exceeds double precision).

    Examples
    --------
    >>> Poisson([3, 2]).best_arm_probability().round(4)
    array([0.6692, 0.3308])
    """

    rate: Floats

    _parameters: ClassVar[tuple[str, ...]] = ("rate",)

    if TYPE_CHECKING:

        def __init__(self, rate: ArrayLike, *, arms: Labels = ()) -> None: ...

    def __post_init__(self) -> None:
        """Validate once."""
        self._store(rate=self.rate)
        good = (self.rate >= 0) & np.isfinite(self.rate)
        self._require("rate", good, "a rate is finite and at least 0.")
        most = MOST_LEVELS / self.n_arms
        few = levels_needed(self.rate, np.array(np.inf)) < most
        self._require("rate", few, TOO_MANY)

    @property
    def mean(self) -> Floats:
        """Mean reward, ``(..., arm)``: the rate."""
        return self.rate

    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return P*(i), ``(..., arm)``, ties split evenly; see the class.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """
        size = np.full(self.rate.shape, np.inf)
        return count_best_arm(self.rate, size, self._offered(offered))

    @takes()
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return the log mass at `reward`, broadcast to ``(..., arm)``; -inf off the counts."""
        n, off = counts_in(self._rewards(reward))
        log = special.xlogy(n, self.rate) - self.rate - special.gammaln(n + 1)
        return np.asarray(log + off)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.poisson(self.rate, size=shape).astype(np.float64)

    def _divergence(self, name: str) -> Floats:
        return poisson_divergence(self.rate, name)
