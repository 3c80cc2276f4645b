r"""Blocks of a log, one round at a time: any number of arms, arms that come and go.

One arm's beliefs change per round. What is kept between rounds is therefore repaired, not
recomputed: the products over arms at each node, the table of reciprocal factors, the order of the
arms by mean reward. Every block starts from exact counts, so that rounding does not build up and
blocks may run in any order, on any number of threads, with the same numbers.
"""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.compiled import compiled

__all__ = ["FASTMATH", "SUMS", "run_wide"]

FASTMATH = {"contract", "nsz"}
"""NaN means "not on offer" and -inf "no pair": never nnan or ninf. Sums may be reordered (reassoc)
only in loops that store nothing: elsewhere the compiler chooses between a reordered and a plain
loop by where the arrays happen to lie, and two runs would differ in the last digit."""

SUMS = FASTMATH | {"reassoc"}

# A call takes as long as half the work in it where arms are few.
_INNER = {
    "error_model": "numpy", "fastmath": FASTMATH, "forceinline": True,
}  # fmt: skip

# A product that has moved by more than this since it was made is made anew: what had underflowed
# to zero could otherwise matter again and stay zero.
_GROWTH = 1e80


@compiled(**_INNER | {"fastmath": SUMS})
def _product(m, q, x):  # type: ignore[no-untyped-def]
    """Return prod(q + m x)."""
    product = 1.0
    for i in range(m.shape[0]):
        product *= q[i] + m[i] * x
    return product


@compiled(**_INNER | {"fastmath": SUMS})
def _shortfall(p_best, row):  # type: ignore[no-untyped-def]
    """Return sum max(P* - pi, 0) where every arm is on offer."""
    total = 0.0
    for i in range(row.shape[0]):
        lack = p_best[i] - row[i]
        total += lack if lack > 0.0 else 0.0
    return total


@compiled(**_INNER)
def _tie_table(m, q, nodes, weights, table, weighted):  # type: ignore[no-untyped-def]
    """Fill ``table`` (node, arm) with 1/(q + m x) and ``weighted`` with w prod(q + m x)."""
    k = m.shape[0]
    for u in range(nodes.shape[0]):
        for i in range(k):
            table[u, i] = 1.0 / (q[i] + m[i] * nodes[u])
        weighted[u] = weights[u] * _product(m, q, nodes[u])
    return _product(m, q, 0.0)


@compiled(**_INNER)
def _replace_arm(a, m_new, q_new, q_old, nodes, table, weighted):  # type: ignore[no-untyped-def]
    """Let arm ``a`` have mean ``m_new``; return the factor by which prod(1 - m) changes."""
    for u in range(nodes.shape[0]):
        factor = q_new + m_new * nodes[u]
        weighted[u] *= factor * table[u, a]
        table[u, a] = 1.0 / factor
    return q_new / q_old


@compiled(**_INNER)
def _best_arm(m, none, table, weighted, p_best):  # type: ignore[no-untyped-def]
    """Write P* of every arm; ``none`` is the tie share of the all-zero outcome per arm."""
    k = m.shape[0]
    n_nodes = weighted.shape[0]
    for i in range(k):
        p_best[i] = 0.0
    u = 0
    while u + 4 <= n_nodes:
        w0, w1, w2, w3 = weighted[u], weighted[u + 1], weighted[u + 2], weighted[u + 3]
        for i in range(k):
            p_best[i] += (
                w0 * table[u, i]
                + w1 * table[u + 1, i]
                + w2 * table[u + 2, i]
                + w3 * table[u + 3, i]
            )
        u += 4
    while u < n_nodes:
        w0 = weighted[u]
        for i in range(k):
            p_best[i] += w0 * table[u, i]
        u += 1
    for i in range(k):
        p_best[i] = m[i] * p_best[i] + none


@compiled(**_INNER)
def _best_arm_on_offer(row, m, q, weights, table, scratch, p_best):  # type: ignore[no-untyped-def]
    """Write P* among the arms whose ``row`` is not NaN; return (their number, prod(1 - m))."""
    k, n_nodes = m.shape[0], weights.shape[0]
    on, none = 0, 1.0
    for i in range(k):
        p_best[i] = 0.0
        if not np.isnan(row[i]):
            on += 1
            none *= q[i]
    for u in range(n_nodes):
        inverse = 1.0
        for i in range(k):
            inverse *= table[u, i] if not np.isnan(row[i]) else 1.0
        scratch[u] = weights[u] / inverse
        for i in range(k):
            p_best[i] += scratch[u] * table[u, i]
    for i in range(k):
        p_best[i] = m[i] * p_best[i] + none / on if not np.isnan(row[i]) else np.nan
    return on, none


@compiled(**_INNER)
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


@compiled(**_INNER)
def _extremes(row, tops, bottoms):  # type: ignore[no-untyped-def]
    """Return the largest and the smallest of ``row``, without NaN, eight side by side."""
    k = row.shape[0]
    for d in range(8):
        tops[d], bottoms[d] = row[0], row[0]
    whole = k - k % 8
    for c in range(0, whole, 8):
        for d in range(8):
            x = row[c + d]
            tops[d] = x if x > tops[d] else tops[d]
            bottoms[d] = x if x < bottoms[d] else bottoms[d]
    high, low = tops[0], bottoms[0]
    for d in range(1, 8):
        high = tops[d] if tops[d] > high else high
        low = bottoms[d] if bottoms[d] < low else low
    for c in range(whole, k):
        high = row[c] if row[c] > high else high
        low = row[c] if row[c] < low else low
    return high, low


@compiled(**_INNER)
def _sweep(pi, m, n, eps1):  # type: ignore[no-untyped-def]
    """Return the largest excess over pairs of the ``n`` arms, given in order of m."""
    upward = downward = -np.inf  # apart, so that they do not wait for each other
    low_u, high_v = np.inf, -np.inf
    for c in range(n):
        shift = eps1 * m[c]
        u, v = pi[c] - shift, pi[c] + shift
        up, down = u - low_u, high_v - v
        upward = up if up > upward else upward
        downward = down if down > downward else downward
        low_u = u if u < low_u else low_u
        high_v = v if v > high_v else high_v
    return upward if upward > downward else downward


@compiled(**_INNER)
def _raise_frontier(pi, m, n, spread, asked, at_asked, grid, frontier):  # type: ignore[no-untyped-def]
    """Raise ``frontier`` where this round exceeds it.

    A round's excess is convex and falls in eps1: between two values it lies below their chord,
    beyond the last one below that. Where this bound is below the frontier nothing is computed.
    """
    left, at_left = 0.0, spread
    slope = (at_asked - spread) / grid[asked] if asked > 0 else 0.0
    for e in range(grid.shape[0]):
        eps1 = grid[e]
        if e == asked:
            left, at_left, slope = eps1, at_asked, 0.0
            frontier[e] = max(frontier[e], at_asked)
        elif eps1 == 0.0:
            frontier[e] = max(frontier[e], spread)
        elif at_left + slope * (eps1 - left) > frontier[e]:
            at_left = _sweep(pi, m, n, eps1)
            left = eps1
            slope = (at_asked - at_left) / (grid[asked] - left) if e < asked else 0.0
            frontier[e] = max(frontier[e], at_left)


@compiled(error_model="numpy", fastmath=FASTMATH)
def run_wide(  # type: ignore[no-untyped-def]
    blocks, size, n_rounds,
    arm, pi, stride, offered,
    until, update_arm, update_reward, counts, changed_before, row_before,
    alpha, beta, nodes, weights, grid, asked, limits,
    frontier, worst_mean, sums, tallies, totals, marks, regret, p_chosen, p_rows,
):  # fmt: skip
    """Run the blocks named in ``blocks``; see `bayesfair.kernels.stream` for what is written."""
    k, n_nodes = alpha.shape[0], nodes.shape[0]
    has_pi, has_offer = pi.shape[0] > 0, offered.shape[0] > 0
    has_rows, delayed = p_rows.shape[0] > 0, until.shape[0] > 0
    m, q, n_seen, n_won = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    table, weighted, scratch = np.empty((n_nodes, k)), np.empty(n_nodes), np.empty(n_nodes)
    p_best, row, tops, bottoms = np.empty(k), np.zeros(k), np.empty(8), np.empty(8)
    best_sum, rule_sum, variance_sum = np.empty(k), np.empty(k), np.empty(k)
    order, place = np.arange(k), np.empty(k, np.int64)
    sorted_m, sorted_pi, offer_m = np.empty(k), np.empty(k), np.empty(k)
    for b in blocks:
        start, stop = b * size, min(b * size + size, n_rounds)
        for i in range(k):
            n_won[i], n_seen[i] = counts[b, 0, i], counts[b, 1, i]
            total = alpha[i] + beta[i] + n_seen[i]
            m[i] = (alpha[i] + n_won[i]) / total
            q[i] = (beta[i] + (n_seen[i] - n_won[i])) / total
        none, growth = _tie_table(m, q, nodes, weights, table, weighted), 1.0
        # arms by mean reward; insertion, as later within the block
        for c in range(k):
            order[c] = c
        for c in range(1, k):
            i, d = order[c], c
            while d > 0 and m[order[d - 1]] > m[i]:
                order[d] = order[d - 1]
                d -= 1
            order[d] = i
        for c in range(k):
            place[order[c]], sorted_m[c] = c, m[order[c]]
        best_sum[:], rule_sum[:], variance_sum[:] = 0.0, 0.0, 0.0
        worst = -np.inf
        marks[b, 2] = -1
        all_zero, max_pi = 0.0, 0.0
        for t in range(start, stop):
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
                    a = update_arm[event]
                    n_won[a] += won
                    n_seen[a] += 1.0
                    total = alpha[a] + beta[a] + n_seen[a]
                    m[a] = (alpha[a] + n_won[a]) / total
                    q_new = (beta[a] + (n_seen[a] - n_won[a])) / total
                    factor = _replace_arm(a, m[a], q_new, q[a], nodes, table, weighted)
                    q[a] = q_new
                    none *= factor
                    growth *= factor
                    if growth > _GROWTH or growth < 1.0 / _GROWTH:
                        none, growth = _tie_table(m, q, nodes, weights, table, weighted), 1.0
                    c = place[a]
                    while c > 0 and sorted_m[c - 1] > m[a]:
                        order[c], sorted_m[c] = order[c - 1], sorted_m[c - 1]
                        place[order[c]] = c
                        c -= 1
                    while c < k - 1 and sorted_m[c + 1] < m[a]:
                        order[c], sorted_m[c] = order[c + 1], sorted_m[c + 1]
                        place[order[c]] = c
                        c += 1
                    order[c], sorted_m[c], place[a] = a, m[a], c
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
            short, high, low = 0.0, -np.inf, np.inf
            if n_on == k:
                _best_arm(m, none / k, table, weighted, p_best)
                all_zero += none
                for i in range(k):
                    best_sum[i] += p_best[i]
                if has_pi:
                    short = _shortfall(p_best, row)
                    for i in range(k):
                        rule_sum[i] += row[i]
                        variance_sum[i] += row[i] * (1.0 - row[i])
                    high, low = _extremes(row, tops, bottoms)
            else:
                n_on, none_on = _best_arm_on_offer(row, m, q, weights, table, scratch, p_best)
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
                    high = row[i] if row[i] > high else high
                    low = row[i] if row[i] < low else low
            p_chosen[t] = p_best[arm[t]]
            tallies[b, 0, arm[t]] += 1
            if has_rows:
                for i in range(k):
                    p_rows[t, i] = p_best[i]
            if not has_pi:
                continue
            regret[t] = short
            max_pi += high
            spread = high - low
            if n_on < 2 or (
                spread <= limits[0] and spread <= worst and spread <= frontier[b, grid.shape[0] - 1]
            ):
                continue
            means = sorted_m
            if n_on == k:
                for c in range(k):
                    sorted_pi[c] = row[order[c]]
            else:
                means, on = offer_m, 0
                for c in range(k):
                    i = order[c]
                    if not np.isnan(row[i]):
                        sorted_pi[on], offer_m[on] = row[i], m[i]
                        on += 1
            excess = _sweep(sorted_pi, means, n_on, grid[asked])
            _raise_frontier(sorted_pi, means, n_on, spread, asked, excess, grid, frontier[b])
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
                    worst_mean[b, i] = m[i]
        for i in range(k):
            tallies[b, 1, i] += stop - start
            sums[b, 0, i] = best_sum[i]
            if has_pi:
                sums[b, 1, i], sums[b, 2, i] = rule_sum[i], variance_sum[i]
        totals[b, 0], totals[b, 1], totals[b, 2] = all_zero, max_pi, worst
