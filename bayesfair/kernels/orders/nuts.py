r"""The No-U-Turn sampler on the posterior of worths, in coordinates that the curvature straightens.

With the mode m and a matrix B with :math:`B B^\top \approx (-\nabla^2 \log p(m))^{-1}`, the chain
lives in :math:`z = B^{-1}(\theta - m)`, where the posterior is near a standard normal if it is near
any normal. Momenta are standard normal. A transition follows Hamilton's equations by leapfrog steps
in doubling numbers, forwards or backwards at random, until the path turns back on itself, and
takes a point of the path with probability proportional to its density (Hoffman and Gelman 2014,
JMLR 15, 1593-1623, with the multinomial choice of Betancourt 2017, arXiv:1701.02434). Leapfrog
steps are reversible and preserve volume, and the path is chosen with the same probability from each
of its points, so that the transition leaves the posterior invariant **whatever B and the step size
are**: they decide how fast the chain moves, never where to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.orders.comparison_density import log_density

__all__ = ["Basis", "run_chain"]

_DIVERGENT = 1000.0  # an error of the energy by which the path has left the posterior
_DEPTH = 10  # at most 2^10 - 1 leapfrog steps


class Basis(NamedTuple):
    """Centre and scales of the coordinates.

    Attributes
    ----------
    centre : (P,) array
    matrix : (P, P) array
        B; empty if `scale` alone is used.
    scale : (P,) array
        Diagonal of B where it is diagonal; else empty.
    """

    centre: NDArray[np.float64]
    matrix: NDArray[np.float64]
    scale: NDArray[np.float64]


@compiled(error_model="numpy")
def _place(basis, z, theta):  # type: ignore[no-untyped-def]
    """Write theta = centre + B z. Loops, not BLAS: the same sums whatever the threads."""
    if len(basis.scale):
        for i in range(len(z)):
            theta[i] = basis.centre[i] + basis.scale[i] * z[i]
        return
    for i in range(len(z)):
        total = basis.centre[i]
        for j in range(len(z)):
            total += basis.matrix[i, j] * z[j]
        theta[i] = total


@compiled(error_model="numpy")
def _evaluate(target, basis, z, slope, theta, work):  # type: ignore[no-untyped-def]
    """Return the log density at z and write its gradient in z."""
    _place(basis, z, theta)
    value = log_density(target, theta, work)
    if len(basis.scale):
        for i in range(len(z)):
            slope[i] = basis.scale[i] * work[i]
        return value
    slope[:] = 0.0
    for i in range(len(z)):
        pull = work[i]
        for j in range(len(z)):
            slope[j] += basis.matrix[i, j] * pull
    return value


@compiled(error_model="numpy")
def _turning(p_one, p_other, total):  # type: ignore[no-untyped-def]
    """Whether the ends of a path with this sum of momenta approach each other."""
    one = 0.0
    other = 0.0
    for i in range(len(total)):
        # the ends count half: the trapezoidal integral of the momentum is the way between them
        way = total[i] - 0.5 * (p_one[i] + p_other[i])
        one += p_one[i] * way
        other += p_other[i] * way
    return one <= 0.0 or other <= 0.0


@compiled(error_model="numpy")
def _log_sum(a, b):  # type: ignore[no-untyped-def]
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + math.log(math.exp(a - top) + math.exp(b - top))


@compiled(error_model="numpy")
def _copy(values, into):  # type: ignore[no-untyped-def]
    """Write values one by one: assigning an array to a slice costs numba seconds to compile."""
    for i in range(len(into)):
        into[i] = values[i]


@compiled(error_model="numpy")
def _transition(target, basis, rng, step, state, slope, value):  # type: ignore[no-untyped-def]
    """Move `state` and its `slope` once, in place.

    Returns (log density, mean acceptance, leapfrog steps, whether it diverged).
    """
    d = len(state)
    theta, work = np.empty(d), np.empty(d)
    # row 0 is the path's backward end, row 1 its forward end
    z, p, g = np.empty((2, d)), np.empty((2, d)), np.empty((2, d))
    for i in range(d):
        p[0, i] = rng.standard_normal()
    for end in range(2):
        _copy(state, z[end])
        _copy(slope, g[end])
    _copy(p[0], p[1])
    start = value - 0.5 * (p[0] ** 2).sum()
    total = p[0].copy()
    log_weight = 0.0
    kept_z, kept_g = np.empty(d), np.empty(d)
    # momenta, and sums of momenta before them, at the starts of unfinished sub-paths
    mark_p, mark_sum = np.empty((_DEPTH + 1, d)), np.empty((_DEPTH + 1, d))
    accept = 0.0
    n_steps = 0
    for depth in range(_DEPTH):
        end = 1 if rng.random() < 0.5 else 0
        signed = step if end == 1 else -step
        fresh = np.zeros(d)
        fresh_weight = -np.inf
        kept_value = value
        turned = False
        zz, pp, gg = z[end], p[end], g[end]
        for leaf in range(1 << depth):
            for i in range(d):
                pp[i] += 0.5 * signed * gg[i]
                zz[i] += signed * pp[i]
            now = _evaluate(target, basis, zz, gg, theta, work)
            energy = 0.0
            for i in range(d):
                pp[i] += 0.5 * signed * gg[i]
                fresh[i] += pp[i]
                energy += pp[i] * pp[i]
            change = now - 0.5 * energy - start
            n_steps += 1
            if not change > -_DIVERGENT:
                return value, accept / n_steps, n_steps, True
            accept += min(1.0, math.exp(min(change, 0.0)))
            fresh_weight = _log_sum(fresh_weight, change)
            if math.log(rng.random()) < change - fresh_weight:
                _copy(zz, kept_z)
                _copy(gg, kept_g)
                kept_value = now
            # every balanced sub-path that ends here is checked: they begin at the marks
            ones = 0
            bits = leaf >> 1
            while bits:
                ones += bits & 1
                bits >>= 1
            if leaf % 2 == 0:
                _copy(pp, mark_p[ones])
                _copy(fresh, mark_sum[ones])
            else:
                trailing = 0
                bits = leaf
                while bits & 1:
                    trailing += 1
                    bits >>= 1
                for m in range(ones, ones - trailing, -1):
                    if _turning(mark_p[m], pp, fresh - mark_sum[m] + mark_p[m]):
                        turned = True
                        break
                if turned:
                    break
        if turned:
            break
        total += fresh
        # the new half is preferred; this keeps the posterior and lengthens the steps
        if math.log(rng.random()) < fresh_weight - log_weight:
            _copy(kept_z, state)
            _copy(kept_g, slope)
            value = kept_value
        log_weight = _log_sum(log_weight, fresh_weight)
        if _turning(p[0], p[1], total):
            break
    return value, accept / n_steps, n_steps, False


@compiled(error_model="numpy")
def run_chain(target, basis, rng, state, step, tune, draws, thin, goal):  # type: ignore[no-untyped-def]
    """Run one chain.

    Parameters
    ----------
    target : Target
    basis : Basis
    rng : numpy Generator
    state : (P,) array
        Where the chain starts, in z; overwritten by where it ends.
    step : float
        Step size; the first guess if there is tuning.
    tune : int
        Transitions by which the step size is set (dual averaging); not kept.
    draws, thin : int
        Transitions kept, each the last of `thin`.
    goal : float
        Mean acceptance that tuning aims at.

    Returns
    -------
    theta : (draws, P) array
    value : (draws,) array
        Log densities.
    n_steps : (draws,) array of int
        Leapfrog steps of the kept transitions.
    diverging : (draws,) array of bool
        Whether any of the `thin` transitions left the posterior.
    step : float
        Step size at the end.
    """
    d = len(state)
    slope, theta, work = np.empty(d), np.empty(d), np.empty(d)
    value = _evaluate(target, basis, state, slope, theta, work)
    centre, error, mean_log = math.log(10.0 * step), 0.0, 0.0
    for t in range(tune):
        value, accept, _, _ = _transition(target, basis, rng, step, state, slope, value)
        # Hoffman and Gelman 2014, section 3.2.1, with their constants
        error += ((goal - accept) - error) / (t + 11.0)
        log_step = centre - math.sqrt(t + 1.0) / 0.05 * error
        share = (t + 1.0) ** -0.75
        mean_log += share * (log_step - mean_log)
        step = math.exp(log_step)
    if tune:
        step = math.exp(mean_log)
    kept = np.empty((draws, d))
    values, n_steps = np.empty(draws), np.zeros(draws, np.int64)
    diverging = np.zeros(draws, np.bool_)
    for n in range(draws):
        for _ in range(thin):
            value, _, m, lost = _transition(target, basis, rng, step, state, slope, value)
            n_steps[n] += m
            diverging[n] |= lost
        _place(basis, state, kept[n])
        values[n] = value
    return kept, values, n_steps, diverging, step
