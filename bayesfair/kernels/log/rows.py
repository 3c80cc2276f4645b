"""One pass over rows of probabilities, to find that nothing is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled

__all__ = ["fixed", "largest_row_error"]


@compiled()
def _largest_row_error(pi, arm):  # type: ignore[no-untyped-def]
    largest = 0.0
    for t in range(pi.shape[0]):
        total = 0.0
        for i in range(pi.shape[1]):
            p = pi[t, i]
            if not 0.0 <= p <= 1.000001:  # NaN fails too
                return np.inf
            total += p
        if pi[t, arm[t]] <= 0.0:
            return np.inf
        largest = max(largest, abs(total - 1.0))
    return largest


def largest_row_error(pi: NDArray[np.float64], arm: NDArray[np.int32]) -> float:
    """Return how far a row of ``(T, k)`` probabilities sums from 1 at most.

    Infinite if a row needs a closer look: a value outside [0, 1], NaN, or a chosen arm with
    probability 0. Arrays must be C-contiguous.

    Examples
    --------
    >>> largest_row_error(np.array([[0.5, 0.25], [0.5, 0.5]]), np.array([0, 1], dtype=np.int32))
    0.25
    >>> largest_row_error(np.array([[1.0, 0.0]]), np.array([1], dtype=np.int32))
    inf
    """
    return float(_largest_row_error(pi, arm))


def fixed(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: one compiled version serves frozen and ordinary arrays."""
    view = values.view()
    view.flags.writeable = False
    return view
