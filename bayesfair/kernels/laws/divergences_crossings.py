r"""Where the densities of two Student-t laws cross: total variation and Wasserstein from it.

The log ratio of two t densities has at most three turning points, the roots of a cubic, hence at
most four zeros; between them the difference of the distribution functions is monotone.
"""

from __future__ import annotations

import math

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.continuous_arms import log_shape, quick_tail, student_tail
from bayesfair.kernels.laws.divergences import TV, WASSERSTEIN

__all__ = ["cdf_difference", "crossing_pair", "turning_points"]

_FARTHEST = 1e20  # in widths: where a ratio of equal tails is its limit to double precision


@compiled()
def _cubic_root(c3, c2, c1, c0, low, high):  # type: ignore[no-untyped-def]
    """Return the root in a bracket with a change of sign, by safeguarded Newton."""
    rising = ((c3 * high + c2) * high + c1) * high + c0 > 0
    x = 0.5 * (low + high)
    for _ in range(200):
        value = ((c3 * x + c2) * x + c1) * x + c0
        if (value > 0) == rising:
            high = x
        else:
            low = x
        slope = (3 * c3 * x + 2 * c2) * x + c1
        new = x - value / slope if slope != 0.0 else low
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) <= 1e-15 * max(abs(x), 1e-300):
            break
        x = new
    return x


@compiled()
def turning_points(a1, b1, a2, b2, d, out):  # type: ignore[no-untyped-def]
    """Fill the real roots of a2 (u-d)(b1+u^2) = a1 u (b2+(u-d)^2), ascending; return their number.

    The turning points of -a1/2 log(b1+u^2) + a2/2 log(b2+(u-d)^2), less those so far out that
    the ratio has reached its limit long before.
    """
    w = max(math.sqrt(b1), math.sqrt(b2), abs(d))
    d, b1, b2 = d / w, b1 / w / w, b2 / w / w
    c3 = a2 - a1
    c2 = (2 * a1 - a2) * d
    c1 = a2 * b1 - a1 * b2 - a1 * d * d
    c0 = -a2 * d * b1
    n = 0
    if c3 == 0.0:
        if c2 == 0.0:
            if c1 != 0.0:
                out[0] = -c0 / c1 * w
                n = 1
            return n
        disc = c1 * c1 - 4 * c2 * c0
        if disc >= 0:
            q = -0.5 * (c1 + math.copysign(math.sqrt(disc), c1))
            r1 = q / c2
            r2 = c0 / q if q != 0.0 else r1
            for r in (min(r1, r2), max(r1, r2)):
                if abs(r) < _FARTHEST:
                    out[n] = r * w
                    n += 1
        return n
    bound = 2.0 * max(abs(c2 / c3), math.sqrt(abs(c1 / c3)), abs(c0 / c3) ** (1 / 3)) + 1e-12
    edges = np.empty(4)
    edges[0] = -bound
    m = 1
    disc = c2 * c2 - 3 * c3 * c1
    if disc > 0:
        q = -(c2 + math.copysign(math.sqrt(disc), c2))
        e1 = q / (3 * c3)
        e2 = c1 / q if q != 0.0 else e1
        edges[1] = min(e1, e2)
        edges[2] = max(e1, e2)
        m = 3
    edges[m] = bound
    for e in range(m):
        low, high = edges[e], edges[e + 1]
        f_low = ((c3 * low + c2) * low + c1) * low + c0
        f_high = ((c3 * high + c2) * high + c1) * high + c0
        if f_low != 0.0 and f_low * f_high <= 0.0:
            out[n] = _cubic_root(c3, c2, c1, c0, low, high) * w
            n += 1
    return n


@compiled()
def _log_ratio(u, law):  # type: ignore[no-untyped-def]
    """Return log f1 - log f2 at distance u from the first location."""
    n1, s1, n2, s2, d, front1, front2 = law
    return front1 - front2 + log_shape(u / s1, n1) - log_shape((u - d) / s2, n2)


@compiled()
def _crossings(law, out):  # type: ignore[no-untyped-def]
    """Fill the points where the densities are equal, ascending; return their number."""
    n1, s1, n2, s2, d, _, _ = law
    turns = np.empty(4)
    m = turning_points(n1 + 1.0, n1 * s1 * s1, n2 + 1.0, n2 * s2 * s2, d, turns)
    w = max(s1, s2, abs(d))
    if n1 != n2:
        at_infinity = 1.0 if n1 < n2 else -1.0
    elif s1 != s2:
        at_infinity = 1.0 if s1 > s2 else -1.0
    else:
        at_infinity = 0.0  # a shift: the ratio tends to 1 without reaching it
    count = 0
    for e in range(m + 1):
        if e in (0, m):
            if at_infinity == 0.0:
                continue
            end = turns[0] if e == 0 else turns[m - 1]
            value = _log_ratio(end, law)
            if value * at_infinity >= 0.0:
                continue
            side = -1.0 if e == 0 else 1.0
            step = 0.5 * w
            near = end
            far = end + side * step
            while _log_ratio(far, law) * at_infinity < 0.0 and step < 1e150 * w:
                near = far
                step *= 4.0
                far = end + side * step
            low, high = min(near, far), max(near, far)
        else:
            low, high = turns[e - 1], turns[e]
        f_low, f_high = _log_ratio(low, law), _log_ratio(high, law)
        if f_low * f_high > 0.0 or f_low == f_high:
            continue
        rising = f_high > f_low
        x = 0.5 * (low + high)
        for _ in range(400):
            value = _log_ratio(x, law)
            if (value > 0) == rising:
                high = x
            else:
                low = x
            slope = (n2 + 1.0) * (x - d) / (n2 * s2 * s2 + (x - d) ** 2)
            slope -= (n1 + 1.0) * x / (n1 * s1 * s1 + x * x)
            new = x - value / slope if slope != 0.0 else low
            if not low < new < high:
                new = 0.5 * (low + high)
            if abs(new - x) <= 4e-16 * (abs(x) + min(s1, s2)):
                break
            x = new
        out[count] = x
        count += 1
    return count


@compiled()
def _above(z, df, log_c, rule):  # type: ignore[no-untyped-def]
    """Return P(T > z), any sign: to 1e-12 with room for powers, else to every digit."""
    nodes, weights, power, line = rule
    if power.shape[0]:
        tail = quick_tail(abs(z), df, log_c, nodes, weights, power, line)
    else:
        tail = student_tail(abs(z), df, log_c, nodes, weights)
    return tail if z >= 0 else 1.0 - tail


@compiled()
def cdf_difference(u, law, constants, rule):  # type: ignore[no-untyped-def]
    """Return F1 - F2 at distance u from the first location, from the smaller tails."""
    n1, s1, n2, s2, d, _, _ = law
    z1, z2 = u / s1, (u - d) / s2
    if z1 + z2 >= 0:
        return _above(z2, n2, constants[1], rule) - _above(z1, n1, constants[0], rule)
    return _above(-z1, n1, constants[0], rule) - _above(-z2, n2, constants[1], rule)


@compiled()
def _loss(z, df, log_c, nodes, weights):  # type: ignore[no-untyped-def]
    """Return E max(T - z, 0) for z >= 0 and df > 1."""
    density = math.exp(log_c + log_shape(z, df))
    tail = student_tail(z, df, log_c, nodes, weights)
    return max((df + z * z) / (df - 1.0) * density - z * tail, 0.0)


@compiled()
def _integral(u, law, constants, nodes, weights):  # type: ignore[no-untyped-def]
    """Return the integral of F1 - F2 up to distance u from the first location."""
    n1, s1, n2, s2, d, _, _ = law
    z1, z2 = u / s1, (u - d) / s2
    total = s1 * _loss(abs(z1), n1, constants[0], nodes, weights)
    total -= s2 * _loss(abs(z2), n2, constants[1], nodes, weights)
    if z1 > 0:
        total += u
    if z2 > 0:
        total -= u - d
    return total


@compiled()
def crossing_pair(law, constants, rule, code):  # type: ignore[no-untyped-def]
    """Return total variation or Wasserstein of two laws (df, scale, df, scale, shift, logs)."""
    n1, s1, n2, s2, d, _, _ = law
    nodes, weights = rule[0], rule[1]
    if code == WASSERSTEIN and n1 == n2:
        spread = abs(s1 - s2)
        if spread == 0.0:
            return abs(d)
        if n1 <= 1.0:
            return np.inf
        c = abs(d) / spread
        return abs(d) + 2.0 * spread * _loss(c, n1, constants[0], nodes, weights)
    if code == WASSERSTEIN and min(n1, n2) <= 1.0:
        return np.inf
    points = np.empty(5)
    count = _crossings(law, points)
    total = 0.0
    before = 0.0  # F1 - F2 at the crossing before
    held = 0.0  # integral of F1 - F2 up to its last zero
    for c in range(count + 1):
        here = 0.0
        if c < count:
            here = cdf_difference(points[c], law, constants, rule)
        if code == TV:
            total += 0.5 * abs(here - before)
        elif before * here < 0.0:
            # between two crossings of the densities F1 - F2 is monotone: one zero
            low, high = points[c - 1], points[c]
            rising = here > 0
            x = 0.5 * (low + high)
            for _ in range(200):
                value = cdf_difference(x, law, constants, rule)
                if (value > 0) == rising:
                    high = x
                else:
                    low = x
                slope = math.exp(law[5] + log_shape(x / s1, n1))
                slope -= math.exp(law[6] + log_shape((x - d) / s2, n2))
                new = x - value / slope if slope != 0.0 else low
                if not low < new < high:
                    new = 0.5 * (low + high)
                moved = abs(new - x)
                x = new
                # the integral is stationary there: half the digits would do
                if moved <= 1e-11 * (abs(x) + min(s1, s2)):
                    break
            now = _integral(x, law, constants, nodes, weights)
            total += abs(now - held)
            held = now
        before = here
    if code == TV:
        return min(total, 1.0)
    return total + abs(d - held)
