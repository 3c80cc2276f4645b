r"""Divergences of normal and Student-t laws, for all pairs of each row.

Normal: closed forms, Jensen-Shannon by quadrature. Student-t: total variation and Wasserstein from
the points where densities and distribution functions cross (`divergences_crossings`); the others
by composite Gauss-Legendre on panels that grow with the distance, the remaining power tail by
Gauss-Laguerre on its exact asymptote.

Only two of k arms change between consecutive rounds of a log, if that many: pairs whose parameters
equal those of the row before are copied.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.continuous_arms import (
    log_constant,
    log_shape,
    panel_rule,
    student_tail,
    tail_reach,
)
from bayesfair.kernels.laws.divergences import (
    CHI2,
    HELLINGER,
    JS,
    KL,
    TV,
    WASSERSTEIN,
    divergence_code,
    log_mass_term,
)
from bayesfair.kernels.laws.divergences_crossings import (
    cdf_difference,
    crossing_pair,
    turning_points,
)

__all__ = [
    "NORMAL_OFF", "normal_divergence", "normal_pair", "student_divergence",
    "student_variation_of_worst",
]  # fmt: skip

_FAR = 1e10  # beyond this many widths a t density is a pure power to 1e-10
_SMALL = 1e-18
_TIE = 1e-9
NORMAL_OFF = 0.16
"""No distribution function of a Student t is further than this over df from the normal one."""
_ROOT2 = math.sqrt(2.0)


@lru_cache(maxsize=1)
def _laguerre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes, and weights times exp(node)."""
    x, w = np.polynomial.laguerre.laggauss(32)
    return x, w * np.exp(x)


# -- normal ------------------------------------------------------------------------------------


@compiled()
def normal_pair(d, s1, s2, code):  # type: ignore[no-untyped-def]  # noqa: PLR0911
    """Return the closed form for N(0, s1) against N(-d, s2), d = mean 1 - mean 2."""
    if code == TV:
        if s1 == s2:
            return math.erf(abs(d) / (2.0 * _ROOT2 * s1))
        if s1 > s2:  # the narrower law first; total variation does not depend on the sign of d
            s1, s2 = s2, s1
        # densities cross where a y^2 + 2 h y - c = 0, y in units of s1 from the narrow mean
        r = s1 / s2
        if r == 1.0:
            return math.erf(abs(d) / (2.0 * _ROOT2 * s1))
        a = (1.0 - r) * (1.0 + r)
        h = (d / s2) * r
        c = (d / s2) ** 2 - 2.0 * math.log(r)
        root = math.sqrt(h * h + a * c)
        q = -(h + math.copysign(root, h))
        y1 = q / a
        y2 = -c / q
        low, high = min(y1, y2), max(y1, y2)
        inside = 0.0
        for sign, y in ((-1.0, low), (1.0, high)):
            inside += sign * (math.erf(y / _ROOT2) - math.erf((y * r - d / s2) / _ROOT2))
        return min(max(0.5 * inside, 0.0), 1.0)
    if code == WASSERSTEIN:
        spread = abs(s1 - s2)
        d = abs(d)
        if spread == 0.0:
            return d
        c = d / spread
        return spread * math.sqrt(2.0 / math.pi) * math.exp(-0.5 * c * c) + d * math.erf(c / _ROOT2)
    if code == KL:
        # (r^2 - 1)/2 - log r with r = s1/s2, without cancellation
        u = (s1 - s2) / s2
        if abs(u) < 0.1:
            log_part = 0.0
            power = u * u
            for n in range(2, 18):
                log_part += power / n
                power *= -u
        else:
            log_part = u - math.log1p(u)
        return 0.5 * u * u + log_part + 0.5 * (d / s2) ** 2
    if code == HELLINGER:
        s = s1 * s1 + s2 * s2
        log_affinity = 0.5 * math.log1p(-((s1 - s2) ** 2) / s) - 0.25 * d * d / s
        return math.sqrt(-math.expm1(log_affinity))
    rho = (s1 / s2) ** 2  # chi2
    if rho >= 2.0:
        return np.inf
    exponent = -0.5 * math.log1p(-((1.0 - rho) ** 2)) + (d / s2) ** 2 / (2.0 - rho)
    return math.expm1(exponent) if exponent < 709.0 else np.inf


# -- quadrature --------------------------------------------------------------------------------


@compiled()
def _step(x, df, loc, scale, reach, power):  # type: ignore[no-untyped-def]
    """Return how far a panel starting at x may extend, for one law and integrands of both."""
    far = abs(x - loc)
    if df == np.inf:
        base = 2.0 * scale
        if far <= reach * scale:
            return base
        return np.inf if x > loc else max(base, far - reach * scale)
    base = min(2.0, math.sqrt(df)) * scale
    limit = 2.0 if x > loc else 0.6
    if far > reach * scale and power == 0.0:
        # its density is negligible, its logarithm is not
        away = far if x > loc else far - reach * scale
        return max(base, min(away, limit * far) if x <= loc else limit * far)
    return max(base, min(limit, 8.0 / (df + 1.0 + power)) * far)


@compiled()
def _half_line(law, side, turns, code, nodes, weights, lag_x, lag_w):  # type: ignore[no-untyped-def]
    """Return the integral of the divergence from the first location outwards.

    `turns`, for chi2: distances beyond which p^2/q, and p/q, fall for good.
    """
    n1, s1, n2, s2, d, front1, front2 = law
    loc2 = d * side
    reach1, reach2 = tail_reach(_SMALL, n1), tail_reach(_SMALL, n2)
    power = 0.0
    index = min(n1, n2)
    if code == CHI2:
        power = n1 + 1.0 + max(n1, n2)
        index = min(index, 2.0 * n1 - n2)
    width = max(s1, s2, abs(d))
    if n1 < np.inf:
        width = max(width, math.sqrt(n1) * s1, math.sqrt(n2) * s2)
    x = 0.0
    total = 0.0
    for _ in range(1_000_000):
        length = _step(x, n1, 0.0, s1, reach1, power)
        length = min(length, _step(x, n2, loc2, s2, reach2, power))
        if length == np.inf:
            return total
        # panels must meet exactly: a law may be much narrower than it is far away
        end = max(x + length, np.nextafter(x, np.inf))
        length = end - x
        part = 0.0
        for u in range(nodes.shape[0]):
            step = length * nodes[u]
            l1 = front1 + log_shape(x / s1 + step / s1, n1)
            l2 = front2 + log_shape((x - loc2) / s2 + step / s2, n2)
            part += weights[u] * log_mass_term(l1, l2, code)
        total += part * length
        x = end
        if code == CHI2:
            if x > turns[0] and part * x < 1e-14 * total * min(index, 1.0):
                return total
            if x > turns[1]:
                z = (x - loc2) / s2
                gap = front1 - front2 + log_shape(x / s1, n1) - log_shape(z, n2)
                if gap < -40.0:  # (p - q)^2/q is q to the last digit: its mass is known
                    tail = student_tail(abs(z), n2, front2 + math.log(s2), nodes, weights)
                    return total + (tail if z >= 0.0 else 1.0 - tail)
        elif x > reach1 * s1 and x > loc2 + reach2 * s2:
            return total
        if x > _FAR * width or total == np.inf:
            break
    l1 = front1 + log_shape(x / s1, n1)
    l2 = front2 + log_shape((x - loc2) / s2, n2)
    # at distance x exp(v) density times distance is an exponential in v, and so is the integrand
    # (each divergence is homogeneous in the two densities)
    for u in range(lag_x.shape[0]):
        v = lag_x[u] / index
        term = log_mass_term(l1 - n1 * v, l2 - n2 * v, code)
        total += lag_w[u] * term * x / index
    return total


@compiled()
def _last_turns(a1, b1, a2, b2, d):  # type: ignore[no-untyped-def]
    """Return how far to the left and to the right the outermost turning points lie."""
    turns = np.empty(4)
    m = turning_points(a1, b1, a2, b2, d, turns)
    left, right = max(0.0, -d), max(0.0, d)
    if m:
        left, right = max(left, -turns[0]), max(right, turns[m - 1])
    return left, right


@compiled()
def _quadrature_pair(law, nodes, weights, lag_x, lag_w, code):  # type: ignore[no-untyped-def]
    n1, s1, n2, s2, d, _, _ = law
    left, right = (np.inf, np.inf), (np.inf, np.inf)
    if code == CHI2:
        if n2 >= 2.0 * n1:
            return np.inf
        b1, b2 = n1 * s1 * s1, n2 * s2 * s2
        left1, right1 = _last_turns(2 * (n1 + 1.0), b1, n2 + 1.0, b2, d)
        left2, right2 = np.inf, np.inf
        if n1 > n2:
            left2, right2 = _last_turns(n1 + 1.0, b1, n2 + 1.0, b2, d)
        left, right = (left1, left2), (right1, right2)
    total = _half_line(law, 1.0, right, code, nodes, weights, lag_x, lag_w)
    total += _half_line(law, -1.0, left, code, nodes, weights, lag_x, lag_w)
    return math.sqrt(min(total, 1.0)) if code == HELLINGER else total


@compiled()
def _rows(df, loc, scale, code, nodes, weights, lag_x, lag_w, out):  # type: ignore[no-untyped-def]
    n_rows, k = loc.shape
    log_c = np.empty(k)
    same = np.zeros(k, dtype=np.bool_)
    ordered = code in (KL, CHI2)
    rule = (nodes, weights, np.empty(0), np.empty(0))
    for t in range(n_rows):
        for i in range(k):
            same[i] = (
                t > 0
                and df[t, i] == df[t - 1, i]
                and loc[t, i] == loc[t - 1, i]
                and scale[t, i] == scale[t - 1, i]
            )
            if not same[i]:
                log_c[i] = log_constant(df[t, i])
        for i in range(k):
            for j in range(k):
                if j < i and not ordered:
                    out[t, i, j] = out[t, j, i]
                    continue
                if same[i] and same[j]:
                    out[t, i, j] = out[t - 1, i, j]
                    continue
                n1, s1, n2, s2 = df[t, i], scale[t, i], df[t, j], scale[t, j]
                d = loc[t, j] - loc[t, i]
                if i == j or (d == 0.0 and s1 == s2 and n1 == n2):
                    out[t, i, j] = 0.0
                elif n1 == np.inf and code != JS:
                    out[t, i, j] = normal_pair(-d, s1, s2, code)
                else:
                    law = (n1, s1, n2, s2, d, log_c[i] - math.log(s1), log_c[j] - math.log(s2))
                    if code in (TV, WASSERSTEIN):
                        constants = (log_c[i], log_c[j])
                        out[t, i, j] = crossing_pair(law, constants, rule, code)
                    else:
                        out[t, i, j] = _quadrature_pair(law, nodes, weights, lag_x, lag_w, code)


def student_divergence(
    df: NDArray[np.float64], loc: NDArray[np.float64], scale: NDArray[np.float64], name: str
) -> NDArray[np.float64]:
    """Return the divergence of all ordered pairs of Student-t arms.

    Parameters
    ----------
    df, loc, scale : (..., k) arrays
        Degrees of freedom, all finite or (normal arms) all inf; location; scale > 0.
    name : str
        One of `bayesfair.kernels.laws.divergences.DIVERGENCES`.

    Returns
    -------
    (..., k, k) array
        To relative 1e-8, or absolute 1e-14 where two laws nearly agree. Infinite: Wasserstein if
        either df <= 1 (but a pure shift, equal df and scale, has distance |difference of
        locations|); chi2 if df_j >= 2 df_i, for normal arms if scale_i^2 >= 2 scale_j^2.
    """
    k = loc.shape[-1]
    out = np.empty((*loc.shape, k))
    nodes, weights, _ = panel_rule()
    _rows(
        np.ascontiguousarray(df).reshape(-1, k),
        np.ascontiguousarray(loc).reshape(-1, k),
        np.ascontiguousarray(scale).reshape(-1, k),
        divergence_code(name),
        nodes,
        weights,
        *_laguerre(),
        out.reshape(-1, k, k),
    )
    return out


def normal_divergence(
    mean: NDArray[np.float64], sd: NDArray[np.float64], name: str
) -> NDArray[np.float64]:
    """Return the divergence of all ordered pairs of normal arms; see `student_divergence`."""
    return student_divergence(np.full(mean.shape, np.inf), mean, sd, name)


@compiled()
def _may_be_worst(away, apart, eps1, best):  # type: ignore[no-untyped-def]
    """Return whether a pair that is at least so far apart may reach the best excess anywhere."""
    for e in range(eps1.shape[0]):
        if away - eps1[e] * apart >= best[e] - _TIE:
            return True
    return False


@compiled()
def _worst_rows(df, loc, scale, pi, eps1, floor, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_rows, k = loc.shape
    n_pairs = k * (k - 1) // 2
    log_c, gap, best = np.empty(k), np.empty(n_pairs), np.empty(eps1.shape[0])
    first, second = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
    top = np.full(eps1.shape[0], -np.inf)
    rule = (nodes, weights, np.empty(nodes.shape[0]), np.empty(nodes.shape[0]))
    for t in range(n_rows):
        n = 0
        for e in range(eps1.shape[0]):
            best[e] = min(floor[e], top[e])
        for i in range(k):
            log_c[i] = log_constant(df[t, i])
            out[t, i, i] = 0.0
            for j in range(i):
                out[t, i, j] = np.nan
                out[t, j, i] = np.nan
                away = abs(pi[t, i] - pi[t, j])
                if not away >= 0.0:  # no comparison with NaN is true: not on offer
                    continue
                # what two laws give to a half line differs by no more than their total variation;
                # here with normal laws in place of them
                d = abs(loc[t, j] - loc[t, i]) / (scale[t, i] + scale[t, j])
                apart = math.erf(d / _ROOT2) - NORMAL_OFF * (1.0 / df[t, i] + 1.0 / df[t, j])
                if _may_be_worst(away, max(apart, 0.0), eps1, best):
                    gap[n], first[n], second[n] = -away, i, j
                    n += 1
        for q in np.argsort(gap[:n]):
            i, j, away = first[q], second[q], -gap[q]
            if not _may_be_worst(away, 0.0, eps1, best):
                break
            n1, s1, n2, s2 = df[t, i], scale[t, i], df[t, j], scale[t, j]
            d = loc[t, j] - loc[t, i]
            law = (n1, s1, n2, s2, d, log_c[i] - math.log(s1), log_c[j] - math.log(s2))
            constants = (log_c[i], log_c[j])
            apart = abs(cdf_difference(d * s1 / (s1 + s2), law, constants, rule))
            if not _may_be_worst(away, apart, eps1, best):
                continue
            if d == 0.0 and s1 == s2 and n1 == n2:
                apart = 0.0
            else:
                apart = crossing_pair(law, constants, rule, TV)
            out[t, i, j] = apart
            out[t, j, i] = apart
            for e in range(eps1.shape[0]):
                best[e] = max(best[e], away - eps1[e] * apart)
        for e in range(eps1.shape[0]):
            top[e] = max(top[e], best[e])


def student_variation_of_worst(
    df: NDArray[np.float64],
    loc: NDArray[np.float64],
    scale: NDArray[np.float64],
    pi: NDArray[np.float64],
    eps1: NDArray[np.float64],
    floor: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the total variation of the pairs that may have the largest excess of their round.

    Parameters
    ----------
    df, loc, scale : (T, k) arrays
        Of Student-t arms, finite df.
    pi : (T, k) array
        Selection probabilities; NaN = not on offer.
    eps1 : (E,) array
        The excess is ``|pi_i - pi_j| - eps1 TV``, for any of them.
    floor : (E,) array, optional
        At each eps1: an excess that is neither above this nor the largest so far may be left out.

    Returns
    -------
    (T, k, k) array
        As `student_divergence`; NaN for the other pairs.
    """
    floor = np.full(len(eps1), -np.inf) if floor is None else floor
    out = np.empty((*loc.shape, loc.shape[1]))
    nodes, weights, _ = panel_rule()
    fixed = (np.ascontiguousarray(x, dtype=np.float64) for x in (df, loc, scale, pi, eps1, floor))
    _worst_rows(*fixed, nodes, weights, out)
    return out
