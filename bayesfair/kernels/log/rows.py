"""Rows of a log in one pass: made of columns, their sums and decimals, sorted by a code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.typing import Floats

__all__ = [
    "by_code",
    "decimals_of",
    "fixed",
    "in_order",
    "look_at_rows",
    "runs_of_zeros",
    "side_by_side",
]


@compiled(error_model="numpy", fastmath={"reassoc"})
def _look_at_rows(pi, arm, power, slack):  # type: ignore[no-untyped-def]
    largest, finer, odd = 0.0, False, False
    for t in range(pi.shape[0]):
        total = 0.0
        for i in range(pi.shape[1]):
            p = pi[t, i]
            odd |= not 0.0 <= p <= 1.000001  # NaN fails too
            total += p
            scaled = p * power
            room = min(slack, 4 * max(scaled * 4e-16, 1e-12))
            finer |= abs(scaled - np.rint(scaled)) > room
        odd |= pi[t, arm[t]] <= 0.0
        largest = max(largest, abs(total - 1.0))
    return (np.inf if odd else largest), finer


def look_at_rows(
    pi: NDArray[np.float64], arm: NDArray[np.int32], decimals: int
) -> tuple[float, bool]:
    """Return how far a row of ``(T, k)`` probabilities sums from 1 at most, and if any is finer.

    The distance is infinite if a row needs a closer look: a value outside [0, 1], NaN, or a chosen
    arm with probability 0; finer is what has more than so many decimals. Arrays are C-contiguous.

    Examples
    --------
    >>> look_at_rows(np.array([[0.5, 0.25], [0.5, 0.5]]), np.array([0, 1], dtype=np.int32), 2)
    (0.25, False)
    >>> look_at_rows(np.array([[1.0, 0.0]]), np.array([1], dtype=np.int32), 0)
    (inf, False)
    """
    error, finer = _look_at_rows(fixed(pi), fixed(arm), 10.0**decimals, _slack(decimals))
    return error, finer


@compiled()
def _runs_of_zeros(pi, n, lead, trail, begin, end, zeros):  # type: ignore[no-untyped-def]
    for t in range(pi.shape[0]):
        for j in range(pi.shape[1]):  # without branches, which no processor could foresee
            above, zero = np.int64(pi[t, j] > 0.0), np.int64(pi[t, j] == 0.0)
            before = np.int64(end[j] == 0)
            n[j] += above + zero
            zeros[j] += zero
            lead[j] += zero * before
            trail[j] = (trail[j] + zero) * (1 - above)
            begin[j] += t * above * before
            end[j] += (t + 1 - end[j]) * above


def runs_of_zeros(pi: Floats) -> NDArray[np.int64]:
    """Return where columns of ``(T, k)`` probabilities, NaN apart, begin and end to be above 0.

    Rows of the result, (6, k): probabilities; zeros before the first above 0, and after the last
    (of a column without one, all of them); that first row, and the one after the last (0 without
    one); 1 if a zero lies between them.

    Examples
    --------
    >>> runs_of_zeros(np.array([[0.0], [0.0], [0.5], [0.0], [0.5], [0.0], [np.nan]])).T
    array([[6, 2, 1, 2, 5, 1]])
    """
    found = np.zeros((6, pi.shape[1]), np.int64)
    _runs_of_zeros(fixed(np.ascontiguousarray(pi)), *found)
    _, lead, trail, _, end, zeros = found
    trail[end == 0] = lead[end == 0]
    zeros[:] = (end > 0) & (zeros > lead + trail)
    return found


def _slack(decimals: int) -> float:
    """Return 1e-3 of a unit of the last place, but never finer than double precision allows."""
    return 1e-3 if decimals < 9 else 1e-2


def fixed[A: NDArray[Any] | None](values: A) -> A:
    """Return a read-only view: one compiled version serves all arrays; None stays None."""
    if values is None:
        return values
    view = values.view()
    view.flags.writeable = False
    return view


@compiled()
def _put_eight(out, j, a, b, c, d, e, f, g, h):  # type: ignore[no-untyped-def]
    for t in range(out.shape[0]):
        row = out[t, j : j + 8]
        row[0], row[1], row[2], row[3] = a[t], b[t], c[t], d[t]
        row[4], row[5], row[6], row[7] = e[t], f[t], g[t], h[t]


@compiled()
def _put_two(out, j, a, b):  # type: ignore[no-untyped-def]
    for t in range(out.shape[0]):
        out[t, j], out[t, j + 1] = a[t], b[t]


_WIDE, _LONG = 8, 1 << 13


def side_by_side(columns: Sequence[NDArray[np.float64]], out: NDArray[np.float64]) -> None:
    """Write columns ``(T,)`` of floats side by side into ``out``, ``(T, k)``.

    Eight at a time, as a line of the cache holds, and in blocks of rows that stay in it.

    Examples
    --------
    >>> out = np.empty((2, 2))
    >>> side_by_side([np.array([1.0, 2.0]), np.array([3.0, 4.0])], out)
    >>> out
    array([[1., 3.],
           [2., 4.]])
    """
    columns, k = [fixed(c) for c in columns], len(columns)
    if k == 1:
        out[:, 0] = columns[0]
        return
    n_wide = k - k % _WIDE
    for low in range(0, len(out), _LONG):
        block = out[low : low + _LONG]
        some = [c[low : low + _LONG] for c in columns]
        for j in range(0, n_wide, _WIDE):
            _put_eight(block, j, *some[j : j + _WIDE])
        for left in range(n_wide, k, 2):
            j = min(left, k - 2)  # the one before an odd last one is written twice
            _put_two(block, j, *some[j : j + 2])


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
    slack = np.array([_slack(d) for d in tried])
    out = np.full(len(values), start, np.int8)
    _decimals(fixed(values), fixed(powers), fixed(slack), out)
    return out
