"""The largest excess over pairs in one round, from arms or slots in order of their mean reward."""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.stream_slots import INNER

__all__ = ["excess_of", "extremes", "raise_frontier"]


@compiled(**INNER)
def extremes(row, tops, bottoms):  # type: ignore[no-untyped-def]
    """Return the largest and the smallest of ``row``, without NaN, eight side by side."""
    k = row.shape[0]
    for d in range(8):
        tops[d], bottoms[d] = row[0], row[0]
    whole = k - k % 8
    for c in range(0, whole, 8):
        for d in range(8):
            x = row[c + d]
            tops[d] = x if x > tops[d] else tops[d]
            bottoms[d] = x if x < bottoms[d] else bottoms[d]
    high, low = tops[0], bottoms[0]
    for d in range(1, 8):
        high = tops[d] if tops[d] > high else high
        low = bottoms[d] if bottoms[d] < low else low
    for c in range(whole, k):
        high = row[c] if row[c] > high else high
        low = row[c] if row[c] < low else low
    return high, low


@compiled(**INNER)
def _sweep(pi, m, n, eps1):  # type: ignore[no-untyped-def]
    """Return the largest excess over pairs of the ``n`` arms, given in order of m."""
    upward = downward = -np.inf  # apart, so that they do not wait for each other
    low_u, high_v = np.inf, -np.inf
    for c in range(n):
        shift = eps1 * m[c]
        u, v = pi[c] - shift, pi[c] + shift
        up, down = u - low_u, high_v - v
        upward = up if up > upward else upward
        downward = down if down > downward else downward
        low_u = u if u < low_u else low_u
        high_v = v if v > high_v else high_v
    return upward if upward > downward else downward


@compiled(**INNER)
def _sweep_slots(high, low, many, m, n, eps1):  # type: ignore[no-untyped-def]
    """Return the same for ``n`` slots whose arms have the largest pi ``high``, the least ``low``.

    Two arms in one slot have equal rewards: their excess is the difference of the decisions.
    """
    top = -np.inf
    low_u, high_v = np.inf, -np.inf
    for c in range(n):
        shift = eps1 * m[c]
        up, down = high[c] - shift - low_u, high_v - low[c] - shift
        top = up if up > top else top
        top = down if down > top else top
        if many[c] and high[c] - low[c] > top:
            top = high[c] - low[c]
        low_u = low[c] - shift if low[c] - shift < low_u else low_u
        high_v = high[c] + shift if high[c] + shift > high_v else high_v
    return top


@compiled(**INNER)
def excess_of(alone, high, low, many, m, n, eps1):  # type: ignore[no-untyped-def]
    """Return the largest excess over pairs; ``alone``: every slot holds one arm, in ``high``."""
    if alone:
        return _sweep(high, m, n, eps1)
    return _sweep_slots(high, low, many, m, n, eps1)


@compiled(**INNER)
def raise_frontier(alone, high, low, many, m, n, spread, asked, at_asked, grid, frontier):  # type: ignore[no-untyped-def]
    """Raise ``frontier`` where this round exceeds it.

    A round's excess is convex and falls in eps1: between two values it lies below their chord,
    beyond the last one below that. Where this bound is below the frontier nothing is computed.
    """
    left, at_left = 0.0, spread
    slope = (at_asked - spread) / grid[asked] if asked > 0 else 0.0
    for e in range(grid.shape[0]):
        eps1 = grid[e]
        if e == asked:
            left, at_left, slope = eps1, at_asked, 0.0
            frontier[e] = max(frontier[e], at_asked)
        elif eps1 == 0.0:
            frontier[e] = max(frontier[e], spread)
        elif at_left + slope * (eps1 - left) > frontier[e]:
            at_left = excess_of(alone, high, low, many, m, n, eps1)
            left = eps1
            slope = (at_asked - at_left) / (grid[asked] - left) if e < asked else 0.0
            frontier[e] = max(frontier[e], at_left)
