r"""Which arm has the highest realised reward, exactly, for independent Bernoulli arms.

With :math:`N_{-i}` the number of successes among the other arms and ties split evenly,

.. math:: P^*(i) = m_i\, E[1/(1+N_{-i})] + \tfrac1k \prod_j (1-m_j), \qquad
          E[1/(1+N_{-i})] = \int_0^1 \prod_{j\ne i} (1-m_j+m_j x)\,dx .

The integrand is a polynomial of degree k-1: Gauss-Legendre is exact with ceil(k/2) nodes. All
nodes are positive, so the product over all arms may be divided by one arm's factor; every term is
positive and nothing cancels.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesfair.kernels.quadrature import n_tie_nodes, unit_nodes

__all__ = ["bernoulli_best_arm", "beta_best_mean"]


@numba.njit(cache=True, nogil=True)
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


def beta_best_mean(alpha: ArrayLike, beta: ArrayLike) -> NDArray[np.float64]:
    """Return P(theta_i is the largest mean) for independent Beta posteriors.

    This is Thompson sampling's selection probability. It is not P*, which compares realised
    rewards.

    Parameters
    ----------
    alpha, beta : (k,) array
        Beta parameters, > 0.

    Returns
    -------
    (k,) array
        Sums to 1 within about 1e-10.
    """
    a = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    b = np.atleast_1d(np.asarray(beta, dtype=np.float64))
    k = a.size
    if k == 1:
        return np.ones(1)
    # Integrate over arm i's own quantile scale would need k rules; one composite rule in
    # x = theta, with break points at every arm's quantiles, serves all arms at once.
    levels = special.ndtr(
        np.array([-8.5, -7, -5.5, -4.25, -3, -2, -1, 0, 1, 2, 3, 4.25, 5.5, 7, 8.5])
    )
    unique = np.unique(np.stack([a, b], axis=1), axis=0)
    lower = special.betaincinv(unique[:, :1], unique[:, 1:], levels[None, :8])
    upper = 1 - special.betaincinv(unique[:, 1:], unique[:, :1], 1 - levels[None, 8:])
    # the substitution x = sin^2(s) removes the poles of Beta(1/2, 1/2) at both ends
    s = np.arcsin(np.sqrt(np.clip(np.concatenate([lower, upper], axis=1), 0, 1)))
    edges = np.unique(np.concatenate([[0.0], s.ravel(), [np.pi / 2]]))
    keep = np.concatenate([[True], np.diff(edges) > 1e-13])
    edges = edges[keep]
    nodes, weights = unit_nodes(16)
    width = np.diff(edges)
    points = (edges[:-1, None] + width[:, None] * nodes).ravel()
    weight = (width[:, None] * weights).ravel()
    sin2, cos2 = np.sin(points) ** 2, np.cos(points) ** 2
    log_sin2, log_cos2 = np.log(sin2), np.log(cos2)
    log_jacobian = np.log(2) + 0.5 * (log_sin2 + log_cos2)
    cdf = special.betainc(a[:, None], b[:, None], sin2[None, :])
    log_cdf = np.log(np.maximum(cdf, 1e-320))
    log_pdf = (
        (a[:, None] - 1) * log_sin2
        + (b[:, None] - 1) * log_cos2
        - special.betaln(a, b)[:, None]
        + log_jacobian
    )
    others = log_cdf.sum(axis=0)[None, :] - log_cdf
    return np.asarray(np.exp(log_pdf + others) @ weight)
