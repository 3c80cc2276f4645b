"""How far selection probabilities of similar arms can differ, and what duels tell about it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.base.arguments import takes, within
from bayesfair.errors import DataError
from bayesfair.kernels.laws.races import race_total_variation
from bayesfair.typing import Floats

__all__ = [
    "exponential_race_tv",
    "plackett_luce_eps1",
    "smooth_fairness_bound",
    "top1_error_bound",
]


# -- smooth fairness -----------------------------------------------------------------------------


@takes(d=within(0, 1, array=True))
def smooth_fairness_bound(d: ArrayLike) -> Floats:
    r"""Return :math:`2d - d^2`: how far SD_TS's selection probabilities can differ at TV d.

    Parameters
    ----------
    d : array_like
        Total variation between the subjective marginals of two arms, in [0, 1].

    Returns
    -------
    array
        Bound on :math:`|\pi_t(i) - \pi_t(j)|`.

    Notes
    -----
    Proved, and sharp for every d: the paper's constant 2 is the supremum of the ratio 2 - d,
    reached in the limit by three reward levels P = (0, 1-d, d), Q = (d, 1-d, 0). For Bernoulli
    rewards the bound is d itself. Needs arms that are independent under the belief, and the history
    *before* the round; with dependent arms it fails (theta = (1,0,0) or (0,1,1), equal odds: all
    marginals 1/2, but P* = (1/2, 1/4, 1/4)).

    Examples
    --------
    >>> smooth_fairness_bound([0.0, 0.1, 1.0])
    array([0.  , 0.19, 1.  ])
    """
    d = np.asarray(d, dtype=np.float64)
    return np.asarray(2 * d - d * d)


@takes()
def plackett_luce_eps1() -> float:
    r"""Return e/2: the constant of smooth fairness for Plackett-Luce arms.

    Notes
    -----
    Proved: with exponential races behind the worths,
    :math:`|P_i - P_j| \le |2p_{ij} - 1| \le (e/2)\,TV`, the supremum being approached by equal
    worths (see `exponential_race_tv`).

    Examples
    --------
    >>> round(plackett_luce_eps1(), 4)
    1.3591
    """
    return math.e / 2


# -- duels ---------------------------------------------------------------------------------------


@takes(n_items=within(1, 1e9, whole=True), eps=within(0, 1))
def top1_error_bound(n_items: int, eps: float) -> float:
    r"""Return :math:`(k-1)\epsilon`: the error of the paper's estimate of P(item is first).

    Parameters
    ----------
    n_items : int
        k.
    eps : float
        Largest error of a pairwise probability.

    Notes
    -----
    Proved, for errors of any size (the paper states O(k eps) for small ones), and sharp; for the
    estimate before it is normalised. Half the sum of errors over all items stayed below it too:
    proved to first order, else only observed.

    Examples
    --------
    >>> top1_error_bound(4, 0.25)
    0.75
    """
    return (n_items - 1) * eps


@takes(ratio=within(0, array=True))
def exponential_race_tv(ratio: ArrayLike) -> Floats:
    r"""Return the total variation between two Plackett-Luce arms.

    .. math:: TV = b^{-1/(b-1)} - b^{-b/(b-1)}

    Parameters
    ----------
    ratio : array_like
        b > 0, ratio of the worths; b and 1/b give the same; infinity gives 1.

    Notes
    -----
    Duels do not identify reward distributions. Those usual behind Plackett-Luce are exponential
    races (equally, Gumbel utilities: TV ignores a common monotone transform). Exact for them.

    Examples
    --------
    >>> exponential_race_tv([1.0, 2.0, 0.5])
    array([0.  , 0.25, 0.25])
    """
    b = np.asarray(ratio, dtype=np.float64)
    if np.any(~(b > 0)):
        raise DataError(f"ratio={ratio!r} must be positive.")
    return race_total_variation(np.log(b))
