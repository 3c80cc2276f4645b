"""Rewards known only through draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import constructed, takes
from bayesfair.errors import DataError
from bayesfair.kernels.laws.divergences import finite_divergence
from bayesfair.kernels.laws.finite_arms import finite_best_arm
from bayesfair.rewards.base import Rewards
from bayesfair.typing import Floats, Labels

__all__ = ["Empirical"]


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class Empirical(Rewards):
    r"""Arms known through joint or separate draws of their rewards.

    Parameters
    ----------
    draws : (..., n, k) array
        n draws of each arm's reward, in reward units; the last axis is the arm.
    joint : bool, keyword
        True: each row is one joint draw of all arms, which may depend on each other. P* is the
        share of rows in which the arm is highest. False (default): the arms are independent; P*
        is the exact value for the k empirical laws, which averages over all combinations.
    arms : sequence of str, keyword
        Labels; default "0".."k-1".

    Raises
    ------
    DataError, ArmError
        For draws that are missing or infinite, or of the wrong shape.

    Notes
    -----
    The standard error is that of the row-wise share, :math:`\sqrt{\hat p(1-\hat p)/n}` with ties
    split; averaging over all combinations only lowers the variance, so with ``joint=False`` it is
    an upper bound. It takes the draws as independent: divide by the effective sample size
    where they come from a Markov chain.

    Divergences are those *of the empirical laws*. Two sets of draws of continuous rewards share no
    value, so that total variation is 1 and kl and chi2 are infinite whatever the truth; Wasserstein
    is meaningful as an estimate. Infinite divergences: kl and chi2 where arm i has a value that
    arm j has not. `log_prob` is the log share of the draws equal to the reward.

    Examples
    --------
    >>> Empirical([[-1, -3], [-2, 0]]).best_arm_probability()
    array([0.5, 0.5])
    """

    draws: Floats
    joint: bool = False

    _parameters: ClassVar[tuple[str, ...]] = ("draws",)

    if TYPE_CHECKING:

        def __init__(self, draws: ArrayLike, joint: bool = False, *, arms: Labels = ()) -> None: ...

    def __post_init__(self) -> None:
        """Validate once."""
        self._store(draws=self.draws)
        if self.draws.ndim < 2 or self.draws.shape[-2] == 0:
            raise DataError(
                f"Empirical: draws has shape {self.draws.shape}, expected (..., draw, arm) with at "
                "least one draw."
            )
        self._require("draws", np.isfinite(self.draws), "draws must be finite.")

    @property
    def n_draws(self) -> int:
        """Number of draws per arm, n."""
        return int(self.draws.shape[-2])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the leading axes; () for one set of arms."""
        return self.draws.shape[:-2]

    @property
    def mean(self) -> Floats:
        """Mean of the draws, ``(..., arm)``, in reward units."""
        return np.asarray(self.draws.mean(axis=-2))

    def _rows(self) -> Floats:
        return self.draws.reshape(-1, self.n_draws, self.n_arms)

    def _shares(self, mask: NDArray[np.bool_] | None) -> Floats:
        """Return, per draw, each arm's share of the first place, (..., n, k)."""
        draws = self.draws if mask is None else np.where(mask[..., None, :], self.draws, -np.inf)
        top = draws == draws.max(axis=-1, keepdims=True)
        return np.asarray(top / top.sum(axis=-1, keepdims=True))

    @staticmethod
    def _levels(rows: Floats) -> tuple[Floats, Floats]:
        """Return the values of one (n, k) set of draws and the arms' pmf (k, L) on them."""
        n, k = rows.shape
        support, level = np.unique(rows, return_inverse=True)
        level = level.reshape(n, k)
        pmf = np.empty((k, support.size))
        for i in range(k):
            pmf[i] = np.bincount(level[:, i], minlength=support.size) / n
        return support, pmf

    def best_arm_probability(self, *, offered: ArrayLike | None = None) -> Floats:
        """Return the estimate of P*(i), ``(..., arm)``; see `best_arm_standard_error`.

        Parameters
        ----------
        offered : (..., k) array of bool, optional
            Arms on offer; the others take no part and get NaN.
        """
        mask = self._offered(offered)
        if self.joint:
            best = self._shares(mask).mean(axis=-2)
            return best if mask is None else np.where(mask, best, np.nan)
        flat = None if mask is None else mask.reshape(-1, self.n_arms)
        each = [
            finite_best_arm(self._levels(rows)[1], None if flat is None else flat[t])
            for t, rows in enumerate(self._rows())
        ]
        return np.array(each).reshape(*self.batch_shape, self.n_arms)

    def best_arm_standard_error(self) -> Floats:
        """Return the Monte-Carlo standard error of P*, ``(..., arm)``; see the class."""
        shares = self._shares(None)
        return np.asarray(shares.std(axis=-2) / np.sqrt(max(self.n_draws - 1, 1)))

    @takes()
    def log_prob(self, reward: ArrayLike) -> Floats:
        """Return the log share of draws equal to `reward`, broadcast to ``(..., arm)``."""
        value = self._rewards(reward)
        shape = np.broadcast_shapes(value.shape, (*self.batch_shape, self.n_arms))
        value = np.broadcast_to(value, shape)
        with np.errstate(divide="ignore"):
            log = np.log((self.draws == value[..., None, :]).mean(axis=-2))
        return np.where(np.isnan(value), np.nan, log)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        pick_shape = (*shape[:-1], 1) if self.joint else shape
        pick = np.broadcast_to(rng.integers(self.n_draws, size=pick_shape), shape)
        draws = np.broadcast_to(self.draws, (*shape[:-1], self.n_draws, self.n_arms))
        return np.take_along_axis(draws, pick[..., None, :], axis=-2)[..., 0, :]

    def _divergence(self, name: str) -> Floats:
        out = []
        for rows in self._rows():
            support, pmf = self._levels(rows)
            out.append(finite_divergence(pmf, support, name))
        return np.array(out).reshape(*self.batch_shape, self.n_arms, self.n_arms)
