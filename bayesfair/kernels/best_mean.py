"""Which Poisson rate is the largest, under independent Gamma posteriors, by quadrature."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesfair.kernels.quadrature import unit_nodes

__all__ = ["gamma_best_mean"]

_REACH = 8.0  # standard deviations (in the square-root scale) beyond which an arm has no mass


def gamma_best_mean(shape: ArrayLike, rate: ArrayLike) -> NDArray[np.float64]:
    r"""Return P(rate_i is the largest) for independent Gamma posteriors.

    Parameters
    ----------
    shape, rate : (k,) arrays
        Gamma parameters, > 0; shapes of at least 1/2 are integrated to 1e-9 where twice the shape
        is whole, to about 1e-6 otherwise.

    Returns
    -------
    (k,) array
        Sums to 1 to the accuracy above.

    Notes
    -----
    In the scale :math:`y = \sqrt{\lambda}` the density :math:`\propto y^{2a-1} e^{-b y^2}` has
    standard deviation :math:`1/(2\sqrt b)` at its mode and upper tails no heavier than those of a
    normal of :math:`1/\sqrt{2b}`.

    Examples
    --------
    >>> gamma_best_mean([1.5, 1.5], [1.0, 1.0]).round(9)
    array([0.5, 0.5])
    """
    a = np.atleast_1d(np.asarray(shape, dtype=np.float64))
    b = np.atleast_1d(np.asarray(rate, dtype=np.float64))
    mode = np.sqrt(np.maximum(a - 0.5, 0.0) / b)
    below, above = 0.5 / np.sqrt(b), 1 / np.sqrt(2 * b)
    low = max(float(np.max(mode - _REACH * above)), 0.0)
    high = float(np.max(mode + _REACH * above))
    steps = np.arange(-_REACH * np.sqrt(2), _REACH * np.sqrt(2) + 1e-9, np.sqrt(2))
    edges = np.unique(np.clip(mode[:, None] + below[:, None] * steps, low, high))
    edges = np.unique(np.concatenate([[low, high], edges]))
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-12 * high])]
    nodes, weights = unit_nodes(16)
    width = np.diff(edges)
    y = (edges[:-1, None] + width[:, None] * nodes).ravel()
    weight = (width[:, None] * weights).ravel()
    x = b[:, None] * y**2
    cdf = special.gammainc(a[:, None], x)
    log_pdf = np.log(2 / y) + special.xlogy(a[:, None], x) - x - special.gammaln(a)[:, None]
    log_cdf = np.log(np.maximum(cdf, 1e-300))
    others = log_cdf.sum(axis=0) - log_cdf
    return np.asarray(np.exp(log_pdf + others) @ weight)
