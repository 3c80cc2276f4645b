r"""What a log needs where every round has rewards of its own, for draws of what tells them.

In round t, with features z, arm i pays by v_i = z'beta_i: a chance, the normal or the logistic
distribution function of v_i, or a normal reward with mean v_i. For every draw of beta the largest
:math:`|\pi_i - \pi_j| - \epsilon_1 TV(r_i, r_j)` of all rounds and pairs is found exactly, and how
many rounds exceed an allowance, without looking at each: rounds with like features lie in a block,
whose corners bound v_i, hence the distance of rewards from below, and so the excess from above.
Blocks are looked into in the order of these bounds until none that is left can matter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.laws.divergences import TV
from bayesfair.kernels.laws.divergences_continuous import normal_pair
from bayesfair.kernels.log.coefficients import LINKS, hazard
from bayesfair.typing import Floats, Ints

__all__ = ["log_chances", "needed_by_draw"]

_LINEAR, _PROBIT = 0, 1
_LEAF = 64
_MOST_BLOCKS = 1024
_MOST_ALIKE = 4096


def _blocks(rows: Floats) -> tuple[Ints, Ints]:
    """Return the rounds block by block, and where each begins.

    Rounds with the same features where these are few, else halved along their widest feature.

    Returns
    -------
    order : (T,) array
    begin : (B + 1,) array
    """
    # rows of one block that differ after all only make its bounds wider
    key = rows @ np.sqrt(np.arange(rows.shape[1]) + 2.0)
    _, place, copies = np.unique(key, return_inverse=True, return_counts=True)
    if len(copies) <= _MOST_ALIKE and 8 * len(copies) <= len(rows):
        begin = np.concatenate([[0], np.cumsum(copies)])
        return np.argsort(place, kind="stable"), begin.astype(np.int64)
    size = max(_LEAF, -(-len(rows) // _MOST_BLOCKS))
    found: list[Ints] = []
    open_ = [np.arange(len(rows))]
    while open_:
        at = open_.pop()
        width = np.ptp(rows[at], axis=0)
        if len(at) <= size or not width.any():
            found.append(at)
            continue
        half = len(at) // 2
        by = np.argpartition(rows[at, int(width.argmax())], half)
        open_ += [at[by[:half]], at[by[half:]]]
    begin = np.concatenate([[0], np.cumsum([len(at) for at in found])])
    return np.concatenate(found), begin.astype(np.int64)


@compiled()
def _chance(value, link):  # type: ignore[no-untyped-def]
    if link == _LINEAR:
        return value
    if link == _PROBIT:
        return 0.5 * math.erfc(-value / math.sqrt(2.0))
    return 1.0 / (1.0 + math.exp(-value))


@compiled()
def _apart(difference, first, second, link):  # type: ignore[no-untyped-def]
    """Return the total variation of two rewards, from the difference of their means."""
    if link == _LINEAR:
        return normal_pair(difference, first, second, TV)
    return abs(difference)


@compiled()
def _bounds(begin, pi, low, high, gap, mid, half):  # type: ignore[no-untyped-def]
    """Fill the largest difference of each pair in each block."""
    k = pi.shape[1]
    for b in range(begin.shape[0] - 1):
        for a in range(mid.shape[1]):
            mid[b, a] = 0.5 * (low[b, a] + high[b, a])
            half[b, a] = 0.5 * (high[b, a] - low[b, a])
        for t in range(begin[b], begin[b + 1]):
            for i in range(k):
                for j in range(i):
                    away = abs(pi[t, i] - pi[t, j])
                    # no comparison with NaN is true
                    gap[b, i, j] = away if away > gap[b, i, j] else gap[b, i, j]


@compiled()
def _run(rounds, blocks, theta, sd, link, eps1, limit, out, counts):  # type: ignore[no-untyped-def]
    rows, pi = rounds
    at, begin, mid, half, gap = blocks
    asked, allowed, start = limit
    needed, (n_over, first, last) = out, counts
    n_blocks, k, d, n_eps = gap.shape[0], pi.shape[1], rows.shape[1], eps1.shape[0]
    p, low, high = np.empty(k), np.empty(k), np.empty(k)
    upper = np.empty((n_blocks, n_eps))
    for s in range(theta.shape[0]):
        best, count = needed[s], s < n_over.shape[0]
        for b in range(n_blocks):
            for i in range(k):
                centre, reach = 0.0, 0.0
                for a in range(d):
                    centre += mid[b, a] * theta[s, i, a]
                    reach += half[b, a] * abs(theta[s, i, a])
                low[i], high[i] = _chance(centre - reach, link), _chance(centre + reach, link)
            upper[b] = -1.0
            for i in range(k):
                for j in range(i):
                    if gap[b, i, j] < 0.0:
                        continue
                    away = max(low[i] - high[j], low[j] - high[i], 0.0)
                    least = (
                        _apart(away, sd[s, i], sd[s, j], link)
                        if away > 0.0 or (link == _LINEAR and sd[s, i] != sd[s, j])
                        else 0.0
                    )
                    for e in range(n_eps):
                        upper[b, e] = max(upper[b, e], gap[b, i, j] - eps1[e] * least + 1e-12)
        for e in range(n_eps):
            while True:
                b = int(np.argmax(upper[:, e]))
                over = count and e == asked and upper[b, e] > allowed
                if not (over or upper[b, e] > best[e]):
                    break
                upper[b] = -2.0
                alike = not half[b].any()
                for t in range(begin[b], begin[b + 1]):
                    for i in range(k if t == begin[b] or not alike else 0):
                        value = 0.0
                        for a in range(d):
                            value += rows[t, a] * theta[s, i, a]
                        p[i] = _chance(value, link)
                    if alike and t == begin[b]:
                        for i in range(k):
                            for j in range(i):
                                if gap[b, i, j] >= 0.0:
                                    apart = _apart(p[i] - p[j], sd[s, i], sd[s, j], link)
                                    for f in range(n_eps):
                                        best[f] = max(best[f], gap[b, i, j] - eps1[f] * apart)
                    if alike and not count:
                        break
                    worst = -1.0
                    for i in range(k):
                        for j in range(i):
                            away = abs(pi[t, i] - pi[t, j])
                            if not away >= 0.0:
                                continue
                            apart = _apart(p[i] - p[j], sd[s, i], sd[s, j], link)
                            for f in range(0 if alike else n_eps):
                                left = away - eps1[f] * apart
                                best[f] = max(best[f], left)
                            worst = max(worst, away - eps1[asked] * apart)
                    if count and worst > allowed:
                        n_over[s] += 1.0
                        when = start + at[t]
                        first[s] = when if first[s] < 0 else min(first[s], when)
                        last[s] = max(last[s], when)


def needed_by_draw(
    link: str,
    rows: Floats,
    pi: Floats,
    theta: Floats,
    sd: Floats,
    eps1: Floats,
    limit: tuple[int, float, int],
    needed: Floats,
    counts: tuple[NDArray[Any], Ints, Ints],
) -> None:
    """Raise what each draw needs to what these rounds need, and count those above the allowance.

    Parameters
    ----------
    link : str
        Of `bayesfair.kernels.log.coefficients.LINKS`.
    rows : (T, d) array
        Features.
    pi : (T, k) array
        Selection probabilities; NaN = not on offer.
    theta : (S, k, d) array
        Draws of the coefficients.
    sd : (S, k) array
        Draws of the standard deviations of normal rewards.
    eps1 : (E,) array
        Of the frontier.
    limit : (int, float, int)
        Which eps1 is asked, what a round may need at it, and the number of the first round.
    needed : (S, E) array
        Raised in place; 0 and more.
    counts : (n, first, last), (C,) arrays
        Added to in place, for the first C draws.

    Examples
    --------
    >>> needed, none = np.zeros((1, 1)), np.empty(0, np.int64)
    >>> rows, pi = np.ones((1, 1)), np.array([[0.7, 0.3]])
    >>> theta = np.array([[[0.0], [-1.0]]])
    >>> needed_by_draw("probit", rows, pi, theta, np.ones((1, 2)), np.ones(1), (0, 0.1, 0),
    ...                needed, (np.empty(0), none, none))
    >>> needed.round(4)
    array([[0.0587]])
    """
    if not len(rows):
        return
    at, begin = _blocks(rows)
    rows, pi = np.ascontiguousarray(rows[at]), np.ascontiguousarray(pi[at])  # as they are read
    low = np.minimum.reduceat(rows, begin[:-1])
    high = np.maximum.reduceat(rows, begin[:-1])
    k = pi.shape[1]
    gap = np.full((len(low), k, k), -1.0)
    mid, half = np.empty_like(low), np.empty_like(low)
    _bounds(begin, pi, low, high, gap, mid, half)
    _run(
        (rows, pi), (at, begin, mid, half, gap), theta, sd, LINKS[link],
        eps1, limit, needed, counts,
    )  # fmt: skip


@compiled()
def _log_chances(link, rows, reward, theta, out):  # type: ignore[no-untyped-def]
    for s in range(theta.shape[0]):
        total = 0.0
        for t in range(rows.shape[0]):
            value = 0.0
            for a in range(rows.shape[1]):
                value += rows[t, a] * theta[s, a]
            if reward[t] < 0.5:
                value = -value
            if link != _PROBIT:
                total -= math.log1p(math.exp(-value)) if value > -30.0 else -value
            elif value > -5.0:
                total += math.log(0.5 * math.erfc(-value / math.sqrt(2.0)))
            else:  # the density over the hazard
                total -= 0.5 * value * value + math.log(math.sqrt(2.0 * math.pi) * hazard(value))
        out[s] += total


def log_chances(link: str, rows: Floats, reward: Floats, theta: Floats, out: Floats) -> None:
    """Add to each draw the log probability of the rewards of one arm, 0 or 1.

    Parameters
    ----------
    link : str
        ``"probit"`` or ``"logit"``.
    rows : (n, d) array
        Features.
    reward : (n,) array
    theta : (S, d) array
        Draws of its coefficients.
    out : (S,) array
        Added to in place.
    """
    if len(rows):
        fixed = (np.ascontiguousarray(x, dtype=np.float64) for x in (rows, reward, theta))
        _log_chances(LINKS[link], *fixed, out)
