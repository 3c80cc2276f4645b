r"""Which arm has the highest realised reward, exactly, for independent Bernoulli arms.

With :math:`N_{-i}` the number of successes among the other arms and ties split evenly,

.. math:: P^*(i) = m_i\, E[1/(1+N_{-i})] + \tfrac1k \prod_j (1-m_j), \qquad
          E[1/(1+N_{-i})] = \int_0^1 \prod_{j\ne i} (1-m_j+m_j x)\,dx .

The integrand is a polynomial of degree k-1: Gauss-Legendre is exact with ceil(k/2) nodes. All
nodes are positive, so the product over all arms may be divided by one arm's factor; every term is
positive and nothing cancels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.quadrature import n_tie_nodes, unit_nodes

__all__ = ["bernoulli_best_arm"]


@compiled()
def _bernoulli_rows(m, q, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_rows, k = m.shape
    n_nodes = nodes.shape[0]
    product = np.empty(n_nodes)
    for t in range(n_rows):
        # logarithm of the common factor: 3000 arms underflow a plain product
        log_none = 0.0
        for u in range(n_nodes):
            product[u] = 0.0
        for i in range(k):
            log_none += np.log(q[t, i])
            for u in range(n_nodes):
                product[u] += np.log(q[t, i] + m[t, i] * nodes[u])
        none = np.exp(log_none) / k
        for u in range(n_nodes):
            product[u] = np.exp(product[u]) * weights[u]
        for i in range(k):
            total = 0.0
            for u in range(n_nodes):
                total += product[u] / (q[t, i] + m[t, i] * nodes[u])
            out[t, i] = m[t, i] * total + none


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
    nodes, weights = unit_nodes(n_tie_nodes(k))
    out = np.empty(m.shape)
    _bernoulli_rows(
        np.ascontiguousarray(m.reshape(-1, k)),
        np.ascontiguousarray(q.reshape(-1, k)),
        nodes,
        weights,
        out.reshape(-1, k),
    )
    return out
