"""A cumulative series thinned for plotting: a few hundred points whatever the length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Series"]

_MOST = 512
_MOST_PLAYS = 1 << 22  # values kept of many arms: 32 MB


def _most_points(k: int) -> int:
    """Return how many points are kept of the plays of ``k`` arms."""
    return min(_MOST, max(8, _MOST_PLAYS // max(k, 1)))


@dataclass(frozen=True, eq=False)
class Series:
    """Cumulative values after every ``stride``-th round, and at the end; mergeable.

    Of more than eight thousand arms fewer points are kept, eight at least.

    Attributes
    ----------
    n_rounds : int
        Rounds covered.
    stride : int
        A power of two, doubled when more than 512 points would be kept.
    regret : (n,) array
        Cumulative regret after rounds stride, 2 stride, ...
    plays : (n, k) array
        Cumulative plays after the same rounds.
    last_regret, last_plays : float, (k,) array
        Totals after all rounds.
    """

    n_rounds: int
    stride: int
    regret: NDArray[np.float64]
    plays: NDArray[np.int64]
    last_regret: float
    last_plays: NDArray[np.int64]

    @classmethod
    def empty(cls, k: int) -> Series:
        """Return the series of no rounds of ``k`` arms."""
        nothing = np.zeros(k, np.int64)
        return cls(0, 1, np.empty(0), np.empty((0, k), np.int64), 0.0, nothing)

    @staticmethod
    def stride_of(n_rounds: int, k: int) -> int:
        """Return after how many rounds a value is kept."""
        stride = 1
        while n_rounds // stride > _most_points(k):
            stride *= 2
        return stride

    @classmethod
    def of(
        cls, n_rounds: int, stride: int, regret: NDArray[np.float64], plays: NDArray[np.int64]
    ) -> Series:
        """Return the series of what each ``stride`` rounds, and the rest, add: (n,), (n, k)."""
        if not n_rounds:
            return cls.empty(plays.shape[1])
        marks, total, steps = n_rounds // stride, np.cumsum(regret), np.cumsum(plays, axis=0)
        return cls(
            n_rounds, stride, total[:marks], steps[:marks], float(total[-1]), steps[-1].copy()
        )

    def merged(self, other: Series) -> Series:
        """Return the series of this part followed by ``other``, on the coarser common stride.

        Where the marks of the second part fall between those of the whole, values are those of
        the last mark before (the totals stay exact).
        """
        n = self.n_rounds + other.n_rounds
        stride = max(self.stride, other.stride)
        while n // stride > _most_points(len(self.last_plays)):
            stride *= 2
        marks = np.arange(stride, n + 1, stride)
        early = marks <= self.n_rounds
        regret, plays = self._at(marks[early])
        later_regret, later_plays = other._at(marks[~early] - self.n_rounds)
        return Series(
            n,
            stride,
            np.concatenate([regret, later_regret + self.last_regret]),
            np.concatenate([plays, later_plays + self.last_plays]),
            self.last_regret + other.last_regret,
            self.last_plays + other.last_plays,
        )

    def _at(self, rounds: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the cumulative values after some rounds, or at the last mark before."""
        index = rounds // self.stride
        regret = np.concatenate([[0.0], self.regret])[index]
        plays = np.concatenate([np.zeros((1, len(self.last_plays)), np.int64), self.plays])[index]
        end = rounds == self.n_rounds
        regret[end], plays[end] = self.last_regret, self.last_plays
        return regret, plays
