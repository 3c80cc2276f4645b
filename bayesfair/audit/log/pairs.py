"""Smooth fairness for divergences and families without a streaming kernel: round by round.

Works on chunks of rounds for which the pairwise divergences of the believed reward laws are known.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.shared_laws import Laws
from bayesfair.audit.log.violations import violations_of
from bayesfair.kernels.laws.divergences import worst_pair_general
from bayesfair.kernels.laws.divergences_continuous import student_variation_of_worst
from bayesfair.kernels.log.pairs import PAIR_TIE
from bayesfair.kernels.log.part_result import TOLERANCES, PairSums
from bayesfair.rewards import Rewards, StudentT

__all__ = ["divergences_of_worst", "find_pairs"]


def divergences_of_worst(
    rewards: Rewards, pi: NDArray[np.float64], criterion: Criterion, floor: float = -np.inf
) -> NDArray[np.float64]:
    """Return D(r_i || r_j) of rounds, (n, k, k); NaN where a pair is not its round's worst.

    Parameters
    ----------
    rewards : Rewards
        Batch (n,).
    pi : (n, k) array
        Selection probabilities.
    criterion : Criterion
        What is asked.
    floor : float
        Of the excess at the asked eps1 what is not above it may be left out, but for the largest
        of all rounds. At the others of the frontier it always may.
    """
    if isinstance(rewards, StudentT) and criterion.is_total_variation:
        of = rewards.df, rewards.loc, rewards.scale
        grid = np.array(criterion.grid)
        floors = np.where(grid == criterion.eps1, floor, np.inf)
        return student_variation_of_worst(*of, pi, grid, floors)
    return rewards.divergence(criterion.reward_divergence)


def find_pairs(
    pi: NDArray[np.float64],
    reward_divergences: Iterator[tuple[int, int, NDArray[np.float64]]],
    criterion: Criterion,
    laws: Laws | None = None,
) -> tuple[PairSums, NDArray[np.float64], NDArray[np.int64]]:
    """Return the worst pairs of all rounds: their sums, and each round's smallest eps2 and pair.

    Parameters
    ----------
    pi : (T, k) array
        Selection probabilities; NaN = not on offer.
    reward_divergences : iterator of (start, stop, (stop - start, k, k) array)
        D(r_i || r_j) under the beliefs of each round; NaN leaves a pair out.
    criterion : Criterion
        What is asked.
    laws : Laws, optional
        Where arms share laws: the divergences are those of the laws.
    """
    grid, asked = criterion.grid, criterion.grid_index
    n_rounds = len(pi)
    frontier = np.zeros(len(grid))
    excess = np.full(n_rounds, -np.inf)
    pair = np.full((n_rounds, 2), -1, dtype=np.int64)
    for start, stop, found_rewards in reward_divergences:
        rows, arms, rewards = pi[start:stop], None, found_rewards
        if laws is not None and laws.shared:
            rows, arms, law = laws.extremes(rows)
            at = np.arange(stop - start)[:, None, None]
            rewards = rewards[at, law[:, :, None], law[:, None, :]]
        for e, eps1 in enumerate(grid):
            found, first, second = worst_pair_general(rows, rewards, eps1, criterion.divergence)
            frontier[e] = max(frontier[e], float(found.max(initial=0.0)))
            if e == asked:
                excess[start:stop] = found
                found_pair = np.stack([first, second], axis=1)
                if arms is not None:
                    known = found_pair >= 0
                    found_pair = np.take_along_axis(arms, np.maximum(found_pair, 0), axis=1)
                    found_pair[~known] = -1
                pair[start:stop] = found_pair
    both = pair[:, 0] >= 0
    i, j = np.where(both, pair[:, 0], 0), np.where(both, pair[:, 1], 0)
    at = np.arange(n_rounds)
    swap = both & (pi[at, j] > pi[at, i])  # the arm chosen more often comes first
    pair[swap] = pair[swap][:, ::-1]
    worst, worst_pair = -1, (-1, -1)
    top = float(excess.max(initial=-np.inf))
    if both.any():
        close = excess >= top - PAIR_TIE if np.isfinite(top) else excess == top
        worst = int(np.flatnonzero(both & close)[0])
        worst_pair = (int(pair[worst, 0]), int(pair[worst, 1]))
    over = excess[:, None] > criterion.counting_eps2 + np.array(TOLERANCES)
    rounds = violations_of(over)
    sums = PairSums(
        frontier=frontier,
        worst_excess=top,
        worst_round=worst,
        worst_pair=worst_pair,
        n_violating=np.asarray(rounds.n, np.int64),
        first_violating=rounds.first,
        last_violating=rounds.last,
    )
    return sums, np.maximum(excess, 0.0), pair
