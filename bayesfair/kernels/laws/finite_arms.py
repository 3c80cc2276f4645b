r"""Which arm has the highest realised reward, exactly, for independent arms with finite supports.

With :math:`f_j(v)=P(r_j=v)`, :math:`F_j(v^-)=P(r_j<v)` and ties split evenly,

.. math:: P^*(i) = \sum_v f_i(v) \int_0^1 \prod_{j\ne i} \bigl(F_j(v^-)+f_j(v)\,x\bigr)\,dx .

At level v the integrand has degree one less than the number of arms with mass there, so few
Gauss-Legendre nodes are exact (`kernels.tie_integral`). Factors can be 0: each arm is left out by
prefix and suffix products, never by division. Arms with equal laws are one factor to a power.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import FEW_ARMS, tie_reach, tie_rules

__all__ = ["arms_with_law", "finite_best_arm", "give_back", "levels_best_arm"]


@compiled()
def levels_best_arm(mass, below, copies, n_levels, sizes, nodes, weights, prefix, out):  # type: ignore[no-untyped-def]
    """Add P* of one round to `out`; `below` holds P(r_j < first level) and is updated.

    mass (k, >= n_levels), below (k,), copies (k,) how many arms have each law, prefix (k,)
    scratch, out (k,).
    """
    k = below.shape[0]
    for v in range(n_levels):
        tied, share = 0, 0.0
        possible = True
        for j in range(k):
            if mass[j, v] > 0.0:
                tied += copies[j]
                share += copies[j] * (mass[j, v] / (below[j] + mass[j, v]))
            elif below[j] == 0.0:
                possible = False  # arm j is surely above this level
        if tied and possible:
            size = sizes[min(tied, FEW_ARMS + 1)]
            reach = tie_reach(tied, share)
            for u in range(size):
                x = nodes[size, u] if reach == 1.0 else 1.0 - reach * (1.0 - nodes[size, u])
                product = 1.0
                for j in range(k):
                    prefix[j] = product
                    factor = below[j] + mass[j, v] * x
                    product *= factor if copies[j] == 1 else factor ** copies[j]
                product = reach * weights[size, u]
                for j in range(k - 1, -1, -1):
                    factor = below[j] + mass[j, v] * x
                    if copies[j] > 1:
                        product *= factor ** (copies[j] - 1)
                    if mass[j, v] > 0.0:
                        out[j] += mass[j, v] * prefix[j] * product
                    product *= factor
        if tied:
            for j in range(k):
                below[j] += mass[j, v]


@compiled()
def give_back(best, offered, out):  # type: ignore[no-untyped-def]
    """Write what was found of the arms on offer, in their order, to their places; else NaN."""
    n = 0
    for i in range(out.shape[0]):
        if offered[i] > 0:
            out[i] = best[n]
            n += 1
        else:
            out[i] = np.nan


@compiled()
def _finite_rows(pmf, offered, sizes, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_rows, k, n_levels = pmf.shape
    mass = np.empty((k, n_levels))
    below = np.empty(k)
    prefix = np.empty(k)
    best = np.empty(k)
    copies = np.empty(k, np.int64)
    step = offered.shape[0] > 1
    for t in range(n_rows):
        n = 0
        for i in range(k):
            copies[n] = offered[t * step, i]
            if copies[n] > 0:
                mass[n] = pmf[t, i]
                n += 1
        below[:n] = 0.0
        best[:n] = 0.0
        levels_best_arm(
            mass[:n], below[:n], copies[:n], n_levels, sizes, nodes, weights, prefix[:n], best[:n]
        )
        give_back(best, offered[t * step], out[t])


def arms_with_law(
    offered: NDArray[np.bool_] | NDArray[np.int64] | None, k: int
) -> NDArray[np.int64]:
    """Return how many arms have each law, (1 or T, k): one, unless told otherwise; 0 = none."""
    if offered is None:
        return np.ones((1, k), np.int64)
    return np.ascontiguousarray(offered, dtype=np.int64).reshape(-1, k)


def finite_best_arm(
    pmf: NDArray[np.float64], offered: NDArray[np.bool_] | NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return P*(i) for independent arms with a common finite support.

    Parameters
    ----------
    pmf : (..., k, L) array
        Probabilities of the L values in increasing order; equal values must share a level.
    offered : (..., k) array of bool or int, optional
        Arms on offer; the others take no part and get NaN. A number says how many arms have this
        law: P* is that of each of them.

    Returns
    -------
    (..., k) array
        Probability of the highest realised reward, ties split evenly; sums to 1.
    """
    *batch, k, n_levels = pmf.shape
    out = np.empty((*batch, k))
    _finite_rows(
        np.ascontiguousarray(pmf, dtype=np.float64).reshape(-1, k, n_levels),
        arms_with_law(offered, k),
        *tie_rules(),
        out.reshape(-1, k),
    )
    return out
