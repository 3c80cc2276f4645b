r"""Log posterior density of worths and its gradient, compiled, one parameter vector at a time.

.. math:: \log p(\theta \mid \text{data}) = \log L(\theta) - \tfrac12 \sum_j p_j \theta_j^2
    + \text{const}

for the parameters :math:`\theta = (u, \gamma, \delta, \tau)` of comparisons: item deviations,
coefficients of covariates, order effect, log tie parameter. It is concave: every term of the
log-likelihoods is the logarithm of a log-concave function of a linear form (logistic, normal) or
minus a log-sum-exp of linear forms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled

__all__ = ["CHAINS", "DAVIDSON", "LOGIT", "PROBIT", "Target", "log_density"]

CHAINS, LOGIT, PROBIT, DAVIDSON = range(4)

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_FAR = -37.0  # below this, erfc underflows


class Target(NamedTuple):
    """A posterior of worths as plain arrays; fields that a kind does not use are empty.

    Attributes
    ----------
    kind : int
        `CHAINS`, `LOGIT`, `PROBIT` or `DAVIDSON`.
    covariates : (k, C) array
        In standard units.
    order : bool
        Whether there is an order effect.
    precision : (P,) array
        Prior precisions.
    item, weight, start, wins : arrays
        Choice sets, as in `bayesfair.kernels.orders.plackett_luce_stages.Chains`.
    left, right, first : (cells,) arrays of int
        Pairs, as in `bayesfair.kernels.orders.duels.DuelCounts`.
    counts : (3, cells) array
        Wins of left, wins of right, ties.
    """

    kind: int
    covariates: NDArray[np.float64]
    order: bool
    precision: NDArray[np.float64]
    item: NDArray[np.int64]
    weight: NDArray[np.float64]
    start: NDArray[np.int64]
    wins: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    first: NDArray[np.int64]
    counts: NDArray[np.float64]


@compiled(error_model="numpy")
def _chains(target, log_worth, gradient):  # type: ignore[no-untyped-def]
    item, weight, start = target.item, target.weight, target.start
    top = log_worth.max()
    worth = np.exp(log_worth - top)
    value = 0.0
    for i in range(len(log_worth)):
        gradient[i] = target.wins[i]
        value += target.wins[i] * log_worth[i]
    inverse = np.empty(len(item))
    for s in range(len(start) - 1):
        total = 0.0
        for p in range(start[s + 1] - 1, start[s] - 1, -1):
            total += worth[item[p]]
            inverse[p] = 0.0
            if weight[p] > 0.0:
                value -= weight[p] * (np.log(total) + top)
                inverse[p] = weight[p] / total
        pull = 0.0
        for p in range(start[s], start[s + 1]):
            pull += inverse[p]
            gradient[item[p]] -= worth[item[p]] * pull
    return value


@compiled(error_model="numpy")
def _log_phi(x):  # type: ignore[no-untyped-def]
    """Return log Phi(x) and phi(x) / Phi(x)."""
    density = -0.5 * x * x - _HALF_LOG_TWO_PI
    if x > _FAR:
        value = math.log(0.5 * math.erfc(-x * _ROOT_HALF))
    else:
        # Phi(x) = phi(x) / -x (1 - 1/x^2 + 3/x^4 - ...), here to full precision
        y = 1.0 / (x * x)
        value = density - math.log(-x) + math.log1p(-y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))
    return value, math.exp(density - value)


@compiled(error_model="numpy")
def _duels(target, log_worth, effect, log_tie, gradient, extra):  # type: ignore[no-untyped-def]
    """Fill the gradient in the log-worths, and in (order effect, log tie); return the value."""
    value = 0.0
    gradient[:] = 0.0
    extra[:] = 0.0
    for c in range(len(target.left)):
        i, j = target.left[c], target.right[c]
        won, lost, tied = target.counts[0, c], target.counts[1, c], target.counts[2, c]
        eta = log_worth[i] - log_worth[j] + target.first[c] * effect
        if target.kind == LOGIT:
            low = math.exp(-abs(eta))
            total = max(eta, 0.0) + math.log1p(low)
            p = (1.0 if eta > 0.0 else low) / (1.0 + low)
            value += won * eta - (won + lost) * total
            slope = won - (won + lost) * p
        elif target.kind == PROBIT:
            slope = 0.0
            if won > 0.0:
                log_p, ratio = _log_phi(eta)
                value += won * log_p
                slope += won * ratio
            if lost > 0.0:
                log_p, ratio = _log_phi(-eta)
                value += lost * log_p
                slope -= lost * ratio
        else:
            n = won + lost + tied
            top = max(0.5 * abs(eta), log_tie)
            a = math.exp(0.5 * eta - top)
            b = math.exp(-0.5 * eta - top)
            t = math.exp(log_tie - top)
            total = a + b + t
            value += 0.5 * (won - lost) * eta + tied * log_tie - n * (math.log(total) + top)
            slope = 0.5 * (won - lost - n * (a - b) / total)
            extra[1] += tied - n * t / total
        gradient[i] += slope
        gradient[j] -= slope
        extra[0] += slope * target.first[c]
    return value


@compiled(error_model="numpy")
def log_density(target, theta, gradient):  # type: ignore[no-untyped-def]
    """Return the log posterior density of `theta` and fill its gradient; both ``(P,)``.

    Parameters
    ----------
    target : Target
    theta : (P,) array
    gradient : (P,) array
        Overwritten.

    Examples
    --------
    Two items, three wins against one, at the mode under a flat prior.

    >>> none, no = np.empty(0), np.empty(0, np.int64)
    >>> duels = Target(LOGIT, np.empty((2, 0)), False, np.zeros(2), no, none, no, none,
    ...                np.array([0]), np.array([1]), np.array([0]), np.array([[3.0], [1.0], [0.0]]))
    >>> slope = np.empty(2)
    >>> round(log_density(duels, np.log([3.0, 1.0]), slope), 6), slope.round(12) + 0.0
    (-2.249341, array([0., 0.]))
    """
    k, c = target.covariates.shape
    log_worth = theta[:k].copy()
    for j in range(c):
        for i in range(k):
            log_worth[i] += target.covariates[i, j] * theta[k + j]
    slope = np.empty(k)
    at = k + c
    if target.kind == CHAINS:
        value = _chains(target, log_worth, slope)
    else:
        effect = theta[at] if target.order else 0.0
        log_tie = theta[-1] if target.kind == DAVIDSON else 0.0
        extra = np.empty(2)
        value = _duels(target, log_worth, effect, log_tie, slope, extra)
        if target.order:
            gradient[at] = extra[0]
        if target.kind == DAVIDSON:
            gradient[len(theta) - 1] = extra[1]
    for i in range(k):
        gradient[i] = slope[i]
    for j in range(c):
        total = 0.0
        for i in range(k):
            total += target.covariates[i, j] * slope[i]
        gradient[k + j] = total
    for p in range(len(theta)):
        pull = target.precision[p] * theta[p]
        value -= 0.5 * pull * theta[p]
        gradient[p] -= pull
    return value
