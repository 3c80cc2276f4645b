"""Log likelihood of single rewards at posterior draws of an arm's parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["cell_log_likelihood"]

FloatArray = NDArray[np.float64]

_TINY = 1e-300


def cell_log_likelihood(
    family: str,
    reads: Mapping[str, FloatArray],
    *,
    arm: NDArray[np.int64],
    reward: FloatArray,
    time_bin: NDArray[np.int64],
    level: FloatArray | None = None,
) -> FloatArray:
    """Return log p(reward | parameters of the arm), per draw and cell, ``(..., C)``.

    Parameters
    ----------
    family : {"bernoulli", "finite", "poisson", "normal"}
        Reward family.
    reads : mapping of name to array
        Draws, ``(..., bin, k)``, or ``(..., bin, k, L)`` for ``probability``; a model without time
        bins has one.
    arm, reward, time_bin : (C,) arrays
        The cells.
    level : (L,) array, optional
        Ascending reward levels of the finite family.
    """
    if family == "bernoulli":
        theta = reads["theta"][..., time_bin, arm]
        success = np.log(np.maximum(theta, _TINY))
        # a draw that rounds to 1 would exclude a failure for good
        failure = np.log1p(-np.minimum(theta, 1 - 2.0**-53))
        return np.where(reward == 1, success, failure)
    if family == "finite":
        assert level is not None
        place = np.minimum(np.searchsorted(level, reward), len(level) - 1)
        mass = reads["probability"][..., time_bin, arm, place]
        return np.asarray(np.log(np.maximum(mass, _TINY)))
    if family == "poisson":
        rate = np.maximum(reads["rate"][..., time_bin, arm], _TINY)
        return np.asarray(reward * np.log(rate) - rate - special.gammaln(reward + 1))
    sd = reads["sd"][..., time_bin, arm]
    z = (reward - reads["mean"][..., time_bin, arm]) / sd
    return np.asarray(-0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi))
