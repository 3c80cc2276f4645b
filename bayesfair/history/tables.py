"""Tables of rounds by arms, as callers hand them over: as numbers, and of rules known in part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.checks import counted, first_where
from bayesfair.errors import DataError, ProbabilityError
from bayesfair.typing import Where

__all__ = ["covered_chances", "matrix_of", "own"]


def own(values: ArrayLike, dtype: type) -> NDArray[Any]:
    """Return values as an array in C order that nobody can write to from elsewhere.

    A copy, but for an array that is read-only itself, as is all that it is a view of.

    Examples
    --------
    >>> given = np.zeros(2)
    >>> own(given, np.float64) is given
    False
    >>> given.flags.writeable = False
    >>> own(given, np.float64) is given
    True
    """
    held: Any = values
    while isinstance(held, np.ndarray) and not held.flags.writeable:
        held = held.base
    closed = isinstance(values, np.ndarray) and held is None
    return np.array(values, dtype=dtype, order="C", copy=None if closed else True)


def matrix_of(name: str, values: ArrayLike | None, source: str) -> NDArray[np.float64] | None:
    """Return a table as numbers, in the order of rows.

    Raises
    ------
    DataError
        If it holds something else, or is no table.
    """
    if values is None:
        return None
    try:
        matrix = own(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} of {source} is not numeric: {error}.") from None
    if matrix.ndim != 2:
        raise DataError(f"{name} must be (rounds, arms), got shape {matrix.shape}.")
    return matrix


def covered_chances(
    covered: NDArray[np.float64] | None,
    propensity: NDArray[np.float64] | None,
    arm: NDArray[np.int32],
    arms: Sequence[str],
    offered: NDArray[np.bool_] | None,
    where: Where,
) -> NDArray[np.float64] | None:
    """Return the probabilities of a rule that is known in part, checked.

    Raises
    ------
    DataError, ProbabilityError
        Naming the first round that does not fit the propensities, the offers, or a sum of 1.
    """
    if covered is None:
        return None
    if propensity is None or covered.shape != (len(arm), len(arms)):
        lacks = "needs propensity=, the chosen arms' probabilities" if propensity is None else (
            f"has shape {covered.shape}, expected (rounds, arms) = {(len(arm), len(arms))}"
        )  # fmt: skip
        raise DataError(f"covered {lacks}.", kind="covered", column="covered")
    chosen = covered[np.arange(len(arm)), arm]
    total = np.nansum(covered, axis=1)
    hidden = np.zeros(len(arm), np.bool_) if offered is None else (
        (~offered & np.isfinite(covered)).any(axis=1)
    )  # fmt: skip
    for wrong, why in (
        ((covered < 0).any(axis=1) | (total > 1 + 1e-6), "are below 0, or sum to more than 1"),
        (~(np.abs(chosen - propensity) <= 1e-3), "differ from propensity for the chosen arm"),
        (hidden, "hold an arm that is not on offer"),
    ):
        if first := first_where(wrong):
            raise ProbabilityError(
                f"{where(first.at)}: the probabilities of covered {why} "
                f"({counted(first.n, 'such round')}). NaN stands for an arm whose own is unknown.",
                kind="covered", column="covered", value=float(total[first.at]),
            )  # fmt: skip
    return covered
