r"""Log-likelihoods of duels as functions of the gap: logistic, probit, and Davidson's with ties.

Each cell holds the outcomes of one pair in one presentation, eta is the gap in favour of its left
item. `curves` gives, per cell, the value and its derivatives; everything else is linear algebra.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr

__all__ = ["Curves", "DuelCounts", "curves", "log_likelihood_draws"]

# a block of cells by draws that stays in the cache
_CELLS, _DRAWS = 64, 1024


_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class DuelCounts:
    """Outcomes per unordered pair and presentation; ``(C,)`` arrays.

    Attributes
    ----------
    left, right : array of int
        Items, left < right.
    first : array of int
        1 = `left` was shown first, -1 = `right`, 0 = neither or not looked at.
    wins_left, wins_right, ties : array of float
        Weighted counts.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    first: NDArray[np.int8]
    wins_left: NDArray[np.float64]
    wins_right: NDArray[np.float64]
    ties: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """Comparisons per cell."""
        return self.wins_left + self.wins_right + self.ties


class Curves(NamedTuple):
    """Log-likelihood per cell and its derivatives in the gap and in the log tie parameter.

    ``(C,)`` arrays; the second derivatives are negated, so that `gap2` and `tie2` are >= 0.
    """

    value: NDArray[np.float64]
    gap: NDArray[np.float64]
    gap2: NDArray[np.float64]
    tie: NDArray[np.float64]
    tie2: NDArray[np.float64]
    cross: NDArray[np.float64]


def curves(
    link: str,
    counts: NDArray[np.float64],
    eta: NDArray[np.float64],
    log_tie: float = 0.0,
) -> Curves:
    r"""Return the log-likelihood of each cell and its derivatives.

    Parameters
    ----------
    link : {"logit", "probit", "davidson"}
        P(left) = 1 / (1 + exp(-eta)); Phi(eta); or P(left) : P(right) : P(tie) =
        exp(eta / 2) : exp(-eta / 2) : exp(log_tie).
    counts : (3, C) array
        Wins of left, wins of right, ties (zero unless Davidson).
    eta : (C,) array
        Gaps, on the model's own scale.
    log_tie : float
        Logarithm of Davidson's tie parameter nu.

    Examples
    --------
    >>> found = curves("davidson", np.array([[5.0], [3.0], [2.0]]), np.log([5 / 3]),
    ...                np.log(2 / 15**0.5))
    >>> bool(abs(found.gap[0]) + abs(found.tie[0]) < 1e-12)
    True
    """
    left, right, tie = counts
    none = np.zeros_like(eta)
    if link == "logit":
        n = left + right
        p = expit(eta)
        value = left * eta - n * np.logaddexp(0.0, eta)
        return Curves(value, left - n * p, n * p * (1 - p), none, none, none)
    if link == "probit":
        up, down = log_ndtr(eta), log_ndtr(-eta)
        density = -0.5 * eta**2 - _HALF_LOG_TWO_PI
        mills_up, mills_down = np.exp(density - up), np.exp(density - down)
        gap2 = left * mills_up * (eta + mills_up) + right * mills_down * (mills_down - eta)
        gap = left * mills_up - right * mills_down
        return Curves(left * up + right * down, gap, gap2, none, none, none)
    n = left + right + tie
    total = np.logaddexp(np.logaddexp(eta / 2, -eta / 2), log_tie)
    p_left, p_right = np.exp(eta / 2 - total), np.exp(-eta / 2 - total)
    p_tie = np.exp(log_tie - total)
    value = (left - right) * eta / 2 + tie * log_tie - n * total
    lead = p_left - p_right
    return Curves(
        value,
        (left - right - n * lead) / 2,
        n * (p_left + p_right - lead**2) / 4,
        tie - n * p_tie,
        n * p_tie * (1 - p_tie),
        -n * lead * p_tie / 2,
    )


class _Pieces(NamedTuple):
    """What one block of cells and draws needs."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    first: NDArray[np.int8]
    counts: NDArray[np.float64]


def log_likelihood_draws(
    link: str,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    first: NDArray[np.int8],
    counts: NDArray[np.float64],
    log_worth: NDArray[np.float64],
    order_effect: NDArray[np.float64] | None = None,
    log_tie: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the log-likelihood of many draws at once.

    Parameters
    ----------
    link : {"logit", "probit", "davidson"}
    left, right, first : (C,) arrays of int
        Items of each cell; 1, -1, 0 = left, right, neither shown first.
    counts : (3, C) array
        Wins of left, wins of right, ties.
    log_worth : (n, k) array
    order_effect, log_tie : (n,) arrays, optional

    Returns
    -------
    (n,) array

    Notes
    -----
    Logit and Davidson need one logarithm per cell and draw: of the sum of the outcomes' weights.
    """
    n, span = len(log_worth), float(np.ptp(log_worth, axis=1).max(initial=0.0))
    extra = 0.0 if order_effect is None else float(np.abs(order_effect).max())
    pieces = _Pieces(left, right, first, counts)
    if link == "probit" or span + extra > 600:  # beyond this, exp() of a worth may overflow
        return _careful(link, pieces, log_worth, order_effect, log_tie)
    half = 0.5 if link == "davidson" else 1.0
    gap = np.zeros(log_worth.shape[1])
    total = counts.sum(axis=0)
    # sum over cells of wins_left * x_left + wins_right * x_right (+ ties halfway)
    np.add.at(gap, left, counts[0] + counts[2] / 2)
    np.add.at(gap, right, counts[1] + counts[2] / 2)
    value = log_worth @ gap
    if order_effect is not None:
        # only gaps count: the whole effect goes to the left item
        value += order_effect * float(first @ (counts[0] + counts[2] / 2))
    if log_tie is not None:
        value += log_tie * float(counts[2].sum())
    top = log_worth.max(axis=1)
    value -= top * float(total.sum())
    key = left.astype(np.int64) * 3 + (0 if order_effect is None else first)
    order = np.argsort(key, kind="stable")
    groups = _runs(key[order])
    for begin in range(0, n, _DRAWS):
        part = slice(begin, begin + _DRAWS)
        roots = np.exp(half * (log_worth[part] - top[part, None])).T.copy()
        edge = None if order_effect is None else np.exp(half * order_effect[part])
        nu = None if log_tie is None else np.exp(log_tie[part])
        work = np.empty((_CELLS, roots.shape[1]))
        for low, high in groups:
            cells = order[low:high]
            sums = work[: high - low]
            np.take(roots, right[cells], axis=0, out=sums, mode="clip")
            own = roots[left[cells[0]]]
            if edge is not None and first[cells[0]]:
                own = own * edge if first[cells[0]] > 0 else own / edge
            if nu is None:
                sums += own
            else:
                # a^2 + nu a b + b^2 of the roots a, b of the worths
                tied = sums * (nu * own)
                sums *= sums
                sums += own * own
                sums += tied
            np.log(sums, out=sums)
            value[part] -= total[cells] @ sums
    return value


def _runs(key: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return (begin, end) of runs of equal keys, in pieces of at most `_CELLS`."""
    cuts = [0, *(np.flatnonzero(np.diff(key)) + 1).tolist(), len(key)]
    return [
        (low, min(low + _CELLS, stop))
        for start, stop in pairwise(cuts)
        for low in range(start, stop, _CELLS)
    ]


def _careful(
    link: str,
    cells: _Pieces,
    log_worth: NDArray[np.float64],
    order_effect: NDArray[np.float64] | None,
    log_tie: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Evaluate gap by gap; slower, for any link and any size of worths."""
    value = np.zeros(len(log_worth))
    for c in range(len(cells.left)):
        eta = log_worth[:, cells.left[c]] - log_worth[:, cells.right[c]]
        if order_effect is not None:
            eta = eta + cells.first[c] * order_effect
        won, lost, tied = cells.counts[:, c]
        if link == "probit":
            value += won * log_ndtr(eta) if won else 0.0
            value += lost * log_ndtr(-eta) if lost else 0.0
        elif link == "logit":
            value += won * eta - (won + lost) * np.logaddexp(0.0, eta)
        else:
            nu = 0.0 if log_tie is None else log_tie
            total = np.logaddexp(np.logaddexp(eta / 2, -eta / 2), nu)
            value += (won - lost) * eta / 2 + tied * nu - (won + lost + tied) * total
    return value
