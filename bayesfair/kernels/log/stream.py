r"""The subjective audit of a Beta-Bernoulli log, round by round, at full speed and exactly.

Before round t the beliefs are Beta(alpha + successes, beta + failures) from the rewards known by
then. From their posterior predictive means m: P* of every round, the fairness regret, the largest
excess \|pi_i - pi_j\| - eps1 \|m_i - m_j\| over rounds and pairs for a grid of eps1, violating
rounds for a ladder of tolerances.

A log may be run in parts: the `StreamState` that a part returns starts the next one. Within a part
fixed blocks of rounds each start from exact counts, so one thread and two give identical numbers,
and parts give those of the whole but for the order of summation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import tie_nodes
from bayesfair.kernels.log.pairs import PAIR_TIE, worst_pair, worst_pairs
from bayesfair.kernels.log.stream_narrow import MOST_ARMS, run_narrow
from bayesfair.kernels.log.stream_state import TOLERANCES, StreamResult, StreamState, start_state
from bayesfair.kernels.log.stream_wide import run_wide
from bayesfair.kernels.team import Team

__all__ = [
    "TOLERANCES",
    "StreamResult",
    "StreamState",
    "end_state",
    "start_state",
    "stream_bernoulli",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 8192

_WIDE = 8
"""Blocks have at least so many rounds per arm: what they write stays below the size of the log."""

_CELLS = 1 << 22  # rounds times arms whose beliefs are laid out at once: 32 MB


class _Updates(NamedTuple):
    """Rewards in the order in which they become known."""

    until: Ints  # (T + 1,): how many are known before round t; empty: the first t
    at: Ints  # first round that may use it; empty as `until`
    arm: NDArray[np.int32]
    reward: Floats
    n_known: int  # before the next part
    n_before_last: int  # before the last round of this part


def stream_bernoulli(
    arm: NDArray[np.int32],
    reward: Floats,
    pi: Floats | None,
    *,
    state: StreamState,
    eps1_grid: ArrayLike,
    eps1_index: int,
    eps2: float,
    offered: NDArray[np.bool_] | None = None,
    known_at: Ints | None = None,
    want_rounds: bool = False,
    threads: int = 1,
) -> StreamResult:
    """Audit one contiguous part of a log against Beta-Bernoulli beliefs.

    Parameters
    ----------
    arm : (T,) array of int32
        Chosen arm of each round, 0..k-1.
    reward : (T,) array
        0, 1, or NaN = not observed.
    pi : (T, k) array or None
        Selection probabilities; NaN = not on offer. Row or column order, both without a copy. None:
        only P*, plays and the numbers that follow from them.
    state : StreamState
        Of the part before, or `start_state`.
    eps1_grid : (E,) array
        Ascending, >= 0.
    eps1_index : int
        Position of the asked eps1 in the grid.
    eps2 : float
        Allowed excess, for counting violating rounds.
    offered : (T, k) array of bool, optional
        Arms on offer; needed where `pi` is None and arms come and go.
    known_at : (T,) array of int, optional
        First round that may use the reward, counted from this part's first round; default the next.
    want_rounds : bool
        Also return `smallest_eps2`, `pair` and `p_best` of every round.
    threads : int
        Blocks of rounds are shared among this many threads; the numbers do not depend on it.

    Returns
    -------
    StreamResult

    Examples
    --------
    >>> result = stream_bernoulli(
    ...     np.array([0, 1, 0], np.int32), np.array([1.0, 0.0, 1.0]), np.full((3, 2), 0.5),
    ...     state=start_state([0.5, 0.5], [0.5, 0.5]), eps1_grid=[0.0, 2.0], eps1_index=1, eps2=0.0,
    ... )
    >>> result.state.alpha, result.state.beta
    (array([2.5, 0.5]), array([0.5, 1.5]))
    >>> result.regret.round(4)
    array([0.  , 0.125, 0.25 ])
    """
    grid = np.ascontiguousarray(eps1_grid, dtype=np.float64)
    if grid.ndim != 1 or not np.all(np.diff(grid) > 0) or not np.all(grid >= 0):
        raise ValueError(f"eps1_grid {grid} must ascend from 0 or more.")
    arm = np.ascontiguousarray(arm, dtype=np.int32)
    reward = np.ascontiguousarray(reward, dtype=np.float64)
    n_rounds, k = arm.size, state.alpha.size
    if not n_rounds:
        return _nothing(state, grid.size, pi is not None, want_rounds)
    flat, stride = _flat(pi, n_rounds, k)
    updates = _updates(arm, reward, known_at, state)
    blocks = _Blocks(n_rounds, k, grid.size, pi is not None, want_rounds)
    nodes, weights = tie_nodes(k)
    mask = np.empty((0, k), bool) if offered is None else np.ascontiguousarray(offered, dtype=bool)
    narrow = k <= MOST_ARMS and pi is not None and offered is None
    with Team(max(1, min(threads, blocks.n))) as team:
        counts = _block_counts(blocks.n, blocks.size, updates, k, team)
        inputs: tuple[Any, ...] = (
            _fixed(arm), flat, stride, _fixed(mask),
            _fixed(updates.until), _fixed(updates.arm), _fixed(updates.reward), counts,
            state.changed, _fixed(state.last_pi), _fixed(state.alpha), _fixed(state.beta),
            nodes, weights, _fixed(grid), eps1_index, _fixed(eps2 + np.array(TOLERANCES)),
        )  # fmt: skip

        def run(which: Ints) -> None:
            kernel = run_narrow if narrow else run_wide
            kernel(which, blocks.size, n_rounds, *inputs, *blocks.outputs())
            gaps = which[np.isnan(blocks.sums[which, 1]).any(axis=1)] if narrow else which[:0]
            if gaps.size:  # arms that are not on offer somewhere
                blocks.clear(gaps)
                run_wide(gaps, blocks.size, n_rounds, *inputs, *blocks.outputs())

        team.share(run, blocks.n)

    worst, at = -np.inf, -1
    for b in range(blocks.n):
        if blocks.totals[b, 2] > worst + PAIR_TIE:
            worst, at = float(blocks.totals[b, 2]), b
    worst_round, pair = -1, (-1, -1)
    if at >= 0 and pi is not None:
        worst_round = int(blocks.marks[at, 2])
        row = _on_offer(pi, offered, slice(worst_round, worst_round + 1))
        _, *found = worst_pair(row, blocks.worst_mean[at : at + 1], float(grid[eps1_index]))
        pair = (found[0], found[1])
    eps2_rounds = pair_rounds = None
    if want_rounds and pi is not None:
        eps2_rounds, pair_rounds = _pairs_of_rounds(
            pi, offered, updates, counts, state, float(grid[eps1_index])
        )
    sums = blocks.sums.sum(axis=0)
    tallies, marks = blocks.tallies.sum(axis=0), blocks.marks.sum(axis=0)
    n_violating, first, last = blocks.violating()
    return StreamResult(
        state=_end_state(pi, offered, updates, counts[-1], state, n_rounds),
        frontier=blocks.frontier.max(axis=0),
        worst_excess=worst,
        worst_round=worst_round,
        worst_pair=pair,
        n_violating=n_violating,
        first_violating=first,
        last_violating=last,
        regret=blocks.regret,
        p_best_chosen=blocks.p_chosen,
        p_best_sum=sums[0],
        pi_sum=sums[1],
        pi_var_sum=sums[2],
        plays=tallies[0],
        n_offered=tallies[1],
        all_zero_sum=float(blocks.totals[:, 0].sum()),
        max_pi_sum=float(blocks.totals[:, 1].sum()),
        n_still=int(marks[0]),
        n_moved=int(marks[1]),
        smallest_eps2=eps2_rounds,
        pair=pair_rounds,
        p_best=blocks.p_rows if want_rounds else None,
    )


def _block_size(k: int) -> int:
    """Return how many rounds of ``k`` arms are a block."""
    return _BLOCK * max(1, -(-_WIDE * k // _BLOCK)) if k > _BLOCK // _WIDE else _BLOCK


class _Blocks:
    """What the kernels write: one entry per block, or per round."""

    def __init__(self, n_rounds: int, k: int, n_grid: int, has_pi: bool, rows: bool) -> None:
        self.size = _block_size(k)
        self.n = n = -(-n_rounds // self.size)
        self.frontier = np.zeros((n, n_grid))
        self.worst_mean = np.zeros((n, k))  # m in the block's worst round
        self.sums = np.zeros((n, 3, k))  # P*, pi, pi (1 - pi)
        self.tallies = np.zeros((n, 2, k), np.int64)  # plays, rounds on offer
        self.totals = np.zeros((n, 3))  # prod(1 - m), max pi, worst excess
        # rounds with old beliefs, of them with a new rule, worst round; violating rounds: how many,
        # the first and the last for every tolerance
        self.marks = np.zeros((n, 3 + 3 * len(TOLERANCES)), np.int64)
        self.marks[:, 3 + len(TOLERANCES) :] = -1
        self.p_chosen, regret = _lines(n_rounds)
        self.regret = regret if has_pi else np.empty(0)
        self.p_rows = np.empty((n_rounds if rows else 0, k))

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

    def outputs(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays in the order in which the kernels take them."""
        return (self.frontier, self.worst_mean, self.sums, self.tallies, self.totals, self.marks,
                self.regret, self.p_chosen, self.p_rows)  # fmt: skip


def _nothing(state: StreamState, n_grid: int, has_pi: bool, rows: bool) -> StreamResult:
    """Return the result of a part without rounds."""
    k = state.alpha.size
    zeros, none, counts = np.zeros(k), np.empty(0), np.zeros(k, np.int64)
    nowhere = np.full(len(TOLERANCES), -1)
    return StreamResult(
        state, np.zeros(n_grid), -np.inf, -1, (-1, -1), np.zeros(len(TOLERANCES), np.int64),
        nowhere, nowhere, none, none, zeros, zeros, zeros, counts, counts, 0.0, 0.0, 0, 0,
        none if rows and has_pi else None, np.empty((0, 2), np.int64) if rows and has_pi else None,
        np.empty((0, k)) if rows else None,
    )  # fmt: skip


def _lines(n_rounds: int) -> tuple[Floats, Floats]:
    """Return two arrays (n_rounds,), not filled.

    Fresh memory costs a fault per page of 4 kB, on virtual machines as much as a hundred rounds
    with three arms. From 4 MB on numpy asks for huge pages; what is not touched costs nothing.
    """
    whole = np.empty(max(2 * n_rounds, 1 << 19) if n_rounds > _BLOCK else 2 * n_rounds)
    return whole[:n_rounds], whole[n_rounds : 2 * n_rounds]


def _fixed(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: one compiled version serves frozen and ordinary arrays."""
    view = values.view()
    view.flags.writeable = False
    return view


def _flat(pi: Floats | None, n_rounds: int, k: int) -> tuple[Floats, tuple[int, int]]:
    """Return pi as one line of memory and its strides by round and arm, copied only if it must."""
    if pi is None:
        return _fixed(np.empty(0)), (0, 0)
    pi = np.asarray(pi, dtype=np.float64)
    if pi.shape != (n_rounds, k):
        raise ValueError(f"pi has shape {pi.shape}, expected {(n_rounds, k)}.")
    if pi.flags.f_contiguous and not pi.flags.c_contiguous:
        return _fixed(pi.T.reshape(-1)), (1, n_rounds)
    return _fixed(np.ascontiguousarray(pi).reshape(-1)), (k, 1)


def _on_offer(pi: Floats, offered: NDArray[np.bool_] | None, rounds: slice) -> Floats:
    """Return rows of pi with NaN where an arm is not on offer."""
    rows = np.ascontiguousarray(pi[rounds], dtype=np.float64)
    return rows if offered is None else np.where(offered[rounds], rows, np.nan)


def _updates(
    arm: NDArray[np.int32], reward: Floats, known_at: Ints | None, state: StreamState
) -> _Updates:
    """Return the rewards in the order in which they become known."""
    n_rounds = arm.size
    if known_at is None and not state.pending_at.size:
        return _Updates(
            np.empty(0, np.int64), np.empty(0, np.int64), arm, reward, n_rounds, n_rounds - 1
        )
    own = np.arange(1, n_rounds + 1) if known_at is None else np.asarray(known_at, np.int64)
    if np.any(own <= np.arange(n_rounds)):
        raise ValueError("known_at must be later than its own round.")
    at = np.concatenate([state.pending_at, own])
    arms = np.concatenate([state.pending_arm, arm])
    rewards = np.concatenate([state.pending_reward, reward])
    order = np.argsort(at, kind="stable")
    until = np.searchsorted(at[order], np.arange(n_rounds + 1), side="right").astype(np.int64)
    return _Updates(until, at[order], arms[order], rewards[order], int(until[-1]), int(until[-2]))


def end_state(
    arm: NDArray[np.int32],
    reward: Floats,
    pi: Floats | None,
    *,
    state: StreamState,
    known_at: Ints | None = None,
) -> StreamState:
    """Return the state after a part of a log, as `stream_bernoulli` would, and nothing else.

    Parameters
    ----------
    arm, reward, pi, state, known_at
        As there; of `pi` only the last row is looked at.
    """
    n_rounds = arm.size
    if not n_rounds:
        return state
    updates = _updates(arm, np.asarray(reward, np.float64), known_at, state)
    with Team(1) as team:
        k, size = state.alpha.size, _block_size(state.alpha.size)
        counts = _block_counts(-(-n_rounds // size), size, updates, k, team)
    return _end_state(pi, None, updates, counts[-1], state, n_rounds)


def _end_state(
    pi: Floats | None,
    offered: NDArray[np.bool_] | None,
    updates: _Updates,
    counts: Floats,
    state: StreamState,
    n_rounds: int,
) -> StreamState:
    """Return the state after this part's last round."""
    fresh = updates.reward[updates.n_before_last : updates.n_known]
    waiting = np.flatnonzero(~np.isnan(updates.reward[updates.n_known :])) + updates.n_known
    pending_at = updates.at[waiting] - n_rounds if waiting.size else np.empty(0, np.int64)
    last = np.full(state.alpha.size, np.nan)
    if pi is not None:
        last = _on_offer(pi, offered, slice(n_rounds - 1, n_rounds))[0].copy()
    return StreamState(
        state.alpha + counts[0],
        state.beta + (counts[1] - counts[0]),
        pending_at,
        updates.arm[waiting],
        updates.reward[waiting],
        last,
        bool(np.any(~np.isnan(fresh))),
    )


@compiled()
def _count(blocks, bounds, arm, reward, counts):  # type: ignore[no-untyped-def]
    """Count successes and observations of the updates of each block."""
    for b in blocks:
        for event in range(bounds[b], bounds[b + 1]):
            won = reward[event]
            if not np.isnan(won):
                counts[b + 1, 0, arm[event]] += won
                counts[b + 1, 1, arm[event]] += 1.0


def _block_counts(n_blocks: int, size: int, updates: _Updates, k: int, team: Team) -> Floats:
    """Return successes and observations known before each block and at the end, (n + 1, 2, k)."""
    starts = np.arange(n_blocks + 1) * size
    if updates.until.size:
        bounds = updates.until[np.minimum(starts, updates.until.size - 1)]
    else:
        bounds = np.minimum(starts, updates.n_known)
    counts = np.zeros((n_blocks + 1, 2, k))

    def run(which: Ints) -> None:
        _count(which, bounds, _fixed(updates.arm), _fixed(updates.reward), counts)

    team.share(run, n_blocks)
    return np.cumsum(counts, axis=0)


@compiled()
def _means(start, stop, first, until, arm, reward, won, seen, alpha, beta, means):  # type: ignore[no-untyped-def]
    """Write the posterior predictive means before each round; ``won`` and ``seen`` go along.

    ``first``: they are those before round ``start`` already.
    """
    k = alpha.shape[0]
    for t in range(start, stop):
        if t > start or not first:
            done = until[t - 1] if until.shape[0] else t - 1
            due = until[t] if until.shape[0] else t
            for event in range(done, due):
                if not np.isnan(reward[event]):
                    won[arm[event]] += reward[event]
                    seen[arm[event]] += 1.0
        for i in range(k):
            means[t - start, i] = (alpha[i] + won[i]) / (alpha[i] + beta[i] + seen[i])


def _pairs_of_rounds(
    pi: Floats,
    offered: NDArray[np.bool_] | None,
    updates: _Updates,
    counts: Floats,
    state: StreamState,
    eps1: float,
) -> tuple[Floats, Ints]:
    """Return every round's smallest eps2 and worst pair."""
    n_rounds, k = pi.shape
    excess, pair = np.empty(n_rounds), np.empty((n_rounds, 2), np.int64)
    size, few = _block_size(k), max(1, _CELLS // k)
    means = np.empty((min(size, n_rounds, few), k))
    stop = 0
    while stop < n_rounds:
        start = stop
        block_start = start - start % size
        if start == block_start:
            won, seen = counts[start // size, 0].copy(), counts[start // size, 1].copy()
        stop = min(start + few, block_start + size, n_rounds)
        _means(start, stop, start == block_start, _fixed(updates.until), _fixed(updates.arm),
               _fixed(updates.reward), won, seen, _fixed(state.alpha), _fixed(state.beta),
               means)  # fmt: skip
        rows = _on_offer(pi, offered, slice(start, stop))
        excess[start:stop], pair[start:stop] = worst_pairs(rows, means[: stop - start], eps1)
    return np.maximum(excess, 0.0), pair
