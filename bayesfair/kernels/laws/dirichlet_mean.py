r"""Which mean is the largest where every arm has finitely many reward levels, by quadrature.

With weights :math:`p \sim` Dirichlet(a) on levels x, :math:`p_l = G_l / \sum G` for independent
Gamma variables of shapes a, so the mean :math:`M = \sum x_l p_l` has, with
:math:`c_l = x_l - m` and for every angle :math:`0 < \theta < \pi`,

.. math:: P(M > m) = P\Big(\sum_l c_l G_l > 0\Big) = \frac\theta\pi + \frac1\pi
          \int_{-\infty}^\infty \Im \prod_l (1 - c_l\, e^{w + i\theta})^{-a_l} \, dw :

the inversion integral on two rays from its pole at 0, in the logarithm of the distance. There the
integrand is smooth whatever the weights: between the points :math:`w = -\log|c_l|` it is an
exponential. An angle of 3/8 pi lets it fall as fast as it turns, both in the normal centre and in
an exponential tail.

:math:`P(i) = \int \prod_{j \ne i} F_j\,dF_i` is summed between neighbouring levels over panels of
:math:`y = \log (m - x_l)/(x_{l+1} - m)`. Weights far below 1/2 put mass next to the levels, at
distances that m cannot hold in double precision but y can.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.best_mean import beta_best_mean, product_of_others
from bayesfair.kernels.laws.quadrature import require_sum_of_one, unit_nodes
from bayesfair.typing import Floats

__all__ = ["dirichlet_best_mean", "dirichlet_mean_cdf"]


_N = 16
_RESOLVED = 1e-12  # last Legendre coefficients of F on a panel
_NOTHING = 1e-13  # of a distribution function
_MOST_PANELS = 4000
_ANGLE = 0.375 * math.pi
_TURNS = 16.0  # by how much the log of the integrand may change on one panel of w
_GONE = -34.0  # log of what no longer counts


def dirichlet_mean_cdf(weight: ArrayLike, level: ArrayLike, at: ArrayLike) -> Floats:
    r"""Return :math:`P(\sum_l x_l p_l \le m)` for p ~ Dirichlet(a).

    Parameters
    ----------
    weight, level : (L,) arrays
        a > 0, and x, increasing; L >= 2.
    at : (n,) array
        m.

    Returns
    -------
    (n,) array
        To about 1e-13.

    Examples
    --------
    >>> dirichlet_mean_cdf([0.5, 0.5], [0.0, 1.0], [0.25]).round(12)  # arcsine law
    array([0.33333333])
    """
    a, x = np.asarray(weight, np.float64), np.asarray(level, np.float64)
    m = np.asarray(at, np.float64)
    out = np.where(m >= x[-1], 1.0, 0.0)
    inside = (m > x[0]) & (m < x[-1])
    gap = np.searchsorted(x, m[inside], side="right") - 1
    with np.errstate(divide="ignore"):
        y = np.log(m[inside] - x[gap]) - np.log(x[gap + 1] - m[inside])
    y = np.maximum(y, -1e300)  # on a level: as near to it as can be
    out[inside] = _cdf(a, x, gap, y)
    return out


def _cdf(a: Floats, x: Floats, gap: NDArray[np.int64], y: Floats) -> Floats:
    """Return P(M <= m) at points between neighbouring levels."""
    nodes, weights = unit_nodes(_N)
    out = np.empty(y.shape)
    _between(a, x, np.log(np.diff(x)), gap.ravel(), y.ravel(), nodes, weights, out.reshape(-1))
    return out


@compiled()
def _between(a, x, log_gap, gap, y, nodes, weights, out):  # type: ignore[no-untyped-def]
    n_levels = a.shape[0]
    sign, log_c, peak = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
    for p in range(y.shape[0]):
        low = gap[p]
        width = x[low + 1] - x[low]
        z = math.exp(-abs(y[p]))
        below = width * (1.0 / (1.0 + z) if y[p] > 0 else z / (1.0 + z))
        above = width * (z / (1.0 + z) if y[p] > 0 else 1.0 / (1.0 + z))
        total = 0.0
        for j in range(n_levels):
            if j < low:
                log_c[j] = math.log(x[low] - x[j] + below)
            elif j == low:
                log_c[j] = log_gap[low] + min(y[p], 0.0) - math.log1p(z)
            elif j == low + 1:
                log_c[j] = log_gap[low] - max(y[p], 0.0) - math.log1p(z)
            else:
                log_c[j] = math.log(x[j] - x[low + 1] + above)
            sign[j] = -1.0 if j <= low else 1.0
            total += a[j] * sign[j] * math.exp(log_c[j])
        if _is_nothing(a, sign, log_c, total):
            out[p] = 1.0 if total <= 0.0 else 0.0
            continue
        angle = _ANGLE if total <= 0.0 else math.pi - _ANGLE
        growth = _peaks(a, sign, log_c, angle, peak)
        if growth > 2.0:
            if _peaks(a, sign, log_c, math.pi - angle, peak) < growth:
                angle = math.pi - angle
            else:
                _peaks(a, sign, log_c, angle, peak)
        tail = (angle + _ray(a, sign, log_c, angle, peak, nodes, weights)) / math.pi
        out[p] = min(max(1.0 - tail, 0.0), 1.0)


@compiled()
def _is_nothing(a, sign, log_c, total):  # type: ignore[no-untyped-def]
    """Whether Chernoff's bound shows the smaller tail to be below 1e-17."""
    square, most = 0.0, 0.0
    toward = -1.0 if total > 0.0 else 1.0
    for j in range(a.shape[0]):
        c = math.exp(log_c[j])
        square += a[j] * c * c
        if sign[j] == toward:
            most = max(most, c)
    for share in (0.5, 1.0, 2.0):  # any s gives a bound; the best one of a normal law is at 1
        s = share * abs(total) / square if square > 0.0 else 0.0
        s = min(s, 0.9 / most) if most > 0.0 else s
        bound = 0.0
        for j in range(a.shape[0]):
            bound -= a[j] * math.log1p(-toward * sign[j] * math.exp(log_c[j]) * s)
        if bound < _GONE:
            return True
    return False


@compiled()
def _log_value(a, sign, log_c, w, cosine, sine):  # type: ignore[no-untyped-def]
    """Return real and imaginary part of the log of the integrand."""
    real, turn = 0.0, 0.0
    for j in range(a.shape[0]):
        t = w + log_c[j]
        u = math.exp(-abs(t))
        size = 0.5 * math.log1p(u * (u - 2.0 * sign[j] * cosine))
        if t > 0.0:
            real -= a[j] * (size + t)
            turn -= a[j] * math.atan2(-sign[j] * sine, u - sign[j] * cosine)
        else:
            real -= a[j] * size
            turn -= a[j] * math.atan2(-sign[j] * sine * u, 1.0 - sign[j] * cosine * u)
    return real, turn


@compiled()
def _rate(a, sign, log_c, w, cosine, sine):  # type: ignore[no-untyped-def]
    """Return how fast the log of the integrand changes with w."""
    real, turn = 0.0, 0.0
    for j in range(a.shape[0]):
        t = w + log_c[j]
        u = math.exp(-abs(t))
        near = sign[j] * cosine * u
        weight = a[j] / (1.0 + u * u - 2.0 * near)
        real += weight * (near - (1.0 if t > 0.0 else u * u))
        turn += weight * sign[j] * sine * u
    return math.sqrt(real * real + turn * turn)


@compiled()
def _peaks(a, sign, log_c, angle, peak):  # type: ignore[no-untyped-def]
    """Fill the log of the integrand where each factor is largest; return the largest of them.

    The integrand is 1 at the pole: what it rises above that are digits that are lost.
    """
    cosine, sine = math.cos(angle), math.sin(angle)
    bound, most = 0.0, 0.0
    for j in range(a.shape[0]):
        peak[j] = -np.inf
        if sign[j] * cosine > 0.0:
            bound -= a[j] * math.log(sine)
            peak[j] = bound
    if bound < 2.0:
        return bound
    for j in range(a.shape[0]):
        if sign[j] * cosine > 0.0:
            w = math.log(abs(cosine)) - log_c[j]
            peak[j] = _log_value(a, sign, log_c, w, cosine, sine)[0]
            most = max(most, peak[j])
    return most


@compiled()
def _ray(a, sign, log_c, angle, peak, nodes, weights):  # type: ignore[no-untyped-def]
    """Return the integral of the imaginary part over the whole ray."""
    cosine, sine = math.cos(angle), math.sin(angle)
    n_levels, n = a.shape[0], nodes.shape[0]
    largest, first, second, whole = -np.inf, 0.0, 0.0, 0.0
    for j in range(n_levels):
        largest = max(largest, log_c[j])
        whole += a[j]
    for j in range(n_levels):
        c = sign[j] * math.exp(log_c[j] - largest)
        first += a[j] * c
        second += a[j] * c * c
    # next to the pole in the distance itself, where the integrand over it is a power series
    w = -largest - math.log(max(2.0, 0.5 * abs(first), math.sqrt(second)))
    total = 0.0
    for u in range(n):
        real, turn = _log_value(a, sign, log_c, w + math.log(nodes[u]), cosine, sine)
        total += weights[u] / nodes[u] * math.exp(real) * math.sin(turn)
    while True:
        real, turn = _log_value(a, sign, log_c, w, cosine, sine)
        ahead, near, passed = real, np.inf, True
        for j in range(n_levels):
            t = w + log_c[j]
            near = min(near, abs(t))
            passed = passed and t > -_GONE
            if t < 0.0:
                ahead = max(ahead, peak[j])
        if ahead < _GONE:
            return total
        if passed:  # an exponential from here on
            return total + math.exp(real) * math.sin(turn) / whole
        # to the next point where a factor changes, and not across it
        step = max(1.8, 0.8 * near)
        rate = _rate(a, sign, log_c, w, cosine, sine)
        if rate * step > _TURNS:
            step = _TURNS / rate
        for _ in range(60):
            rate = _rate(a, sign, log_c, w + step, cosine, sine)
            if rate * step <= _TURNS:
                break
            step *= 0.7
        for u in range(n):
            real, turn = _log_value(a, sign, log_c, w + step * nodes[u], cosine, sine)
            if real > -745.0:
                total += weights[u] * step * math.exp(real) * math.sin(turn)
        w += step


def dirichlet_best_mean(weight: ArrayLike, level: ArrayLike) -> Floats:
    """Return P(the mean of arm i is the largest) for independent Dirichlet posteriors.

    Parameters
    ----------
    weight : (k, L) array
        Dirichlet parameters, > 0, however small.
    level : (L,) array
        Values of the levels, increasing.

    Returns
    -------
    (k,) array
        To 1e-10; sums to 1.

    Raises
    ------
    ConvergenceError
        If the sum misses 1 by more than 1e-9.

    Examples
    --------
    >>> dirichlet_best_mean([[0.01, 0.01, 0.01], [0.01, 0.01, 0.01]], [1.0, 2.0, 5.0]).round(9)
    array([0.5, 0.5])
    """
    a, x = np.asarray(weight, np.float64), np.asarray(level, np.float64)
    k, n_levels = a.shape
    if n_levels == 1 or k == 1:
        return np.full(k, 1 / k)
    if n_levels == 2:
        return beta_best_mean(a[:, 1], a[:, 0])
    rows, arm = np.unique(a, axis=0, return_inverse=True)
    x = (x - x[0]) / (x[-1] - x[0])
    gap, start, stop = _panels(a, x)
    nodes, weights = unit_nodes(_N)
    legendre = np.polynomial.legendre
    degree = np.arange(_N)
    basis = legendre.legvander(2 * nodes - 1, _N - 1)
    to_coefficients = ((2 * degree + 1)[:, None] * basis.T) * weights
    slope = np.stack(
        [legendre.legval(2 * nodes - 1, legendre.legder(row)) for row in np.eye(_N)], axis=1
    )
    derivative = 2 * slope @ to_coefficients  # in units of the panel

    def cdf(at: NDArray[np.int64], y: Floats) -> Floats:
        return np.stack([_cdf(row, x, at, y) for row in rows])

    found = np.zeros(k)
    f_start, f_stop = cdf(gap, start), cdf(gap, stop)
    done = 0
    while start.size:
        needed = (f_stop > _NOTHING).all(axis=0) & (f_start < 1 - _NOTHING).any(axis=0)
        gap, start, stop = gap[needed], start[needed], stop[needed]
        f_start, f_stop = f_start[:, needed], f_stop[:, needed]
        if not start.size:
            break
        done += start.size
        y = start[:, None] + (stop - start)[:, None] * nodes
        values = cdf(np.repeat(gap, _N), y.ravel()).reshape(len(rows), -1, _N)
        off = np.abs(values @ to_coefficients[-3:].T).max(axis=(0, 2))
        density = (values @ derivative.T)[arm].reshape(k, -1)
        parts = density * product_of_others(values[arm].reshape(k, -1))
        whole = parts.reshape(k, -1, _N) @ weights
        rise = f_stop[arm].prod(axis=0) - f_start[arm].prod(axis=0)
        allowed = _RESOLVED * max(1.0, k / 8) + 2e-15 * math.sqrt(a.sum(axis=1).max())
        good = (off < allowed) & (np.abs(whole.sum(axis=0) - rise) < 4 * allowed)
        middle = start + 0.5 * (stop - start)
        good |= (middle <= start) | (middle >= stop) | (done > _MOST_PANELS)
        found += whole[:, good].sum(axis=1)
        more = ~good
        gap, middle = gap[more], middle[more]
        f_middle = cdf(gap, middle)
        start, stop = np.append(start[more], middle), np.append(middle, stop[more])
        f_start = np.append(f_start[:, more], f_middle, axis=1)
        f_stop = np.append(f_middle, f_stop[:, more], axis=1)
        gap = np.append(gap, gap)
    return require_sum_of_one(found, "which mean of several reward levels is the largest")


def _panels(a: Floats, x: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the gap between levels, and the ends of panels in it on the logit scale.

    At a level the mass within a distance d is of the order of d to the power n - a_l, so panels
    reach out until that is nothing, doubling as they go.
    """
    n = a.sum(axis=1, keepdims=True)
    mean = a @ x / n[:, 0]
    sd = np.sqrt(np.maximum(a @ x**2 / n[:, 0] - mean**2, 0) / (n[:, 0] + 1))
    steps = np.array([-10.0, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 10.0])
    around = (mean[:, None] + sd[:, None] * steps).ravel()
    reach = -_GONE - _GONE / (n - a).min(axis=0)  # per level
    gaps, starts, stops = [], [], []
    for gap in range(x.size - 1):
        inside = around[(around > x[gap]) & (around < x[gap + 1])]
        points = [special.logit((inside - x[gap]) / (x[gap + 1] - x[gap])), [0.0]]
        for sign, far in ((-1.0, reach[gap]), (1.0, reach[gap + 1])):
            doubling = 2.0 ** np.arange(0, max(math.ceil(math.log2(far)), 1))
            points.append(sign * np.append(doubling, far))
        edges = np.unique(np.concatenate(points))
        edges = edges[np.isfinite(edges)]
        edges = edges[np.concatenate([[True], np.diff(edges) > 1e-9])]
        gaps.append(np.full(edges.size - 1, gap))
        starts.append(edges[:-1])
        stops.append(edges[1:])
    return np.concatenate(gaps), np.concatenate(starts), np.concatenate(stops)
