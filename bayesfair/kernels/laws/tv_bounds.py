r"""Bounds on total variation from the Kullback-Leibler divergence (nats)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bayesfair.typing import Floats

__all__ = ["bretagnolle_huber", "pinsker", "tv_bound_from_kl"]


def pinsker(kl: ArrayLike) -> Floats:
    r"""Return Pinsker's bound :math:`TV \le \sqrt{KL/2}`.

    Proved; says nothing once KL exceeds 2.

    Examples
    --------
    >>> pinsker(0.02)
    array(0.1)
    """
    return np.asarray(np.sqrt(np.asarray(kl, dtype=np.float64) / 2))


def bretagnolle_huber(kl: ArrayLike) -> Floats:
    r"""Return the bound of Bretagnolle and Huber, :math:`TV \le \sqrt{1 - e^{-KL}}`.

    Proved; below 1 for every finite KL.

    Examples
    --------
    >>> bretagnolle_huber(np.log(4)).round(4)
    np.float64(0.866)
    """
    return np.asarray(np.sqrt(-np.expm1(-np.asarray(kl, dtype=np.float64))))


def tv_bound_from_kl(kl: ArrayLike) -> Floats:
    r"""Return the smaller of `pinsker` and `bretagnolle_huber`, at most 1.

    With the paper's theorem: :math:`|\pi_i - \pi_j| \le 2d - d^2` at d = this bound, so TV on
    decisions and KL on rewards. Proved.

    Examples
    --------
    >>> tv_bound_from_kl([0.02, 5.0]).round(4)
    array([0.1   , 0.9966])
    """
    return np.minimum(pinsker(kl), bretagnolle_huber(kl))
