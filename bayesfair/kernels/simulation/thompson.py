r"""Thompson sampling on Bernoulli arms, with P(theta_i is the largest mean) logged in every round.

.. math:: \pi_t(i) = \int f_i \prod_{j \ne i} F_j

in the scale :math:`s = \arcsin\sqrt\theta`, where a Beta(a, b) density with 2a and 2b whole is an
entire function with a standard deviation of :math:`1/(2\sqrt{a+b-1})` at its mode and tails no
heavier than normal ones of :math:`1/\sqrt{2(a+b-1)}`, which it has where a or b is small. A
composite Gauss-Legendre grid covers the part where the largest mean can lie. Tables of every arm's
F and f/F on that grid are kept; a round replaces those of the arm that learned something by the
recurrences

.. math:: I_x(a+1,b) = I_x(a,b) - \frac{x^a y^b}{a B(a,b)}, \qquad
          I_x(a,b+1) = I_x(a,b) + \frac{x^a y^b}{b B(a,b)} ,

and the grid is laid anew when an arm has moved or narrowed. Within a panel F comes from f by
integrating the interpolating polynomial from the right, where every F is 1.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import ConvergenceError
from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.quadrature import SUM_TOLERANCE, unit_nodes
from bayesfair.kernels.simulation.counts_and_means import choose
from bayesfair.kernels.simulation.world import BernoulliWorld, Run, new_run
from bayesfair.typing import Floats

__all__ = ["MOST_ARMS", "beta_best_mean_on_grid", "run_thompson"]

MOST_ARMS = 40
"""Panels of 16 nodes resolve the product of so many distribution functions, not of 80."""

_N = 16
_REACH = 8.0  # standard deviations at the mode beyond which an arm has no mass (1e-12)
_FAR_REACH = 11.4  # ... where a or b is below `_FEW`, whose tails are wider by the root of 2
_FEW = 20.0
_PANEL = 2.6  # standard deviations that one panel of 16 nodes resolves
_MOVED = 0.5  # lay a new grid when a centre has moved by this many standard deviations
_NARROWED = 1.5  # ... or the pulls of an arm have grown by this factor
_AGE = 2048  # ... or the recurrences have run for this many updates
_NOTHING = 1e-13


@lru_cache(maxsize=1)
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Nodes, weights, and the matrix that integrates from each node to the right end."""
    nodes, weights = unit_nodes(_N)
    legendre = np.polynomial.legendre.legvander(2 * nodes - 1, _N)
    degree = np.arange(1, _N)
    antiderivative = np.empty((_N, _N))  # from the node to the right end, per degree
    antiderivative[:, 0] = 2 - 2 * nodes
    antiderivative[:, 1:] = (legendre[:, :-2] - legendre[:, 2:]) / (2 * degree + 1)
    coefficient = (2 * np.arange(_N) + 1)[:, None] * legendre[:, :-1].T * weights
    ahead = 0.5 * antiderivative @ coefficient
    ahead.flags.writeable = False
    return nodes, weights, ahead


@compiled()
def _stirling(z):  # type: ignore[no-untyped-def]
    """Return what Stirling's formula lacks of log Gamma(z)."""
    if z < 15.0:
        return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.5 * math.log(2.0 * math.pi)
    y = 1.0 / (z * z)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / z


@compiled()
def _centre(a, b):  # type: ignore[no-untyped-def]
    """Mode and standard deviation of the arm in the arcsine scale."""
    n = max(a + b - 1.0, 0.25)
    return math.atan2(math.sqrt(max(a - 0.5, 0.0)), math.sqrt(max(b - 0.5, 0.0))), 0.5 / math.sqrt(
        n
    )


@compiled()
def _reach(a, b):  # type: ignore[no-untyped-def]
    """How many standard deviations the arm reaches to either side of its mode."""
    return _FAR_REACH if min(a, b) < _FEW else _REACH


@compiled()
def _lay_edges(a, b, centre, sd, edges):  # type: ignore[no-untyped-def]
    """Fill panel edges over the part where the largest mean can lie; return how many panels."""
    low, high = 0.0, 0.0
    for j in range(centre.shape[0]):
        reach = _reach(a[j], b[j]) * sd[j]
        low = max(low, centre[j] - reach)
        high = max(high, centre[j] + reach)
    high = min(high, 0.5 * math.pi)
    x = low
    n = 0
    edges[0] = x
    while x < high:
        length = high - x
        for j in range(centre.shape[0]):
            reach = _reach(a[j], b[j]) * sd[j]
            if x < centre[j] + reach:
                begins = centre[j] - reach - x
                length = min(length, max(_PANEL * sd[j], begins))
        x += length
        if high - x < 1e-12 or n + 2 >= edges.shape[0]:
            x = high
        n += 1
        edges[n] = x
    return n


@compiled()
def _fill(a, b, edges, n_panels, rule, grid, tables):  # type: ignore[no-untyped-def]
    """Lay nodes on the panels and compute every arm's density, F and weighted f/F there."""
    nodes, weights, ahead = rule
    sin2, half, weight = grid
    density, cdf, ratio = tables
    for p in range(n_panels):
        width = edges[p + 1] - edges[p]
        for u in range(_N):
            s = edges[p] + width * nodes[u]
            sine, cosine = math.sin(s), math.cos(s)
            sin2[p * _N + u] = sine * sine
            half[p * _N + u] = 0.5 * sine * cosine
            weight[p * _N + u] = width * weights[u]
    for j in range(a.shape[0]):
        # differences of log Gamma would cancel at large a, b: Stirling's terms are taken together
        n = a[j] + b[j]
        constant = math.log(2.0) + 0.5 * math.log(n / (2.0 * math.pi))
        constant += _stirling(n) - _stirling(a[j]) - _stirling(b[j])
        for u in range(n_panels * _N):
            log_f = constant
            if a[j] != 0.5:
                log_f += (a[j] - 0.5) * math.log(sin2[u] * n / a[j])
            if b[j] != 0.5:
                log_f += (b[j] - 0.5) * math.log((1.0 - sin2[u]) * n / b[j])
            density[j, u] = math.exp(log_f)
        above = 0.0
        for p in range(n_panels - 1, -1, -1):
            width = edges[p + 1] - edges[p]
            at = p * _N
            total = 0.0
            for u in range(_N):
                tail = 0.0
                for v in range(_N):
                    tail += ahead[u, v] * density[j, at + v]
                cdf[j, at + u] = 1.0 - above - width * tail
                total += weights[u] * density[j, at + u]
            above += width * total
        _ratio(density[j], cdf[j], weight, ratio[j], n_panels * _N)


@compiled()
def _ratio(density, cdf, weight, ratio, m):  # type: ignore[no-untyped-def]
    for u in range(m):
        if cdf[u] > _NOTHING:
            ratio[u] = weight[u] * density[u] / cdf[u]
        else:
            ratio[u] = 0.0


@compiled(fastmath={"reassoc", "contract"})
def _learn(success, a, b, sin2, half, weight, density, cdf, ratio, m):  # type: ignore[no-untyped-def]
    """Move one arm's tables from Beta(a, b) to the next posterior."""
    if success:
        c = (a + b) / a
        for u in range(m):
            cdf[u] -= half[u] * density[u] / a
            density[u] *= c * sin2[u]
    else:
        c = (a + b) / b
        for u in range(m):
            cdf[u] += half[u] * density[u] / b
            density[u] *= c * (1.0 - sin2[u])
    for u in range(m):
        ratio[u] = weight[u] * density[u] / cdf[u] if cdf[u] > _NOTHING else 0.0


@compiled(fastmath={"reassoc", "contract"})
def _integrate(cdf, ratio, product, m, row):  # type: ignore[no-untyped-def]
    k = cdf.shape[0]
    for u in range(m):
        product[u] = 1.0
    for i in range(k):
        line = cdf[i]
        for u in range(m):
            product[u] *= line[u]
    whole = 0.0
    for i in range(k):
        line = ratio[i]
        total = 0.0
        for u in range(m):
            total += line[u] * product[u]
        row[i] = total
        whole += total
    for i in range(k):
        row[i] /= whole  # the caller refuses what is not within 1e-9 of 1
    return whole


@compiled()
def _run(prior, world, rule, run):  # type: ignore[no-untyped-def]
    (theta, decide, pay, known_at, order, _), (arm, reward, pi) = world, run
    n_rounds, k = pi.shape
    drifting = theta.shape[0] > 1
    a, b = prior[:, 0].copy(), prior[:, 1].copy()
    # panels: at most 2 * 11.4 / 2.6 per arm, as many as its neighbours leave
    most = 10 * k + 10
    edges = np.empty(most + 1)
    size = most * _N
    sin2, half, weight, product = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    density, cdf, ratio = np.empty((k, size)), np.empty((k, size)), np.empty((k, size))
    grid, tables = (sin2, half, weight), (density, cdf, ratio)
    centre, sd, at_pulls = np.empty(k), np.empty(k), np.empty(k)
    stale, changed = True, True
    age, m, pointer = 0, 0, 0
    worst = 0.0
    for t in range(n_rounds):
        while pointer < n_rounds and known_at[order[pointer]] <= t:
            i = arm[order[pointer]]
            success = reward[order[pointer]] > 0.5
            pointer += 1
            changed = True
            if not stale:
                _learn(success, a[i], b[i], sin2, half, weight, density[i], cdf[i], ratio[i], m)
            if success:
                a[i] += 1.0
            else:
                b[i] += 1.0
            age += 1
            if not stale:
                now, _ = _centre(a[i], b[i])
                stale = (
                    age > _AGE
                    or abs(now - centre[i]) > _MOVED * sd[i]
                    or a[i] + b[i] > _NARROWED * at_pulls[i]
                )
        row = pi[t]
        if k == 1:
            row[0] = 1.0
        elif changed:
            if stale:
                for j in range(k):
                    centre[j], sd[j] = _centre(a[j], b[j])
                    at_pulls[j] = a[j] + b[j]
                n_panels = _lay_edges(a, b, centre, sd, edges)
                _fill(a, b, edges, n_panels, rule, grid, tables)
                m = n_panels * _N
                stale, age = False, 0
            whole = _integrate(cdf, ratio, product, m, row)
            worst = max(worst, abs(whole - 1.0))
            changed = False
        else:
            for j in range(k):
                row[j] = pi[t - 1, j]
        i = choose(row, decide[t])
        arm[t] = i
        reward[t] = 1.0 if pay[t] < theta[t if drifting else 0, i] else 0.0
    return worst


def run_thompson(prior: Floats, world: BernoulliWorld) -> Run:
    """Run Thompson sampling, with every arm on offer.

    Parameters
    ----------
    prior : (k, 2) array
        Beta parameters per arm: whole multiples of 1/2, at least 1/2; k up to `MOST_ARMS`.
    world : BernoulliWorld

    Raises
    ------
    ConvergenceError
        If a row's sum was off 1 by more than 1e-9 before it was rescaled.
    """
    run = new_run(world)
    n_rounds, k = run.pi.shape
    worst = _run(prior, world, _rule(), run)
    if not worst <= SUM_TOLERANCE:
        raise ConvergenceError(
            "the quadrature did not resolve which Beta mean is the largest: in one of "
            f"{n_rounds} rounds the {k} probabilities miss 1 by {worst:.3g}, allowed is "
            f"{SUM_TOLERANCE:g}. Use a prior of more weight, or fewer rounds.",
            kind="quadrature",
            value=float(worst),
        )
    return run


@compiled()
def _one(a, b, rule, row):  # type: ignore[no-untyped-def]
    k = a.shape[0]
    most = 10 * k + 10
    edges = np.empty(most + 1)
    size = most * _N
    grid = (np.empty(size), np.empty(size), np.empty(size))
    tables = (np.empty((k, size)), np.empty((k, size)), np.empty((k, size)))
    centre, sd = np.empty(k), np.empty(k)
    for j in range(k):
        centre[j], sd[j] = _centre(a[j], b[j])
    n_panels = _lay_edges(a, b, centre, sd, edges)
    _fill(a, b, edges, n_panels, rule, grid, tables)
    return _integrate(tables[1], tables[2], np.empty(size), n_panels * _N, row)


def beta_best_mean_on_grid(
    a: NDArray[np.float64], b: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return P(theta_i is the largest mean) by the simulator's grid, and the sum before scaling."""
    row = np.empty(a.size)
    whole = _one(np.asarray(a, np.float64), np.asarray(b, np.float64), _rule(), row)
    return row, float(whole)
