r"""Divergences of Poisson and negative binomial laws, for all pairs of each row.

Poisson: closed forms (Jensen-Shannon is a sum). Negative binomial: sums of non-negative terms over
the levels that carry mass; chi2 follows the terms :math:`p^2/q`, which decay more slowly, to their
own end. Pairs whose parameters equal those of the row before are copied.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.count_laws import log_masses, ratio_up, window_of
from bayesfair.kernels.laws.divergences import (
    CHI2,
    HELLINGER,
    KL,
    WASSERSTEIN,
    divergence_code,
    log_mass_term,
)

__all__ = ["count_divergence", "poisson_divergence"]

_TAIL = 1e-19
_MOST_TERMS = 100_000_000


@compiled()
def _chi2_tail(v, l1, l2, laws, total):  # type: ignore[no-untyped-def]
    """Return the chi2 terms from level v upwards, to the end of p^2/q."""
    mean1, size1, mean2, size2 = laws
    limit = (mean1 / (mean1 + size1)) ** 2 / (mean2 / (mean2 + size2))
    # (v + r1)^2 / ((v + 1)(v + r2)) turns at most once, here
    turn = 0.0
    slope = 1.0 + size2 - 2.0 * size1
    if slope != 0.0:
        turn = (size1 * (1.0 + size2) - 2.0 * size2) / slope
    peak = 0.0
    if turn > 0.0:
        peak = ratio_up(turn, mean1, size1) ** 2 / ratio_up(turn, mean2, size2)
    added = 0.0
    for _ in range(_MOST_TERMS):
        term = log_mass_term(l1, l2, CHI2)
        added += term
        up1, up2 = ratio_up(v, mean1, size1), ratio_up(v, mean2, size2)
        bound = max(up1 * up1 / up2, limit, up1, up2)
        if v < turn:
            bound = max(bound, peak)
        if bound < 1.0 and term < 1e-17 * (total + added) * (1.0 - bound) and l1 < -40.0:
            break
        l1 += math.log(up1)
        l2 += math.log(up2)
        v += 1
        if added == np.inf:
            break
    return added


@compiled()
def _pair(laws, windows, code, scratch1, scratch2):  # type: ignore[no-untyped-def]
    mean1, size1, mean2, size2 = laws
    window1, window2 = windows
    start = min(window1[1], window2[1])
    n = max(window1[2], window2[2]) - start + 1
    first, second = scratch1[:n], scratch2[:n]
    log_masses(mean1, size1, window1, start, first)
    log_masses(mean2, size2, window2, start, second)
    total = 0.0
    if code == WASSERSTEIN:
        ahead = 0.0
        # sums from the nearer end: the difference of the distribution functions is small there
        middle = min(n - 1, max(int(0.5 * (mean1 + mean2)) - start, 0))
        for v in range(middle):
            ahead += math.exp(first[v]) - math.exp(second[v])
            total += abs(ahead)
        ahead = 0.0
        for v in range(n - 1, middle, -1):
            ahead += math.exp(first[v]) - math.exp(second[v])
            total += abs(ahead)
        return total
    for v in range(n - 1 if code == CHI2 else n):
        total += log_mass_term(first[v], second[v], code)
    if code == CHI2:
        total += _chi2_tail(start + n - 1, first[n - 1], second[n - 1], laws, total)
    return math.sqrt(min(total, 1.0)) if code == HELLINGER else total


@compiled()
def _chi2_is_infinite(mean1, size1, mean2, size2):  # type: ignore[no-untyped-def]
    q1, q2 = mean1 / (mean1 + size1), mean2 / (mean2 + size2)
    if q1 * q1 == q2:
        return size2 <= 2.0 * size1
    return q1 * q1 > q2


@compiled()
def _rows(mean, size, code, out):  # type: ignore[no-untyped-def]
    n_rows, k = mean.shape
    same = np.zeros(k, dtype=np.bool_)
    windows = [(0, 0, 0, 0.0) for _ in range(k)]
    scratch1, scratch2 = np.empty(64), np.empty(64)
    ordered = code in (KL, CHI2)
    for t in range(n_rows):
        low, high = 1 << 62, 0
        for i in range(k):
            same[i] = t > 0 and mean[t, i] == mean[t - 1, i] and size[t, i] == size[t - 1, i]
            if not same[i]:
                windows[i] = window_of(mean[t, i], size[t, i], _TAIL)
            low, high = min(low, windows[i][1]), max(high, windows[i][2])
        if high - low + 1 > scratch1.shape[0]:
            scratch1, scratch2 = np.empty(2 * (high - low + 1)), np.empty(2 * (high - low + 1))
        for i in range(k):
            for j in range(k):
                if j < i and not ordered:
                    out[t, i, j] = out[t, j, i]
                    continue
                if same[i] and same[j]:
                    out[t, i, j] = out[t - 1, i, j]
                    continue
                laws = (mean[t, i], size[t, i], mean[t, j], size[t, j])
                if i == j or (laws[0] == laws[2] and (laws[1] == laws[3] or laws[0] == 0.0)):
                    out[t, i, j] = 0.0
                elif laws[2] == 0.0 and ordered:
                    out[t, i, j] = np.inf  # the second law allows 0 only
                elif (
                    code == CHI2
                    and laws[0] > 0.0
                    and _chi2_is_infinite(laws[0], laws[1], laws[2], laws[3])
                ):
                    out[t, i, j] = np.inf
                elif code == CHI2 and laws[0] == 0.0:
                    # p is 1 at level 0: chi2 = 1/q(0) - 1
                    log_q = -laws[3] * math.log1p(laws[2] / laws[3])
                    out[t, i, j] = math.expm1(-log_q) if log_q > -709.0 else np.inf
                else:
                    pair = (windows[i], windows[j])
                    out[t, i, j] = _pair(laws, pair, code, scratch1, scratch2)


def count_divergence(
    mean: NDArray[np.float64], size: NDArray[np.float64], name: str
) -> NDArray[np.float64]:
    """Return the divergence of all ordered pairs of negative binomial arms.

    Parameters
    ----------
    mean, size : (..., k) arrays
        Mean >= 0 and size > 0, finite; size inf (Poisson) for all divergences but chi2.
    name : str
        One of `bayesfair.kernels.laws.divergences.DIVERGENCES`.

    Returns
    -------
    (..., k, k) array
        To relative 1e-8. Infinite: kl and chi2 where arm j pays 0 only and arm i does not; chi2
        where q_i^2 > q_j, q = mean/(mean + size), or equal and size_j <= 2 size_i.
    """
    k = mean.shape[-1]
    out = np.empty((*mean.shape, k))
    _rows(
        np.ascontiguousarray(mean).reshape(-1, k),
        np.ascontiguousarray(size).reshape(-1, k),
        divergence_code(name),
        out.reshape(-1, k, k),
    )
    return out


def poisson_divergence(rate: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return the divergence of all ordered pairs of Poisson arms; rate (..., k) >= 0.

    Infinite: kl and chi2 where arm j has rate 0 and arm i has not.
    """
    a, b = rate[..., :, None], rate[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if name == "wasserstein":
            return np.asarray(np.abs(a - b))  # one is stochastically larger
        if name == "hellinger":
            return np.asarray(np.sqrt(-np.expm1(-0.5 * (np.sqrt(a) - np.sqrt(b)) ** 2)))
        if name == "kl":
            u = (a - b) / b
            # b ((1 + u) log(1 + u) - u), which cancels for small u
            small = b * u * u * _entropy_series(np.where(np.abs(u) < 0.1, u, 0.0))
            value = np.where(np.abs(u) < 0.1, small, a * np.log(a / b) - a + b)
            value = np.where(a == 0, np.broadcast_to(b, value.shape), value)
            return np.where(a == b, 0.0, np.where(b == 0, np.inf, value))
        if name == "chi2":
            value = np.expm1((a - b) ** 2 / b)
            return np.where(a == b, 0.0, np.where(b == 0, np.inf, value))
        if name == "total_variation":
            high, low = np.maximum(a, b), np.minimum(a, b)
            # the masses cross once; up to there the smaller rate has more
            level = np.floor((high - low) / np.log(high / low))
            level = np.where(low == 0, 0.0, level)
            value = special.pdtr(level, low) - special.pdtr(level, high)
            return np.where(a == b, 0.0, np.clip(value, 0.0, 1.0))
    return count_divergence(rate, np.full(rate.shape, np.inf), name)


def _entropy_series(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ((1 + u) log(1 + u) - u) / u^2 for |u| < 0.1."""
    total = np.zeros_like(u)
    for n in range(17, 1, -1):
        total = 1.0 / (n * (n - 1)) - u * total
    return total
