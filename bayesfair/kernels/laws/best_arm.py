r"""Which arm has the highest realised reward, exactly, for independent Bernoulli arms.

With :math:`N_{-i}` the number of successes among the other arms and ties split evenly,

.. math:: P^*(i) = m_i\, E[1/(1+N_{-i})] + \tfrac1k \prod_j (1-m_j), \qquad
          E[1/(1+N_{-i})] = \int_0^1 \prod_{j\ne i} (1-m_j+m_j x)\,dx .

The integrand is a polynomial of degree k-1: Gauss-Legendre is exact with ceil(k/2) nodes, and 24
nodes are enough for any number of arms (`kernels.tie_integral`). All nodes are positive, so the
product over all arms may be divided by one arm's factor; every term is positive and nothing
cancels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import tie_nodes, tie_reach

__all__ = ["bernoulli_best_arm", "bernoulli_best_of_copies"]


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _share(m, q, product, x):  # type: ignore[no-untyped-def]
    """Return the tie integral without one arm, from the weighted products of all."""
    total = 0.0
    for u in range(x.shape[0]):
        total += product[u] / (q + m * x[u])
    return total


@compiled()
def _bernoulli_rows(m, q, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_rows, k = m.shape
    n_nodes = nodes.shape[0]
    product, x = np.empty(n_nodes), np.empty(n_nodes)
    for t in range(n_rows):
        total = 0.0
        for i in range(k):
            total += m[t, i]
        reach = tie_reach(k, total)
        for u in range(n_nodes):
            x[u] = nodes[u] if reach == 1.0 else 1.0 - reach * (1.0 - nodes[u])
            product[u] = reach * weights[u]
        none = 1.0 / k
        for i in range(k):
            none *= q[t, i]  # where this underflows, ties at 0 do not count
            for u in range(n_nodes):
                product[u] *= q[t, i] + m[t, i] * x[u]
        for i in range(k):
            out[t, i] = m[t, i] * _share(m[t, i], q[t, i], product, x) + none


def bernoulli_best_arm(
    m: NDArray[np.float64], q: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return P*(i) for independent Bernoulli arms.

    Parameters
    ----------
    m : (..., k) array
        P(r_i = 1), in [0, 1].
    q : (..., k) array, optional
        1 - m; give it where m is close to 1 and q is known more precisely.

    Returns
    -------
    (..., k) array
        Probability of the highest realised reward, ties split evenly; sums to 1.
    """
    m = np.asarray(m, dtype=np.float64)
    q = 1.0 - m if q is None else np.asarray(q, dtype=np.float64)
    k = m.shape[-1]
    nodes, weights = tie_nodes(k)
    out = np.empty(m.shape)
    _bernoulli_rows(
        np.ascontiguousarray(m.reshape(-1, k)),
        np.ascontiguousarray(q.reshape(-1, k)),
        nodes,
        weights,
        out.reshape(-1, k),
    )
    return out


@compiled()
def _copied_rows(m, copies, first, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_rows, n = m.shape
    n_nodes = nodes.shape[0]
    product, x = np.empty(n_nodes), np.empty(n_nodes)
    for t in range(n_rows):
        total, k = 0.0, 0.0
        for i in range(n):
            many = 1.0 if i < first else copies[t, i - first]
            total += many * m[t, i]
            k += many
        reach = tie_reach(k, total)
        for u in range(n_nodes):
            x[u] = 1.0 - reach * (1.0 - nodes[u])
            product[u] = reach * weights[u]
        none = 1.0 / k
        for i in range(n):
            q = 1.0 - m[t, i]
            if i < first:
                none *= q
                for u in range(n_nodes):
                    product[u] *= q + m[t, i] * x[u]
            elif copies[t, i - first] > 0:
                none *= q ** copies[t, i - first]
                for u in range(n_nodes):
                    product[u] *= (q + m[t, i] * x[u]) ** copies[t, i - first]
        for i in range(n):
            out[t, i] = m[t, i] * _share(m[t, i], 1.0 - m[t, i], product, x) + none


def bernoulli_best_of_copies(
    m: NDArray[np.float64], copies: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return P* of one arm of each slot, where the last slots hold many arms with equal means.

    Parameters
    ----------
    m : (n, s) array
        P(r = 1) of the arms of every slot; the first of them hold one arm each.
    copies : (n, c) array
        Arms in the last ``c`` slots, 0 or more.

    Returns
    -------
    (n, s) array
        P*; times the number of arms in each slot it sums to 1.
    """
    out = np.empty(m.shape)
    first = m.shape[1] - copies.shape[1]
    k = first + int(copies[0].sum()) if len(copies) else first
    _copied_rows(m, copies, first, *tie_nodes(k), out)
    return out
