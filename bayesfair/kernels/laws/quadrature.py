"""Gauss-Legendre nodes on [0, 1], cached per size, and the check that probabilities sum to 1."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import ConvergenceError

__all__ = ["SUM_TOLERANCE", "n_tie_nodes", "require_sum_of_one", "unit_nodes"]

SUM_TOLERANCE = 1e-9
"""Probabilities of a quadrature that miss 1 by more than this are an error, never a number."""


@lru_cache(maxsize=64)
def unit_nodes(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``n`` nodes and weights on [0, 1]; exact for polynomials of degree 2n - 1."""
    x, w = np.polynomial.legendre.leggauss(n)
    nodes, weights = 0.5 * (x + 1.0), 0.5 * w
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache(maxsize=1024)
def n_tie_nodes(k: int) -> int:
    """Return the nodes for the tie integral of ``k`` arms.

    The integrand has degree k - 1, so ceil(k/2) nodes are exact. Fewer do: all its factors lie in
    [0, 1] and grow in x, so its derivative of order 2n divided by (2n)! is at most C(k - 1, 2n) and
    the error of n nodes at most that times (n!)^4 / ((2n + 1) ((2n)!)^2). As many nodes are taken
    as bring this bound below rounding (1e-16): 30 for 80 arms. Above some 200 arms the bound is
    far too pessimistic: max(64, ceil(4 sqrt(k))) keep the error of the sum below 1e-9 up to
    k = 3000 and beyond, at a cost of k^1.5. Where the arms are known when the nodes are chosen,
    `tie_integral.tie_nodes` does with 24.
    """
    exact = max(1, math.ceil(k / 2))
    most = min(exact, max(64, math.ceil(4 * math.sqrt(k))))
    log = math.lgamma
    for n in range(1, most):
        gauss = 4 * log(n + 1) - math.log(2 * n + 1) - 2 * log(2 * n + 1)
        choices = log(k) - log(2 * n + 1) - log(k - 2 * n)
        if gauss + choices < math.log(1e-16):
            return n
    return most


def require_sum_of_one(
    probability: NDArray[np.float64], what: str, copies: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return probabilities over the last axis if they sum to 1; NaN (not on offer) is left out.

    ``copies``: how many events have each probability, one unless it says otherwise.

    Raises
    ------
    ConvergenceError
        With the kind ``"quadrature"`` and the largest miss as its value, if a sum misses 1 by more
        than `SUM_TOLERANCE`, or a probability lies below 0 by as much.

    Examples
    --------
    >>> require_sum_of_one(np.array([0.25, 0.75]), "which arm is best")
    array([0.25, 0.75])
    """
    flat = probability.reshape(-1, probability.shape[-1])
    absent = np.isnan(flat)
    many = 1 if copies is None else np.asarray(copies, np.int64).reshape(-1, flat.shape[-1])
    sums = (np.where(absent, 0.0, flat) * many).sum(axis=1)
    miss = np.abs(sums - 1)
    miss[absent.all(axis=1)] = 0.0
    low = float(np.min(flat, initial=0.0, where=~absent))
    worst = float(miss.max(initial=0.0))
    # a NaN where an arm is on offer is caught by the sum of the others
    if worst > SUM_TOLERANCE or low < -SUM_TOLERANCE:
        at = int(miss.argmax())
        raise ConvergenceError(
            f"the quadrature did not resolve {what}: the {flat.shape[1]} probabilities sum to 1 "
            f"{sums[at] - 1:+.3g}, the least is {low:.2g}; allowed is "
            f"{SUM_TOLERANCE:g}. Their parameters lie beyond what double precision resolves: use a "
            "prior of more weight, or fewer rounds.",
            kind="quadrature",
            value=worst,
        )
    return probability
