"""Counts that vary more than Poisson, and the predictive law of Poisson rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayesfair.base.arguments import constructed, takes
from bayesfair.kernels.laws.count_laws import count_best_arm, levels_needed
from bayesfair.kernels.laws.divergences_counts import count_divergence
from bayesfair.rewards.base import Rewards
from bayesfair.rewards.poisson import MOST_LEVELS, TOO_MANY, counts_in
from bayesfair.typing import Floats, Labels

__all__ = ["NegativeBinomial"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class NegativeBinomial(Rewards):
    r"""Arms with negative binomial rewards: failures before the n-th success.

    Parameters
    ----------
    n : (..., k) array
        Number of successes, > 0, not necessarily whole (SciPy's and PyMC's `n`; PyMC's `alpha`).
    p : (..., k) array
        Probability of a success, in (0, 1]; the mean is n (1 - p)/p.
    arms : sequence of str, keyword
        Labels; default "0".."k-1".

    Raises
    ------
    DataError, ArmError
        Naming the arm whose parameter is not allowed.

    Notes
    -----
    It is the law of a Poisson count whose rate is Gamma(shape n, rate p/(1-p)), hence the
    subjective marginal of Poisson rewards: a Gamma(a, rate b) posterior gives n = a,
    p = b/(b + 1). P* is the sum over counts with ties split evenly (`kernels.count_laws`); what
    truncation leaves out is below 1e-15. Divergences are sums over counts, to relative 1e-8.

    Infinite divergences: kl and chi2 where :math:`p_j=1>p_i` (arm j pays 0 only); chi2 where
    :math:`(1-p_i)^2 > 1-p_j`, or equal and :math:`n_j\le 2n_i`.

    Examples
    --------
    >>> NegativeBinomial([1.0, 1.0], [0.5, 0.25]).best_arm_probability().round(4)
    array([0.3, 0.7])
    """

    n: Floats
    p: Floats

    _parameters: ClassVar[tuple[str, ...]] = ("n", "p")

    if TYPE_CHECKING:

        def __init__(self, n: ArrayLike, p: ArrayLike, *, arms: Labels = ()) -> None: ...

    def __post_init__(self) -> None:
        """Validate once."""
        self._store(n=self.n, p=self.p)
        good = (self.n > 0) & np.isfinite(self.n)
        self._require("n", good, "the number of successes is finite and above 0.")
        self._require("p", (self.p > 0) & (self.p <= 1), "a success has a probability in (0, 1].")
        few = levels_needed(self.mean, self.n) < MOST_LEVELS / self.n_arms
        self._require("p", few, TOO_MANY)

    @property
    def mean(self) -> Floats:
        """Mean reward, ``(..., arm)``: n (1 - p)/p."""
        return np.asarray(self.n * ((1 - self.p) / self.p))

    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return P*(i), ``(..., arm)``, ties split evenly; see the class.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """
        return count_best_arm(self.mean, self.n, self._offered(offered))

    @takes()
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return the log mass at `reward`, broadcast to ``(..., arm)``; -inf off the counts."""
        v, off = counts_in(self._rewards(reward))
        # Gamma(v+n) / (Gamma(n) v!) as a beta function, which keeps its digits
        log = -special.betaln(v + 1, self.n) - np.log(v + self.n)
        log = log + self.n * np.log(self.p) + special.xlog1py(v, -self.p)
        return np.asarray(log + off)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.negative_binomial(self.n, self.p, size=shape).astype(np.float64)

    def _divergence(self, name: str) -> Floats:
        return count_divergence(self.mean, self.n, name)
