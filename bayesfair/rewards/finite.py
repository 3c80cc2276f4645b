"""Rewards with finitely many values: ordinal ratings, prices, grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import constructed, takes
from bayesfair.base.checks import listed
from bayesfair.errors import DataError
from bayesfair.kernels.laws.divergences import finite_divergence
from bayesfair.kernels.laws.finite_arms import finite_best_arm
from bayesfair.rewards.base import Rewards, as_float
from bayesfair.typing import Floats, Labels

__all__ = ["Finite"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Finite(Rewards):
    r"""Arms whose rewards lie in a common finite set of numbers.

    Parameters
    ----------
    support : (L,) array
        The values, in reward units, different and finite; sorted on entry together with `pmf`.
    pmf : (..., k, L) array
        Probabilities of the values; each arm's sum to 1 within 1e-9 and are rescaled to 1.
    arms : sequence of str, keyword
        Labels; default "0".."k-1".

    Raises
    ------
    DataError, ArmError
        Naming the arm whose probabilities are none, or the value listed twice.

    Notes
    -----
    :math:`P^*(i) = \sum_v f_i(v)\int_0^1\prod_{j\ne i}(F_j(v^-)+f_j(v)x)\,dx`, exact (see
    `bayesfair.kernels.laws.finite_arms`). Values are compared exactly, never binned. Divergences
    are
    finite sums; Wasserstein is :math:`\int|F_i-F_j|` in reward units.

    Infinite divergences: kl and chi2 where arm i has a value that arm j excludes.

    Examples
    --------
    The paper's first example: one arm always pays 1, the other pays 2 with probability 0.4.

    >>> rewards = Finite([0, 1, 2], [[0, 1, 0], [0.6, 0, 0.4]])
    >>> rewards.best_arm_probability().round(12)
    array([0.6, 0.4])
    """

    support: Floats
    pmf: Floats

    _parameters: ClassVar[tuple[str, ...]] = ("pmf",)
    _arm_axis: ClassVar[int] = -2

    if TYPE_CHECKING:

        def __init__(self, support: ArrayLike, pmf: ArrayLike, *, arms: Labels = ()) -> None: ...

    def __post_init__(self) -> None:
        """Validate once."""
        try:
            support, pmf = np.array(self.support, np.float64), np.array(self.pmf, np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"Finite: support or pmf is not numeric, or ragged: {error}. Arms with different "
                "supports: use Finite.from_arms."
            ) from None
        if support.ndim != 1 or not support.size or not np.isfinite(support).all():
            raise DataError(
                f"Finite: support must be a list of finite numbers, got shape {support.shape}. "
                "Arms with different supports: use Finite.from_arms."
            )
        if pmf.ndim < 2 or pmf.shape[-1] != support.size or pmf.shape[-2] == 0:
            raise DataError(
                f"Finite: pmf has shape {pmf.shape}, expected (..., arm, {support.size}): one "
                "probability for each value of support, for each arm."
            )
        order = np.argsort(support, kind="stable")
        support, pmf = support[order] + 0.0, pmf[..., order]
        twice = support[1:][np.diff(support) == 0]
        if twice.size:
            raise DataError(
                f"Finite: support lists {listed(np.unique(twice), 3)} more than once; add up the "
                "probabilities of equal values first."
            )
        self._put_arms(pmf.shape[-2])
        put = object.__setattr__
        put(self, "pmf", pmf)
        sums = pmf.sum(axis=-1)
        good = (pmf >= 0).all(axis=-1) & (np.abs(sums - 1) <= 1e-9)
        if not good.all():
            index = tuple(int(i) for i in np.argwhere(~good)[0])
            where = f" (batch index {index[:-1]})" if len(index) > 1 else ""
            low = np.min(pmf[index])
            what = f"holds {low:g}" if not low >= 0 else f"sums to {sums[index]:.10g}"
            raise DataError(
                f"Finite: pmf of arm {self.arms[index[-1]]!r}{where} {what}; probabilities are "
                ">= 0 and sum to 1 (tolerance 1e-9)."
            )
        pmf = np.ascontiguousarray(pmf / sums[..., None])
        support.flags.writeable = pmf.flags.writeable = False
        put(self, "support", support)
        put(self, "pmf", pmf)

    @classmethod
    @takes()
    def from_arms(
        cls, laws: Sequence[tuple[ArrayLike, ArrayLike]], *, arms: Sequence[str] = ()
    ) -> Self:
        """Return the family from one (support, probabilities) pair per arm.

        Parameters
        ----------
        laws : sequence of (values, probabilities)
            One per arm, of any lengths; equal values within an arm are refused.
        arms : sequence of str, keyword
            Labels.

        Examples
        --------
        >>> Finite.from_arms([([1], [1]), ([0, 2], [0.6, 0.4])]).support
        array([0., 1., 2.])
        """
        pairs = [(as_float(values).ravel(), as_float(p).ravel()) for values, p in laws]
        for i, (values, p) in enumerate(pairs):
            label = list(arms)[i] if len(arms) > i else str(i)
            if values.shape != p.shape:
                raise DataError(
                    f"Finite: arm {label!r} has {values.size} values and {p.size} probabilities."
                )
            if np.unique(values).size != values.size:
                raise DataError(
                    f"Finite: arm {label!r} lists a value more than once; add up their "
                    "probabilities first."
                )
        support = np.unique(np.concatenate([values for values, _ in pairs]))
        pmf = np.zeros((len(pairs), support.size))
        for i, (values, p) in enumerate(pairs):
            pmf[i, np.searchsorted(support, values)] = p
        return cls(support, pmf, arms=tuple(arms))

    @property
    def n_arms(self) -> int:
        """Number of arms, k."""
        return int(self.pmf.shape[-2])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the leading axes; () for one set of arms."""
        return self.pmf.shape[:-2]

    @property
    def mean(self) -> Floats:
        """Mean reward, ``(..., arm)``, in reward units."""
        return np.asarray(self.pmf @ self.support)

    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return P*(i), ``(..., arm)``, exact; see the class for the formula.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """
        return finite_best_arm(self.pmf, self._offered(offered))

    @takes()
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return log P(r_i = reward), broadcast to ``(..., arm)``; -inf off the support."""
        value = self._rewards(reward)
        shape = np.broadcast_shapes(value.shape, (*self.batch_shape, self.n_arms))
        value = np.broadcast_to(value, shape)
        level = np.minimum(np.searchsorted(self.support, value), self.support.size - 1)
        known = self.support[level] == value
        pmf = np.broadcast_to(self.pmf, (*shape, self.support.size))
        mass = np.take_along_axis(pmf, level[..., None], axis=-1)[..., 0]
        with np.errstate(divide="ignore"):
            log = np.where(known, np.log(mass), -np.inf)
        return np.where(np.isnan(value), np.nan, log)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        cumulative = self.pmf.cumsum(axis=-1)
        uniform: Any = rng.random(shape)
        # the last level takes what rounding leaves above the sum
        level = (uniform[..., None] >= cumulative[..., :-1]).sum(axis=-1)
        # a value of probability 0 at the end would be drawn by that rounding only
        last = self.support.size - 1 - np.argmax(self.pmf[..., ::-1] > 0, axis=-1)
        return np.asarray(self.support[np.minimum(level, last)])

    def _divergence(self, name: str) -> Floats:
        return finite_divergence(self.pmf, self.support, name)
