r"""Blocks of a log, one round at a time: any number of arms, arms that come and go.

One arm's beliefs change per round. What is kept between rounds is therefore repaired, not
recomputed: the products over arms at each node, the table of reciprocal factors, the order of the
arms by mean reward. Every block starts from exact counts, so that rounding does not build up and
blocks may run in any order, on any number of threads, with the same numbers.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["FASTMATH", "SUMS", "run_wide"]

FASTMATH = {"contract", "nsz"}
"""NaN means "not on offer" and -inf "no pair": never nnan or ninf. Sums may be reordered (reassoc)
only in loops that store nothing: elsewhere the compiler chooses between a reordered and a plain
loop by where the arrays happen to lie, and two runs would differ in the last digit."""

SUMS = FASTMATH | {"reassoc"}

# A product that has moved by more than this since it was made is made anew: what had underflowed
# to zero could otherwise matter again and stay zero.
_GROWTH = 1e80


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def _product(m, q, x):  # type: ignore[no-untyped-def]
    """Return prod(q + m x)."""
    product = 1.0
    for i in range(m.shape[0]):
        product *= q[i] + m[i] * x
    return product


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def _shortfall(p_best, row):  # type: ignore[no-untyped-def]
    """Return sum max(P* - pi, 0) where every arm is on offer."""
    total = 0.0
    for i in range(row.shape[0]):
        lack = p_best[i] - row[i]
        total += lack if lack > 0.0 else 0.0
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
def _tie_table(m, q, nodes, weights, table, weighted):  # type: ignore[no-untyped-def]
    """Fill ``table`` (node, arm) with 1/(q + m x) and ``weighted`` with w prod(q + m x)."""
    k = m.shape[0]
    for u in range(nodes.shape[0]):
        for i in range(k):
            table[u, i] = 1.0 / (q[i] + m[i] * nodes[u])
        weighted[u] = weights[u] * _product(m, q, nodes[u])
    return _product(m, q, 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
def _replace_arm(a, m_new, q_new, q_old, nodes, table, weighted):  # type: ignore[no-untyped-def]
    """Let arm ``a`` have mean ``m_new``; return the factor by which prod(1 - m) changes."""
    for u in range(nodes.shape[0]):
        factor = q_new + m_new * nodes[u]
        weighted[u] *= factor * table[u, a]
        table[u, a] = 1.0 / factor
    return q_new / q_old


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
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


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
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


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
def _sweep(pi, m, n, eps1):  # type: ignore[no-untyped-def]
    """Return the largest excess over pairs of the ``n`` arms, given in order of m."""
    worst = -np.inf
    low_u, high_v = np.inf, -np.inf
    for c in range(n):
        shift = eps1 * m[c]
        u, v = pi[c] - shift, pi[c] + shift
        up, down = u - low_u, high_v - v
        worst = up if up > worst else worst
        worst = down if down > worst else worst
        low_u = u if u < low_u else low_u
        high_v = v if v > high_v else high_v
    return worst


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
def _raise_frontier(pi, m, n, spread, asked, at_asked, grid, frontier):  # type: ignore[no-untyped-def]
    """Raise ``frontier`` where this round exceeds it.

    A round's excess is convex and falls in eps1: between two values it lies below their chord,
    beyond the last one below that. Where this bound is below the frontier nothing is computed.
    """
    left, at_left = 0.0, spread
    n_grid = grid.shape[0]
    for e in range(n_grid):
        eps1 = grid[e]
        if e == asked:
            left, at_left = eps1, at_asked
            frontier[e] = max(frontier[e], at_asked)
            continue
        if eps1 == 0.0:
            bound = value = spread
        else:
            bound = at_left
            if e < asked:
                bound += (at_asked - at_left) * (eps1 - left) / (grid[asked] - left)
            if bound <= frontier[e]:
                continue
            value = _sweep(pi, m, n, eps1)
            left, at_left = eps1, value
        frontier[e] = max(frontier[e], value)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
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
    p_best, row, last = np.empty(k), np.zeros(k), np.empty(k)
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
        if start == 0:
            last[:] = row_before
        elif has_pi:
            for i in range(k):
                last[i] = pi[(start - 1) * stride[0] + i * stride[1]]
                if has_offer and not offered[start - 1, i]:
                    last[i] = np.nan
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
                base = t * stride[0]
                for i in range(k):
                    row[i] = pi[base + i * stride[1]]
                    n_on -= np.isnan(row[i])
            if has_offer:
                n_on = 0
                for i in range(k):
                    if not has_pi:
                        row[i] = 0.0
                    if not offered[t, i]:
                        row[i] = np.nan
                    n_on += not np.isnan(row[i])
            if n_on == k:
                _best_arm(m, none / k, table, weighted, p_best)
                all_zero += none
            else:
                n_on, none_on = _best_arm_on_offer(row, m, q, weights, table, scratch, p_best)
                all_zero += none_on
            p_chosen[t] = p_best[arm[t]]
            tallies[b, 0, arm[t]] += 1
            if n_on == k:
                for i in range(k):
                    sums[b, 0, i] += p_best[i]
            else:
                for i in range(k):
                    if not np.isnan(row[i]):
                        sums[b, 0, i] += p_best[i]
                    else:
                        tallies[b, 1, i] -= 1
            if has_rows:
                for i in range(k):
                    p_rows[t, i] = p_best[i]
            if not changed:
                same_offer, moved = True, False
                if has_pi:
                    for i in range(k):
                        same_offer = same_offer and np.isnan(last[i]) == np.isnan(row[i])
                        moved = moved or abs(row[i] - last[i]) > 1e-9
                marks[b, 0] += same_offer
                marks[b, 1] += same_offer and moved
            if not has_pi:
                continue
            for i in range(k):
                last[i] = row[i]
            short, high, low = 0.0, -np.inf, np.inf
            if n_on == k:
                short = _shortfall(p_best, row)
                for i in range(k):
                    sums[b, 1, i] += row[i]
                    sums[b, 2, i] += row[i] * (1.0 - row[i])
                for i in range(k):
                    high = row[i] if row[i] > high else high
                    low = row[i] if row[i] < low else low
            else:
                for i in range(k):
                    if not np.isnan(row[i]):
                        lack = p_best[i] - row[i]
                        short += lack if lack > 0.0 else 0.0
                        sums[b, 1, i] += row[i]
                        sums[b, 2, i] += row[i] * (1.0 - row[i])
                        high = row[i] if row[i] > high else high
                        low = row[i] if row[i] < low else low
            regret[t] = short
            max_pi += high
            spread = high - low
            if n_on < 2 or (
                spread <= limits[0] and spread <= worst and spread <= frontier[b, grid.shape[0] - 1]
            ):
                continue
            if n_on == k:
                for c in range(k):
                    sorted_pi[c] = row[order[c]]
                excess = _sweep(sorted_pi, sorted_m, k, grid[asked])
                _raise_frontier(sorted_pi, sorted_m, k, spread, asked, excess, grid, frontier[b])
            else:
                n = 0
                for c in range(k):
                    i = order[c]
                    if not np.isnan(row[i]):
                        sorted_pi[n], offer_m[n] = row[i], m[i]
                        n += 1
                excess = _sweep(sorted_pi, offer_m, n, grid[asked])
                _raise_frontier(sorted_pi, offer_m, n, spread, asked, excess, grid, frontier[b])
            if excess > limits[0]:
                for level in range(limits.shape[0]):
                    marks[b, 3 + level] += excess > limits[level]
            if excess > worst + 1e-12:
                worst, marks[b, 2] = excess, t
                for i in range(k):
                    worst_mean[b, i] = m[i]
        for i in range(k):
            tallies[b, 1, i] += stop - start
        totals[b, 0], totals[b, 1], totals[b, 2] = all_zero, max_pi, worst
