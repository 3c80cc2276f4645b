"""Rewards with heavy tails, and the predictive law of normal rewards with unknown variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayesfair.base.arguments import constructed, takes
from bayesfair.kernels.laws.continuous_arms import LOWEST_DF, location_scale_best_arm
from bayesfair.kernels.laws.divergences_continuous import student_divergence
from bayesfair.rewards.base import Rewards
from bayesfair.typing import Floats, Labels

__all__ = ["StudentT"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class StudentT(Rewards):
    r"""Arms with Student-t rewards.

    Parameters
    ----------
    df : (..., k) array
        Degrees of freedom :math:`\nu_i`, finite, at least 0.05 (below, tails leave the range of
        double precision).
    loc : (..., k) array
        Location (the median), in reward units, finite.
    scale : (..., k) array
        Scale :math:`s_i`, in reward units, > 0; the standard deviation is
        :math:`s\sqrt{\nu/(\nu-2)}`.
    arms : sequence of str, keyword
        Labels; default "0".."k-1".

    Raises
    ------
    DataError, ArmError
        Naming the arm whose parameter is not allowed.

    Notes
    -----
    It is the subjective marginal of normal rewards with unknown mean and variance. P* by composite
    quadrature (`kernels.continuous_arms`) to 1e-9 or better. Total variation and Wasserstein are
    closed forms at the points where densities and distribution functions cross; kl, hellinger,
    chi2 and jensen_shannon are by quadrature with asymptotic tails, to relative 1e-8 (absolute
    1e-14 where two laws nearly agree).

    Infinite divergences: wasserstein where :math:`\nu_i\le1` or :math:`\nu_j\le1`, unless the two
    laws are a shift of each other (equal df and scale: the distance of the locations); chi2 where
    :math:`\nu_j \ge 2\nu_i`. kl is always finite. The mean is NaN where :math:`\nu\le1`.

    Examples
    --------
    >>> StudentT([2, 2], [1.0, 0.0], [1.0, 1.0]).best_arm_probability().round(4)
    array([0.6936, 0.3064])
    >>> StudentT([1, 2], [0.0, 0.0], [1.0, 1.0]).divergence("wasserstein")
    array([[ 0., inf],
           [inf,  0.]])
    """

    df: Floats
    loc: Floats
    scale: Floats

    _parameters: ClassVar[tuple[str, ...]] = ("df", "loc", "scale")

    if TYPE_CHECKING:

        def __init__(
            self, df: ArrayLike, loc: ArrayLike, scale: ArrayLike, *, arms: Labels = ()
        ) -> None: ...

    def __post_init__(self) -> None:
        """Validate once."""
        self._store(df=self.df, loc=self.loc, scale=self.scale)
        good = (self.df >= LOWEST_DF) & np.isfinite(self.df)
        rule = f"degrees of freedom are finite and at least {LOWEST_DF} (a normal law is a Normal)."
        self._require("df", good, rule)
        self._require("loc", np.isfinite(self.loc), "it must be finite.")
        good = (self.scale > 0) & np.isfinite(self.scale)
        self._require("scale", good, "a scale is above 0; a certain reward is a Finite.")

    @property
    def mean(self) -> Floats:
        """Mean reward, ``(..., arm)``; NaN where df <= 1."""
        return np.where(self.df > 1, self.loc, np.nan)

    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return P*(i), ``(..., arm)``, to 1e-9; see the class.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """
        return location_scale_best_arm(self.df, self.loc, self.scale, self._offered(offered))

    @takes()
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return the log density at `reward`, broadcast to ``(..., arm)``."""
        z = (self._rewards(reward) - self.loc) / self.scale
        # log B(1/2, df/2) keeps its digits where the two gamma functions would cancel
        constant = -special.betaln(0.5, 0.5 * self.df) - 0.5 * np.log(self.df)
        power = -0.5 * (self.df + 1) * np.log1p(z * z / self.df)
        return np.asarray(constant + power - np.log(self.scale))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(self.loc + self.scale * rng.standard_t(self.df, size=shape))

    def _divergence(self, name: str) -> Floats:
        return student_divergence(self.df, self.loc, self.scale, name)
