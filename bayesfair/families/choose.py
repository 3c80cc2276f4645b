"""Which reward family the observed rewards suggest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import counted
from bayesfair.base.notices import Notice

__all__ = ["enough_levels", "family_of_levels"]

# More distinct values than this are counts or measurements, not a rating scale.
_MANY_LEVELS = 10
# So few may be a scale even where each was seen once.
_FEW_LEVELS = 5


def family_of_levels(levels: NDArray[np.float64], n: int) -> tuple[str, str]:
    """Return the family that `n` observed rewards suggest, and a sentence saying why.

    Rewards 0 and 1 are ``"bernoulli"``; at most 10 distinct values ``"finite"``, unless they are
    fractions that hardly repeat (five or more, in more than half of the rewards: measurements of a
    short log); whole numbers from 0 up ``"poisson"``; everything else ``"normal"``. Families that
    a user registered are never chosen unasked.

    Examples
    --------
    >>> family_of_levels(np.array([3.0, 4.0, 5.0]), 3)
    ('finite', 'family "finite" was chosen because the rewards take 3 distinct values.')
    """
    whole = bool(np.all(levels == np.rint(levels)))
    if np.isin(levels, (0.0, 1.0)).all():
        family, why = "bernoulli", "the rewards are 0 and 1"
    elif levels.size <= _MANY_LEVELS and (
        whole or levels.size < _FEW_LEVELS or 2 * levels.size <= n
    ):
        family, why = "finite", f"the rewards take {counted(levels.size, 'distinct value')}"
    elif levels[0] >= 0 and whole:
        family, why = (
            "poisson",
            f"the rewards are whole numbers from {levels[0]:g} to {levels[-1]:g}",
        )
    else:
        family, why = "normal", f"the rewards take {levels.size} distinct values, not all whole"
    costs = levels.size and levels[0] < 0 and levels[-1] <= 0
    sign = " None is above 0: more counts as better, so if these are costs, turn their sign."
    note = Notice(
        f'family "{family}" was chosen because {why}.{sign if costs else ""}',
        kind="family",
        column="family",
        value=family,
    )
    return family, note


def enough_levels(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return as many of the ascending values as choose the same family: of many, a few stand."""
    if levels.size <= _MANY_LEVELS:
        return levels
    parts = levels[levels != np.rint(levels)]
    return np.unique(np.concatenate([levels[: _MANY_LEVELS + 1], parts[:1], levels[-1:]]))
