"""Intervals and checks that follow from the sums an audit keeps: closed forms, no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesfair.base.estimates import Z95

__all__ = [
    "Estimate",
    "beta_interval",
    "binomial_probability",
    "certain_noise",
    "excess_probability",
    "freedman_bound",
    "joint_share_distance",
    "mean_above_one",
    "mean_interval",
    "mean_limits",
    "regret_of",
    "share_distance",
    "share_distances",
    "wilson_interval",
]


class Estimate(NamedTuple):
    """A value per round with its 95 % interval; ``exact`` where nothing is estimated."""

    value: float
    lower: float
    upper: float
    exact: bool


def mean_interval(n: int, total: float, squares: float) -> Estimate:
    """Return the mean of n terms in [0, 1] with mean +- 1.96 sd/sqrt(n), clipped to [0, 1].

    The terms are martingale differences around the regret, so the normal interval is that of
    independent terms.

    Examples
    --------
    >>> mean_interval(4, 2.0, 1.0)
    Estimate(value=0.5, lower=0.5, upper=0.5, exact=False)
    """
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, False)
    value, lower, upper = mean_limits(n, total, squares).tolist()
    return Estimate(value, lower, upper, False)


def mean_limits(n: ArrayLike, total: ArrayLike, squares: ArrayLike) -> NDArray[np.float64]:
    """Return mean, lower and upper limit as `mean_interval`, of one or many sums: (3, ...)."""
    n = np.asarray(n, np.float64)
    mean = np.asarray(total) / n
    more = np.maximum(n - 1, 1)
    variance = np.maximum(np.asarray(squares) / n - mean * mean, 0.0) * (n / more)
    half = np.where(n > 1, Z95 * np.sqrt(variance / n), 1.0)
    return np.stack([mean, np.maximum(mean - half, 0.0), np.minimum(mean + half, 1.0)])


def mean_above_one(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return t of a mean against 1, and how likely as large a one is; NaN where terms do not vary.

    Student's law, with n - 1 degrees of freedom: of few terms their spread is hardly known.

    Examples
    --------
    >>> [float(x.round(4)) for x in mean_above_one(4, 6.0, 9.5)]
    [2.4495, 0.0459]
    """
    n = np.asarray(n, np.float64)
    mean = np.asarray(total) / np.maximum(n, 1)
    variance = np.asarray(squares) / np.maximum(n, 1) - mean * mean
    varies = (n > 1) & (variance > 1e-12 * mean * mean)  # no rounding of equal terms
    error = np.sqrt(np.where(varies, variance, 1.0) / np.maximum(n - 1, 1))
    t = np.where(varies, (mean - 1) / error, np.nan)
    return t, special.stdtr(np.maximum(n - 1, 1), -t)


def regret_of(selection: str, n: int, terms: Any) -> Estimate | None:
    """Return the regret per round of n rounds from its terms (`Moments`); None where not logged."""
    if selection == "none" or n == 0:
        return None
    if selection == "full":
        value = terms.total / n
        return Estimate(value, value, value, True)
    return mean_interval(n, terms.total, terms.squares)


def share_distance(
    p_best_mean: NDArray[np.float64], plays: NDArray[np.int64]
) -> tuple[float, float]:
    """Return TV(mean P*, action shares) and how much of it may be sampling noise, at 95 %.

    TV is convex, so TV(mean P*, mean pi) bounds the mean regret from below. The action shares are
    mean pi up to noise: its mean size is at most sum sqrt(s(1-s)/n)/2, and each round moves it by
    at most 1/n (Azuma). The bound that is certain is the distance less the noise, at least 0.
    """
    return joint_share_distance([(p_best_mean, plays)])


def joint_share_distance(
    cells: Sequence[tuple[NDArray[np.float64], NDArray[np.int64]]],
) -> tuple[float, float]:
    """Return `share_distance` of rounds in cells, fixed beforehand: mean P* and plays of each.

    Distances and noise are averaged over rounds; a choice still moves the sum by at most 1/n.
    """
    n = int(sum(plays.sum() for _, plays in cells))
    if n == 0:
        return math.nan, math.inf
    distance = noise = 0.0
    for p_best_mean, plays in cells:
        found, spread = (float(x) for x in share_distances(p_best_mean, plays))
        share = int(plays.sum()) / n
        distance, noise = distance + share * found, noise + share * spread
    return distance, noise + float(certain_noise(n))


def share_distances(
    p_best_mean: NDArray[np.float64], plays: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return TV(mean P*, shares) and its mean noise for one or many logs, (..., k) -> (...)."""
    n = np.maximum(plays.sum(axis=-1, keepdims=True), 1)
    share = plays / n
    distance = np.maximum(p_best_mean - share, 0).sum(axis=-1)
    return np.asarray(distance), 0.5 * np.sqrt(share * (1 - share) / n).sum(axis=-1)


def certain_noise(n: Any) -> Any:
    """Return what n rounds may add to the mean noise at 95 % (Azuma)."""
    return np.sqrt(math.log(20) / (2 * n))


def wilson_interval(successes: float, n: float) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share.

    Examples
    --------
    >>> [round(x, 4) for x in wilson_interval(50, 100)]
    [0.4038, 0.5962]
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = successes / n, Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def beta_interval(successes: int, n: int) -> tuple[float, float]:
    """Return the equal-tailed 95 % interval of a share under a Beta(1/2, 1/2) prior.

    Examples
    --------
    >>> [round(x, 4) for x in beta_interval(0, 20)]
    [0.0, 0.1166]
    """
    a, b = 0.5 + successes, 0.5 + n - successes
    lower = 0.0 if successes == 0 else float(special.betaincinv(a, b, 0.025))
    upper = 1.0 if successes == n else float(special.betaincinv(a, b, 0.975))
    return lower, upper


def freedman_bound(excess: float, variance: float, step: float) -> float:
    """Return a bound on P(a martingale exceeds ``excess``) from its variance and largest step.

    Freedman's inequality, exp(-x^2 / (2 (v + b x / 3))). Unlike a normal approximation it holds
    for rare arms, whose one play in a short log is many standard deviations and no evidence.

    Examples
    --------
    >>> freedman_bound(50, 25, 1) < 1e-12
    True
    >>> freedman_bound(1, 0.01, 1) > 0.1
    True
    """
    if excess <= 0:
        return 1.0
    return math.exp(-(excess**2) / (2 * (variance + step * excess / 3)))


_FINE = 0.1
"""Largest term over the standard deviation of a sum up to which its tails are taken as normal."""


def excess_probability(excess: float, variance: float, step: float) -> tuple[float, str]:
    """Return how likely a martingale is to exceed ``excess``, and ``"normal"`` or ``"bound"``.

    The normal tail where no single step of at most ``step`` weighs much, else Freedman's bound.

    Examples
    --------
    >>> excess_probability(150, 2500, 1)[1], excess_probability(3, 1, 1)[1]
    ('normal', 'bound')
    """
    if excess <= 0:
        return 1.0, "normal"
    if variance <= 0:
        return 0.0, "bound"
    if step <= _FINE * math.sqrt(variance):
        return float(special.ndtr(-excess / math.sqrt(variance))), "normal"
    return freedman_bound(excess, variance, step), "bound"


def binomial_probability(successes: int, n: int, share: float) -> tuple[float, float]:
    """Return P(X <= successes) and P(X >= successes) for a binomial X, exactly.

    Examples
    --------
    >>> [round(x, 4) for x in binomial_probability(8, 10, 0.5)]
    [0.9893, 0.0547]
    """
    below = float(special.bdtr(successes, n, share)) if successes < n else 1.0
    above = float(special.bdtrc(successes - 1, n, share)) if successes > 0 else 1.0
    return below, above
