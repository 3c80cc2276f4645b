"""Arms that nothing tells apart: never chosen, with the same beliefs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.typing import Floats

__all__ = ["Alike", "alike"]

MOST_APART = 1000
"""Up to so many such arms each has draws of its own."""

LEAST_TOGETHER = 100
"""So many at least are put together."""


class Alike(NamedTuple):
    """Arms put together.

    Attributes
    ----------
    apart : (n,) array
        Arms that stand for themselves.
    group : (k,) array
        The group of every arm; -1 of those apart.
    of : (g,) array
        One arm of each group.
    size : (g,) array
        Arms in each.
    """

    apart: NDArray[np.int64]
    group: NDArray[np.int64]
    of: NDArray[np.int64]
    size: NDArray[np.int64]


def alike(table: Floats, plays: Floats | NDArray[np.int64]) -> Alike | None:
    """Return which arms stand for one another; None where that is not worth the while.

    Parameters
    ----------
    table : (k, p) array
        What is believed of each arm.
    plays : (k,) array
        How often each was chosen.
    """
    idle = np.flatnonzero(plays == 0)
    if len(idle) <= MOST_APART:
        return None
    _, first, which, size = np.unique(
        table[idle], axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    large = size >= LEAST_TOGETHER
    if size[large].sum() <= MOST_APART:
        return None
    number = np.where(large, np.cumsum(large) - 1, -1)
    group = np.full(len(plays), -1, np.int64)
    group[idle] = number[which.reshape(-1)]
    return Alike(np.flatnonzero(group < 0), group, idle[first[large]], size[large])
