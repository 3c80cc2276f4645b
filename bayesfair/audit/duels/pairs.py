"""Pairs of items: how far apart their probabilities and their worths are.

Tables of pairs have them last, in the order of `numpy.triu_indices`.
"""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.laws.races import race_total_variation
from bayesfair.typing import Floats

__all__ = ["distance_limits", "distances", "least_gaps"]


def least_gaps(lower: Floats, upper: Floats) -> Floats:
    """Return how far two probabilities within limits ``(..., k)`` are apart at least, ``(..., P)``.

    Below 0 where they may be equal. With the limits in the other order: at most.

    Examples
    --------
    >>> low, high = np.array([0.1, 0.4]), np.array([0.2, 0.5])
    >>> least_gaps(low, high).round(2), least_gaps(high, low).round(2)
    (array([0.2]), array([0.4]))
    """
    i, j = np.triu_indices(lower.shape[-1], 1)
    return np.fmax(lower[..., i] - upper[..., j], lower[..., j] - upper[..., i])


def distances(log_worth: Floats) -> Floats:
    """Return the divergences of items with these log-worths ``(..., k)``, ``(..., P)``."""
    i, j = np.triu_indices(log_worth.shape[-1], 1)
    return race_total_variation(log_worth[..., i] - log_worth[..., j])


def distance_limits(ends: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest divergence of two items between two beliefs, ``(P,)``.

    Every gap of log-worths counts as anywhere between its values at the two ends ``(2, k)``.
    """
    i, j = np.triu_indices(ends.shape[-1], 1)
    gap = ends[:, i] - ends[:, j]
    size = np.abs(gap)
    least = np.where(gap[0] * gap[1] < 0, 0.0, size.min(axis=0))
    return race_total_variation(least), race_total_variation(size.max(axis=0))
