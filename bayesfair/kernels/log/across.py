r"""Pairs of rounds: how far two decisions are apart, beyond what the arms' joint rewards are.

Independent arms, so the joint law of a round is the product of those of its arms. It has L^k
values; that of one arm is its image, so no pair has a smaller divergence than its arms have: most
pairs are settled by these.
"""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.divergences import HELLINGER, divergence_code, mass_term
from bayesfair.typing import Floats, Ints

__all__ = ["MOST_OUTCOMES", "arms_as_individuals", "worst_rounds"]

MOST_OUTCOMES = 4096
"""Of the rewards of all arms together."""


@compiled()
def _law_divergence(p, q, code):  # type: ignore[no-untyped-def]
    total = 0.0
    for v in range(p.shape[0]):
        total += mass_term(p[v], q[v], code)
    return np.sqrt(min(total, 1.0)) if code == HELLINGER else total


@compiled()
def _joint(laws, out):  # type: ignore[no-untyped-def]
    """Write the probabilities of the rewards of all arms together."""
    out[0] = 1.0
    n = 1
    for i in range(laws.shape[0]):
        for v in range(laws.shape[1] - 1, -1, -1):
            for o in range(n):
                out[v * n + o] = out[o] * laws[i, v]
        n *= laws.shape[1]


@compiled()
def _excess(apart, eps1, distance):  # type: ignore[no-untyped-def]
    allowed = 0.0 if eps1 == 0.0 else eps1 * distance  # 0 * inf = 0: rewards do not count
    return -np.inf if allowed == np.inf else apart - allowed


@compiled()
def _pairs(pi, laws, pairs, eps1, threshold, codes, ordered, marked):  # type: ignore[no-untyped-def]
    n, k = pi.shape
    n_levels = laws.shape[2]
    joint_a, joint_b = np.empty(n_levels**k), np.empty(n_levels**k)
    best, first, second = -np.inf, -1, -1
    n_pairs = pairs.shape[0] if pairs.shape[0] else n
    for row in range(n_pairs):
        a = pairs[row, 0] if pairs.shape[0] else row
        filled = False
        start, stop = a + 1, n
        if pairs.shape[0]:
            start, stop = pairs[row, 1], pairs[row, 1] + 1
        for b in range(start, stop):
            for side in range(2 if ordered else 1):
                x, y = (a, b) if side == 0 else (b, a)
                apart = _law_divergence(pi[x], pi[y], codes[0])
                least = 0.0
                for i in range(k):
                    least = max(least, _law_divergence(laws[x, i], laws[y, i], codes[1]))
                bound = _excess(apart, eps1, least)
                if bound <= best and (bound <= threshold or (marked[a] and marked[b])):
                    continue
                if not filled:
                    _joint(laws[a], joint_a)
                    filled = True
                _joint(laws[b], joint_b)
                if side == 0:
                    distance = _law_divergence(joint_a, joint_b, codes[1])
                else:
                    distance = _law_divergence(joint_b, joint_a, codes[1])
                value = _excess(apart, eps1, distance)
                if value > best:
                    best, first, second = value, x, y
                if value > threshold:
                    marked[a] = True
                    marked[b] = True
    return best, first, second


def worst_rounds(
    pi: Floats,
    laws: Floats,
    *,
    eps1: float,
    threshold: float,
    divergences: tuple[str, str],
    pairs: Ints | None = None,
) -> tuple[float, tuple[int, int], Floats]:
    r"""Return the largest :math:`D(\pi_a\|\pi_b) - \epsilon_1 D(r_a\|r_b)` of two rounds.

    Parameters
    ----------
    pi : (n, k) array
        Probabilities of the arms, all on offer.
    laws : (n, k, L) array
        Probabilities of the L rewards of each arm.
    eps1, threshold : float
        Rounds of pairs with a larger excess than ``threshold`` are marked.
    divergences : tuple of str
        Of decisions, and of the joint rewards of all arms.
    pairs : (m, 2) array of int, optional
        These alone, a < b; default all.

    Returns
    -------
    excess : float
        -inf without a pair.
    pair : tuple of int
        The worst, in the order of its divergence.
    marked : (n,) array of bool

    Examples
    --------
    >>> p_best = np.array([[0.66, 0.28, 0.06], [0.43666667, 0.35166667, 0.21166667]])
    >>> m = np.array([[0.9, 0.5, 0.1], [0.6, 0.5, 0.3]])
    >>> laws = np.stack([1 - m, m], axis=-1)
    >>> tv = ("total_variation", "total_variation")
    >>> worst = worst_rounds(p_best, laws, eps1=1, threshold=0, divergences=tv)
    >>> round(worst[0], 5)  # .22333 - .39
    -0.16667
    """
    marked = np.zeros(len(pi), bool)
    codes = tuple(divergence_code(name) for name in divergences)
    ordered = any(name in ("kl", "chi2") for name in divergences)
    own = np.empty((0, 2), np.int64) if pairs is None else pairs
    excess, a, b = _pairs(
        np.ascontiguousarray(pi), np.ascontiguousarray(laws), own, float(eps1), float(threshold),
        codes, ordered, marked,
    )  # fmt: skip
    return float(excess), (int(a), int(b)), marked


def arms_as_individuals(arms: Floats, eps1: float) -> float:
    r"""Return the largest :math:`|p_a - p_b| - \epsilon_1 |m_a - m_b|` of all pairs, at least 0.

    Parameters
    ----------
    arms : (2, n) array
        Probability and expected reward, of arms in rounds.

    Examples
    --------
    >>> arms = np.array([[0.3, 0.7, 0.7, 0.3], [0.5, 0.9, 0.5, 0.1]])
    >>> round(arms_as_individuals(arms, 1), 12)
    0.4
    """
    p, mean = arms
    order = np.argsort(mean, kind="stable")
    most = 0.0
    for sign in (1.0, -1.0):  # the earlier of two is larger, or the later
        value = sign * p[order] + eps1 * mean[order]
        most = max(most, float((np.maximum.accumulate(value) - value).max(initial=0.0)))
    return most
