"""Rewards that are normal with known mean and standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import constructed, takes
from bayesfair.kernels.laws.continuous_arms import location_scale_best_arm
from bayesfair.kernels.laws.divergences_continuous import normal_divergence
from bayesfair.rewards.base import Rewards
from bayesfair.typing import Floats, Labels

__all__ = ["Normal"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Normal(Rewards):
    r"""Arms with normal rewards.

    Parameters
    ----------
    mean : (..., k) array
        :math:`\mu_i`, in reward units, finite.
    sd : (..., k) array
        Standard deviation :math:`\sigma_i` (not the variance), in reward units, > 0.
    arms : sequence of str, keyword
        Labels; default "0".."k-1".

    Raises
    ------
    DataError, ArmError
        Naming the arm whose parameter is not allowed.

    Notes
    -----
    :math:`P^*(i)=\int f_i\prod_{j\ne i}F_j` by composite quadrature (`kernels.continuous_arms`),
    to 1e-9 or better whatever the ratio of the scales. Divergences are closed forms, except
    Jensen-Shannon (quadrature, relative 1e-8).

    Infinite divergences: chi2 where :math:`\sigma_i^2 \ge 2\sigma_j^2` (also returned where the
    finite value exceeds double precision).

    Examples
    --------
    >>> Normal([0.5, 0.0], [1.0, 2.0]).best_arm_probability().round(4)
    array([0.5885, 0.4115])
    >>> Normal([1.0, 0.0], 1.0).divergence("kl")
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    mean: Floats
    sd: Floats

    _parameters: ClassVar[tuple[str, ...]] = ("mean", "sd")

    if TYPE_CHECKING:

        def __init__(self, mean: ArrayLike, sd: ArrayLike, *, arms: Labels = ()) -> None: ...

    def __post_init__(self) -> None:
        """Validate once."""
        self._store(mean=self.mean, sd=self.sd)
        self._require("mean", np.isfinite(self.mean), "it must be finite.")
        good = (self.sd > 0) & np.isfinite(self.sd)
        self._require("sd", good, "a standard deviation is above 0; a certain reward is a Finite.")

    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return P*(i), ``(..., arm)``, to 1e-9; see the class for the formula.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """
        df = np.full(self.mean.shape, np.inf)
        return location_scale_best_arm(df, self.mean, self.sd, self._offered(offered))

    @takes()
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return the log density at `reward`, broadcast to ``(..., arm)``."""
        z = (self._rewards(reward) - self.mean) / self.sd
        return np.asarray(-0.5 * z * z - np.log(self.sd) - 0.5 * np.log(2 * np.pi))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(self.mean + self.sd * rng.standard_normal(shape))

    def _divergence(self, name: str) -> Floats:
        return normal_divergence(self.mean, self.sd, name)
