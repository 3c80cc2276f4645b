r"""Plackett-Luce log-likelihood of chains of choice sets, its gradient and its curvature.

With s_p the sum of worths from position p to the end of its chain,

.. math:: \log L = \sum_i c_i \lambda_i - \sum_p m_p \log s_p,

which is concave in the log-worths. One pass over a chain gives the value, the gradient, or a
product with the Hessian; the Hessian itself needs the square of a chain's length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.orders.plackett_luce_stages import Chains

__all__ = [
    "information",
    "information_diagonal",
    "information_product",
    "log_likelihood",
    "log_likelihood_draws",
    "value_gradient",
]


@compiled(error_model="numpy")
def _value_gradient(item, weight, start, worth, gradient):  # type: ignore[no-untyped-def]
    value = 0.0
    suffix = np.empty(len(item))
    for s in range(len(start) - 1):
        total = 0.0
        for p in range(start[s + 1] - 1, start[s] - 1, -1):
            total += worth[item[p]]
            suffix[p] = total
            if weight[p] > 0.0:
                value -= weight[p] * np.log(total)
        pull = 0.0
        for p in range(start[s], start[s + 1]):
            if weight[p] > 0.0:
                pull += weight[p] / suffix[p]
            gradient[item[p]] -= worth[item[p]] * pull
    return value


def value_gradient(
    chains: Chains, log_worth: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the log-likelihood and its gradient in the log-worths, ``(k,)``.

    Examples
    --------
    >>> from bayesfair.kernels.orders.plackett_luce_stages import chains_of_pairs
    >>> a, b = np.array([0, 1], dtype=np.int32), np.array([1, 0], dtype=np.int32)
    >>> duels = chains_of_pairs(a, b, np.array([3.0, 1.0]), 2)
    >>> value, gradient = value_gradient(duels, np.log([3.0, 1.0]))
    >>> round(value, 6), gradient.round(12) + 0.0
    (-2.249341, array([0., 0.]))
    """
    # the sets' totals are sums of positive terms; taking out the largest keeps them finite
    top = float(log_worth.max())
    gradient = chains.wins.copy()
    value = _value_gradient(
        chains.item, chains.weight, chains.start, np.exp(log_worth - top), gradient
    )
    shift = float(chains.wins @ (log_worth - top))
    gauge = top * float(chains.wins.sum() - chains.weight.sum())  # 0 up to one-item sets
    return float(value) + shift + gauge, gradient


def log_likelihood(chains: Chains, log_worth: NDArray[np.float64]) -> float:
    """Return the exact log-likelihood of log-worths, ``(k,)``."""
    return value_gradient(chains, log_worth)[0]


@compiled(error_model="numpy")
def _information(item, weight, start, worth, table):  # type: ignore[no-untyped-def]
    n = 0
    for s in range(len(start) - 1):
        n = max(n, start[s + 1] - start[s])
    first = np.empty(n)  # sum of weight / suffix up to a position
    second = np.empty(n)  # sum of weight / suffix^2
    for s in range(len(start) - 1):
        begin, end = start[s], start[s + 1]
        total = 0.0
        for p in range(end - 1, begin - 1, -1):
            total += worth[item[p]]
            first[p - begin] = total
        a = 0.0
        b = 0.0
        for p in range(begin, end):
            if weight[p] > 0.0:
                share = weight[p] / first[p - begin]
                b += share / first[p - begin]
                a += share
            first[p - begin] = a
            second[p - begin] = b
        for p in range(begin, end):
            i = item[p]
            w = worth[i]
            table[i, i] += w * first[p - begin] - w * w * second[p - begin]
            pull = w * second[p - begin]
            for q in range(p + 1, end):
                j = item[q]
                cross = pull * worth[j]
                table[i, j] -= cross
                table[j, i] -= cross


def information(chains: Chains, log_worth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus the Hessian, ``(k, k)``; its rows sum to zero."""
    table = np.zeros((chains.n_items, chains.n_items))
    worth = np.exp(log_worth - log_worth.max())
    _information(chains.item, chains.weight, chains.start, worth, table)
    return table


@compiled(error_model="numpy")
def _information_product(item, weight, start, worth, vectors, out):  # type: ignore[no-untyped-def]
    m = vectors.shape[1]
    n = 0
    for s in range(len(start) - 1):
        n = max(n, start[s + 1] - start[s])
    suffix = np.empty(n)
    moment = np.empty((n, m))
    run = np.empty(m)
    for s in range(len(start) - 1):
        begin, end = start[s], start[s + 1]
        total = 0.0
        run[:] = 0.0
        for p in range(end - 1, begin - 1, -1):
            w = worth[item[p]]
            total += w
            suffix[p - begin] = total
            for c in range(m):
                run[c] += w * vectors[item[p], c]
                moment[p - begin, c] = run[c]
        pull = 0.0
        run[:] = 0.0
        for p in range(begin, end):
            if weight[p] > 0.0:
                share = weight[p] / suffix[p - begin]
                pull += share
                for c in range(m):
                    run[c] += share / suffix[p - begin] * moment[p - begin, c]
            w = worth[item[p]]
            for c in range(m):
                out[item[p], c] += w * (pull * vectors[item[p], c] - run[c])


def information_product(
    chains: Chains, log_worth: NDArray[np.float64], vectors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return minus the Hessian times the columns of `vectors`, ``(k, m)``, without forming it."""
    out = np.zeros_like(vectors)
    worth = np.exp(log_worth - log_worth.max())
    _information_product(chains.item, chains.weight, chains.start, worth, vectors, out)
    return out


@compiled(error_model="numpy")
def _information_diagonal(item, weight, start, worth, out):  # type: ignore[no-untyped-def]
    suffix = np.empty(len(item))
    for s in range(len(start) - 1):
        total = 0.0
        for p in range(start[s + 1] - 1, start[s] - 1, -1):
            total += worth[item[p]]
            suffix[p] = total
        first = 0.0
        second = 0.0
        for p in range(start[s], start[s + 1]):
            if weight[p] > 0.0:
                first += weight[p] / suffix[p]
                second += weight[p] / suffix[p] / suffix[p]
            w = worth[item[p]]
            out[item[p]] += w * first - w * w * second


def information_diagonal(chains: Chains, log_worth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the diagonal of minus the Hessian, ``(k,)``."""
    out = np.zeros(chains.n_items)
    worth = np.exp(log_worth - log_worth.max())
    _information_diagonal(chains.item, chains.weight, chains.start, worth, out)
    return out


def log_likelihood_draws(
    chains: Chains, log_worth: NDArray[np.float64], *, block: int = 512
) -> NDArray[np.float64]:
    """Return the log-likelihood of many draws at once.

    Parameters
    ----------
    chains : Chains
    log_worth : (n, k) array
    block : int
        Draws per pass; bounds the memory.

    Returns
    -------
    (n,) array

    Notes
    -----
    From the last position of all chains to the first, each step adds one item's worths to the
    running totals of all chains that are long enough; logarithms are taken in bulk.
    """
    length = np.diff(chains.start)
    order = np.argsort(-length, kind="stable")
    start, length = chains.start[:-1][order], length[order]
    value = log_worth @ chains.wins
    if not length.size:
        return value
    top = log_worth.max(axis=1)
    value -= top * chains.weight.sum()
    width = max(1, min(len(order), (1 << 16) // min(block, len(log_worth))))
    for begin in range(0, len(log_worth), block):
        part = slice(begin, begin + block)
        worth = np.exp((log_worth[part] - top[part, None]).T)  # (k, draws): rows are gathered whole
        for low in range(0, len(order), width):
            starts, lengths = start[low : low + width], length[low : low + width]
            totals = np.zeros((len(starts), worth.shape[1]))
            for t in range(int(lengths[0])):
                active = int(np.searchsorted(-lengths, -t, side="left"))
                at = starts[:active] + lengths[:active] - 1 - t
                totals[:active] += worth[chains.item[at]]
                weight = chains.weight[at]
                used = np.flatnonzero(weight)
                if used.size == active:
                    value[part] -= weight @ np.log(totals[:active])
                elif used.size:
                    value[part] -= weight[used] @ np.log(totals[used])
    return value
