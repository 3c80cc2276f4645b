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
from bayesfair.audit.duels.beliefs import Path
from bayesfair.audit.duels.law import Law, Windows
from bayesfair.audit.duels.pairs import distance_limits, distances, least_gaps
from bayesfair.audit.duels.regret import Regrets, regrets
from bayesfair.audit.duels.truth import Truth
from bayesfair.comparisons import DuelLog
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
    gap, shown : (P,) arrays
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
                pair = [int(x[place[r]]) for x in np.triu_indices(part.n_items, 1)]
                pair.sort(key=lambda i: -part.share[r, i])
                worst = Worst(float(top[r]), int(part.start[r]), *pair)
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
            known = distances(ends[0])
            yield _Block(law.rows(part), known, known)
        return
    for w in range(len(law.start)):
        window = law.rows(slice(w, w + 1))
        begin, end = int(window.start[0]), int(window.stop[0])
        near, far = np.zeros((2, law.n_pairs))
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
    spread = np.nanmax(law.upper, axis=1, initial=0) - np.nanmin(law.lower, axis=1, initial=1)
    at = np.flatnonzero(spread > allowed)
    index, weights = np.arange(len(at)), law.length[at]
    parts = []
    step = max(1, _AT_ONCE // law.n_pairs)
    for s in range(0, len(log_worth), step):
        apart = np.ascontiguousarray(distances(log_worth[s : s + step]).T)
        n, windows = np.zeros((2, apart.shape[1]))
        first, last = np.full((2, apart.shape[1]), -1)
        for r in range(0, len(at), step):
            rows = slice(r, r + step)
            held = at[rows]
            ahead = least_gaps(law.lower[held], law.upper[held])
            for ones in (False, True):
                found = count_violations(
                    ahead, index[rows], np.ones(len(held)) if ones else weights[rows], apart,
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


def _parts(law: Windows) -> Iterator[tuple[slice, Windows]]:
    """Yield some windows at a time."""
    step = max(1, _AT_ONCE // law.n_pairs)
    for begin in range(0, len(law.start), step):
        rows = slice(begin, begin + step)
        yield rows, law.rows(rows)


def _gaps(law: Windows) -> tuple[Floats, Floats]:
    """Return lower and upper limits of the largest |pi(i) - pi(j)| over windows, ``(P,)``.

    Pairs that are not on offer together have 0.
    """
    low, high = np.zeros((2, law.n_pairs))
    for _, part in _parts(law):
        low = np.fmax(low, np.fmax.reduce(least_gaps(part.lower, part.upper), axis=0))
        if not law.logged:
            high = np.fmax(high, np.fmax.reduce(least_gaps(part.upper, part.lower), axis=0))
    return low, low if law.logged else high


def _excesses(law: Windows, bound: Floats) -> tuple[Floats, Ints]:
    """Return the largest certain gap - bound of each window, and of which pair, the first one.

    Windows with fewer than two items on offer give 0.
    """
    top, place = np.zeros(len(law.start)), np.zeros(len(law.start), np.int64)
    for rows, part in _parts(law):
        excess = least_gaps(part.lower, part.upper) - bound
        excess = np.where(np.isnan(excess), -np.inf, excess)
        place[rows] = excess.argmax(axis=1)
        top[rows] = excess.max(axis=1, initial=0.0)
    return top, place


def _needed_at(gap: Floats, divergence: Floats, eps1: Floats) -> Floats:
    """Return max over pairs of gap - eps1 D, cut at 0, for one table of divergences: ``(E,)``."""
    return np.asarray((gap[:, None] - divergence[:, None] * eps1).max(axis=0, initial=0.0))


def _smallest(gap: Floats, log_worth: Floats, eps1: Floats) -> Floats:
    """Return max over pairs of gap - eps1 D, cut at 0, for each draw and eps1: ``(n, E)``."""
    result, keep = np.zeros((len(log_worth), len(eps1))), gap > 0
    if not keep.any():
        return result
    step = max(1, _AT_ONCE // len(gap))
    for begin in range(0, len(log_worth), step):
        rows = slice(begin, begin + step)
        divergence = distances(log_worth[rows])[:, keep]
        for e, slope in enumerate(eps1):
            result[rows, e] = (gap[keep] - slope * divergence).max(axis=1)
    return np.maximum(result, 0.0)


def worst_pair(gap: Floats, worth: Floats, eps1: float) -> int:
    """Return which pair has the largest excess at one set of log-worths."""
    return int((gap - eps1 * distances(worth)).argmax())


def _as_logged(law: Windows) -> Windows:
    """Return the shares as if they were probabilities."""
    return Windows(law.start, law.stop, law.share, law.share, law.share)
