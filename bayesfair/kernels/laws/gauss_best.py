"""Probability that each of several normal performances with equal variance is the highest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from bayesfair.kernels.laws.quadrature import require_sum_of_one

__all__ = ["gauss_best_probability"]

_STEP = 0.25  # the trapezoid rule on a smooth peak of unit width: error below 1e-12
_FINE_STEP = 0.1  # the same where many items make the peak narrower
_MANY = 20
_REACH = 8.5


def gauss_best_probability(
    mean: NDArray[np.float64], *, variance: float = 0.5
) -> NDArray[np.float64]:
    r"""Return P(i is the highest) for independent :math:`N(\mu_i, v)`, over the last axis.

    .. math:: P_i = \int \phi(x - m_i) \prod_{j \ne i} \Phi(x - m_j)\, dx, \quad m = \mu / \sqrt v

    Parameters
    ----------
    mean : (..., k) array
    variance : float
        0.5 makes P(i beats j) = Phi(mean_i - mean_j).

    Returns
    -------
    (..., k) array
        Sums to 1.

    Raises
    ------
    ConvergenceError
        If a sum misses 1 by more than 1e-9.

    Examples
    --------
    >>> gauss_best_probability(np.array([0.3, -0.3])).round(6)  # Phi(0.6) and the rest
    array([0.725747, 0.274253])
    """
    scaled = np.asarray(mean, dtype=np.float64) / np.sqrt(variance)
    flat = scaled.reshape(-1, scaled.shape[-1])
    flat = flat - flat.max(axis=1, keepdims=True)
    # where the highest performance can lie: around the largest mean, or above
    step = _STEP if flat.shape[1] <= _MANY else _FINE_STEP
    x = np.arange(-_REACH, _REACH + step, step)
    result = np.empty_like(flat)
    rows = max(1, (1 << 20) // (flat.shape[1] * len(x)))
    for begin in range(0, len(flat), rows):
        z = x - flat[begin : begin + rows, :, None]
        below = log_ndtr(z)
        others = below.sum(axis=1, keepdims=True) - below
        result[begin : begin + rows] = np.exp(others - 0.5 * z**2).sum(axis=2)
    result *= step / np.sqrt(2 * np.pi)
    require_sum_of_one(result, "which normal performance is the highest")
    shaped: NDArray[np.float64] = result.reshape(scaled.shape)
    return shaped
