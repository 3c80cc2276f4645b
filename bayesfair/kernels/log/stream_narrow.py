r"""Blocks of a log with few arms, all on offer: many rounds at once.

With few arms a round is too small to fill the processor. Here the innermost loop runs over rounds:
beliefs are laid out arm by arm for a chunk of rounds, and P*, regret and all pairs are plain
arithmetic on these lines. Nothing is carried from round to round but counts.
"""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.stream_slots import FASTMATH, SUMS

__all__ = [
    "MOST_ARMS", "best_arms", "excess_of_round", "largest_excess", "line_total", "line_variance",
    "raise_chunk", "run_narrow",
]  # fmt: skip

MOST_ARMS = 18
"""With more arms, pairs and products of a whole chunk cost more than repairing the last round's."""

_CHUNK = 128
_FEW = 8  # at most one round of so many is looked at alone, not with its chunk


@compiled(error_model="numpy", fastmath=SUMS)
def line_total(line, n):  # type: ignore[no-untyped-def]
    """Return the sum of a line."""
    total = 0.0
    for c in range(n):
        total += line[c]
    return total


@compiled(error_model="numpy", fastmath=SUMS)
def _largest(line, n):  # type: ignore[no-untyped-def]
    top = -np.inf
    for c in range(n):
        top = line[c] if line[c] > top else top
    return top


@compiled(error_model="numpy", fastmath=SUMS)
def line_variance(line, n):  # type: ignore[no-untyped-def]
    """Return the sum of x (1 - x) over a line."""
    total = 0.0
    for c in range(n):
        total += line[c] * (1.0 - line[c])
    return total


@compiled(error_model="numpy", fastmath=FASTMATH)
def _beliefs(start, n, first, log, n_won, n_seen, now, changed, m):  # type: ignore[no-untyped-def]
    """Write the means before each round of a chunk, and whether they differ from the last round's.

    ``first``: the counts are those before round ``start`` already.
    """
    until, update_arm, update_reward = log.until, log.update_arm, log.update_reward
    alpha, beta = log.alpha, log.beta
    k, delayed = alpha.shape[0], until.shape[0] > 0
    for c in range(n):
        t = start + c
        changed[c] = False
        if t > 0:
            done = until[t - 1] if delayed else t - 1
            due = until[t] if delayed else t
            for event in range(done, due):
                won, a = update_reward[event], update_arm[event]
                if np.isnan(won):
                    continue
                changed[c] = True
                if c > 0 or not first:
                    n_won[a] += won
                    n_seen[a] += 1.0
                    now[a] = (alpha[a] + n_won[a]) / (alpha[a] + beta[a] + n_seen[a])
        # two at a time: the compiler would scatter a plain loop, which is slower
        i = 0
        while i + 2 <= k:
            m[i, c], m[i + 1, c] = now[i], now[i + 1]
            i += 2
        if i < k:
            m[i, c] = now[i]


@compiled(error_model="numpy", fastmath=FASTMATH)
def best_arms(m, n, nodes, weights, run0, run1, p_best, none):  # type: ignore[no-untyped-def]
    """Write P* of every arm and round of a chunk, and prod(1 - m) of every round."""
    k = m.shape[0]
    for c in range(n):
        none[c] = 1.0
    for i in range(k):
        for c in range(n):
            none[c] *= 1.0 - m[i, c]
            p_best[i, c] = 0.0
    # two nodes at a time: one division serves both, and no sum is taken across a line
    for u in range(0, nodes.shape[0], 2):
        down0, weight0 = 1.0 - nodes[u], weights[u]
        down1, weight1 = 0.0, 0.0
        if u + 1 < nodes.shape[0]:
            down1, weight1 = 1.0 - nodes[u + 1], weights[u + 1]
        for c in range(n):
            run0[c], run1[c] = weight0, weight1
        for i in range(0, k - 1, 2):
            for c in range(n):
                run0[c] *= (1.0 - down0 * m[i, c]) * (1.0 - down0 * m[i + 1, c])
                run1[c] *= (1.0 - down1 * m[i, c]) * (1.0 - down1 * m[i + 1, c])
        if k % 2:
            for c in range(n):
                run0[c] *= 1.0 - down0 * m[k - 1, c]
                run1[c] *= 1.0 - down1 * m[k - 1, c]
        for i in range(k):
            for c in range(n):
                factor0, factor1 = 1.0 - down0 * m[i, c], 1.0 - down1 * m[i, c]
                p_best[i, c] += (run0[c] * factor1 + run1[c] * factor0) / (factor0 * factor1)
    for i in range(k):
        for c in range(n):
            p_best[i, c] = m[i, c] * p_best[i, c] + none[c] / k


@compiled(error_model="numpy", fastmath=FASTMATH)
def largest_excess(pi, m, n, eps1, excess):  # type: ignore[no-untyped-def]
    """Write the largest excess over pairs of every round of a chunk."""
    k = m.shape[0]
    for c in range(n):
        excess[c] = -np.inf
    for i in range(k):
        for j in range(i):
            for c in range(n):
                value = abs(pi[i, c] - pi[j, c]) - eps1 * abs(m[i, c] - m[j, c])
                excess[c] = value if value > excess[c] else excess[c]


@compiled(error_model="numpy", fastmath=FASTMATH)
def excess_of_round(pi, m, c, eps1):  # type: ignore[no-untyped-def]
    """Return the largest excess over pairs of round ``c`` of a chunk."""
    top = -np.inf
    for i in range(m.shape[0]):
        for j in range(i):
            value = abs(pi[i, c] - pi[j, c]) - eps1 * abs(m[i, c] - m[j, c])
            top = value if value > top else top
    return top


@compiled(error_model="numpy", fastmath=FASTMATH)
def raise_chunk(pi, m, n, spread, excess, asked, grid, left, value, frontier):  # type: ignore[no-untyped-def]
    """Raise ``frontier`` by a chunk of rounds; see the function of this name for wide logs.

    ``left`` holds each round's excess at the last eps1 for which it is known. Returns the largest
    excess of the chunk at the asked eps1.
    """
    at_left, at_asked, top_left = 0.0, _largest(excess, n), _largest(spread, n)
    for c in range(n):
        left[c] = spread[c]
    for e in range(grid.shape[0]):
        eps1, top = grid[e], frontier[e]
        if e == asked:
            for c in range(n):
                left[c] = excess[c]
            at_left, top_left, top = eps1, at_asked, max(top, at_asked)
        elif eps1 == 0.0:
            top = max(top, top_left)
        else:
            share = (eps1 - at_left) / (grid[asked] - at_left) if e < asked else 0.0
            if top_left + share * (at_asked - top_left) <= top:  # no round of the chunk can
                continue
            above = 0
            for c in range(n):
                value[c] = left[c] + share * (excess[c] - left[c])
                above += value[c] > top
            if above * _FEW <= n:
                for c in range(n):
                    if value[c] > top:
                        top = max(top, excess_of_round(pi, m, c, eps1))
            else:
                largest_excess(pi, m, n, eps1, value)
                for c in range(n):
                    left[c] = value[c]
                top_left = _largest(value, n)
                at_left, top = eps1, max(top, top_left)
        frontier[e] = top
    return at_asked


@compiled(error_model="numpy", fastmath=FASTMATH)
def run_narrow(blocks, log, out):  # type: ignore[no-untyped-def]
    """Run the blocks named in ``blocks``: read a `Log`, write an `Out` (`stream_blocks`).

    A block in which an arm is not on offer (pi is NaN) is left unfinished: its sums of pi are NaN.
    """
    size, n_rounds = log.size, log.n_rounds
    arm, pi, stride = log.arm, log.pi, log.stride
    counts, changed_before, row_before = log.counts, log.changed_before, log.row_before
    alpha, beta, nodes, weights = log.alpha, log.beta, log.nodes, log.weights
    grid, asked, limits = log.grid, log.asked, log.limits
    frontier, worst_mean, sums, tallies = out.frontier, out.worst_mean, out.sums, out.tallies
    totals, marks, regret = out.totals, out.marks, out.regret
    p_chosen, p_rows = out.p_chosen, out.p_rows
    k = alpha.shape[0]
    has_rows = p_rows.shape[0] > 0
    now, n_seen, n_won = np.empty(k), np.empty(k), np.empty(k)
    m, rule, p_best = np.empty((k, _CHUNK)), np.empty((k, _CHUNK)), np.empty((k, _CHUNK))
    run0, run1, none = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    changed = np.empty(_CHUNK, np.bool_)
    high, low, short = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    excess, left, value = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    for b in blocks:
        block_start, block_stop = b * size, min(b * size + size, n_rounds)
        for i in range(k):
            n_won[i], n_seen[i] = counts[b, 0, i], counts[b, 1, i]
            now[i] = (alpha[i] + n_won[i]) / (alpha[i] + beta[i] + n_seen[i])
        worst = -np.inf
        marks[b, 2] = -1
        all_zero = 0.0
        for start in range(block_start, block_stop, _CHUNK):
            n = min(_CHUNK, block_stop - start)
            _beliefs(start, n, start == block_start, log, n_won, n_seen, now, changed, m)
            for c in range(n):
                t = start + c
                if changed[c] or (t == 0 and changed_before):
                    continue
                same_offer, moved = True, False
                for i in range(k):
                    base = t * stride[0] + i * stride[1]
                    last = row_before[i] if t == 0 else pi[base - stride[0]]
                    same_offer = same_offer and not np.isnan(last)
                    moved = moved or abs(pi[base] - last) > 1e-9
                marks[b, 0] += same_offer
                marks[b, 1] += same_offer and moved
            for i in range(k):
                base = start * stride[0] + i * stride[1]
                for c in range(n):
                    rule[i, c] = pi[base + c * stride[0]]
            best_arms(m, n, nodes, weights, run0, run1, p_best, none)
            all_zero += line_total(none, n)
            for c in range(n):
                high[c] = low[c] = rule[0, c]
                short[c] = 0.0
            for i in range(k):
                # two loops: of more lines at once the compiler does not see that they are apart
                for c in range(n):
                    lack = p_best[i, c] - rule[i, c]
                    short[c] += lack if lack > 0.0 else 0.0
                for c in range(n):
                    high[c] = rule[i, c] if rule[i, c] > high[c] else high[c]
                    low[c] = rule[i, c] if rule[i, c] < low[c] else low[c]
                sums[b, 0, i] += line_total(p_best[i], n)
                sums[b, 1, i] += line_total(rule[i], n)
                sums[b, 2, i] += line_variance(rule[i], n)
            for c in range(n):
                regret[start + c] = short[c]
                high[c] -= low[c]
            for c in range(n):
                a = arm[start + c]
                tallies[b, 0, a] += 1
                p_chosen[start + c] = p_best[a, c]
            if has_rows:
                for i in range(k):
                    for c in range(n):
                        p_rows[start + c, i] = p_best[i, c]
            if k == 1:
                continue
            largest_excess(rule, m, n, grid[asked], excess)
            top = raise_chunk(rule, m, n, high, excess, asked, grid, left, value, frontier[b])
            for level in range(limits.shape[0]):
                if top <= limits[level]:
                    break
                above = 0
                for c in range(n):
                    above += excess[c] > limits[level]
                marks[b, 3 + level] += above
                # the first and the last such round stand behind the counts
                first, last = 3 + limits.shape[0] + level, 3 + 2 * limits.shape[0] + level
                if marks[b, first] < 0:
                    c = 0
                    while not excess[c] > limits[level]:
                        c += 1
                    marks[b, first] = start + c
                c = n - 1
                while not excess[c] > limits[level]:
                    c -= 1
                marks[b, last] = start + c
            for c in range(n if top > worst + 1e-12 else 0):
                if excess[c] > worst + 1e-12:
                    worst, marks[b, 2] = excess[c], start + c
                    for i in range(k):
                        worst_mean[b, i] = m[i, c]
        for i in range(k):
            tallies[b, 1, i] += block_stop - block_start
        totals[b, 0], totals[b, 1] = all_zero, worst
