"""Exponential races: the reward distributions behind Plackett-Luce worths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["race_total_variation"]


def race_total_variation(log_ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the total variation between two exponential finishing times.

    .. math:: b^{-1/(b-1)} - b^{-b/(b-1)}, \quad b = e^{|x|} \ge 1

    Parameters
    ----------
    log_ratio : (...) array
        x, the gap between two log-worths; it may be infinite.

    Returns
    -------
    (...) array
        In [0, 1]: 0 for equal worths, close to |x| / e for nearly equal ones.

    Notes
    -----
    If item i finishes after an exponential time with rate nu_i, the first to finish is i with
    probability nu_i / sum(nu), and the order of all is Plackett-Luce. Total variation is the same
    for any common monotone transform of the times, such as Gumbel utilities.

    Examples
    --------
    >>> race_total_variation(np.log([1.0, 2.0, 4.0])).round(6)
    array([0.     , 0.25   , 0.47247])
    """
    # an infinite gap is as good as one of 700: 1 in double precision
    gap = np.minimum(np.abs(np.asarray(log_ratio, dtype=np.float64)), 700.0)
    # b^(-1/(b-1)) = exp(-x / (e^x - 1)); the second power has one more factor 1/b
    grown = np.expm1(gap)
    power = np.where(gap > 0, gap / np.where(gap > 0, grown, 1.0), 1.0)
    result: NDArray[np.float64] = np.exp(-power) * -np.expm1(-gap)
    return result
