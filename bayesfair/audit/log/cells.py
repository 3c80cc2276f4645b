"""The logged probabilities, reduced to what the objective audit needs, mergeable.

A cell is a set of rounds that share the arms on offer. Its summary is the largest difference of
every pair of probabilities, and the shortfall function of every arm (kernels.propensities).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.log.propensities import Histogram, divergence_maxima, exact_shortfall
from bayesfair.kernels.log.rows import by_code
from bayesfair.kernels.team import usable_cores
from bayesfair.typing import Floats

__all__ = ["Cells", "ChosenCell", "FullCell", "RowsByCode"]

EXACT_ROUNDS = 100_000
"""Up to this many rounds the values themselves are kept, above a histogram."""

_LOG_BINS = 16384
_LOWEST = 1e-12


class RowsByCode:
    """Rows of a table sorted by a code when those of one code are first asked for.

    Parameters
    ----------
    table : (T, k) array
    codes : (T,) array of int32
        0..C-1.
    n_codes : int
    """

    def __init__(self, table: Floats, codes: NDArray[np.int32], n_codes: int) -> None:
        self._table, self._codes, self._n = table, codes, n_codes

    @functools.cached_property
    def _each(self) -> list[Floats]:
        ends = np.cumsum(np.bincount(self._codes, minlength=self._n))
        return np.split(by_code(self._table, self._codes, ends), ends[:-1])

    def of(self, code: int) -> Floats:
        """Return the rows with a code, (n, k)."""
        return self._each[code]


class FullCell:
    """Rounds with a whole decision rule and the same arms on offer.

    Their summary is made when it is first asked for, or when cells are merged: an audit that looks
    at no true rewards never needs it.

    Parameters
    ----------
    n_rounds : int
        Rounds in the cell.
    maxima : (k, k) array, optional
        max_t D(pi_t(i) || pi_t(j)); -inf for arms not on offer.
    rows : (n, k) array or None
        The probabilities themselves while they are few.
    histogram : Histogram or None
        Their mergeable summary otherwise.
    """

    _fields = ("n_rounds", "maxima", "rows", "histogram")  # what is saved

    def __init__(
        self,
        n_rounds: int,
        maxima: NDArray[np.float64],
        rows: NDArray[np.float64] | None,
        histogram: Histogram | None,
    ) -> None:
        self.n_rounds, self.maxima = n_rounds, maxima
        self.rows, self.histogram = rows, histogram

    @classmethod
    def of(cls, pi: NDArray[np.float64], divergence: str, threads: int) -> FullCell:
        """Summarise ``pi`` (T, k), NaN = not on offer, as soon as that is asked for."""
        cell = cls.__new__(cls)
        cell.n_rounds, cell._asked, cell._pi = len(pi), (divergence, threads), pi
        return cell

    @classmethod
    def of_code(
        cls, n_rounds: int, pi: RowsByCode, code: int, divergence: str, threads: int
    ) -> FullCell:
        """Summarise the ``n_rounds`` rows of ``pi`` with a code, as soon as that is asked for."""
        cell = cls.__new__(cls)
        cell.n_rounds, cell._asked, cell._source = n_rounds, (divergence, threads), (pi, code)
        return cell

    _asked: tuple[str, int]
    _source: tuple[RowsByCode, int]

    @functools.cached_property
    def _pi(self) -> NDArray[np.float64]:
        rows, code = self._source
        return rows.of(code)

    @functools.cached_property
    def maxima(self) -> NDArray[np.float64]:
        """Largest divergence of decisions of every pair, (k, k)."""
        return divergence_maxima(self._pi, *self._asked)

    @functools.cached_property
    def rows(self) -> NDArray[np.float64] | None:
        """The probabilities themselves while they are few, (n, k)."""
        return self._pi if self.n_rounds <= EXACT_ROUNDS else None

    @functools.cached_property
    def histogram(self) -> Histogram | None:
        """Their mergeable summary otherwise."""
        if self.n_rounds <= EXACT_ROUNDS:
            return None
        return Histogram.of(self._pi, self._asked[1])

    def merged(self, other: FullCell) -> FullCell:
        """Return the summary of both parts together."""
        n = self.n_rounds + other.n_rounds
        maxima = np.maximum(self.maxima, other.maxima)
        if n <= EXACT_ROUNDS and self.rows is not None and other.rows is not None:
            return FullCell(n, maxima, np.concatenate([self.rows, other.rows]), None)
        if "histogram" in other.__dict__:
            return FullCell(n, maxima, None, self._binned().merged(other._binned()))
        return FullCell(n, maxima, None, self._binned().filled(other._pi, other._asked[1]))

    def _binned(self) -> Histogram:
        if self.histogram is not None:
            return self.histogram
        assert self.rows is not None
        return Histogram.of(self.rows)

    def in_order(self) -> FullCell:
        """Return the cell with each arm's probabilities ascending: which round had which is lost.

        Nothing that is asked of a cell depends on it.
        """
        if self.rows is None:
            return self
        return FullCell(self.n_rounds, self.maxima, np.sort(self.rows, axis=0), None)

    def shortfall(self, p_best: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the summed regret against fixed ``p_best`` (draw, k), and its error bound.

        Arms not on offer have p_best 0.
        """
        if self.rows is not None:
            return exact_shortfall(self.rows, p_best, usable_cores()), 0.0
        return self._binned().shortfall(p_best)


@dataclass(frozen=True, eq=False)
class ChosenCell:
    r"""Rounds where only the chosen arm's probability p is known.

    Per arm, the terms max(1 - c/p, 0) sum to :math:`N(c) - c S_1(c)` over the rounds with p > c,
    and their squares to :math:`N - 2 c S_1 + c^2 S_2`, with :math:`S_r = \sum p^{-r}`.

    Attributes
    ----------
    n_rounds : int
        Rounds in the cell.
    arm, p : (n,) arrays or None
        The rounds themselves while they are few.
    sums : (3, k, bins) array or None
        Count, sum of 1/p and sum of 1/p^2 on a logarithmic grid of p otherwise.
    """

    n_rounds: int
    n_arms: int
    arm: NDArray[np.int32] | None
    p: NDArray[np.float64] | None
    sums: NDArray[np.float64] | None

    @classmethod
    def of(cls, arm: NDArray[np.int32], p: NDArray[np.float64], n_arms: int) -> ChosenCell:
        """Summarise chosen arms and their probabilities, (T,) each."""
        if len(arm) <= max(EXACT_ROUNDS, n_arms * _LOG_BINS):  # then they are less than the sums
            return cls(len(arm), n_arms, arm, p, None)
        return cls(len(arm), n_arms, None, None, _log_sums(arm, p, n_arms))

    def merged(self, other: ChosenCell) -> ChosenCell:
        """Return the summary of both parts together."""
        n = self.n_rounds + other.n_rounds
        if (
            n <= max(EXACT_ROUNDS, self.n_arms * _LOG_BINS)
            and self.arm is not None and other.arm is not None
            and self.p is not None and other.p is not None
        ):  # fmt: skip
            return ChosenCell(
                n,
                self.n_arms,
                np.concatenate([self.arm, other.arm]),
                np.concatenate([self.p, other.p]),
                None,
            )
        return ChosenCell(n, self.n_arms, None, None, self._binned() + other._binned())

    def _binned(self) -> NDArray[np.float64]:
        if self.sums is not None:
            return self.sums
        assert self.arm is not None and self.p is not None
        return _log_sums(self.arm, self.p, self.n_arms)

    def in_order(self) -> ChosenCell:
        """Return the cell with its rounds sorted by arm and probability."""
        if self.arm is None or self.p is None:
            return self
        order = np.lexsort((self.p, self.arm))
        return replace(self, arm=self.arm[order], p=self.p[order])

    def moments(
        self, p_best: NDArray[np.float64], column: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return sum and sum of squares of the terms against ``p_best``, and an error bound.

        ``p_best``: (draw, k), or (draw, s) with ``column`` (k,), which of them is whose.
        """
        first = np.zeros(p_best.shape[:-1])
        second = np.zeros(p_best.shape[:-1])
        error = 0.0
        for i, p in self._by_arm():
            c = p_best[..., i if column is None else column[i]]
            if p is not None:
                tails = [_tail(p**-r) for r in (0, 1, 2)]
                n, s1, s2 = (t[np.searchsorted(p, c, side="right")] for t in tails)
            else:
                assert self.sums is not None
                tails = [_tail(s) for s in self.sums[:, i]]
                b = _log_bin(c)
                n, s1, s2 = (t[b + 1] for t in tails)
                # in c's own bin 1 - c/p is at most the relative width of a bin
                width = -np.expm1(np.log(_LOWEST) / _LOG_BINS)
                error += float(np.max(self.sums[0, i][b], initial=0.0)) * width
            first += n - c * s1
            second += n - 2 * c * s1 + c * c * s2
        return first, second, error

    def _by_arm(self) -> Iterator[tuple[int, NDArray[np.float64] | None]]:
        """Yield the arms with rounds here, and their probabilities in order while they are kept."""
        if self.sums is not None:
            yield from ((int(i), None) for i in np.flatnonzero(self.sums[0].any(axis=1)))
        elif self.arm is not None and self.p is not None:
            order = np.lexsort((self.p, self.arm))
            arms, starts = np.unique(self.arm[order], return_index=True)
            for i, p in zip(arms, np.split(self.p[order], starts[1:]), strict=True):
                yield int(i), p


Cells = dict[bytes, FullCell | ChosenCell]
"""Offered set (bytes of the mask; empty = all) -> summary of its rounds."""


def _tail(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return t with t[n] = sum of values[n:]."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


def _log_bin(p: NDArray[np.float64]) -> NDArray[np.int64]:
    scaled = (1 - np.log(np.maximum(p, _LOWEST)) / np.log(_LOWEST)) * _LOG_BINS
    clipped: NDArray[np.int64] = np.clip(scaled.astype(np.int64), 0, _LOG_BINS - 1)
    return clipped


def _log_sums(arm: NDArray[np.int32], p: NDArray[np.float64], n_arms: int) -> NDArray[np.float64]:
    where = arm.astype(np.int64) * _LOG_BINS + _log_bin(p)
    size = n_arms * _LOG_BINS
    return np.stack(
        [
            np.bincount(where, weights=p**-r, minlength=size).reshape(n_arms, _LOG_BINS)
            for r in (0.0, 1.0, 2.0)
        ]
    )
