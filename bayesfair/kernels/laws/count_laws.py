r"""Poisson and negative binomial laws as levels: masses by recursion from the mode, truncated.

A count law here is a pair (mean mu, size r); r = inf is Poisson. One level up the mass changes by
the factor q (v + r)/(v + 1), q = mu/(mu + r) (Poisson: mu/(v + 1)); no gamma function is needed,
and the masses are normalised by their own sum. Levels whose joint tail is below 1e-17 are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.finite_arms import arms_with_law, give_back, levels_best_arm
from bayesfair.kernels.laws.quadrature import require_sum_of_one
from bayesfair.kernels.laws.tie_integral import tie_rules

__all__ = ["count_best_arm", "levels_needed"]

_TAIL = 1e-17


@compiled()
def ratio_up(v, mean, size):  # type: ignore[no-untyped-def]
    """Return mass(v + 1) / mass(v)."""
    if size == np.inf:
        return mean / (v + 1.0)
    return mean / (mean + size) * ((v + size) / (v + 1.0))


@compiled()
def mode_of(mean, size):  # type: ignore[no-untyped-def]
    """Return a level of largest mass."""
    if size == np.inf:
        return int(mean)
    return int(max((size - 1.0) * (mean / size), 0.0))


@compiled()
def window_of(mean, size, tail):  # type: ignore[no-untyped-def]
    """Return (mode, lowest, highest level that count, sum of masses relative to the mode's)."""
    mode = mode_of(mean, size)
    total = 1.0
    term = 1.0
    low = mode
    while low > 0:
        ratio = 1.0 / ratio_up(low - 1, mean, size)
        term *= ratio
        # further down the ratios only shrink
        if ratio < 1.0 and term < tail * total * (1.0 - ratio):
            break
        total += term
        low -= 1
    last = 0.0 if size == np.inf else mean / (mean + size)
    term = 1.0
    high = mode
    while True:
        ratio = ratio_up(high, mean, size)
        term *= ratio
        bound = max(ratio, last)
        if term == 0.0 or (bound < 1.0 and term < tail * total * (1.0 - bound)):
            break
        total += term
        high += 1
    return mode, low, high, total


@compiled()
def _fill(mean, size, window, start, mass):  # type: ignore[no-untyped-def]
    """Fill the masses of the levels from `start` on; return P(level < start)."""
    mode, low, high, total = window
    for v in range(mass.shape[0]):
        mass[v] = 0.0
    below = 0.0
    term = 1.0 / total
    if mode >= start:
        mass[mode - start] = term
    else:
        below += term
    for v in range(mode, high):
        term *= ratio_up(v, mean, size)
        if v + 1 >= start:
            mass[v + 1 - start] = term
        else:
            below += term
    term = 1.0 / total
    for v in range(mode - 1, low - 1, -1):
        term /= ratio_up(v, mean, size)
        if v >= start:
            mass[v - start] = term
        else:
            below += term
    return below


@compiled()
def _rows(mean, size, offered, sizes, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_rows, k_all = mean.shape
    mass = np.empty((k_all, 64))
    below, prefix, best = np.empty(k_all), np.empty(k_all), np.empty(k_all)
    copies, step = np.empty(k_all, np.int64), offered.shape[0] > 1
    windows = [(0, 0, 0, 0.0) for _ in range(k_all)]
    for t in range(n_rows):
        k = 0
        start, stop = 0, 0
        for i in range(k_all):
            if offered[t * step, i] > 0:
                windows[k] = window_of(mean[t, i], size[t, i], _TAIL)
                # below the highest of the lowest levels one arm is surely above
                start = max(start, windows[k][1])
                stop = max(stop, windows[k][2])
                k += 1
        n_levels = max(stop - start + 1, 1)
        if n_levels > mass.shape[1]:
            mass = np.empty((k_all, 2 * n_levels))
        k = 0
        for i in range(k_all):
            if offered[t * step, i] > 0:
                copies[k] = offered[t * step, i]
                row = mass[k, :n_levels]
                below[k] = _fill(mean[t, i], size[t, i], windows[k], start, row)
                best[k] = 0.0
                k += 1
        levels_best_arm(
            mass[:k], below[:k], copies[:k], n_levels, sizes, nodes, weights, prefix[:k], best[:k]
        )
        give_back(best, offered[t * step], out[t])


@compiled()
def log_masses(mean, size, window, start, out):  # type: ignore[no-untyped-def]
    """Fill the logs of the masses of the levels from `start` on, far tails included."""
    mode, _, _, total = window
    n = out.shape[0]
    log = -math.log(total)
    for v in range(mode, start + n):
        if v >= start:
            out[v - start] = log
        log += math.log(ratio_up(v, mean, size)) if mean > 0.0 else -np.inf
    log = -math.log(total)
    for v in range(mode - 1, start - 1, -1):
        log -= math.log(ratio_up(v, mean, size))
        if v < start + n:
            out[v - start] = log


def levels_needed(mean: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return about how many levels the law of each arm occupies."""
    with np.errstate(over="ignore"):
        sd = np.sqrt(mean + mean * (mean / size))
        tail = 40.0 * (1.0 + mean / size)
    return np.asarray(np.minimum(mean, 9 * sd) + 9 * sd + tail)


def count_best_arm(
    mean: NDArray[np.float64],
    size: NDArray[np.float64],
    offered: NDArray[np.bool_] | NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return P*(i) for independent negative binomial arms, Poisson where size is inf.

    Parameters
    ----------
    mean, size : (..., k) arrays
        Mean >= 0 and size > 0 (variance mean + mean^2 / size).
    offered : (..., k) array of bool or int, optional
        Arms on offer, or how many arms have this law; see `finite_best_arm`.

    Returns
    -------
    (..., k) array
        Ties split evenly; sums to 1. Truncation leaves out less than 1e-15.

    Raises
    ------
    ConvergenceError
        If a sum misses 1 by more than 1e-9.
    """
    k = mean.shape[-1]
    out = np.empty(mean.shape)
    _rows(
        np.ascontiguousarray(mean).reshape(-1, k),
        np.ascontiguousarray(size).reshape(-1, k),
        arms_with_law(offered, k),
        *tie_rules(),
        out.reshape(-1, k),
    )
    return require_sum_of_one(out, "which count is the highest", offered)
