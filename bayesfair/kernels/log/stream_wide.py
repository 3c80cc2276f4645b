r"""Blocks of a log, one round at a time: any number of arms, arms that come and go.

Arms with equal beliefs share a slot: one factor of the tie integral, with a multiplicity, and one
P*. A hundred thousand arms of which a thousand were played are at most a thousand and one slots;
so are a hundred thousand that were all played three times, since three rewards make few beliefs.

One arm's beliefs change per round. What is kept between rounds is therefore repaired, not
recomputed: the products over arms at each node, the table of reciprocal factors, the order of the
slots by mean reward. Every block starts from exact counts, and is made anew now and then, so that
rounding does not build up and blocks may run in any order, on any number of threads, with the same
numbers.
"""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.tie_integral import tie_holds, tie_reach
from bayesfair.kernels.log.stream_pairs import excess_of, extremes, raise_frontier
from bayesfair.kernels.log.stream_slots import (
    FASTMATH,
    INNER,
    SUMS,
    fill_slots,
    find_slot,
    insert_slot,
    move_slot,
    product_of,
    remove_slot,
    tie_table,
)

__all__ = ["run_wide"]

# A product that has moved by more than this since it was made is made anew: what had underflowed
# to zero could otherwise matter again and stay zero.
_GROWTH = 1e80

_ANEW = 8192  # rounds after which products are made anew


@compiled(**INNER | {"fastmath": SUMS})
def _shortfall(p_best, row):  # type: ignore[no-untyped-def]
    """Return sum max(P* - pi, 0) where every arm is on offer."""
    total = 0.0
    for i in range(row.shape[0]):
        lack = p_best[i] - row[i]
        total += lack if lack > 0.0 else 0.0
    return total


@compiled(**INNER)
def _best_slot(m, n, none, table, weighted, p_best):  # type: ignore[no-untyped-def]
    """Write P* of an arm of every slot; ``none`` is the tie share of the all-zero outcome."""
    n_nodes = weighted.shape[0]
    for i in range(n):
        p_best[i] = 0.0
    u = 0
    while u + 4 <= n_nodes:
        w0, w1, w2, w3 = weighted[u], weighted[u + 1], weighted[u + 2], weighted[u + 3]
        for i in range(n):
            p_best[i] += (
                w0 * table[u, i]
                + w1 * table[u + 1, i]
                + w2 * table[u + 2, i]
                + w3 * table[u + 3, i]
            )
        u += 4
    while u < n_nodes:
        w0 = weighted[u]
        for i in range(n):
            p_best[i] += w0 * table[u, i]
        u += 1
    for i in range(n):
        p_best[i] = m[i] * p_best[i] + none


@compiled(**INNER)
def _best_on_offer(row, m, q, slot_of, nodes, weights, some_m, some_q, some_p, p_best):  # type: ignore[no-untyped-def]
    """Write P* among the arms whose ``row`` is not NaN; return (their number, prod(1 - m))."""
    on, total = 0, 0.0
    for i in range(row.shape[0]):
        if not np.isnan(row[i]):
            some_m[on], some_q[on] = m[slot_of[i]], q[slot_of[i]]
            total += some_m[on]
            some_p[on] = 0.0
            on += 1
    reach = tie_reach(on, total)
    for u in range(nodes.shape[0]):
        x = nodes[u] if reach == 1.0 else 1.0 - reach * (1.0 - nodes[u])
        whole = reach * weights[u] * product_of(some_m, some_q, on, x)
        for i in range(on):
            some_p[i] += whole / (some_q[i] + some_m[i] * x)
    none, at = product_of(some_m, some_q, on, 0.0), 0
    for i in range(row.shape[0]):
        if np.isnan(row[i]):
            p_best[i] = np.nan
        else:
            p_best[i] = some_m[at] * some_p[at] + none / on
            at += 1
    return on, none


@compiled(**INNER)
def _copy_row(pi, base, step, row):  # type: ignore[no-untyped-def]
    """Copy a round's rule; return how many arms are not on offer."""
    off = 0
    if step == 1:
        for i in range(row.shape[0]):
            row[i] = pi[base + i]
    else:
        for i in range(row.shape[0]):
            row[i] = pi[base + i * step]
    for i in range(row.shape[0]):
        off += np.isnan(row[i])
    return off


@compiled(**INNER)
def _slot_extremes(row, slot_of, n, high, low, here):  # type: ignore[no-untyped-def]
    """Write the largest and the least of ``row`` in every slot, and how many are on offer."""
    for s in range(n):
        high[s], low[s], here[s] = -np.inf, np.inf, 0
    for i in range(row.shape[0]):
        x, s = row[i], slot_of[i]
        if not np.isnan(x):
            high[s] = x if x > high[s] else high[s]
            low[s] = x if x < low[s] else low[s]
            here[s] += 1


@compiled(error_model="numpy", fastmath=FASTMATH)
def run_wide(blocks, log, out):  # type: ignore[no-untyped-def]
    """Run the blocks named in ``blocks``: read a `Log`, write an `Out` (`stream_blocks`)."""
    size, n_rounds = log.size, log.n_rounds
    arm, pi, stride, offered = log.arm, log.pi, log.stride, log.offered
    until, update_arm, update_reward = log.until, log.update_arm, log.update_reward
    counts, changed_before, row_before = log.counts, log.changed_before, log.row_before
    alpha, beta, nodes, weights = log.alpha, log.beta, log.nodes, log.weights
    grid, asked, limits = log.grid, log.asked, log.limits
    frontier, worst_mean, sums, tallies = out.frontier, out.worst_mean, out.sums, out.tallies
    totals, marks, regret = out.totals, out.marks, out.regret
    p_chosen, p_rows = out.p_chosen, out.p_rows
    k, n_nodes = alpha.shape[0], nodes.shape[0]
    has_pi, has_offer = pi.shape[0] > 0, offered.shape[0] > 0
    has_rows, delayed = p_rows.shape[0] > 0, until.shape[0] > 0
    # of arms
    n_seen, n_won, slot_of = np.empty(k), np.empty(k), np.empty(k, np.int64)
    p_best, row, tops, bottoms = np.empty(k), np.zeros(k), np.empty(8), np.empty(8)
    best_sum, before = np.empty(k), np.empty(k)
    rule_sum, variance_sum = np.empty(k), np.empty(k)
    some_m, some_q, some_p = np.empty(k), np.empty(k), np.empty(k)
    # of slots
    m, q, copies, p_slot, slot_sum = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    order, place, sorted_m = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k)
    free, holder = np.empty(k, np.int64), np.empty(k, np.int64)
    high_of, low_of, here = np.empty(k), np.empty(k), np.empty(k, np.int64)
    high, low, many, means = np.empty(k), np.empty(k), np.empty(k, np.bool_), np.empty(k)
    weighted, x = np.empty(n_nodes), np.empty(n_nodes)
    for b in blocks:
        start, stop = b * size, min(b * size + size, n_rounds)
        for i in range(k):
            n_won[i], n_seen[i] = counts[b, 0, i], counts[b, 1, i]
            total = alpha[i] + beta[i] + n_seen[i]
            some_m[i] = (alpha[i] + n_won[i]) / total
            some_q[i] = (beta[i] + (n_seen[i] - n_won[i])) / total
        # slots ever used in this block, in use, not in use
        n_slots = fill_slots(some_m, some_q, slot_of, m, q, copies, order, sorted_m, place)
        most = n_slots
        for i in range(k):
            most += counts[b + 1, 1, i] != counts[b, 1, i]
        table = np.empty((n_nodes, min(most, k)))
        n_used, n_free, held = n_slots, 0, False
        sum_m, reach, none, growth = 0.0, 1.0, 0.0, 1.0
        best_sum[:], before[:], slot_sum[:] = 0.0, 0.0, 0.0
        rule_sum[:], variance_sum[:] = 0.0, 0.0
        worst = -np.inf
        marks[b, 2] = -1
        all_zero, known = 0.0, False
        for t in range(start, stop):
            anew = (t - start) % _ANEW == 0
            # what became known since the last round
            changed = t == 0 and changed_before
            if t > 0:
                done = until[t - 1] if delayed else t - 1
                due = until[t] if delayed else t
                for event in range(done, due):
                    won = update_reward[event]
                    if np.isnan(won):
                        continue
                    changed = True
                    if t == start:
                        continue
                    known = False
                    a = update_arm[event]
                    n_won[a] += won
                    n_seen[a] += 1.0
                    total = alpha[a] + beta[a] + n_seen[a]
                    m_new = (alpha[a] + n_won[a]) / total
                    q_new = (beta[a] + (n_seen[a] - n_won[a])) / total
                    s = slot_of[a]
                    if m_new == m[s] and q_new == q[s]:
                        continue
                    factor = q_new / q[s]
                    none *= factor
                    growth *= factor
                    sum_m += m_new - m[s]
                    for u in range(n_nodes):
                        weighted[u] *= (q_new + m_new * x[u]) * table[u, s]
                    to = find_slot(m_new, q_new, n_used, order, sorted_m, q)
                    if to < 0 and copies[s] == 1:
                        to = s
                        move_slot(s, m_new, n_used, order, sorted_m, place)
                    else:
                        held = False
                        best_sum[a] += slot_sum[s] - before[a]
                        copies[s] -= 1
                        if copies[s] == 0:
                            remove_slot(s, n_used, order, sorted_m, place)
                            m[s], q[s] = 0.0, 1.0
                            for u in range(n_nodes):
                                table[u, s] = 1.0
                            n_used -= 1
                            free[n_free] = s
                            n_free += 1
                        if to < 0:
                            if n_free > 0:
                                n_free -= 1
                                to = free[n_free]
                            else:
                                to = n_slots
                                n_slots += 1
                            insert_slot(to, m_new, n_used, order, sorted_m, place)
                            n_used += 1
                            slot_sum[to], copies[to] = 0.0, 0
                        slot_of[a], before[a] = to, slot_sum[to]
                        copies[to] += 1
                    if copies[to] == 1:
                        m[to], q[to] = m_new, q_new
                        for u in range(n_nodes):
                            table[u, to] = 1.0 / (q_new + m_new * x[u])
            if anew or growth > _GROWTH or growth < 1.0 / _GROWTH or not tie_holds(k, sum_m, reach):
                sum_m, growth, known = 0.0, 1.0, False
                for s in range(n_slots):
                    sum_m += copies[s] * m[s]
                reach = tie_reach(k, sum_m)
                alone = n_used == k
                none = tie_table(m, q, copies, n_slots, alone, reach, nodes, weights, x, table,
                                 weighted)  # fmt: skip
            # the rule of this round; NaN = not on offer
            n_on = k
            if has_pi:
                n_on -= _copy_row(pi, t * stride[0], stride[1], row)
            if has_offer:
                n_on = 0
                for i in range(k):
                    if not has_pi:
                        row[i] = 0.0
                    if not offered[t, i]:
                        row[i] = np.nan
                    n_on += not np.isnan(row[i])
            if not changed:
                same_offer, moved = True, False
                if has_pi:
                    for i in range(k):
                        last = row_before[i]
                        if t > 0:
                            last = pi[(t - 1) * stride[0] + i * stride[1]]
                            if has_offer and not offered[t - 1, i]:
                                last = np.nan
                        same_offer = same_offer and np.isnan(last) == np.isnan(row[i])
                        moved = moved or abs(row[i] - last) > 1e-9
                marks[b, 0] += same_offer
                marks[b, 1] += same_offer and moved
            short, top, bottom = 0.0, -np.inf, np.inf
            if n_on == k:
                if not known:
                    _best_slot(m, n_slots, none / k, table, weighted, p_slot)
                    known = True
                all_zero += none
                for s in range(n_slots):
                    slot_sum[s] += p_slot[s]
                if has_pi or has_rows:
                    for i in range(k):
                        p_best[i] = p_slot[slot_of[i]]
                if has_pi:
                    short = _shortfall(p_best, row)
                    for i in range(k):
                        rule_sum[i] += row[i]
                        variance_sum[i] += row[i] * (1.0 - row[i])
                    top, bottom = extremes(row, tops, bottoms)
                p_chosen[t] = p_slot[slot_of[arm[t]]]
            else:
                n_on, none_on = _best_on_offer(
                    row, m, q, slot_of, nodes, weights, some_m, some_q, some_p, p_best
                )
                all_zero += none_on
                for i in range(k):
                    if np.isnan(row[i]):
                        tallies[b, 1, i] -= 1
                        continue
                    best_sum[i] += p_best[i]
                    lack = p_best[i] - row[i]
                    short += lack if lack > 0.0 else 0.0
                    rule_sum[i] += row[i]
                    variance_sum[i] += row[i] * (1.0 - row[i])
                    top = row[i] if row[i] > top else top
                    bottom = row[i] if row[i] < bottom else bottom
                p_chosen[t] = p_best[arm[t]]
            tallies[b, 0, arm[t]] += 1
            if has_rows:
                for i in range(k):
                    p_rows[t, i] = p_best[i]
            if not has_pi:
                continue
            regret[t] = short
            spread = top - bottom
            if n_on < 2 or (
                spread <= limits[0] and spread <= worst and spread <= frontier[b, grid.shape[0] - 1]
            ):
                continue
            # slots with an arm on offer, by rising mean
            alone, n = n_used == k and n_on == k, n_used
            if alone:
                if not held:
                    for i in range(k):
                        holder[slot_of[i]] = i
                    held = True
                for c in range(k):
                    high[c], means[c] = row[holder[order[c]]], sorted_m[c]
            else:
                _slot_extremes(row, slot_of, n_slots, high_of, low_of, here)
                n = 0
                for c in range(n_used):
                    s = order[c]
                    if here[s] > 0:
                        high[n], low[n], many[n] = high_of[s], low_of[s], here[s] > 1
                        means[n] = sorted_m[c]
                        n += 1
            excess = excess_of(alone, high, low, many, means, n, grid[asked])
            raise_frontier(
                alone, high, low, many, means, n, spread, asked, excess, grid, frontier[b]
            )
            if excess > limits[0]:
                for level in range(limits.shape[0]):
                    if not excess > limits[level]:
                        break
                    marks[b, 3 + level] += 1
                    # the first and the last such round stand behind the counts
                    first, last = 3 + limits.shape[0] + level, 3 + 2 * limits.shape[0] + level
                    if marks[b, first] < 0:
                        marks[b, first] = t
                    marks[b, last] = t
            if excess > worst + 1e-12:
                worst, marks[b, 2] = excess, t
                for i in range(k):
                    worst_mean[b, i] = m[slot_of[i]]
        for i in range(k):
            tallies[b, 1, i] += stop - start
            sums[b, 0, i] = best_sum[i] + (slot_sum[slot_of[i]] - before[i])
            if has_pi:
                sums[b, 1, i], sums[b, 2, i] = rule_sum[i], variance_sum[i]
        totals[b, 0], totals[b, 1] = all_zero, worst
