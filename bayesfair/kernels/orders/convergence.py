"""R-hat and effective sample sizes of many variables: rank-normalised, split, folded.

Definitions of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021, Bayesian Analysis 16,
667-718), as in ArviZ, with autocovariances computed lag by lag until they have died out: for a
thousand variables that mix well it is some twenty times faster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bayesfair.kernels.compiled import compiled

__all__ = ["convergence"]

_BLOCK = 256  # variables at a time; bounds the memory


@compiled(error_model="numpy")
def _scores(flat, order, table, scores):  # type: ignore[no-untyped-def]
    """Write the normal scores of ranks, tied values sharing their mean rank.

    `order` sorts `flat`; `table` holds the scores of ranks in steps of one half.
    """
    begin = 0
    while begin < len(flat):
        end = begin + 1
        while end < len(flat) and flat[order[end]] == flat[order[begin]]:
            end += 1
        for n in range(begin, end):
            scores[order[n]] = table[begin + end - 1]
        begin = end


@compiled(error_model="numpy")
def _r_hat(x):  # type: ignore[no-untyped-def]
    m, n = x.shape
    mean, within = np.empty(m), 0.0
    for c in range(m):
        mean[c] = x[c].mean()
        within += ((x[c] - mean[c]) ** 2).sum() / (n - 1) / m
    between = n * ((mean - mean.mean()) ** 2).sum() / (m - 1)
    return np.sqrt((between / within + n - 1) / n)


@compiled(error_model="numpy")
def _lag(x, t):  # type: ignore[no-untyped-def]
    """Return the mean over chains of the autocovariance at a lag; chains are centred."""
    m, n = x.shape
    total = 0.0
    for c in range(m):
        for i in range(n - t):
            total += x[c, i] * x[c, i + t]
    return total / (m * n)


@compiled(error_model="numpy")
def _effective(x):  # type: ignore[no-untyped-def]
    """Return the effective sample size by Geyer's initial monotone sequence."""
    m, n = x.shape
    mean = np.empty(m)
    centred = np.empty_like(x)
    for c in range(m):
        mean[c] = x[c].mean()
        centred[c] = x[c] - mean[c]
    own = _lag(centred, 0) * n / (n - 1.0)
    spread = own * (n - 1.0) / n + ((mean - mean.mean()) ** 2).sum() / (m - 1)
    rho = np.zeros(n)
    even, odd = 1.0, 1.0 - (own - _lag(centred, 1)) / spread
    rho[0], rho[1] = even, odd
    t = 1
    while t < n - 3 and even + odd > 0.0:
        even = 1.0 - (own - _lag(centred, t + 1)) / spread
        odd = 1.0 - (own - _lag(centred, t + 2)) / spread
        if even + odd >= 0.0:
            rho[t + 1], rho[t + 2] = even, odd
        t += 2
    last = t - 2
    if even > 0.0:
        rho[last + 1] = even
    t = 1
    while t <= last - 2:
        if rho[t + 1] + rho[t + 2] > rho[t - 1] + rho[t]:
            rho[t + 1] = (rho[t - 1] + rho[t]) / 2.0
            rho[t + 2] = rho[t + 1]
        t += 2
    tau = -1.0 + 2.0 * rho[: last + 1].sum() + rho[last + 1]
    return m * n / max(tau, 1.0 / np.log10(m * n))


@compiled(error_model="numpy")
def _measure(split, order, folded, folded_order, cuts, chains, table, found):  # type: ignore[no-untyped-def]
    """Fill `found`, ``(3, V)``, from split chains, ``(V, 2 m n)``, and what sorts them."""
    scores = np.empty(split.shape[1])
    below = np.empty(split.shape[1])
    for v in range(len(split)):
        _scores(folded[v], folded_order[v], table, scores)
        r_hat = _r_hat(scores.reshape(chains, -1))
        _scores(split[v], order[v], table, scores)
        shaped = scores.reshape(chains, -1)
        found[0, v] = max(r_hat, _r_hat(shaped))
        found[1, v] = _effective(shaped)
        found[2, v] = np.inf
        for q in range(2):
            for i in range(len(below)):
                below[i] = 1.0 if split[v, i] <= cuts[q, v] else 0.0
            found[2, v] = min(found[2, v], _effective(below.reshape(chains, -1)))


def convergence(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R-hat, bulk and tail effective sample size, ``(3, V)``.

    Parameters
    ----------
    draws : (V, chains, n) array
        At least two chains of four finite draws; NaN where there are fewer or a value is not
        finite.

    Examples
    --------
    >>> draws = np.random.default_rng(1).normal(size=(1, 4, 1000))
    >>> r_hat, bulk, tail = convergence(draws)
    >>> bool(r_hat < 1.01), bool(bulk > 3000), bool(tail > 3000)
    (True, True, True)
    """
    found = np.full((3, len(draws)), np.nan)
    _, m, n = draws.shape
    if m < 2 or n < 4:
        return found
    half = n // 2
    size = 2 * m * half
    rank = 1 + np.arange(2 * size - 1) / 2
    table = ndtri((rank - 0.375) / (size + 0.25))
    fit = np.flatnonzero(np.isfinite(draws).all(axis=(1, 2)))
    for begin in range(0, len(fit), _BLOCK):
        which = fit[begin : begin + _BLOCK]
        x = np.asarray(draws[which], dtype=np.float64)
        split = np.concatenate([x[:, :, :half], x[:, :, n - half :]], axis=1)
        split = split.reshape(len(which), size)
        folded = np.abs(split - np.median(split, axis=1, keepdims=True))
        cuts = np.quantile(x.reshape(len(which), -1), (0.05, 0.95), axis=1)
        part = np.empty((3, len(which)))
        _measure(split, split.argsort(), folded, folded.argsort(), cuts, 2 * m, table, part)
        found[:, which] = part
    return found
