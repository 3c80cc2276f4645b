r"""Draws around the mode that importance weights make exact, where a certificate says they do.

The proposal, in the coordinates z in which the curvature at the mode is one, is the mixture

.. math:: q(z) = 0.9\, N(z; 0, 1) + 0.1\, t_5(z; 0, 1),

so that a draw has weight :math:`w = p / q \le 10\, p / t_5`: bounded, since the posterior is
log-concave with normal tails and t has heavier ones. Weighted averages then converge to the
posterior's, with an error that the weights tell. What bounded weights cannot tell from a finite
sample is a tail that was never visited; this is so where the posterior is much wider than the
curvature at the mode says (a flat likelihood under a wide prior). The certificate looks there
without chance.

Where it is refused and parameters are few, the proposal is fitted to the posterior instead, by
adaptive importance sampling: from a wide t over one with the posterior's mean and covariance to a
mixture of normals, made by EM from weighted draws, with a t beside them (population Monte Carlo,
Cappe et al. 2008, Stat. Comput. 18, 447-459). Nothing rests on the fit but the spread of the
weights, which the same certificate judges.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import gammaln

from bayesfair.inference.comparison_likelihood import Layout, Likelihood
from bayesfair.inference.laplace import Mode, posterior_precision
from bayesfair.inference.reweight import psis_weights
from bayesfair.typing import Floats

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

# the fitted proposal
_FEW = 12  # parameters up to which one is fitted
_STAGES, _FITTED = 3, 8000  # how often draws are weighted, and how many
_PARTS, _EM_STEPS = 6, 20  # normals of the mixture, and how often they are made anew
_SMALL, _RIDGE = 0.01, 1e-3  # share below which one is left out; of the whole spread, added to each
_WIDER = 1.2  # the heavy part's spread over the posterior's, and
_LOOSER = 1.1  # each normal's over that of its draws: weights are then largest in the middle


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


@dataclass(frozen=True)
class _Part:
    """A share of the proposal: normal, or t with `df` degrees of freedom.

    `at` is its mean and the lower root of its covariance (or of that of the normal in the t); None
    stands for zero and the identity, which cost nothing where parameters are thousands.
    """

    share: float
    df: float = np.inf
    at: tuple[Floats, Floats] | None = None

    def place(self, z: Floats, rng: np.random.Generator) -> None:
        """Turn rows of standard normal numbers into draws of this part."""
        if np.isfinite(self.df):
            z *= np.sqrt(self.df / rng.chisquare(self.df, len(z)))[:, None]
        if self.at is not None:
            z[:] = z @ self.at[1].T + self.at[0]

    def log_density(self, z: Floats) -> Floats:
        """Return the log density of rows, times the share and (2 pi)^(d / 2)."""
        d, top = z.shape[1], np.log(self.share)
        if self.at is not None:
            mean, root = self.at
            top -= np.log(np.diag(root)).sum()
            z = solve_triangular(root, (z - mean).T, lower=True, check_finite=False).T
        square: Floats = np.einsum("ij,ij->i", z, z)
        if np.isinf(self.df):
            return np.asarray(top - square / 2)
        half = self.df / 2
        top += gammaln(half + d / 2) - gammaln(half) - d / 2 * np.log(half)
        return np.asarray(top - (half + d / 2) * np.log1p(square / self.df))


#: A heavy part first, then the normal ones.
type _Law = tuple[_Part, ...]


def _log_density(parts: _Law, z: Floats) -> Floats:
    return np.asarray(np.logaddexp.reduce([part.log_density(z) for part in parts], axis=0))


def _moments(z: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean of rows, and the root of their covariance."""
    mean = weight @ z
    far = (z - mean) * np.sqrt(weight)[:, None]
    return mean, cholesky(far.T @ far, lower=True)


def _mixture(z: Floats, weight: Floats, rng: np.random.Generator) -> _Law:
    """Return a law fitted to weighted draws: normals by EM, and a t as wide as they together."""
    mean, root = _moments(z, weight)
    floor = _RIDGE * (root @ root.T)
    first = z[rng.choice(len(z), _PARTS, p=weight)]
    normals = [_Part(1 / _PARTS, at=(mean, 0.7 * root)) for mean in first]
    for _ in range(_EM_STEPS):
        log = np.array([part.log_density(z) for part in normals])
        belongs = weight * np.exp(log - np.logaddexp.reduce(log, axis=0))
        normals = []
        for own in belongs[belongs.sum(axis=1) > _SMALL]:
            share = own.sum()
            place = own @ z / share
            far = (z - place) * np.sqrt(own / share)[:, None]
            normals.append(_Part(share, at=(place, cholesky(far.T @ far + floor, lower=True))))
    left = (1 - _HEAVY) / sum(part.share for part in normals)
    spread = [(left * part.share, part.at) for part in normals if part.at is not None]
    looser = [_Part(share, at=(mean, _LOOSER * root)) for share, (mean, root) in spread]
    return (_Part(_HEAVY, _DF, (mean, _WIDER * root)), *looser)


class Proposal:
    """The mixture of normal and t around the mode, or one that was fitted to weighted draws.

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
        self._law: _Law = (_Part(_HEAVY, _DF), _Part(1 - _HEAVY))

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

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Return n rows of coordinates, of parameters, and logs of posterior over proposal."""
        z = rng.standard_normal((n, len(self._root)))
        # a fixed share of each part is less noisy than a random one, and has the same density
        edge = np.rint(n * np.cumsum([part.share for part in self._law])).astype(int)
        for part, rows in zip(self._law, np.split(z, edge[:-1]), strict=True):
            part.place(rows, rng)
        theta = self._theta(z)
        return z, theta, self._log_posterior(theta) - self._top - _log_density(self._law, z)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return n parameter vectors and the logs of posterior over proposal, both from 0 up."""
        return self._draw(n, rng)[1:]

    def fitted(self) -> Proposal:
        """Return the proposal fitted to the posterior, by weighted draws of a fixed stream.

        A wide t, then one with the posterior's mean and spread, then a mixture of normals: each is
        fitted to the weighted draws of the one before.
        """
        rng = np.random.default_rng(_STREAM + 1)  # not the one by which it is judged
        found = copy(self)
        zero, unit = np.zeros(len(self._root)), np.eye(len(self._root))
        found._law = (_Part(0.5, _DF, (zero, unit)), _Part(0.5, _DF, (zero, 2 * unit)))
        for stage in range(_STAGES):
            z, _, log_ratio = found._draw(_FITTED, rng)
            weight = psis_weights(log_ratio)[0]
            if stage < _STAGES - 1:
                found._law = (_Part(1.0, _DF, _moments(z, weight)),)
            else:
                found._law = _mixture(z, weight, rng)
        return found

    def excess(self, layout: Layout) -> float:
        """Return how much less the posterior falls than the normals, 4 sd off in any direction.

        The direction of a linear form c of the parameters (a centred log-worth, a coefficient, the
        order effect, the log tie parameter) is the one in which it moves and everything else
        follows: of the coordinates z, their covariance times root^-1 c. The margin of c at 4
        standard deviations lies there.
        """
        k, d = layout.n_items, len(self._root)
        forms = np.eye(d)
        forms[:k, :k] -= 1 / k
        z = layout.covariates
        forms[:k, k : layout.order_at] = z - z.mean(axis=0)
        ways = solve_triangular(self._root, forms.T, lower=True, check_finite=False).T
        heavy, *normals = self._law
        if heavy.at is not None:
            ways = ways @ heavy.at[1]
        length = np.linalg.norm(ways, axis=1)
        ways = ways[length > 0] * (_FAR / length[length > 0])[:, None]
        ways = np.concatenate([np.zeros((1, d)), ways, -ways])
        if heavy.at is not None:
            ways = ways @ heavy.at[1].T / _WIDER + heavy.at[0]
        over = self._log_posterior(self._theta(ways)) - _log_density(tuple(normals), ways)
        return float((over - over[0]).max())


def _khat_of(log_ratio: NDArray[np.float64]) -> tuple[float, float]:
    weight, khat = psis_weights(log_ratio)
    return max(khat, 0.0), 1.0 / float(weight @ weight) / len(weight)


def certify(proposal: Proposal, layout: Layout) -> tuple[Proposal, Certificate]:
    """Return a proposal with its certificate: a fixed stream of draws, and every tail by itself.

    Up to twelve parameters, one that is refused is fitted to the posterior and looked at again.

    Notes
    -----
    Both depend on the data and the prior alone. A certificate on the user's own draws would select
    the seeds that missed a tail, since a draw that finds it has a large weight and refutes it.
    """
    certificate = _certificate(proposal, layout)
    if certificate.holds or layout.size > _FEW:
        return proposal, certificate
    try:
        fitted = proposal.fitted()
    except np.linalg.LinAlgError:  # a few draws have all the weight
        return proposal, certificate
    return fitted, _certificate(fitted, layout)


def _certificate(proposal: Proposal, layout: Layout) -> Certificate:
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
