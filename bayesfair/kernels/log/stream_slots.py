"""Slots of arms with equal beliefs: found, filled, moved and left, in order of their mean reward.

A slot holds the mean m and its complement q of some arms, and how many they are. Slots without arms
have m = 0 and q = 1, so that they change no product, and wait to be used again. `order` lists the
slots that are in use by their means, `sorted_m` the means in that order, `place` is its inverse.
"""

from __future__ import annotations

import math

import numpy as np

from bayesfair.kernels.compiled import compiled

__all__ = [
    "FASTMATH", "INNER", "SUMS", "fill_slots", "find_slot", "insert_slot", "move_slot",
    "product_of", "remove_slot", "tie_table",
]  # fmt: skip

FASTMATH = {"contract", "nsz"}
"""NaN means "not on offer" and -inf "no pair": never nnan or ninf. Sums may be reordered (reassoc)
only in loops that store nothing: elsewhere the compiler chooses between a reordered and a plain
loop by where the arrays happen to lie, and two runs would differ in the last digit."""

SUMS = FASTMATH | {"reassoc"}

# A call takes as long as half the work in it where arms are few.
INNER = {
    "error_model": "numpy", "fastmath": FASTMATH, "forceinline": True,
}  # fmt: skip


@compiled(error_model="numpy")
def fill_slots(m_arm, q_arm, slot_of, m, q, copies, order, sorted_m, place):  # type: ignore[no-untyped-def]
    """Put every arm into the slot of its beliefs, slots by rising mean; return their number."""
    k = m_arm.shape[0]
    by_mean = np.argsort(m_arm, kind="mergesort")
    n, first = 0, 0  # slots from `first` on have the mean at hand
    for c in range(k):
        i = by_mean[c]
        if c == 0 or m_arm[i] != m_arm[by_mean[c - 1]]:
            first = n
        s = first
        while s < n and q[s] != q_arm[i]:
            s += 1
        if s == n:
            m[s], q[s], copies[s] = m_arm[i], q_arm[i], 0
            order[s], place[s], sorted_m[s] = s, s, m_arm[i]
            n += 1
        slot_of[i] = s
        copies[s] += 1
    return n


@compiled(**INNER)
def find_slot(m_new, q_new, n, order, sorted_m, q):  # type: ignore[no-untyped-def]
    """Return the slot with these beliefs among the ``n`` in use, or -1."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if sorted_m[middle] < m_new:
            low = middle + 1
        else:
            high = middle
    while low < n and sorted_m[low] == m_new:
        if q[order[low]] == q_new:
            return order[low]
        low += 1
    return -1


@compiled(**INNER)
def move_slot(s, m_new, n, order, sorted_m, place):  # type: ignore[no-untyped-def]
    """Let slot ``s``, one of ``n`` in use, have another mean: it moves past its neighbours."""
    c = place[s]
    while c > 0 and sorted_m[c - 1] > m_new:
        order[c], sorted_m[c] = order[c - 1], sorted_m[c - 1]
        place[order[c]] = c
        c -= 1
    while c < n - 1 and sorted_m[c + 1] < m_new:
        order[c], sorted_m[c] = order[c + 1], sorted_m[c + 1]
        place[order[c]] = c
        c += 1
    order[c], sorted_m[c], place[s] = s, m_new, c


@compiled(**INNER)
def insert_slot(s, m_new, n, order, sorted_m, place):  # type: ignore[no-untyped-def]
    """Take slot ``s`` into use beside ``n`` others."""
    c = n
    while c > 0 and sorted_m[c - 1] > m_new:
        order[c], sorted_m[c] = order[c - 1], sorted_m[c - 1]
        place[order[c]] = c
        c -= 1
    order[c], sorted_m[c], place[s] = s, m_new, c


@compiled(**INNER)
def remove_slot(s, n, order, sorted_m, place):  # type: ignore[no-untyped-def]
    """Take slot ``s``, one of ``n`` in use, out of the order."""
    for c in range(place[s], n - 1):
        order[c], sorted_m[c] = order[c + 1], sorted_m[c + 1]
        place[order[c]] = c


@compiled(**INNER | {"fastmath": SUMS})
def product_of(m, q, n, x):  # type: ignore[no-untyped-def]
    """Return prod(q + m x)."""
    product = 1.0
    for i in range(n):
        product *= q[i] + m[i] * x
    return product


@compiled(**INNER)
def _power_product(m, q, copies, n, s, x):  # type: ignore[no-untyped-def]
    """Return prod(q + m x)^copies; x = 1 - s."""
    log = 0.0
    for i in range(n):
        # a factor near 1 to a high power: its distance from 1 must keep its digits
        near = m[i] * s
        log += copies[i] * (math.log1p(-near) if near < 0.5 else math.log(q[i] + m[i] * x))
    return math.exp(log)


@compiled(error_model="numpy", fastmath=FASTMATH)
def tie_table(m, q, copies, n, singles, reach, nodes, weights, x, table, weighted):  # type: ignore[no-untyped-def]
    """Fill ``table`` (node, slot) with 1/(q + m x) and ``weighted`` with w prod (q + m x)^copies.

    ``x`` gets the nodes themselves: those on [0, 1], drawn together towards 1 by ``reach``. Of the
    ``n`` slots that have ever been used none holds more than one arm if ``singles``. Returns
    prod q^copies.
    """
    for u in range(nodes.shape[0]):
        s = reach * (1.0 - nodes[u])
        x[u] = nodes[u] if reach == 1.0 else 1.0 - s
        for i in range(n):
            table[u, i] = 1.0 / (q[i] + m[i] * x[u])
        if singles:
            weighted[u] = reach * weights[u] * product_of(m, q, n, x[u])
        else:
            weighted[u] = reach * weights[u] * _power_product(m, q, copies, n, s, x[u])
    return product_of(m, q, n, 0.0) if singles else _power_product(m, q, copies, n, 1.0, 0.0)
