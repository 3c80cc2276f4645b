r"""Which arm has the highest realised reward, exactly, for independent arms with finite supports.

With :math:`f_j(v)=P(r_j=v)`, :math:`F_j(v^-)=P(r_j<v)` and ties split evenly,

.. math:: P^*(i) = \sum_v f_i(v) \int_0^1 \prod_{j\ne i} \bigl(F_j(v^-)+f_j(v)\,x\bigr)\,dx .

At level v the integrand has degree one less than the number of arms with mass there, so few
Gauss-Legendre nodes are exact. Factors can be 0: each arm is left out by prefix and suffix
products, never by division.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.quadrature import n_tie_nodes, unit_nodes

__all__ = ["finite_best_arm"]


@lru_cache(maxsize=32)
def tie_rules(k: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return, for 0..k tied arms, how many nodes to use, and all rules padded into two tables."""
    sizes = np.array([n_tie_nodes(max(n, 1)) for n in range(k + 1)], dtype=np.int64)
    largest = int(sizes.max())
    nodes, weights = np.zeros((largest + 1, largest)), np.zeros((largest + 1, largest))
    for size in np.unique(sizes):
        nodes[size, :size], weights[size, :size] = unit_nodes(int(size))
    for table in (sizes, nodes, weights):
        table.flags.writeable = False
    return sizes, nodes, weights


@compiled()
def levels_best_arm(mass, below, n_levels, sizes, nodes, weights, prefix, out):  # type: ignore[no-untyped-def]
    """Add P* of one round to `out`; `below` holds P(r_j < first level) and is updated.

    mass (k, >= n_levels), below (k,), prefix (k,) scratch, out (k,).
    """
    k = below.shape[0]
    for v in range(n_levels):
        tied = 0
        possible = True
        for j in range(k):
            if mass[j, v] > 0.0:
                tied += 1
            elif below[j] == 0.0:
                possible = False  # arm j is surely above this level
        if tied and possible:
            size = sizes[tied]
            for u in range(size):
                x = nodes[size, u]
                product = 1.0
                for j in range(k):
                    prefix[j] = product
                    product *= below[j] + mass[j, v] * x
                product = weights[size, u]
                for j in range(k - 1, -1, -1):
                    if mass[j, v] > 0.0:
                        out[j] += mass[j, v] * prefix[j] * product
                    product *= below[j] + mass[j, v] * x
        if tied:
            for j in range(k):
                below[j] += mass[j, v]


@compiled()
def _finite_rows(pmf, offered, masked, sizes, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_rows, k, n_levels = pmf.shape
    mass = np.empty((k, n_levels))
    below = np.empty(k)
    prefix = np.empty(k)
    best = np.empty(k)
    for t in range(n_rows):
        n = 0
        for i in range(k):
            if not masked or offered[t, i]:
                mass[n] = pmf[t, i]
                n += 1
        below[:n] = 0.0
        best[:n] = 0.0
        levels_best_arm(mass[:n], below[:n], n_levels, sizes, nodes, weights, prefix[:n], best[:n])
        n = 0
        for i in range(k):
            if not masked or offered[t, i]:
                out[t, i] = best[n]
                n += 1
            else:
                out[t, i] = np.nan


def finite_best_arm(
    pmf: NDArray[np.float64], offered: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return P*(i) for independent arms with a common finite support.

    Parameters
    ----------
    pmf : (..., k, L) array
        Probabilities of the L values in increasing order; equal values must share a level.
    offered : (..., k) array of bool, optional
        Arms on offer; the others take no part and get NaN.

    Returns
    -------
    (..., k) array
        Probability of the highest realised reward, ties split evenly; sums to 1.
    """
    *batch, k, n_levels = pmf.shape
    out = np.empty((*batch, k))
    masked = offered is not None
    mask = np.ones((1, k), dtype=bool) if offered is None else offered
    _finite_rows(
        np.ascontiguousarray(pmf, dtype=np.float64).reshape(-1, k, n_levels),
        np.ascontiguousarray(mask).reshape(-1, k),
        masked,
        *tie_rules(k),
        out.reshape(-1, k),
    )
    return out
