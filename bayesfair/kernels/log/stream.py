r"""The subjective audit of a Beta-Bernoulli log, round by round, at full speed and exactly.

Before round t the beliefs are Beta(alpha + successes, beta + failures) from the rewards known by
then. From their posterior predictive means m: P* of every round, the fairness regret, the largest
excess \|pi_i - pi_j\| - eps1 \|m_i - m_j\| over rounds and pairs for a grid of eps1, violating
rounds for a ladder of tolerances.

A log may be run in parts: the `BeliefTable` that a part returns starts the next one. Within a part
fixed blocks of rounds each start from exact counts, so one thread and two give identical numbers,
and parts give those of the whole but for the order of summation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import tie_nodes
from bayesfair.kernels.log.conjugate import BeliefTable
from bayesfair.kernels.log.pairs import PAIR_TIE, worst_pair, worst_pairs
from bayesfair.kernels.log.part_result import (
    TOLERANCES,
    PairSums,
    PartResult,
    PartRounds,
    RoundSums,
)
from bayesfair.kernels.log.rows import fixed
from bayesfair.kernels.log.stream_blocks import Log, Out, block_size
from bayesfair.kernels.log.stream_narrow import MOST_ARMS, run_narrow
from bayesfair.kernels.log.stream_wide import run_wide
from bayesfair.kernels.team import Team
from bayesfair.typing import Floats, Ints

__all__ = ["Updates", "line_of", "stream_bernoulli", "updates_of"]


_CELLS = 1 << 22  # rounds times arms whose beliefs are laid out at once: 32 MB


class Updates(NamedTuple):
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
    state: BeliefTable,
    eps1_grid: ArrayLike,
    eps1_index: int,
    eps2: float,
    offered: NDArray[np.bool_] | None = None,
    known_at: Ints | None = None,
    want_rounds: bool = False,
    threads: int = 1,
) -> PartResult:
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
    state : BeliefTable
        Of the part before, or `start_table` of the Beta parameters.
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
    PartResult

    Examples
    --------
    >>> from bayesfair.kernels.log.conjugate import start_table
    >>> result = stream_bernoulli(
    ...     np.array([0, 1, 0], np.int32), np.array([1.0, 0.0, 1.0]), np.full((3, 2), 0.5),
    ...     state=start_table([[0.5, 0.5]] * 2), eps1_grid=[0.0, 2.0], eps1_index=1, eps2=0.0,
    ... )
    >>> result.end.parameters
    array([[2.5, 0.5],
           [0.5, 1.5]])
    >>> result.rounds.regret.round(4)
    array([0.  , 0.125, 0.25 ])
    """
    grid = np.ascontiguousarray(eps1_grid, dtype=np.float64)
    if grid.ndim != 1 or not np.all(np.diff(grid) > 0) or not np.all(grid >= 0):
        raise ValueError(f"eps1_grid {grid} must ascend from 0 or more.")
    if not np.all(state.parameters > 0):
        raise ValueError(f"Beta parameters {state.parameters} must be positive.")
    arm = np.ascontiguousarray(arm, dtype=np.int32)
    reward = np.ascontiguousarray(reward, dtype=np.float64)
    n_rounds, k, has_pi = arm.size, len(state.parameters), pi is not None
    if not n_rounds:
        return _nothing(state, grid.size, has_pi, want_rounds)
    flat, stride = line_of(pi, n_rounds, k)
    waiting = state.pending_at, state.pending_arm, state.pending_reward
    updates, size = updates_of(arm, reward, known_at, *waiting), block_size(k)
    n_blocks = -(-n_rounds // size)
    out = Out.empty(n_blocks, n_rounds, k, grid.size, has_pi=has_pi, rows=want_rounds)
    nodes, weights = tie_nodes(k)
    mask = np.empty((0, k), bool) if offered is None else np.ascontiguousarray(offered, dtype=bool)
    narrow = k <= MOST_ARMS and has_pi and offered is None
    alpha, beta = (np.ascontiguousarray(column) for column in state.parameters.T)
    with Team(max(1, min(threads, n_blocks))) as team:
        log = Log(
            size=size,
            n_rounds=n_rounds,
            arm=fixed(arm),
            pi=flat,
            stride=stride,
            offered=fixed(mask),
            until=fixed(updates.until),
            update_arm=fixed(updates.arm),
            update_reward=fixed(updates.reward),
            counts=_block_counts(n_blocks, size, updates, k, team),
            changed_before=bool(state.changed),
            row_before=fixed(state.last_pi if state.last_pi.size else np.full(k, np.nan)),
            alpha=fixed(alpha),
            beta=fixed(beta),
            nodes=nodes,
            weights=weights,
            grid=fixed(grid),
            asked=eps1_index,
            limits=fixed(eps2 + np.array(TOLERANCES)),
        )

        def run(which: Ints) -> None:
            (run_narrow if narrow else run_wide)(which, log, out)
            gaps = which[np.isnan(out.sums[which, 1]).any(axis=1)] if narrow else which[:0]
            if gaps.size:  # arms that are not on offer somewhere
                out.clear(gaps)
                run_wide(gaps, log, out)

        team.share(run, n_blocks)

    eps2_rounds = pair_rounds = None
    if want_rounds and pi is not None:
        eps2_rounds, pair_rounds = _pairs_of_rounds(pi, offered, log)
    p_best, selection, variance = out.sums.sum(axis=0)
    (plays, n_offered), marks = out.tallies.sum(axis=0), out.marks.sum(axis=0)
    return PartResult(
        end=_end(pi, offered, updates, log.counts[-1], state, n_rounds),
        pairs=_pairs(pi, offered, log, out),
        sums=RoundSums(
            p_best=p_best,
            selection=selection,
            selection_variance=variance,
            plays=plays,
            n_offered=n_offered,
            all_zero=float(out.totals[:, 0].sum()),
            n_still=int(marks[0]),
            n_moved=int(marks[1]),
        ),
        rounds=PartRounds(
            regret=out.regret,
            p_best_chosen=out.p_chosen,
            smallest_eps2=eps2_rounds,
            pair=pair_rounds,
            p_best=out.p_rows if want_rounds else None,
        ),
    )


def _nothing(state: BeliefTable, n_grid: int, has_pi: bool, rows: bool) -> PartResult:
    """Return the result of a part without rounds."""
    k, none = len(state.parameters), np.empty(0)
    rounds = PartRounds(none, none)
    if rows:
        rounds = rounds._replace(p_best=np.empty((0, k)))
    if rows and has_pi:
        rounds = rounds._replace(smallest_eps2=none, pair=np.empty((0, 2), np.int64))
    return PartResult(state, PairSums.empty(n_grid), RoundSums.empty(k), rounds)


def _pairs(pi: Floats | None, offered: NDArray[np.bool_] | None, log: Log, out: Out) -> PairSums:
    """Return what the blocks found of pairs."""
    worst, at = -np.inf, -1
    for b, excess in enumerate(out.totals[:, 1].tolist()):
        if excess > worst + PAIR_TIE:
            worst, at = excess, b
    worst_round, pair = -1, (-1, -1)
    if at >= 0 and pi is not None:
        worst_round = int(out.marks[at, 2])
        row = _on_offer(pi, offered, slice(worst_round, worst_round + 1))
        _, *found = worst_pair(row, out.worst_mean[at : at + 1], float(log.grid[log.asked]))
        pair = (found[0], found[1])
    n_violating, first, last = out.violating()
    return PairSums(
        frontier=out.frontier.max(axis=0),
        worst_excess=worst,
        worst_round=worst_round,
        worst_pair=pair,
        n_violating=n_violating,
        first_violating=first,
        last_violating=last,
    )


def line_of(pi: Floats | None, n_rounds: int, k: int) -> tuple[Floats, tuple[int, int]]:
    """Return pi as one line of memory and its strides by round and arm, copied only if it must."""
    if pi is None:
        return fixed(np.empty(0)), (0, 0)
    pi = np.asarray(pi, dtype=np.float64)
    if pi.shape != (n_rounds, k):
        raise ValueError(f"pi has shape {pi.shape}, expected {(n_rounds, k)}.")
    if pi.flags.f_contiguous and not pi.flags.c_contiguous:
        return fixed(pi.T.reshape(-1)), (1, n_rounds)
    return fixed(np.ascontiguousarray(pi).reshape(-1)), (k, 1)


def _on_offer(pi: Floats, offered: NDArray[np.bool_] | None, rounds: slice) -> Floats:
    """Return rows of pi with NaN where an arm is not on offer."""
    rows = np.ascontiguousarray(pi[rounds], dtype=np.float64)
    return rows if offered is None else np.where(offered[rounds], rows, np.nan)


def updates_of(
    arm: NDArray[np.int32], reward: Floats, known_at: Ints | None, at: Ints,
    waiting_arm: NDArray[np.int32], waiting: Floats,
) -> Updates:  # fmt: skip
    """Return the rewards of a part, and those that wait for it, in the order of becoming known."""
    n_rounds = arm.size
    if known_at is None and not at.size:
        return Updates(
            np.empty(0, np.int64), np.empty(0, np.int64), arm, reward, n_rounds, n_rounds - 1
        )
    own = np.arange(1, n_rounds + 1) if known_at is None else np.asarray(known_at, np.int64)
    if np.any(own <= np.arange(n_rounds)):
        raise ValueError("known_at must be later than its own round.")
    at = np.concatenate([at, own])
    arms = np.concatenate([waiting_arm, arm])
    rewards = np.concatenate([waiting, reward])
    order = np.argsort(at, kind="stable")
    until = np.searchsorted(at[order], np.arange(n_rounds + 1), side="right").astype(np.int64)
    return Updates(until, at[order], arms[order], rewards[order], int(until[-1]), int(until[-2]))


def _end(
    pi: Floats | None,
    offered: NDArray[np.bool_] | None,
    updates: Updates,
    counts: Floats,
    state: BeliefTable,
    n_rounds: int,
) -> BeliefTable:
    """Return the beliefs after this part's last round."""
    fresh = updates.reward[updates.n_before_last : updates.n_known]
    waiting = np.flatnonzero(~np.isnan(updates.reward[updates.n_known :])) + updates.n_known
    won, seen = counts
    return state._replace(
        parameters=state.parameters + np.stack([won, seen - won], axis=1),
        pending_at=updates.at[waiting] - n_rounds if waiting.size else np.empty(0, np.int64),
        pending_arm=updates.arm[waiting],
        pending_reward=updates.reward[waiting],
        last_pi=np.empty(0) if pi is None else _on_offer(pi, offered, slice(-1, None))[0].copy(),
        changed=bool(np.any(~np.isnan(fresh))),
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


def _block_counts(n_blocks: int, size: int, updates: Updates, k: int, team: Team) -> Floats:
    """Return successes and observations known before each block and at the end, (n + 1, 2, k)."""
    starts = np.arange(n_blocks + 1) * size
    if updates.until.size:
        bounds = updates.until[np.minimum(starts, updates.until.size - 1)]
    else:
        bounds = np.minimum(starts, updates.n_known)
    counts = np.zeros((n_blocks + 1, 2, k))

    def run(which: Ints) -> None:
        _count(which, bounds, fixed(updates.arm), fixed(updates.reward), counts)

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
    pi: Floats, offered: NDArray[np.bool_] | None, log: Log
) -> tuple[Floats, Ints]:
    """Return every round's smallest eps2 and worst pair."""
    n_rounds, k = pi.shape
    excess, pair = np.empty(n_rounds), np.empty((n_rounds, 2), np.int64)
    size, few = log.size, max(1, _CELLS // k)
    means = np.empty((min(size, n_rounds, few), k))
    stop = 0
    while stop < n_rounds:
        start = stop
        block_start = start - start % size
        if start == block_start:
            won, seen = log.counts[start // size].copy()
        stop = min(start + few, block_start + size, n_rounds)
        _means(start, stop, start == block_start, log.until, log.update_arm, log.update_reward,
               won, seen, log.alpha, log.beta, means)  # fmt: skip
        rows = _on_offer(pi, offered, slice(start, stop))
        excess[start:stop], pair[start:stop] = worst_pairs(
            rows, means[: stop - start], float(log.grid[log.asked])
        )
    return np.maximum(excess, 0.0), pair
