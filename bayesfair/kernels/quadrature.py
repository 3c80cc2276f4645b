"""Gauss-Legendre nodes on [0, 1], cached per size."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["n_tie_nodes", "unit_nodes"]


@lru_cache(maxsize=64)
def unit_nodes(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``n`` nodes and weights on [0, 1]; exact for polynomials of degree 2n - 1."""
    x, w = np.polynomial.legendre.leggauss(n)
    nodes, weights = 0.5 * (x + 1.0), 0.5 * w
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache(maxsize=1024)
def n_tie_nodes(k: int) -> int:
    """Return the nodes for the tie integral of ``k`` arms.

    The integrand has degree k - 1, so ceil(k/2) nodes are exact. Fewer do: all its factors lie in
    [0, 1] and grow in x, so its derivative of order 2n divided by (2n)! is at most C(k - 1, 2n) and
    the error of n nodes at most that times (n!)^4 / ((2n + 1) ((2n)!)^2). As many nodes are taken
    as bring this bound below rounding (1e-16): 30 for 80 arms. Above some 200 arms the bound is
    far too pessimistic: max(64, ceil(4 sqrt(k))) keep the error of the sum below 1e-9 up to
    k = 3000 and beyond, at a cost of k^1.5.
    """
    exact = max(1, math.ceil(k / 2))
    most = min(exact, max(64, math.ceil(4 * math.sqrt(k))))
    log = math.lgamma
    for n in range(1, most):
        gauss = 4 * log(n + 1) - math.log(2 * n + 1) - 2 * log(2 * n + 1)
        choices = log(k) - log(2 * n + 1) - log(k - 2 * n)
        if gauss + choices < math.log(1e-16):
            return n
    return most
