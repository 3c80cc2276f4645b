"""Smooth fairness of a slot's law, under beliefs that move and under true worths.

One way for all logs: a law that was logged is a window of equal rounds whose limits are the law
itself. What is judged in a window are lower and upper limits of the gaps between its probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.duels.beliefs import Path, distance_limits
from bayesfair.audit.duels.law import Law, Windows
from bayesfair.audit.duels.regret import Regrets, regrets
from bayesfair.audit.duels.truth import Truth
from bayesfair.comparisons import DuelLog
from bayesfair.kernels.laws.races import race_total_variation
from bayesfair.kernels.log.violations import count_violations
from bayesfair.typing import Floats, Ints

__all__ = ["Believed", "Judged", "Truly", "judge", "worst_pair"]


_AT_ONCE = 1 << 22  # numbers in a table that is worked on at once


class Worst(NamedTuple):
    """The largest certain excess of a gap over its bound: from which round, who over whom."""

    excess: float
    round: int
    item: int
    other: int


@dataclass(frozen=True, eq=False)
class Believed:
    """Smooth fairness under the beliefs of each round.

    Attributes
    ----------
    low, high : (E,) arrays
        Limits of the eps2 that the log needs at each eps1.
    worst : Worst
    over : (W,) array of bool
        Windows that surely violate.
    """

    low: Floats
    high: Floats
    worst: Worst
    over: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Truly:
    """Smooth fairness under draws of the true worths.

    Attributes
    ----------
    least, plug, most : (n, E) arrays
        The eps2 that the log needs: lower limit, that of the shares, upper limit.
    gap, shown : (k, k) arrays
        Lower limits of the largest gaps, and those of the shares.
    n, first, last, n_windows : (n,) arrays
        Rounds in windows that surely violate, the first and the last of them (-1 = none), and how
        many windows these are.
    """

    least: Floats
    plug: Floats
    most: Floats
    gap: Floats
    shown: Floats
    n: Floats
    first: Ints
    last: Ints
    n_windows: Floats


@dataclass(frozen=True, eq=False)
class Judged:
    """Both questions of a log of duels, and its regret."""

    believed: Believed
    true: Truly
    regrets: Regrets


def judge(log: DuelLog, law: Law, path: Path, truth: Truth, criterion: Criterion) -> Judged:
    """Return smooth fairness and regret of a log.

    Parameters
    ----------
    log : DuelLog
    law : Law
        What is known of how the slot was filled.
    path : Path
        Beliefs from the first judged round to the end.
    truth : Truth
    criterion : Criterion
    """
    return Judged(
        _judge_believed(law, path, criterion),
        _judge_truly(law, truth.log_worth, criterion),
        regrets(log, law, path, truth),
    )


def _judge_believed(law: Law, path: Path, criterion: Criterion) -> Believed:
    """Return smooth fairness under beliefs; the whole log sharpens the lower limits."""
    eps1, allowed = np.array(criterion.grid), criterion.allowed
    low, high = np.zeros((2, len(eps1)))
    worst, over = Worst(0.0, 0, 0, 0), []
    for windows in (law.windows, law.whole):
        for part, near, far in () if windows is None else _blocks(windows, path):
            least, most = _gaps(part)
            low = np.maximum(low, _needed_at(least, far, eps1))
            top, place = _excesses(part, criterion.eps1 * far)
            r = int(top.argmax())
            if top[r] > worst.excess:
                i, j = divmod(int(place[r]), part.n_items)
                i, j = (i, j) if part.share[r, i] >= part.share[r, j] else (j, i)
                worst = Worst(float(top[r]), int(part.start[r]), i, j)
            if windows is law.windows:
                high = np.maximum(high, _needed_at(most, near, eps1))
                over.append(top > allowed)
    return Believed(low, high, worst, np.concatenate(over))


def _judge_truly(law: Law, log_worth: Floats, criterion: Criterion) -> Truly:
    """Return smooth fairness under draws of the true worths, ``(n, k)``.

    A mean over more rounds bounds the largest gap from below as well, with less noise.
    """
    eps1, windows = np.array(criterion.grid), law.windows
    low_gap, high_gap = _gaps(windows)
    shown = low_gap if law.logged else _gaps(_as_logged(windows))[0]
    if law.whole is not None:
        low_gap = np.maximum(low_gap, _gaps(law.whole)[0])
    plug = _smallest(shown, log_worth, eps1)
    least, most = plug, plug
    if not law.logged:
        least, most = (_smallest(gap, log_worth, eps1) for gap in (low_gap, high_gap))
    violating = _violating(windows, log_worth, criterion)
    return Truly(least, plug, most, low_gap, shown, *violating)


class _Block(NamedTuple):
    """Windows that are held against the same divergences, between `near` and `far`."""

    windows: Windows
    near: Floats
    far: Floats


def _blocks(law: Windows, path: Path) -> Iterator[_Block]:
    r"""Yield windows with the divergences believed in them.

    Of a logged law every round is held against what was believed when beliefs were last refreshed.
    Of a window only the mean law is known, and that has to keep to the *mean* of the bounds of its
    rounds: |mean of gaps| <= mean of |gaps| <= eps1 mean of D + eps2.
    """
    if law.logged:
        for a, b, ends in path.stretches():
            part, _ = law.overlapping(a, b)
            known = race_total_variation(ends[0][:, None] - ends[0])
            yield _Block(law.rows(part), known, known)
        return
    for w in range(len(law.start)):
        window = law.rows(slice(w, w + 1))
        begin, end = int(window.start[0]), int(window.stop[0])
        near, far = np.zeros((2, law.n_items, law.n_items))
        for a, b, ends in path.stretches():
            n = min(b, end) - max(a, begin)
            if n > 0:
                least, most = distance_limits(ends)
                near += n * least
                far += n * most
        yield _Block(window, near / (end - begin), far / (end - begin))


def _violating(
    law: Windows, log_worth: Floats, criterion: Criterion
) -> tuple[Floats, Ints, Ints, Floats]:
    """Return rounds that violate per draw, the first, the last, and the number of windows."""
    allowed = criterion.allowed
    i, j = np.triu_indices(law.n_items, 1)
    spread = np.nanmax(law.upper, axis=1, initial=0) - np.nanmin(law.lower, axis=1, initial=1)
    at = np.flatnonzero(spread > allowed)
    index, weights = np.arange(len(at)), law.length[at]
    parts = []
    step = max(1, _AT_ONCE // max(len(i), 1))
    for s in range(0, len(log_worth), step):
        worth = log_worth[s : s + step]
        distances = np.ascontiguousarray(race_total_variation(worth[:, i] - worth[:, j]).T)
        n, windows = np.zeros((2, len(worth)))
        first, last = np.full((2, len(worth)), -1)
        for r in range(0, len(at), step):
            rows = slice(r, r + step)
            held = at[rows]
            ahead = np.fmax(
                law.lower[held][:, i] - law.upper[held][:, j],
                law.lower[held][:, j] - law.upper[held][:, i],
            )
            for ones in (False, True):
                found = count_violations(
                    ahead, index[rows], np.ones(len(held)) if ones else weights[rows], distances,
                    criterion.eps1, allowed,
                )  # fmt: skip
                if ones:
                    windows += found[0]
                else:
                    n += found[0]
                    first = np.where(first >= 0, first, found[1])
                    last = np.where(found[2] >= 0, found[2], last)
        begin = np.where(first >= 0, np.append(law.start[at], -1)[first], -1)
        end = np.where(last >= 0, np.append(law.stop[at], -1)[last] - 1, -1)
        parts.append((n, begin, end, windows))
    n, first, last, windows = (np.concatenate(column) for column in zip(*parts, strict=True))
    return n, first, last, windows


# -- gaps and bounds -------------------------------------------------------------------------------


def _gaps(law: Windows) -> tuple[Floats, Floats]:
    """Return lower and upper limits of the largest |pi(i) - pi(j)| over windows, ``(k, k)``.

    Pairs that are not on offer together have 0.
    """
    k = law.n_items
    low, high = np.zeros((2, k, k))
    step = max(1, _AT_ONCE // (k * k))
    for begin in range(0, len(law.start), step):
        part = law.rows(slice(begin, begin + step))
        ahead = part.lower[:, :, None] - part.upper[:, None, :]
        ahead = np.fmax.reduce(ahead, axis=0, initial=0.0)
        low = np.fmax(low, np.fmax(ahead, ahead.T))
        if not part.logged:
            reach = part.upper[:, :, None] - part.lower[:, None, :]
            reach = np.fmax.reduce(reach, axis=0, initial=0.0)
            high = np.fmax(high, np.fmax(reach, reach.T))
    if law.logged:
        return low, low
    for table in (low, high):
        np.fill_diagonal(table, 0.0)
    return low, high


def _excesses(law: Windows, bound: Floats) -> tuple[Floats, Ints]:
    """Return the largest certain gap - bound of each window, and where: i k + j, the first one.

    Windows with fewer than two items on offer give 0.
    """
    k, n = law.n_items, len(law.start)
    top, place = np.zeros(n), np.zeros(n, np.int64)
    bound = bound + np.where(np.eye(k, dtype=bool), np.inf, 0.0)
    step = max(1, _AT_ONCE // (k * k))
    for begin in range(0, n, step):
        part = law.rows(slice(begin, begin + step))
        ahead = part.lower[:, :, None] - part.upper[:, None, :]
        excess = (np.maximum(ahead, ahead.transpose(0, 2, 1)) - bound).reshape(len(ahead), -1)
        excess = np.where(np.isnan(excess), -np.inf, excess)
        at = excess.argmax(axis=1)
        place[begin : begin + step] = at
        top[begin : begin + step] = np.maximum(excess[np.arange(len(at)), at], 0.0)
    return top, place


def _needed_at(gap: Floats, divergence: Floats, eps1: Floats) -> Floats:
    """Return max over pairs of gap - eps1 D, cut at 0, for one table of divergences: ``(E,)``."""
    i, j = np.triu_indices(gap.shape[0], 1)
    excess = gap[i, j][:, None] - divergence[i, j][:, None] * eps1
    return np.asarray(excess.max(axis=0, initial=0.0))


def _smallest(gap: Floats, log_worth: Floats, eps1: Floats) -> Floats:
    """Return max over pairs of gap - eps1 D, cut at 0, for each draw and eps1: ``(n, E)``."""
    i, j = np.triu_indices(gap.shape[0], 1)
    g = gap[i, j]
    result = np.zeros((len(log_worth), len(eps1)))
    keep = g > 0
    i, j, g = i[keep], j[keep], g[keep]
    if not g.size:
        return result
    step = max(1, _AT_ONCE // len(g))
    for begin in range(0, len(log_worth), step):
        part = log_worth[begin : begin + step]
        divergence = race_total_variation(part[:, i] - part[:, j])
        for e, slope in enumerate(eps1):
            result[begin : begin + step, e] = (g - slope * divergence).max(axis=1)
    return np.maximum(result, 0.0)


def worst_pair(gap: Floats, worth: Floats, eps1: float) -> tuple[int, int]:
    """Return the pair with the largest excess at one set of log-worths."""
    excess = gap - eps1 * race_total_variation(worth[:, None] - worth)
    np.fill_diagonal(excess, -np.inf)
    i, j = divmod(int(np.argmax(excess)), len(worth))
    return i, j


def _as_logged(law: Windows) -> Windows:
    """Return the shares as if they were probabilities."""
    return Windows(law.start, law.stop, law.share, law.share, law.share)
