"""Rows of a log in one pass: whether they are in order, their decimals, rows sorted by a code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.typing import Floats

__all__ = ["by_code", "decimals_of", "fixed", "in_order", "largest_row_error"]


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


def fixed[A: NDArray[Any] | None](values: A) -> A:
    """Return a read-only view: one compiled version serves all arrays; None stays None."""
    if values is None:
        return values
    view = values.view()
    view.flags.writeable = False
    return view


@compiled()
def _move(codes, place, rows, out, back):  # type: ignore[no-untyped-def]
    for t in range(codes.shape[0]):
        c = np.uint32(codes[t])  # unsigned: no index counts from the end
        at = place[c]
        place[c] = at + 1
        source, target = (at, t) if back else (t, at)
        for i in range(rows.shape[1]):
            out[target, i] = rows[source, i]


def _moved(
    values: NDArray[Any], codes: NDArray[np.int32], ends: NDArray[np.int64], back: bool
) -> NDArray[Any]:
    # by bits: one compiled version for each size of an item
    bits = f"u{values.dtype.itemsize}"
    rows = np.ascontiguousarray(values).view(bits)
    rows = rows[:, None] if rows.ndim == 1 else rows
    out = np.empty(rows.shape, rows.dtype)
    place = ends - np.diff(ends, prepend=0)
    _move(fixed(codes), place, fixed(rows), out, back)
    out.flags.writeable = False
    return out.view(values.dtype).reshape(values.shape)


def by_code(
    values: NDArray[Any], codes: NDArray[np.int32], ends: NDArray[np.int64]
) -> NDArray[Any]:
    """Return rows (T, ...) sorted by code, those of one code in their order.

    They are read one after the other: where codes are many, several times as fast as an index.

    Parameters
    ----------
    values : (T, ...) array
    codes : (T,) array of int32
    ends : (c,) array of int
        How many rows have this code or a smaller one.

    Examples
    --------
    >>> codes = np.array([1, 0, 1], np.int32)
    >>> by_code(np.array([7.0, 8.0, 9.0]), codes, np.array([1, 3]))
    array([8., 7., 9.])
    """
    return _moved(values, codes, ends, False)


def in_order(
    values: NDArray[Any], codes: NDArray[np.int32], ends: NDArray[np.int64]
) -> NDArray[Any]:
    """Return rows that `by_code` sorted in their order before.

    Examples
    --------
    >>> in_order(np.array([8.0, 7.0, 9.0]), np.array([1, 0, 1], np.int32), np.array([1, 3]))
    array([7., 8., 9.])
    """
    return _moved(values, codes, ends, True)


@compiled(error_model="numpy")
def _decimals(values, powers, slack, out):  # type: ignore[no-untyped-def]
    for t in range(values.shape[0]):
        out[t] += powers.shape[0]
        for d in range(powers.shape[0]):
            scaled = values[t] * powers[d]
            scaled = 0.0 if np.isinf(scaled) else scaled
            room = min(slack[d], 4 * max(abs(scaled) * 4e-16, 1e-12))
            if abs(scaled - np.rint(scaled)) <= room:
                out[t] -= powers.shape[0] - d
                break


def decimals_of(values: Floats, start: int, most: int) -> NDArray[np.int8]:
    """Return the decimals of every value, at least ``start``; one more than ``most`` for more.

    Examples
    --------
    >>> decimals_of(np.array([0.5, 0.125, 1 / 3]), 0, 12)
    array([ 1,  3, 13], dtype=int8)
    """
    tried = range(start, most + 1)
    powers = np.array([10.0**d for d in tried])
    # 1e-3 of a unit of the last place, but never finer than double precision allows
    slack = np.array([1e-3 if d < 9 else 1e-2 for d in tried])
    out = np.full(len(values), start, np.int8)
    _decimals(fixed(values), fixed(powers), fixed(slack), out)
    return out
