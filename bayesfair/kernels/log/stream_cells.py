r"""A log of 0/1 rewards against beliefs of its contexts, in its own order, in one pass.

Means before a round are those of its context: from the counts of each, or given. P*, regret and
pairs of a chunk of rounds are then the arithmetic of `stream_narrow`, whatever their contexts; what
a round adds goes to the sums of its own. Beside them the same rounds against beliefs from all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import tie_nodes
from bayesfair.kernels.log.pairs import PAIR_TIE, worst_pair
from bayesfair.kernels.log.part_result import TOLERANCES, PairSums, RoundSums
from bayesfair.kernels.log.pooled import Told
from bayesfair.kernels.log.rows import fixed
from bayesfair.kernels.log.stream import line_of, updates_of
from bayesfair.kernels.log.stream_narrow import (
    best_arms,
    excess_of_round,
    largest_excess,
    line_total,
    line_variance,
    raise_chunk,
)
from bayesfair.kernels.log.stream_slots import FASTMATH
from bayesfair.typing import Floats, Ints

__all__ = ["CellStart", "CellStream", "stream_cells"]

_CHUNK = 128


class _Log(NamedTuple):
    """Rounds and rewards as the kernel reads them; empty arrays stand for None."""

    cell: NDArray[np.int32]
    arm: NDArray[np.int32]
    pi: Floats  # as one line of memory, with its strides by round and arm
    stride: tuple[int, int]
    means: Floats  # (T, k): given; else those of the counts
    fresh: NDArray[np.bool_]  # (T,), with them
    until: Ints  # (T + 1,): rewards known before round t; empty: the first t
    told_cell: NDArray[np.int32]
    told_arm: NDArray[np.int32]
    told: Floats
    alpha: Floats
    beta: Floats
    nodes: Floats
    weights: Floats
    grid: Floats
    asked: int
    limits: Floats


class CellStream(NamedTuple):
    """What C contexts amount to, of T rounds and k arms; E values of eps1.

    Attributes
    ----------
    won, seen : (C + 1, k) array
        Successes and plays known at the end; the last of all contexts together.
    fresh : (C + 1,) array of bool
        Whether beliefs differ from those before the last round of the context.
    last : (C,) array of int
        Its last round; -1 where it has none.
    plays : (C, k) array of int
    needed : (C,) array
        Largest excess at the asked eps1, cut at 0.
    over : (C, L + 1) array of int
        Rounds by how many of the tolerances their excess is above.
    marks : (2 L + 1,) array of int
        Of all rounds the worst, the first and the last above each tolerance; -1 for none.
    frontier : (E,) array
        Of all rounds.
    worst_mean : (k + 1,) array
        Beliefs before the worst round, and its excess.
    whole : (3 k + 3,) array
        Of all rounds: sums of P*, of pi and of pi (1 - pi) of every arm, of prod(1 - m); how many
        have the beliefs of the round before in their context, how many of these another rule.
    regret, p_chosen : (T,) array
    without : (2,) array
        Against beliefs from all rounds: largest excess at the asked eps1, cut at 0; regret.
    """

    won: Floats
    seen: Floats
    fresh: NDArray[np.bool_]
    last: Ints
    plays: Ints
    needed: Floats
    over: Ints
    marks: Ints
    frontier: Floats
    worst_mean: Floats
    whole: Floats
    regret: Floats
    p_chosen: Floats
    without: Floats

    @classmethod
    def empty(cls, n: int, counts: Floats, fresh: NDArray[np.bool_], n_grid: int) -> CellStream:
        """Return room for ``n`` rounds, from what is known before the first of them."""
        _, c, k = counts.shape
        levels = len(TOLERANCES)
        worst = np.zeros(k + 1)
        worst[k] = -np.inf
        won, seen = counts
        return cls(
            won, seen, fresh, np.full(c - 1, -1), np.zeros((c - 1, k), np.int64), np.zeros(c - 1),
            np.zeros((c - 1, levels + 1), np.int64), np.full(2 * levels + 1, -1), np.zeros(n_grid),
            worst, np.zeros(3 * k + 3), np.empty(n), np.empty(n), np.zeros(2),
        )  # fmt: skip

    @property
    def n_violating(self) -> Ints:
        """Rounds of each context above each tolerance, (C, L): also those above a larger one."""
        return np.asarray(np.cumsum(self.over[:, :0:-1], axis=1)[:, ::-1])

    def pairs(self, pi: Floats, eps1: float) -> PairSums:
        """Return what is found of the pairs of all rounds."""
        at, pair, (first, last) = int(self.marks[0]), (-1, -1), np.split(self.marks[1:], 2)
        if at >= 0:
            _, *found = worst_pair(pi[at : at + 1], self.worst_mean[None, :-1], eps1)
            pair = (found[0], found[1])
        n = self.n_violating.sum(axis=0)
        return PairSums(self.frontier, float(self.worst_mean[-1]), at, pair, n, first, last)

    @property
    def sums(self) -> RoundSums:
        """Sums over all rounds."""
        plays = self.plays.sum(axis=0)
        k = len(plays)
        best, rule, varied, rest = np.split(self.whole, [k, 2 * k, 3 * k])
        offered = np.full(k, plays.sum())
        return RoundSums(
            best, rule, varied, plays, offered, float(rest[0]), int(rest[1]), int(rest[2])
        )


@compiled(error_model="numpy", fastmath=FASTMATH)
def _beliefs(start, n, log, rows, out, now, changed, m, m_all):  # type: ignore[no-untyped-def]
    """Write the means before each round of a chunk, of its context and of all rounds."""
    until, alpha, beta, given = log.until, log.alpha, log.beta, log.means.shape[0] > 0
    won, seen, fresh, latest, pi = out.won, out.seen, out.fresh, out.last, log.pi
    cell, told_cell, told_arm, told = log.cell, log.told_cell, log.told_arm, log.told
    k, all_, delayed = alpha.shape[0], won.shape[0] - 1, until.shape[0] > 0
    by_round, by_arm = log.stride
    for c in range(n):
        t = start + c
        if t > 0:
            done = until[t - 1] if delayed else t - 1
            due = until[t] if delayed else t
            for event in range(done, due):
                r = told[event]
                if np.isnan(r):
                    continue
                s, a = np.uint32(told_cell[event]), np.uint32(told_arm[event])
                won[s, a] += r
                seen[s, a] += 1.0
                won[all_, a] += r
                seen[all_, a] += 1.0
                prior = alpha[a] + beta[a]
                now[s, a] = (alpha[a] + won[s, a]) / (prior + seen[s, a])
                now[all_, a] = (alpha[a] + won[all_, a]) / (prior + seen[all_, a])
                fresh[s] = True
        s = np.uint32(cell[t])
        # two at a time: the compiler would scatter a plain loop, which is slower
        i = 0
        while i + 2 <= k:
            m_all[i, c], m_all[i + 1, c] = now[all_, i], now[all_, i + 1]
            m[i, c], m[i + 1, c] = now[s, i], now[s, i + 1]
            i += 2
        if i < k:
            m_all[i, c], m[i, c] = now[all_, i], now[s, i]
        changed[c] = fresh[s]
        if given:
            changed[c] = log.fresh[t]
            for i in range(k):
                m[i, c] = log.means[t, i]
        fresh[s] = False
        if not changed[c]:
            same_offer, moved, last = True, False, latest[s]
            for i in range(k):
                before = rows[s, i] if last < 0 else pi[last * by_round + i * by_arm]
                same_offer = same_offer and not np.isnan(before)
                moved = moved or abs(pi[t * by_round + i * by_arm] - before) > 1e-9
            out.whole[3 * k + 1] += same_offer
            out.whole[3 * k + 2] += same_offer and moved
        latest[s] = t


@compiled(error_model="numpy", fastmath=FASTMATH)
def _shortfall(p_best, rule, n, short):  # type: ignore[no-untyped-def]
    for c in range(n):
        short[c] = 0.0
    for i in range(p_best.shape[0]):
        for c in range(n):
            lack = p_best[i, c] - rule[i, c]
            short[c] += lack if lack > 0.0 else 0.0


@compiled(error_model="numpy", fastmath=FASTMATH)
def _spread(rule, n, high, low):  # type: ignore[no-untyped-def]
    """Write the largest difference of two probabilities of each round to ``high``."""
    for c in range(n):
        high[c] = low[c] = rule[0, c]
    for i in range(rule.shape[0]):
        for c in range(n):
            high[c] = rule[i, c] if rule[i, c] > high[c] else high[c]
            low[c] = rule[i, c] if rule[i, c] < low[c] else low[c]
    for c in range(n):
        high[c] -= low[c]


@compiled(error_model="numpy", fastmath=FASTMATH)
def _add(start, n, log, out, p_best, excess, level):  # type: ignore[no-untyped-def]
    """Add each round of a chunk to what is kept of its context."""
    cell, arm, plays, needed, over, p_chosen = (
        log.cell, log.arm, out.plays, out.needed, out.over, out.p_chosen
    )  # fmt: skip
    for c in range(n):
        t = start + c
        s, a = np.uint32(cell[t]), np.uint32(arm[t])
        plays[s, a] += 1
        p_chosen[t] = p_best[a, c]
        needed[s] = excess[c] if excess[c] > needed[s] else needed[s]
        over[s, level[c]] += level[c] > 0


@compiled(error_model="numpy", fastmath=FASTMATH)
def _add_pairs(start, n, log, out, m, excess, top, level):  # type: ignore[no-untyped-def]
    """Add the pairs of a chunk to those of all rounds; write how many tolerances each is above."""
    limits, marks, n_limits, k = log.limits, out.marks, log.limits.shape[0], m.shape[0]
    for x in range(n_limits):
        limit, first, last = limits[x], 1 + x, 1 + n_limits + x
        if top <= limit:
            break
        for c in range(n):
            level[c] += excess[c] > limit
        if marks[first] < 0:
            c = 0
            while not excess[c] > limit:
                c += 1
            marks[first] = start + c
        c = n - 1
        while not excess[c] > limit:
            c -= 1
        marks[last] = start + c
    for c in range(n if top > out.worst_mean[k] + PAIR_TIE else 0):
        if excess[c] > out.worst_mean[k] + PAIR_TIE:
            out.worst_mean[k], marks[0] = excess[c], start + c
            for i in range(k):
                out.worst_mean[i] = m[i, c]


@compiled(error_model="numpy", fastmath=FASTMATH)
def _run(log, rows, out):  # type: ignore[no-untyped-def]
    n_rounds, k, stride = log.cell.shape[0], log.alpha.shape[0], log.stride
    alpha, beta, eps1 = log.alpha, log.beta, log.grid[log.asked]
    now = np.empty(out.won.shape)
    for s in range(now.shape[0]):
        for i in range(k):
            now[s, i] = (alpha[i] + out.won[s, i]) / (alpha[i] + beta[i] + out.seen[s, i])
    m, m_all = np.empty((k, _CHUNK)), np.empty((k, _CHUNK))
    rule, p_best = np.empty((k, _CHUNK)), np.empty((k, _CHUNK))
    run0, run1, none = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    changed, level = np.empty(_CHUNK, np.bool_), np.empty(_CHUNK, np.int64)
    spread, low, short = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    excess, left, value = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    needed, regret = 0.0, 0.0
    for start in range(0, n_rounds, _CHUNK):
        n = min(_CHUNK, n_rounds - start)
        _beliefs(start, n, log, rows, out, now, changed, m, m_all)
        for i in range(k):
            base = start * stride[0] + i * stride[1]
            for c in range(n):
                rule[i, c] = log.pi[base + c * stride[0]]
        _spread(rule, n, spread, low)
        # against beliefs from all rounds: a round whose arms lie closer can need no more
        best_arms(m_all, n, log.nodes, log.weights, run0, run1, p_best, none)
        _shortfall(p_best, rule, n, short)
        regret += line_total(short, n)
        for c in range(n if k > 1 else 0):
            if spread[c] > needed:
                needed = max(needed, excess_of_round(rule, m_all, c, eps1))
        # against those of its context
        best_arms(m, n, log.nodes, log.weights, run0, run1, p_best, none)
        _shortfall(p_best, rule, n, short)
        out.whole[3 * k] += line_total(none, n)
        for i in range(k):
            out.whole[i] += line_total(p_best[i], n)
            out.whole[k + i] += line_total(rule[i], n)
            out.whole[2 * k + i] += line_variance(rule[i], n)
        for c in range(n):
            out.regret[start + c] = short[c]
            level[c] = 0
            excess[c] = -np.inf
        if k > 1:
            largest_excess(rule, m, n, eps1, excess)
            top = raise_chunk(
                rule, m, n, spread, excess, log.asked, log.grid, left, value, out.frontier
            )
            _add_pairs(start, n, log, out, m, excess, top, level)
        _add(start, n, log, out, p_best, excess, level)
    out.without[0], out.without[1] = needed, regret


class CellStart(NamedTuple):
    """What is known before the first round of a part.

    Attributes
    ----------
    counts : (2, C + 1, k) array
        Successes and plays by context; the last of all together.
    prior : (k, 2) array
        Beta parameters.
    fresh : (C + 1,) array of bool
        Whether beliefs differ from those before the last round of the context.
    rows : (C, k) array
        Selection probabilities of that round; NaN where there was none.
    waiting : Told
        Rewards of parts before, not known yet.
    """

    counts: Floats
    prior: Floats
    fresh: NDArray[np.bool_]
    rows: Floats
    waiting: Told


def stream_cells(
    cell: NDArray[np.int32],
    arm: NDArray[np.int32],
    reward: Floats,
    pi: Floats,
    *,
    start: CellStart,
    eps1_grid: Floats,
    eps1_index: int,
    eps2: float,
    means: Floats | None = None,
    changed: NDArray[np.bool_] | None = None,
    known_at: Ints | None = None,
) -> tuple[CellStream, Told]:
    """Audit one contiguous part of a log against Beta-Bernoulli beliefs of its contexts.

    Parameters
    ----------
    cell, arm : (T,) array of int32
        Context of each round, 0..C-1, and its chosen arm, 0..k-1.
    reward : (T,) array
        0, 1, or NaN = not observed.
    pi : (T, k) array
        Selection probabilities; every arm is on offer.
    start : CellStart
    eps1_grid, eps1_index, eps2
        As in `bayesfair.kernels.log.stream.stream_bernoulli`.
    means : (T, k) array, optional
        Expected rewards before each round; default by the counts of its context.
    changed : (T,) array of bool, optional
        With them, whether they rest on more than before the last round of the context.
    known_at : (T,) array of int, optional
        First round that may use the reward, counted from this part's first round; default the next.

    Returns
    -------
    found : CellStream
    waiting : Told
        Rewards that the next part waits for.

    Examples
    --------
    >>> two, none = np.array([0, 1], np.int32), np.empty(0, np.int32)
    >>> start = CellStart(
    ...     counts=np.zeros((2, 3, 2)), prior=np.full((2, 2), 0.5), fresh=np.ones(3, bool),
    ...     rows=np.full((2, 2), np.nan), waiting=Told(none, none, none, np.empty(0)),
    ... )
    >>> found, _ = stream_cells(
    ...     two, two, np.array([1.0, 0.0]), np.array([[0.75, 0.25], [0.5, 0.5]]), start=start,
    ...     eps1_grid=np.array([1.0]), eps1_index=0, eps2=0.0,
    ... )
    >>> found.needed, found.regret
    (array([0.5, 0. ]), array([0.25, 0.  ]))
    >>> found.without  # all rounds together: 0.75 was to be expected of the first arm
    array([0.5  , 0.375])
    """
    (n, k), waiting = pi.shape, start.waiting
    here = (cell.astype(np.int64) * k + arm).astype(np.int32)
    then = waiting.cell.astype(np.int64) * k + waiting.arm
    updates = updates_of(
        here if known_at is not None or waiting.at.size else arm, reward, known_at, waiting.at,
        then.astype(np.int32), waiting.reward,
    )  # fmt: skip
    told_cell, told_arm = cell, arm
    if updates.until.size:
        told_cell, told_arm = np.divmod(updates.arm, np.int32(k))
    flat, stride = line_of(pi, n, k)
    nodes, weights = tie_nodes(k)
    alpha, beta = (fixed(np.ascontiguousarray(column)) for column in start.prior.T)
    log = _Log(
        fixed(cell), fixed(arm), flat, stride,
        fixed(np.empty((0, k)) if means is None else np.ascontiguousarray(means)),
        fixed(np.empty(0, bool) if changed is None else changed), fixed(updates.until),
        fixed(told_cell), fixed(told_arm), fixed(updates.reward),
        alpha, beta, nodes, weights,
        fixed(eps1_grid), eps1_index, fixed(eps2 + np.array(TOLERANCES)),
    )  # fmt: skip
    out = CellStream.empty(n, start.counts.copy(), start.fresh.copy(), len(eps1_grid))
    _run(log, fixed(start.rows), out)
    # what is known before the next part, and what waits for it
    for event in range(updates.n_before_last, updates.n_known):
        s, a, r = told_cell[event], told_arm[event], updates.reward[event]
        if not np.isnan(r):
            out.won[[s, -1], a] += r
            out.seen[[s, -1], a] += 1.0
            out.fresh[[s, -1]] = True
    rest = np.flatnonzero(~np.isnan(updates.reward[updates.n_known :])) + updates.n_known
    at = updates.at[rest] - n if rest.size else np.empty(0, np.int64)
    return out, Told(at, told_cell[rest], told_arm[rest], updates.reward[rest])
