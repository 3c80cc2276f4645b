"""Orders and outcomes of all pairs of items over many draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.team import Team

__all__ = ["before_counts", "mean_outcomes"]

_BLOCK = 512  # draws at a time, of all items: they stay in the cache
_SMALL = 1e-3  # chances below this are summed on their own
_FEW = 100  # items below which a second thread costs more than it saves


@compiled()
def _before_counts(ranks):  # type: ignore[no-untyped-def]
    k, n = ranks.shape
    table = np.zeros((k, k), np.int64)
    for i in range(k):
        for j in range(i + 1, k):
            count = np.int32(0)
            for d in range(n):
                count += ranks[i, d] < ranks[j, d]
            table[i, j] = count
            table[j, i] = n - count
    return table


def before_counts(ranks: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return in how many draws item i ranks before item j, ``(k, k)``; diagonal 0.

    Parameters
    ----------
    ranks : (n, k) array of int
        No two equal in a draw.

    Examples
    --------
    >>> before_counts(np.array([[1, 2], [2, 1], [1, 2]], np.int32))
    array([[0, 2],
           [1, 0]])
    """
    # half the width, twice the speed
    narrow = np.int16 if ranks.shape[1] < 2**15 else np.int32
    table: NDArray[np.int64] = _before_counts(np.ascontiguousarray(ranks.T.astype(narrow)))
    return table


# sums may be reordered, so that several draws are added at once; NaN and infinity stay as they are
@compiled(fastmath={"reassoc", "contract", "nsz"})
def _add_outcomes(rows, root, edge, nu, level, win, tie):  # type: ignore[no-untyped-def]
    k, n = root.shape
    for begin in range(0, n, _BLOCK):
        half = (min(n, begin + _BLOCK) - begin) // 2
        middle = begin + half
        odd = min(n, begin + _BLOCK) - begin > 2 * half
        for i in rows:
            ahead = root[i] * edge
            a1 = ahead[begin:middle] ** 2
            a2 = ahead[middle : middle + half] ** 2
            u1 = ahead[begin:middle] * nu[begin:middle]
            u2 = ahead[middle : middle + half] * nu[middle : middle + half]
            for j in range(i + 1 if level else 0, k):
                if i == j:
                    continue
                b1 = root[j, begin:middle]
                b2 = root[j, middle : middle + half]
                won = 0.0
                lost = 0.0
                tied = 0.0
                # two draws share a division: x / p + y / q = (x q + y p) / (p q)
                for d in range(half):
                    y1 = b1[d] * b1[d]
                    y2 = b2[d] * b2[d]
                    t1 = u1[d] * b1[d]
                    t2 = u2[d] * b2[d]
                    p = a1[d] + y1 + t1
                    q = a2[d] + y2 + t2
                    part = 1.0 / (p * q)
                    won += (a1[d] * q + a2[d] * p) * part
                    lost += (y1 * q + y2 * p) * part
                    tied += (t1 * q + t2 * p) * part
                if odd:
                    d = middle + half
                    a = ahead[d] ** 2
                    b = root[j, d]
                    equal = nu[d] * ahead[d] * b
                    part = 1.0 / (a + b * b + equal)
                    won += a * part
                    lost += b * b * part
                    tied += equal * part
                win[i, j] += won / n
                tie[i, j] += tied / n
                if level:
                    win[j, i] += lost / n
                    tie[j, i] = tie[i, j]


# as above without ties, which is most of the work of many items
@compiled(fastmath={"reassoc", "contract", "nsz"})
def _add_wins(rows, worth, edge, level, win):  # type: ignore[no-untyped-def]
    k, n = worth.shape
    for begin in range(0, n, _BLOCK):
        size = min(n, begin + _BLOCK) - begin
        half = size // 2
        middle = begin + half
        for i in rows:
            a = worth[i] * edge
            a1 = a[begin:middle]
            a2 = a[middle : middle + half]
            for j in range(i + 1 if level else 0, k):
                if i == j:
                    continue
                b1 = worth[j, begin:middle]
                b2 = worth[j, middle : middle + half]
                won = 0.0
                for d in range(half):
                    p = a1[d] + b1[d]
                    q = a2[d] + b2[d]
                    won += (a1[d] * q + a2[d] * p) / (p * q)
                if size > 2 * half:
                    d = begin + size - 1
                    won += a[d] / (a[d] + worth[j, d])
                win[i, j] += won / n
                if not level:
                    continue
                lost = size - won
                if lost < _SMALL * size:  # a difference of nearly equal numbers has no digits left
                    lost = 0.0
                    for d in range(begin, begin + size):
                        lost += worth[j, d] / (a[d] + worth[j, d])
                win[j, i] += lost / n


def mean_outcomes(
    log_worth: NDArray[np.float64],
    log_tie: NDArray[np.float64] | None,
    order_effect: NDArray[np.float64] | None,
    *,
    threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the mean over draws of P(i beats j) and of P(tie), ``(k, k)``; diagonal 0.

    .. math:: P(i) : P(j) : P(tie) = \nu_i e^{\delta} : \nu_j : \tau\sqrt{\nu_i e^\delta \nu_j}

    Parameters
    ----------
    log_worth : (n, k) array
        Spread, order effect included, below about 600 in each draw.
    log_tie, order_effect : (n,) arrays, optional
        :math:`\log \tau` (none: no ties), and the advantage of i in log-odds.
    threads : int
        Used from 100 items on.

    Examples
    --------
    >>> win, tie = mean_outcomes(np.log([[5.0, 3.0]]), np.log([2 / 15**0.5]), None)
    >>> win.round(3)[0, 1], tie.round(3)[0, 1]
    (np.float64(0.5), np.float64(0.2))
    """
    n = len(log_worth)
    middle = (log_worth.max(axis=1) + log_worth.min(axis=1)) / 2
    root = np.exp((log_worth - middle[:, None]) / 2).T.copy()
    edge = np.ones(n) if order_effect is None else np.exp(order_effect / 2)
    nu = np.zeros(n) if log_tie is None else np.exp(log_tie)
    k = root.shape[0]
    win, tie = np.zeros((2, k, k))
    level = order_effect is None
    worth = root**2 if log_tie is None else root

    def add(rows: NDArray[np.int64]) -> None:
        if log_tie is None:
            _add_wins(rows, worth, edge**2, level, win)
        else:
            _add_outcomes(rows, root, edge, nu, level, win, tie)

    with Team(threads if k > _FEW else 1) as team:
        team.share(add, k)
    return win, tie
