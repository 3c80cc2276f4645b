"""Normal estimates of many groups, partially pooled: one quadrature over their spread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from bayesfair.typing import Floats

__all__ = ["Pooled", "pooled"]

_LEAST, _MOST, _POINTS = 1e-4, 6.0, 160  # of the spread, in units of its prior's scale
_EXACT = 1e-3  # errors below count as this: equal exact values would leave the spread no law
_HALVINGS = 40


class Pooled(NamedTuple):
    """Mean and limits, each (3,): of the common mean, of the spread; (G, 3) of the groups."""

    mean: Floats
    spread: Floats
    groups: Floats


def pooled(values: Floats, errors: Floats, scale: float, *, each: bool = True) -> Pooled:
    r"""Return what groups have in common, how far they spread, and each of them in this light.

    :math:`y_g \sim N(\theta_g, s_g^2)`, :math:`\theta_g \sim N(\mu, \tau^2)`, :math:`\mu` flat,
    :math:`\tau` half-normal. Given :math:`\tau` all others are normal; over it a trapezoidal sum
    in its logarithm.

    Parameters
    ----------
    values, errors : (G,) arrays
        y, and s, at least 0; one below a thousandth of `scale` counts as this.
    scale : float
        Of the half-normal prior.
    each : bool
        False leaves the groups out.

    Returns
    -------
    Pooled
        Means, 2.5 and 97.5 % points.

    Examples
    --------
    >>> far = pooled(np.array([0.1, 0.5]), np.array([0.01, 0.01]), 0.25)
    >>> far.mean[0].round(3).item(), far.groups[:, 0].round(2).tolist()
    (0.3, [0.1, 0.5])
    """
    variance = np.maximum(errors, _EXACT * scale) ** 2
    tau = scale * np.exp(np.linspace(np.log(_LEAST), np.log(_MOST), _POINTS))
    precision = 1.0 / (variance + tau[:, None] ** 2)  # (points, G)
    known = precision.sum(axis=1)
    mu = (precision * values).sum(axis=1) / known
    fit = 0.5 * (np.log(precision) - precision * (values - mu[:, None]) ** 2).sum(axis=1)
    log = fit - 0.5 * np.log(known) - 0.5 * (tau / scale) ** 2 + np.log(tau)
    weight = np.exp(log - log.max())
    weight[[0, -1]] *= 0.5
    weight /= weight.sum()
    below = np.cumsum(weight)
    limits = np.interp([0.025, 0.975], below - weight / 2, tau)
    spread = np.array([weight @ tau, *limits])
    mean = _mixed(weight, mu[None], np.sqrt(1.0 / known)[None])[0]
    groups = np.empty((0, 3))
    if each:
        kept = tau**2 * precision.T  # (G, points)
        centre = kept * values[:, None] + (1 - kept) * mu
        width = np.sqrt(kept * variance[:, None] + (1 - kept) ** 2 / known)
        groups = _mixed(weight, centre, width)
    return Pooled(mean, spread, groups)


def _mixed(weight: Floats, centre: Floats, width: Floats) -> Floats:
    """Return mean, 2.5 and 97.5 % points of mixtures of normals, (n, 3), by halving."""
    found = [centre @ weight]
    for level in (0.025, 0.975):
        low, high = (centre - 9 * width).min(axis=1), (centre + 9 * width).max(axis=1)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            under = ndtr((middle[:, None] - centre) / width) @ weight < level
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        found.append((low + high) / 2)
    return np.stack(found, axis=1)
