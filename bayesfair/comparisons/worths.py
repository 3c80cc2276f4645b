"""Worths of items: those that are known, and those of log-worths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import as_numbers, listed
from bayesfair.base.labels import by_label
from bayesfair.errors import ArmError, DataError
from bayesfair.kernels.laws.gauss_best import gauss_best_probability

__all__ = ["known_worths", "worth_of"]


def known_worths(worth: Any, items: Sequence[str]) -> NDArray[np.float64]:
    """Return worths in the order of the items, ``(k,)``.

    Parameters
    ----------
    worth : (k,) array or mapping of label to worth
        Positive and finite, of any scale.
    items : sequence of str

    Raises
    ------
    ArmError, DataError
        If one lacks, is of no item, or is no worth.

    Examples
    --------
    >>> known_worths({"b": 1, "a": 3}, ["a", "b"])
    array([3., 1.])
    """
    if isinstance(worth, Mapping):
        named = by_label(worth, "item", "worth")
        lacking = [item for item in items if item not in named]
        if lacking:
            raise ArmError(
                f"worth= has no value for {lacking[0]!r} ({len(lacking)} lacking). Give "
                "each item its own.",
                kind="unknown_item",
                column="worth",
                value=lacking[0],
            )
        known = set(items)
        if strange := [item for item in named if item not in known]:
            raise ArmError(
                f"worth= names {strange[0]!r} ({len(strange)} such), which is no item here: "
                f"{listed(items, 6)}. Leave it out, or correct its name.",
                kind="unknown_item",
                column="worth",
                value=strange[0],
            )
        worth = [named[item] for item in items]
    values = as_numbers(worth, "worth")
    if values.shape != (len(items),) or not np.all(np.isfinite(values) & (values > 0)):
        raise DataError(
            f"worth={worth!r:.60} must be positive and finite, one number for each of {len(items)} "
            "items.",
            kind="worth",
            column="worth",
        )
    return values


def worth_of(model: str, log_worth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return worths, ``(..., k)``: the probability that an item is the best of all.

    Proportional to exp(log_worth), except under Thurstone's model, where performances are normal.
    """
    if model == "thurstone":
        return gauss_best_probability(log_worth)
    worth = np.exp(log_worth - log_worth.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = worth / worth.sum(axis=-1, keepdims=True)
    return shares
