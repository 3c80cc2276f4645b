"""What the streaming audit takes and returns: state between parts of a log, and findings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ROUNDING", "TOLERANCES", "StreamResult", "StreamState", "start_state"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 1e-9
"""What double precision may add to a difference, generously."""

TOLERANCES = (
    ROUNDING,
    *(unit + ROUNDING for unit in (1e-8, 1e-7, 2.0**-23, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)),
)
"""Violating rounds are counted for each of these: the log's resolution is known only at its end."""


class StreamState(NamedTuple):
    """Where a part of a log ended: all that the next part needs.

    Attributes
    ----------
    alpha, beta : (k,) array
        Beta parameters before the next round.
    pending_at : (n,) array of int
        Rewards seen but not yet known: first round that may use them, counted from the next
        part's first round, >= 1.
    pending_arm, pending_reward : (n,) array
        Their arms and values.
    last_pi : (k,) array
        Selection probabilities of the last round; NaN = not on offer or not logged.
    changed : bool
        Whether the beliefs before the next round differ from those before the last one.
    """

    alpha: Floats
    beta: Floats
    pending_at: Ints
    pending_arm: NDArray[np.int32]
    pending_reward: Floats
    last_pi: Floats
    changed: bool


class StreamResult(NamedTuple):
    """What one part of a log amounts to; k arms, T rounds, E values of eps1.

    Attributes
    ----------
    state : StreamState
        Start of the next part.
    frontier : (E,) array
        Largest excess over rounds and pairs, cut at 0, for each eps1 of the grid.
    worst_excess : float
        Largest excess at the asked eps1 with its sign; -inf where there is no pair or no pi.
    worst_round : int
        First round (from this part's start) within 1e-12 of it; -1 where there is none.
    worst_pair : (int, int)
        First pair of that round in arm order; the arm chosen more often comes first.
    n_violating : (len(TOLERANCES),) array of int
        Rounds whose excess at the asked eps1 is above eps2 + tolerance.
    first_violating, last_violating : (len(TOLERANCES),) array of int
        The first and the last of them, from this part's start; -1 where there is none.
    regret : (T,) array
        sum_i max(P*_i - pi_i, 0) over the arms on offer; empty without pi.
    p_best_chosen : (T,) array
        P* of the chosen arm.
    p_best_sum, pi_sum, pi_var_sum : (k,) array
        Sums over rounds of P*, pi and pi (1 - pi).
    plays, n_offered : (k,) array of int
        Rounds in which the arm was chosen, was on offer.
    all_zero_sum : float
        Sum over rounds of prod(1 - m): how much of P* is the tie of all-zero rewards.
    max_pi_sum : float
        Sum over rounds of the largest pi.
    n_still, n_moved : int
        Rounds with the beliefs (and arms on offer) of the round before; those among them in which
        pi moved by more than 1e-9.
    smallest_eps2 : (T,) array or None
        Largest excess of each round cut at 0 (`want_rounds` with pi).
    pair : (T, 2) array of int or None
        Worst pair of each round, as `worst_pair`; -1, -1 where there is none.
    p_best : (T, k) array or None
        P* of each round (`want_rounds`); NaN = not on offer.
    """

    state: StreamState
    frontier: Floats
    worst_excess: float
    worst_round: int
    worst_pair: tuple[int, int]
    n_violating: Ints
    first_violating: Ints
    last_violating: Ints
    regret: Floats
    p_best_chosen: Floats
    p_best_sum: Floats
    pi_sum: Floats
    pi_var_sum: Floats
    plays: Ints
    n_offered: Ints
    all_zero_sum: float
    max_pi_sum: float
    n_still: int
    n_moved: int
    smallest_eps2: Floats | None
    pair: Ints | None
    p_best: Floats | None


def start_state(alpha: ArrayLike, beta: ArrayLike) -> StreamState:
    """Return the state before the first round of a log, for Beta(alpha, beta) per arm.

    Parameters
    ----------
    alpha, beta : (k,) array
        Prior Beta parameters, > 0.
    """
    a, b = np.array(alpha, dtype=np.float64), np.array(beta, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not (np.all(a > 0) and np.all(b > 0)):
        raise ValueError(f"alpha {a} and beta {b} must be positive, one value per arm.")
    nothing = np.empty(0, np.int64)
    return StreamState(
        a, b, nothing, nothing.astype(np.int32), np.empty(0), np.full(a.size, np.nan), True
    )
