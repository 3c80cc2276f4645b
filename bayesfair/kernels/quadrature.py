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


def n_tie_nodes(k: int) -> int:
    """Return the nodes for the tie integral of ``k`` arms.

    The integrand has degree k - 1, so ceil(k/2) nodes are exact. Above 128 arms that many are not
    needed: max(64, ceil(4 sqrt(k))) keep the error of the sum below 1e-9 up to k = 3000 and
    beyond, at a cost of k^1.5.
    """
    return max(1, min(math.ceil(k / 2), max(64, math.ceil(4 * math.sqrt(k)))))
