r"""Draws around the mode that importance weights make exact, where a certificate says they do.

The proposal, in the coordinates z in which the curvature at the mode is one, is the mixture

.. math:: q(z) = 0.9\, N(z; 0, 1) + 0.1\, t_5(z; 0, 1),

so that a draw has weight :math:`w = p / q \le 10\, p / t_5`: bounded, since the posterior is
log-concave with normal tails and t has heavier ones. Weighted averages then converge to the
posterior's, with an error that the weights tell. What bounded weights cannot tell from a finite
sample is a tail that was never visited; this is so where the posterior is much wider than the
curvature at the mode says (a flat likelihood under a wide prior). The certificate looks there
without chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import gammaln

from bayesfair.inference.comparison_likelihood import Layout, Likelihood
from bayesfair.inference.laplace import Mode, posterior_precision
from bayesfair.inference.reweight import psis_weights

__all__ = [
    "EFFICIENCY_LIMIT",
    "EXCESS_LIMIT",
    "KHAT_LIMIT",
    "Certificate",
    "Proposal",
    "WeightedDraws",
    "certify",
    "weighted_draws",
]

#: Largest Pareto k-hat of certified weights: below 1/2 their variance is finite.
KHAT_LIMIT = 0.5
#: Smallest share of draws that weighting leaves effective.
EFFICIENCY_LIMIT = 0.6
#: Largest log excess of the posterior over the normal curve, 4 standard deviations off the mode, in
#: any direction that is reported. At 3.2 the posterior falls there like a normal 1.3 times as wide.
EXCESS_LIMIT = 3.2

_HEAVY, _DF = 0.1, 5.0
_FAR = 4.0
_PILOT = 1000  # draws after which a hopeless proposal is given up
_HOPELESS = 0.4  # their efficiency
_PLAIN = 0.85  # and that of a proposal of many parameters that needs no more draws to be seen right
_CHECKED, _CHECKED_MANY, _MANY = 8000, 4000, 64  # draws of the certificate; of many parameters
_STREAM = 20030731  # its own, so that no seed can choose it
_POOL = 4000  # draws that are weighted, at least


@dataclass(frozen=True)
class Certificate:
    """How trustworthy weighted draws are, from the data and the prior alone.

    Attributes
    ----------
    khat : float
        Pareto shape of the largest weights (Vehtari et al. 2024, JMLR 25(72)); 0 where there is no
        tail to fit.
    efficiency : float
        Effective share of the draws.
    excess : float
        Largest log ratio of the posterior to the normal curve at 4 standard deviations; infinite
        where the proposal was given up before.
    """

    khat: float
    efficiency: float
    excess: float

    @property
    def holds(self) -> bool:
        """Whether the weights vouch for the draws."""
        return bool(
            self.khat <= KHAT_LIMIT
            and self.efficiency >= EFFICIENCY_LIMIT
            and self.excess <= EXCESS_LIMIT
        )

    def __str__(self) -> str:
        """Return the numbers and their limits."""
        far = f"{self.excess:.1f}" if np.isfinite(self.excess) else "not looked at"
        return (
            f"k-hat {self.khat:.2f} (limit {KHAT_LIMIT}), effective share {self.efficiency:.2f} "
            f"(need {EFFICIENCY_LIMIT}), log excess of the tails {far} (limit {EXCESS_LIMIT})"
        )


@dataclass(frozen=True)
class WeightedDraws:
    """Draws of equal weight.

    Attributes
    ----------
    theta : (n, P) array
    ess : float
        How many independent draws their means are worth, for the parameter where it is fewest.
    """

    theta: NDArray[np.float64]
    ess: float


class Proposal:
    """The mixture of normal and t around the mode.

    Parameters
    ----------
    likelihood, precision
        As in `bayesfair.inference.laplace.find_mode`; every precision of an item > 0.
    mode : Mode
    """

    def __init__(self, likelihood: Likelihood, mode: Mode, precision: NDArray[np.float64]) -> None:
        self._likelihood, self._precision = likelihood, precision
        self._centre = mode.theta
        curvature = posterior_precision(likelihood, mode.theta, precision)
        self._root = cholesky(curvature, lower=True, overwrite_a=True)
        self._top = float(self._log_posterior(mode.theta[None])[0])

    def _log_posterior(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        value: NDArray[np.float64] = self._likelihood.draws(theta)
        return value - 0.5 * (theta**2) @ self._precision

    def _theta(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        moved = solve_triangular(self._root, z.T, lower=True, trans=1, check_finite=False)
        return np.ascontiguousarray(moved.T) + self._centre

    def reported(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is reported of rows of parameters: centred log-worths and all others."""
        layout = self._likelihood.layout
        worth = layout.log_worth(theta)
        rest = theta[:, layout.n_items :]
        return np.hstack([worth - worth.mean(axis=1, keepdims=True), rest])

    def draw(
        self, n: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return n parameter vectors and the logs of posterior over proposal, both from 0 up."""
        d = len(self._root)
        z = rng.standard_normal((n, d))
        # a fixed share of each component is less noisy than a random one, and has the same density
        heavy = round(_HEAVY * n)
        z[:heavy] *= np.sqrt(_DF / rng.chisquare(_DF, heavy))[:, None]
        theta = self._theta(z)
        square = np.einsum("ij,ij->i", z, z)
        # t over normal constant: Gamma((v + d) / 2) / (Gamma(v / 2) (v / 2)^(d / 2))
        const = gammaln((_DF + d) / 2) - gammaln(_DF / 2) - d / 2 * np.log(_DF / 2)
        t = const - (_DF + d) / 2 * np.log1p(square / _DF)
        mixed = np.logaddexp(np.log1p(-_HEAVY) - square / 2, np.log(_HEAVY) + t)
        return theta, self._log_posterior(theta) - self._top - mixed

    def excess(self, layout: Layout) -> float:
        """Return the largest log ratio of posterior to normal at 4 sd in reported directions.

        The direction of a linear form c of the parameters (a centred log-worth, a coefficient, the
        order effect, the log tie parameter) is the one in which it moves and everything else
        follows: z proportional to root^-1 c. The margin of c at 4 standard deviations lies there.
        """
        k, d = layout.n_items, len(self._root)
        forms = np.eye(d)
        forms[:k, :k] -= 1 / k
        z = layout.covariates
        forms[:k, k : layout.order_at] = z - z.mean(axis=0)
        ways = solve_triangular(self._root, forms.T, lower=True, check_finite=False).T
        length = np.linalg.norm(ways, axis=1)
        ways = ways[length > 0] * (_FAR / length[length > 0])[:, None]
        ways = np.concatenate([ways, -ways])
        found = self._log_posterior(self._theta(ways)) - self._top + _FAR**2 / 2
        return float(found.max(initial=0.0))


def _khat_of(log_ratio: NDArray[np.float64]) -> tuple[float, float]:
    weight, khat = psis_weights(log_ratio)
    return max(khat, 0.0), 1.0 / float(weight @ weight) / len(weight)


def certify(proposal: Proposal, layout: Layout) -> Certificate:
    """Return the certificate of a proposal: a fixed stream of draws, and every tail by itself.

    Notes
    -----
    It depends on the data and the prior alone. A certificate on the user's own draws would select
    the seeds that missed a tail, since a draw that finds it has a large weight and refutes it.
    """
    rng = np.random.default_rng(_STREAM)
    _, log_ratio = proposal.draw(_PILOT, rng)
    khat, efficiency = _khat_of(log_ratio)
    if efficiency < _HOPELESS:
        return Certificate(khat, efficiency, np.inf)
    if layout.size > _MANY and efficiency >= _PLAIN and khat <= KHAT_LIMIT:
        # what the weights vary by is spread over many directions, which 1000 draws show well; the
        # single ones, which they do not show, are looked at below
        return Certificate(khat, efficiency, proposal.excess(layout))
    n = _CHECKED if layout.size <= _MANY else _CHECKED_MANY
    more = proposal.draw(n - _PILOT, rng)[1]
    khat, efficiency = _khat_of(np.concatenate([log_ratio, more]))
    return Certificate(khat, efficiency, proposal.excess(layout))


def weighted_draws(proposal: Proposal, draws: int, rng: np.random.Generator) -> WeightedDraws:
    r"""Return draws of the posterior, resampled from weighted ones.

    Parameters
    ----------
    proposal : Proposal
    draws : int
    rng : numpy Generator

    Notes
    -----
    Of a pool of at least 4000 draws, each is kept within one of its expected number of times
    (systematic resampling in random order). The variance of the mean of x is then
    :math:`\sum w^2 (x - \bar x)^2`, and :math:`\sum f (1 - f) (x - \bar x)^2 / n^2` for rounding
    the expected numbers, with f their fractional parts; effective draws are the variance of x over
    it. Where large weights fall on tails they are fewer than :math:`1 / \sum w^2`.
    """
    pool = max(draws, _POOL)
    theta, log_ratio = proposal.draw(pool, rng)
    weight = psis_weights(log_ratio)[0]
    order = rng.permutation(pool)
    expected = draws * weight[order]
    points = rng.random() + np.arange(draws)
    edge = np.cumsum(expected)
    chosen = order[np.minimum(np.searchsorted(edge, points, side="right"), pool - 1)]
    fraction = expected - np.floor(expected)
    squared = weight[order] ** 2 + fraction * (1 - fraction) / draws**2
    shown = proposal.reported(theta[order])
    distance = (shown - weight[order] @ shown) ** 2
    spread, error = weight[order] @ distance, squared @ distance
    varies = error > 0
    ess = float((spread[varies] / error[varies]).min(initial=draws))
    return WeightedDraws(theta[rng.permutation(chosen)], ess)
