"""What the stream kernels read, and what they write block by block: two records of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.log.part_result import TOLERANCES
from bayesfair.typing import Floats, Ints

__all__ = ["Log", "Out", "block_size"]


BLOCK = 8192

_WIDE = 8
"""Blocks have at least so many rounds per arm: what they write stays below the size of the log."""


class Log(NamedTuple):
    """Rounds, beliefs and question as the kernels read them; empty arrays stand for None.

    Attributes
    ----------
    size, n_rounds : int
        Rounds of a block, and of the part.
    arm : (T,) array of int32
    pi : (T k,) array
        Selection probabilities as one line of memory, with their strides by round and arm.
    stride : (int, int)
    offered : (T, k) array of bool
    until : (T + 1,) array of int
        How many updates are known before round t; empty: the first t.
    update_arm, update_reward : arrays
        Rewards in the order in which they become known.
    counts : (n + 1, 2, k) array
        Successes and observations known before each block.
    changed_before : bool
        Whether the beliefs of the first round differ from those of the last round before it.
    row_before : (k,) array
        Selection probabilities of that round.
    alpha, beta : (k,) array
        Beta parameters before the part.
    nodes, weights : (U,) array
        Of the tie integral.
    grid : (E,) array
        Values of eps1, and the position of the asked one.
    asked : int
    limits : (len(TOLERANCES),) array
        Excesses above which a round violates.
    """

    size: int
    n_rounds: int
    arm: NDArray[np.int32]
    pi: Floats
    stride: tuple[int, int]
    offered: NDArray[np.bool_]
    until: Ints
    update_arm: NDArray[np.int32]
    update_reward: Floats
    counts: Floats
    changed_before: bool
    row_before: Floats
    alpha: Floats
    beta: Floats
    nodes: Floats
    weights: Floats
    grid: Floats
    asked: int
    limits: Floats


class Out(NamedTuple):
    """What the kernels write: one entry per block, or per round.

    Attributes
    ----------
    frontier : (n, E) array
    worst_mean : (n, k) array
        Means in the block's worst round.
    sums : (n, 3, k) array
        Of P*, pi, pi (1 - pi).
    tallies : (n, 2, k) array of int
        Plays, rounds on offer.
    totals : (n, 2) array
        Sum of prod(1 - m), worst excess.
    marks : (n, 3 + 3 len(TOLERANCES)) array of int
        Rounds with old beliefs, of them with a new rule, worst round; violating rounds: how many,
        the first and the last for every tolerance.
    regret, p_chosen : (T,) array
    p_rows : (T or 0, k) array
        P* of every round.
    """

    frontier: Floats
    worst_mean: Floats
    sums: Floats
    tallies: Ints
    totals: Floats
    marks: Ints
    regret: Floats
    p_chosen: Floats
    p_rows: Floats

    @classmethod
    def empty(cls, n: int, n_rounds: int, k: int, n_grid: int, *, has_pi: bool, rows: bool) -> Out:
        """Return room for ``n`` blocks."""
        p_chosen, regret = _lines(n_rounds)
        out = cls(
            frontier=np.zeros((n, n_grid)),
            worst_mean=np.zeros((n, k)),
            sums=np.zeros((n, 3, k)),
            tallies=np.zeros((n, 2, k), np.int64),
            totals=np.zeros((n, 2)),
            marks=np.zeros((n, 3 + 3 * len(TOLERANCES)), np.int64),
            regret=regret if has_pi else np.empty(0),
            p_chosen=p_chosen,
            p_rows=np.empty((n_rounds if rows else 0, k)),
        )
        out.marks[:, 3 + len(TOLERANCES) :] = -1
        return out

    def clear(self, which: Ints) -> None:
        """Forget what was written for some blocks, so that they can be run again."""
        for summed in (self.frontier, self.worst_mean, self.sums, self.tallies, self.totals):
            summed[which] = 0
        self.marks[which] = 0
        self.marks[which, 3 + len(TOLERANCES) :] = -1

    def violating(self) -> tuple[Ints, Ints, Ints]:
        """Return number, first and last (-1 = none) of the violating rounds, per tolerance."""
        counts, first, last = np.split(self.marks[:, 3:], 3, axis=1)
        first = np.where(first < 0, np.iinfo(np.int64).max, first).min(axis=0)
        last = last.max(axis=0)
        return counts.sum(axis=0), np.where(last < 0, -1, first), last


def block_size(k: int) -> int:
    """Return how many rounds of ``k`` arms are a block."""
    return BLOCK * max(1, -(-_WIDE * k // BLOCK)) if k > BLOCK // _WIDE else BLOCK


def _lines(n_rounds: int) -> tuple[Floats, Floats]:
    """Return two arrays (n_rounds,), not filled.

    Fresh memory costs a fault per page of 4 kB, on virtual machines as much as a hundred rounds
    with three arms. From 4 MB on numpy asks for huge pages; what is not touched costs nothing.
    """
    whole = np.empty(max(2 * n_rounds, 1 << 19) if n_rounds > BLOCK else 2 * n_rounds)
    return whole[:n_rounds], whole[n_rounds : 2 * n_rounds]
