r"""Which arm has the highest realised reward, for independent normal and Student-t arms.

.. math:: P^*(i) = \int f_i(x) \prod_{j\ne i} F_j(x)\,dx

by composite Gauss-Legendre quadrature for all arms at once. Panels march from left to right, each
as long as the narrowest arm nearby allows: a few scale units close to an arm, growing
geometrically in its tail, so that scales may differ by many orders of magnitude. Within a panel
the distribution functions come from the densities, by integrating the interpolating polynomial.
The last stretch is analytic. P* sums to 1 only if every panel is resolved: a sum that is off
halves the panels and tries again.

A degree of freedom of inf is a normal arm.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.finite_arms import arms_with_law, give_back
from bayesfair.kernels.laws.quadrature import require_sum_of_one, unit_nodes

__all__ = ["LOWEST_DF", "location_scale_best_arm"]

LOWEST_DF = 0.05
"""Below this the tails exceed the range of double precision (1e-6 quantiles beyond 1e120)."""

N_NODES = 16
_LOG_2PI = math.log(2 * math.pi)
_LEFT = 1e-13  # P(all rewards lie below the first panel)
_RIGHT = 1e-6  # sum over arms of P(reward lies above the last panel); its square is neglected
_OFF = 2e-11  # a sum further from 1 than this means unresolved panels
_NEGLIGIBLE = 1e-18
_MOST_WHOLE = 4096  # a power of so much by squaring is right to 1e-12


@lru_cache(maxsize=1)
def panel_rule() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights on [0, 1], and the matrix that integrates from 0 to each node.

    Its row v holds what the value at node v adds to each of these integrals.
    """
    nodes, weights = unit_nodes(N_NODES)
    x = 2 * nodes - 1
    legendre = np.polynomial.legendre.legvander(x, N_NODES)  # (node, degree)
    degree = np.arange(1, N_NODES)
    integral = np.empty((N_NODES, N_NODES))
    integral[:, 0] = x + 1
    integral[:, 1:] = (legendre[:, 2:] - legendre[:, :-2]) / (2 * degree + 1)
    coefficient = (2 * np.arange(N_NODES) + 1)[:, None] * legendre[:, :-1].T * weights
    cumulative = np.ascontiguousarray((0.5 * integral @ coefficient).T)
    cumulative.flags.writeable = False
    return nodes, weights, cumulative


@compiled()
def log_constant(df):  # type: ignore[no-untyped-def]
    """Return the log of the standard density at 0."""
    if df == np.inf:
        return -0.5 * _LOG_2PI
    x = 0.5 * df
    if x < 15.0:
        return math.lgamma(x + 0.5) - math.lgamma(x) - 0.5 * math.log(df * math.pi)
    # log of Gamma(x + 1/2) / (Gamma(x) sqrt(x)): lgamma itself would cancel
    y = 1.0 / (x * x)
    ratio = (-1 / 8 + y * (1 / 192 + y * (-1 / 640 + y * (17 / 14336 - y * 31 / 18432)))) / x
    return ratio - 0.5 * _LOG_2PI


@compiled()
def log_shape(z, df):  # type: ignore[no-untyped-def]
    """Return the log of the standard density relative to its value at 0."""
    if df == np.inf:
        return -0.5 * z * z
    return -0.5 * (df + 1.0) * math.log1p(z * z / df)


@compiled(error_model="numpy")
def _student_line(front, offset, step, nodes, df, power, line):  # type: ignore[no-untyped-def]
    """Write front (1 + z^2/df)^(-(df + 1)/2) at z = offset + step node; return the largest.

    Of a whole df by squaring, many nodes at once: a logarithm and an exponential cost as much as
    twenty products.
    """
    n, largest = nodes.shape[0], 0.0
    whole = int(min(df, _MOST_WHOLE))
    if df != whole:
        for u in range(n):
            z = offset + nodes[u] * step
            line[u] = front * math.exp(-0.5 * (df + 1.0) * math.log1p(z * z / df))
            largest = max(largest, line[u])
        return largest
    for u in range(n):
        z = offset + nodes[u] * step
        power[u] = 1.0 / (1.0 + z * z / df)
        line[u] = front
    if whole % 2 == 0:
        for u in range(n):
            line[u] *= math.sqrt(power[u])
    left = (whole + 1) // 2
    while left > 0:
        if left % 2 == 1:
            for u in range(n):
                line[u] *= power[u]
        for u in range(n):
            power[u] *= power[u]
        left //= 2
    for u in range(n):
        largest = max(largest, line[u])
    return largest


@compiled()
def _beta_fraction(a, b, x):  # type: ignore[no-untyped-def]
    """Return the continued fraction of the incomplete beta function (modified Lentz)."""
    tiny = 1e-300
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    h = d
    for m in range(1, 1000):
        step = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 + step * d
        c = 1.0 + step / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        h *= d * c
        step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 + step * d
        c = 1.0 + step / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        h *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return h


@compiled()
def student_tail(z, df, log_c, nodes, weights):  # type: ignore[no-untyped-def]
    """Return P(T > z) for z >= 0, to about 1e-15."""
    if df == np.inf:
        return 0.5 * math.erfc(z / math.sqrt(2.0))
    if z == 0.0:
        return 0.5
    if df < 100.0:
        w = z * z / df
        a = 0.5 * df
        # log of x^a (1-x)^(1/2) / B(a, 1/2) with x = 1 / (1 + w)
        log_front = log_c + math.log(z) - (a + 0.5) * math.log1p(w)
        if w > 1.5 / (a + 1.0):
            return math.exp(log_front) / df * _beta_fraction(a, 0.5, 1.0 / (1.0 + w))
        return 0.5 - math.exp(log_front) * _beta_fraction(0.5, a, w / (1.0 + w))
    if z > 40.0:
        return 0.0
    panels = int(z / 2.5) + 1
    width = z / panels
    total = 0.0
    for p in range(panels):
        for u in range(nodes.shape[0]):
            total += weights[u] * math.exp(log_shape((p + nodes[u]) * width, df))
    return max(0.5 - math.exp(log_c) * width * total, 0.0)


@compiled()
def quick_tail(z, df, log_c, nodes, weights, power, line):  # type: ignore[no-untyped-def]
    """Return P(T > z) for z >= 0, to 1e-12: of a whole df by the products of `_student_line`."""
    if df < 4.0 or df != int(min(df, _MOST_WHOLE)) or z > 40.0:
        return student_tail(z, df, log_c, nodes, weights)
    # the density has poles at i sqrt(df), and is entire in the limit: 16 nodes resolve so much
    panels = int(z / min(5.0, 1.25 * math.sqrt(df))) + 1
    width, inside = z / panels, 0.0
    front = math.exp(log_c) * width
    for p in range(panels):
        _student_line(front, p * width, width, nodes, df, power, line)
        for u in range(nodes.shape[0]):
            inside += weights[u] * line[u]
    return max(0.5 - inside, 0.0)


@compiled()
def tail_reach(p, df):  # type: ignore[no-untyped-def]
    """Return z with P(T > z) <= p, from the bound (1 + z^2/df)^(-df/2) / 2; 0 if p >= 1/2."""
    if p >= 0.5:
        return 0.0
    log_p = math.log(0.5 / p)
    if df == np.inf:
        return math.sqrt(2.0 * log_p)
    power = 2.0 * log_p / df
    return math.sqrt(df * math.expm1(power)) if power < 700.0 else np.inf


@compiled()
def panel_length(x, df, loc, scale, reach, shrink):  # type: ignore[no-untyped-def]
    """Return how far a panel from x may extend so that this arm's density is resolved."""
    far = abs(x - loc)
    if far > reach * scale:
        if x > loc:
            return np.inf
        rest = far - reach * scale  # the arm begins there
    else:
        rest = 0.0
    base = 2.6 * scale
    if df < np.inf:
        base = min(base, 1.1 * math.sqrt(df) * scale)
        # in the tail the density is a power of the distance
        growth = min(2.7 if x > loc else 0.73, 10.0 / (df + 1.0))
        base = max(base, growth * far)
    return max(base * shrink, rest)


@compiled()
def _first_point(df, loc, scale, copies, order):  # type: ignore[no-untyped-def]
    """Return a point below which all rewards lie with probability at most `_LEFT`."""
    k = df.shape[0]
    best = -np.inf
    for j in range(k):
        if copies[j] > 1:
            p = _LEFT ** (1.0 / copies[j])
            best = max(best, loc[j] - scale[j] * tail_reach(p, df[j]))
    r = 1
    while True:
        # r arms that each lie below with probability p give p^r
        p = _LEFT ** (1.0 / r)
        for j in range(k):
            order[j] = loc[j] - scale[j] * tail_reach(p, df[j])
        order.sort()
        best = max(best, order[k - r])
        if r == k:
            return best
        r = min(2 * r, k)


@compiled()
def _one_round(df, loc, scale, log_c, copies, shrink, rule, work, out):  # type: ignore[no-untyped-def]
    nodes, weights, integrate = rule
    density, cdf, prefix, reach, below = work
    k = df.shape[0]
    n, suffix = nodes.shape[0], prefix[k]
    x = _first_point(df, loc, scale, copies, below)
    last = -np.inf
    n_arms = copies.sum()
    for j in range(k):
        last = max(last, loc[j] + scale[j] * tail_reach(_RIGHT / n_arms, df[j]))
        reach[j] = tail_reach(_NEGLIGIBLE, df[j])
        z = (x - loc[j]) / scale[j]
        tail = 0.0
        if abs(z) < reach[j]:
            tail = quick_tail(abs(z), df[j], log_c[j], nodes, weights, suffix, density[j])
        below[j] = 1.0 - tail if z > 0 else tail
        out[j] = 0.0
    for _ in range(1_000_000):
        length = last - x
        for j in range(k):
            length = min(length, panel_length(x, df[j], loc[j], scale[j], reach[j], shrink))
        # what the next panel starts from, after rounding: no gap for an arm much narrower than |x|
        end = last if length >= last - x else max(x + length, np.nextafter(x, np.inf))
        length = end - x
        for j in range(k):
            largest = 0.0
            offset = (x - loc[j]) / scale[j]
            step = length / scale[j]
            front = math.exp(log_c[j]) * step
            if df[j] == np.inf:
                for u in range(n):
                    z = offset + nodes[u] * step
                    density[j, u] = front * math.exp(-0.5 * z * z)
                    largest = max(largest, density[j, u])
            else:
                largest = _student_line(front, offset, step, nodes, df[j], suffix, density[j])
            if largest < _NEGLIGIBLE:
                for u in range(n):
                    cdf[j, u] = below[j]
            else:
                total = 0.0
                for u in range(n):
                    suffix[u] = 0.0
                for v in range(n):  # all nodes at once
                    value = density[j, v]
                    for u in range(n):
                        suffix[u] += integrate[v, u] * value
                for u in range(n):
                    cdf[j, u] = below[j] + suffix[u]
                    total += weights[u] * density[j, u]
                below[j] += total
        for u in range(n):
            prefix[0, u] = weights[u]
        for j in range(1, k):
            for u in range(n):
                prefix[j, u] = prefix[j - 1, u] * cdf[j - 1, u]
                if copies[j - 1] > 1:
                    prefix[j, u] *= cdf[j - 1, u] ** (copies[j - 1] - 1)
        for u in range(n):
            suffix[u] = 1.0
        for j in range(k - 1, -1, -1):
            total = 0.0
            for u in range(n):
                if copies[j] > 1:
                    suffix[u] *= cdf[j, u] ** (copies[j] - 1)
                total += density[j, u] * prefix[j, u] * suffix[u]
                suffix[u] *= cdf[j, u]
            out[j] += total
        x = end
        if x >= last:
            break
    # beyond the last panel: arm i is above and no other is, to second order in the tails
    above = 0.0
    off = 0.0
    total = -1.0
    for j in range(k):
        z, rest = (x - loc[j]) / scale[j], 0.0
        if z < reach[j]:
            rest = quick_tail(z, df[j], log_c[j], nodes, weights, suffix, density[j])
        # the error of the integral of the density; the sum of P* alone would not show it
        off += abs(1.0 - below[j] - rest)
        reach[j] = rest
        above += copies[j] * rest
    for j in range(k):
        out[j] += reach[j] * (1.0 - 0.5 * (above - reach[j]))
        total += copies[j] * out[j]
    return off + abs(total)


@compiled()
def _rows(df, loc, scale, offered, nodes, weights, integrate, out):  # type: ignore[no-untyped-def]
    n_rows, k_all = loc.shape
    n = nodes.shape[0]
    scratch = np.empty((7, k_all))
    d, m, s, c, best, reach, below = (
        scratch[0],
        scratch[1],
        scratch[2],
        scratch[3],
        scratch[4],
        scratch[5],
        scratch[6],
    )
    density, cdf = np.empty((k_all, n)), np.empty((k_all, n))
    prefix = np.empty((k_all + 1, n))
    rule = (nodes, weights, integrate)
    copies, step = np.empty(k_all, np.int64), offered.shape[0] > 1
    for t in range(n_rows):
        k = 0
        for i in range(k_all):
            if offered[t * step, i] > 0:
                copies[k] = offered[t * step, i]
                d[k] = df[t, i]
                m[k] = loc[t, i]
                s[k] = scale[t, i]
                c[k] = log_constant(d[k])
                k += 1
        if k == 1:
            best[0] = 1.0 / copies[0]
        elif k > 1:
            work = (density[:k], cdf[:k], prefix[: k + 1], reach[:k], below[:k])
            shrink = 1.0
            for _ in range(6):
                off = _one_round(
                    d[:k], m[:k], s[:k], c[:k], copies[:k], shrink, rule, work, best[:k]
                )
                if off < _OFF:
                    break
                shrink *= 0.5
        give_back(best, offered[t * step], out[t])


def location_scale_best_arm(
    df: NDArray[np.float64],
    loc: NDArray[np.float64],
    scale: NDArray[np.float64],
    offered: NDArray[np.bool_] | NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return P*(i) for independent Student-t arms, normal where df is inf.

    Parameters
    ----------
    df, loc, scale : (..., k) arrays
        Degrees of freedom (>= `LOWEST_DF`, or inf), location and scale (> 0).
    offered : (..., k) array of bool or int, optional
        Arms on offer; the others take no part and get NaN. A number says how many arms have this
        law: P* is that of each of them.

    Returns
    -------
    (..., k) array
        To 1e-10; sums to 1.

    Raises
    ------
    ConvergenceError
        If a sum misses 1 by more than 1e-9.
    """
    k = loc.shape[-1]
    out = np.empty(loc.shape)
    _rows(
        np.ascontiguousarray(df).reshape(-1, k),
        np.ascontiguousarray(loc).reshape(-1, k),
        np.ascontiguousarray(scale).reshape(-1, k),
        arms_with_law(offered, k),
        *panel_rule(),
        out.reshape(-1, k),
    )
    return require_sum_of_one(out, "which reward is the highest", offered)
