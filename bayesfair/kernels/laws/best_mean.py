r"""Which mean is the largest, under independent Beta or Gamma posteriors, by quadrature.

.. math:: P(i) = \int f_i(y) \prod_{j \ne i} F_j(y)\,dy

in the scale :math:`y = \log\theta/(1-\theta)` (Beta) or :math:`y = \log\lambda` (Gamma). There
every density is log-concave and without poles, whatever the prior: a prior far below 1/2 has
exponential tails that reach to :math:`e^{-4000}` and beyond, which the parameter itself cannot hold
in double precision but its logarithm can.

Panels of 16 Gauss-Legendre nodes are halved until each passes two tests: the last Legendre
coefficients of its integrands vanish, and the sum over the arms is the rise of
:math:`\prod_j F_j` between its ends, which no peak between the nodes can escape.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayesfair.kernels.laws.quadrature import require_sum_of_one, unit_nodes
from bayesfair.typing import Floats

__all__ = ["beta_best_mean", "gamma_best_mean", "product_of_others"]

Law = Callable[[Floats], tuple[Floats, Floats]]
"""Points (n,) to densities and distribution functions, (k, n) each."""

_N = 16
_DROPS = np.array([0.5, 2.0, 5.0, 10.0, 17.0, 26.0, 40.0])  # of a log density, where panels begin
_RESOLVED = 2e-14
_MOST_PANELS = 20_000
_FIRST_PANELS = 64
_AT_ONCE = 4_000_000
_FAR = 50.0  # beyond e^-50 the first term of a distribution function's series is exact


def largest_of(law: Law, edges: Floats, rounding: float = 0.0) -> Floats:
    """Return P(variable i is the largest) for k independent variables.

    Parameters
    ----------
    law : callable
        Densities and distribution functions at points.
    edges : (m,) array
        Increasing; outside of them no variable decides anything.
    rounding : float
        How far rounding lets a distribution function be off.

    Returns
    -------
    (k,) array
        Not rescaled: what its sum lacks of 1 is the error of the quadrature.
    """
    nodes, weights = unit_nodes(_N)
    degree = np.arange(_N - 3, _N)
    last = np.polynomial.legendre.legvander(2 * nodes - 1, _N - 1)[:, -3:]
    to_last = last * weights[:, None] * (2 * degree + 1)
    start, stop = edges[:-1], edges[1:]
    found: Floats | None = None
    done = 0
    while start.size:
        done += start.size
        parts = max(1, -(-start.size * _N * (1 if found is None else found.size) // _AT_ONCE))
        left: list[Floats] = []
        right: list[Floats] = []
        for a, b in zip(np.array_split(start, parts), np.array_split(stop, parts), strict=True):
            width = b - a
            density, cdf = law((a[:, None] + width[:, None] * nodes).ravel())
            values = density * product_of_others(cdf)
            values = values.reshape(len(values), -1, _N) * width[:, None]
            rise = law(b)[1].prod(axis=0) - law(a)[1].prod(axis=0)
            whole = values @ weights
            off = np.abs(values @ to_last).max(axis=(0, 2))
            # a product of k functions is rounded k times
            allowed = _RESOLVED * max(1.0, len(density) / 8) + rounding
            good = (off < allowed) & (np.abs(whole.sum(axis=0) - rise) < allowed)
            # a panel too short to be halved is as good as it gets; the sum of all judges it
            middle = a + 0.5 * width
            good |= (middle <= a) | (middle >= b) | (done > _MOST_PANELS)
            part = whole[:, good].sum(axis=1)
            found = part if found is None else found + part
            left += [a[~good], middle[~good]]
            right += [middle[~good], b[~good]]
        start, stop = np.concatenate(left), np.concatenate(right)
    assert found is not None
    return found


def product_of_others(cdf: Floats) -> Floats:
    """Return the product over all arms but one, for each arm, without division."""
    ahead = np.ones_like(cdf)
    np.cumprod(cdf[:-1], axis=0, out=ahead[1:])
    behind = np.ones_like(cdf)
    behind[:-1] = np.cumprod(cdf[:0:-1], axis=0)[::-1]
    return ahead * behind


def _stirling(z: Floats) -> Floats:
    """Return what Stirling's formula lacks of log Gamma(z)."""
    large = np.maximum(z, 15.0)
    y = 1 / large**2
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / large
    small = np.minimum(z, 15.0)
    exact = special.gammaln(small) - (small - 0.5) * np.log(small) + small
    return np.where(z < 15, exact - 0.5 * np.log(2 * np.pi), series)


def _rounding(size: Floats) -> float:
    """Return the accuracy of incomplete beta and gamma functions of large parameters."""
    return float(3e-16 * np.sqrt(size.max()))


def _edges(
    mode: Floats,
    drop: Callable[[Floats], Floats],
    reach: tuple[Floats, Floats],
) -> Floats:
    """Return where panels begin: at given drops of the log densities from their modes.

    Parameters
    ----------
    mode : (n,) array
    drop : callable
        Distances (n, m) from the modes, of either sign, to drops of the log densities.
    reach : (n,) arrays
        Distances to the left and right at which each log density has dropped by the last of
        `_DROPS` and more.
    """
    sides = []
    for sign, far in zip((-1.0, 1.0), reach, strict=True):
        low = np.zeros((mode.size, _DROPS.size))
        high = np.broadcast_to(far[:, None], low.shape).copy()
        for _ in range(50):
            middle = 0.5 * (low + high)
            enough = drop(sign * middle) >= _DROPS
            high = np.where(enough, middle, high)
            low = np.where(enough, low, middle)
        sides.append(mode[:, None] + sign * high)
    left, right = sides
    # below the first point some arm surely does not lie, above the last one none does
    first, end = left[:, -1].max(), right[:, -1].max()
    points = np.unique(np.concatenate([left.ravel(), mode, right.ravel(), [first, end]]))
    points = points[(points >= first) & (points <= end)]
    if points.size > _FIRST_PANELS:  # halving finds again what this leaves out
        at = np.unique(np.linspace(0, points.size - 1, _FIRST_PANELS).astype(int))
        points = points[at]
    return np.asarray(points)


def beta_best_mean(alpha: ArrayLike, beta: ArrayLike) -> Floats:
    r"""Return P(theta_i is the largest mean) for independent Beta posteriors.

    This is Thompson sampling's selection probability. It is not P*, which compares realised
    rewards.

    Parameters
    ----------
    alpha, beta : (k,) array
        Beta parameters, > 0, however small.

    Returns
    -------
    (k,) array
        To 1e-10; sums to 1.

    Raises
    ------
    ConvergenceError
        If the sum misses 1 by more than 1e-9.

    Examples
    --------
    >>> beta_best_mean([0.01, 0.01], [0.01, 0.01]).round(9)
    array([0.5, 0.5])
    """
    a = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    b = np.atleast_1d(np.asarray(beta, dtype=np.float64))
    if a.size == 1:
        return np.ones(1)
    pairs, arm = np.unique(np.stack([a, b], axis=1), axis=0, return_inverse=True)
    a, b = pairs.T
    n = a + b
    mode, log_p, log_q = np.log(a) - np.log(b), np.log(a / n), np.log(b / n)

    def drop(d: Floats) -> Floats:
        near = np.abs(d) < 1
        mixed = np.log1p((a / n)[:, None] * np.expm1(np.where(near, d, 0.0)))
        far = np.logaddexp(log_q[:, None], log_p[:, None] + d)
        return np.asarray(n[:, None] * np.where(near, mixed, far) - a[:, None] * d)

    most = _DROPS[-1]
    edges = _edges(mode, drop, ((most - n * log_q) / a, (most - n * log_p) / b))
    at_mode = 0.5 * np.log(a / n * b / (2 * np.pi)) + _stirling(n) - _stirling(a) - _stirling(b)
    low_tail, high_tail = -np.log(a) - special.betaln(a, b), -np.log(b) - special.betaln(a, b)
    deep, high = _FAR + np.log(np.maximum(b, 1)), _FAR + np.log(np.maximum(a, 1))

    def law(y: Floats) -> tuple[Floats, Floats]:
        density = np.exp(at_mode[:, None] - drop(y - mode[:, None]))
        x, rest = special.expit(y), special.expit(-y)
        left = y <= 0
        cdf = np.empty_like(density)
        for i in range(a.size):  # the smaller of theta and 1 - theta keeps its digits
            row = np.empty_like(y)
            row[left] = special.betainc(a[i], b[i], x[left])
            row[~left] = 1 - special.betainc(b[i], a[i], rest[~left])
            below = np.exp(np.minimum(a[i] * y + low_tail[i], 0))
            above = np.exp(np.minimum(high_tail[i] - b[i] * y, 0))
            cdf[i] = np.where(y < -deep[i], below, np.where(y > high[i], 1 - above, row))
        return density[arm], cdf[arm]

    return require_sum_of_one(
        largest_of(law, edges, _rounding(n)), "which Beta mean is the largest"
    )


def gamma_best_mean(shape: ArrayLike, rate: ArrayLike) -> Floats:
    r"""Return P(rate_i is the largest) for independent Gamma posteriors.

    Parameters
    ----------
    shape, rate : (k,) arrays
        Gamma parameters, > 0, however small.

    Returns
    -------
    (k,) array
        To 1e-10; sums to 1.

    Raises
    ------
    ConvergenceError
        If the sum misses 1 by more than 1e-9.

    Examples
    --------
    >>> gamma_best_mean([1.5, 1.5], [1.0, 1.0]).round(9)
    array([0.5, 0.5])
    """
    a = np.atleast_1d(np.asarray(shape, dtype=np.float64))
    b = np.atleast_1d(np.asarray(rate, dtype=np.float64))
    if a.size == 1:
        return np.ones(1)
    pairs, arm = np.unique(np.stack([a, b], axis=1), axis=0, return_inverse=True)
    a, b = pairs.T
    log_a, mode = np.log(a), np.log(a) - np.log(b)

    def drop(d: Floats) -> Floats:
        return np.asarray(a[:, None] * (np.expm1(np.minimum(d, 700.0)) - d))

    most = _DROPS[-1]
    edges = _edges(mode, drop, (most / a + 1, np.log1p(most / a) + 1 + np.sqrt(2 * most / a)))
    at_mode = 0.5 * np.log(a / (2 * np.pi)) - _stirling(a)

    def law(y: Floats) -> tuple[Floats, Floats]:
        d = y - mode[:, None]
        density = np.exp(at_mode[:, None] - drop(d))
        log_x = log_a[:, None] + d
        series = np.exp(np.minimum(a[:, None] * log_x - special.gammaln(a + 1)[:, None], 0))
        exact = special.gammainc(a[:, None], np.exp(np.minimum(log_x, 700.0)))
        return density[arm], np.where(log_x < -_FAR, series, exact)[arm]

    return require_sum_of_one(
        largest_of(law, edges, _rounding(a)), "which Poisson rate is the largest"
    )
