"""What is known of the slot's law: the logged law itself, or shares in windows with limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from bayesfair.base.checks import check_count
from bayesfair.comparisons import DuelLog
from bayesfair.errors import DataError, OptionError
from bayesfair.typing import Floats, Ints

__all__ = [
    "ALPHA",
    "Law",
    "Windows",
    "law_of",
    "share_limits",
    "window_size",
    "window_starts",
    "windows_of",
]


ALPHA = 0.025
"""Simultaneous error of the limits of shares in windows, and again of those of the whole log."""


@dataclass(frozen=True, eq=False)
class Windows:
    """What is known of the slot's law in stretches of rounds: shares with simultaneous limits.

    A law that was logged is a stretch for every run of equal rows, its limits the law itself.

    Attributes
    ----------
    start, stop : (W,) arrays of int
        Rounds of each window, in order.
    share, lower, upper : (W, k) arrays
        NaN where an item was not on offer throughout the window.
    """

    start: Ints
    stop: Ints
    share: Floats
    lower: Floats
    upper: Floats

    @property
    def logged(self) -> bool:
        """Whether these are probabilities that were logged, not shares of duels."""
        return self.lower is self.share and self.upper is self.share

    @property
    def length(self) -> Floats:
        """Rounds of each window, ``(W,)``."""
        return (self.stop - self.start).astype(np.float64)

    @property
    def n_items(self) -> int:
        """Number of items, k."""
        return int(self.share.shape[1])

    @property
    def n_pairs(self) -> int:
        """Number of pairs of them, P."""
        return self.n_items * (self.n_items - 1) // 2

    @property
    def most_offered(self) -> int:
        """The most items that are on offer in one window."""
        return int((~np.isnan(self.share)).sum(axis=1).max(initial=0))

    def rows(self, part: slice) -> Windows:
        """Return some of the windows."""
        share = self.share[part]
        if self.logged:
            return Windows(self.start[part], self.stop[part], share, share, share)
        return Windows(self.start[part], self.stop[part], share, self.lower[part], self.upper[part])

    def overlapping(self, begin: int, end: int) -> tuple[slice, Floats]:
        """Return the windows with rounds in [begin, end), and how many rounds each has there."""
        part = slice(
            int(np.searchsorted(self.stop, begin, side="right")),
            int(np.searchsorted(self.start, end, side="left")),
        )
        inside = np.minimum(self.stop[part], end) - np.maximum(self.start[part], begin)
        return part, inside.astype(np.float64)

    def where_covered_by(self, finer: Windows) -> Windows:
        """Return a copy that keeps only items on offer in all finer windows inside each window."""
        covered = np.ones(self.share.shape, bool)
        for w in range(len(self.start)):
            inside = (finer.start < self.stop[w]) & (finer.stop > self.start[w])
            covered[w] = ~np.isnan(finer.share[inside]).any(axis=0)
        tables = (np.where(covered, t, np.nan) for t in (self.share, self.lower, self.upper))
        return Windows(self.start, self.stop, *tables)


@dataclass(frozen=True, eq=False)
class Law:
    """What is known of how the slot was filled in the judged rounds.

    Attributes
    ----------
    windows : Windows
        The law itself, or shares with limits.
    whole : Windows or None
        Of shares: the whole log as one more window; less often on offer throughout, but much
        sharper.
    propensity : (T,) array or None
        With which probability the item on the left was put there; beside shares.
    size : int or None
        Rounds per window that were asked for.
    """

    windows: Windows
    whole: Windows | None = None
    propensity: Floats | None = None
    size: int | None = None

    @property
    def logged(self) -> bool:
        """Whether the law itself was logged."""
        return self.windows.logged

    @property
    def edges(self) -> Ints:
        """Rounds at which beliefs are needed beside the checkpoints: where windows start."""
        return np.empty(0, np.int64) if self.logged else self.windows.start


def law_of(log: DuelLog, cuts: Ints, window: int | None = None) -> Law:
    """Return what a log says of the law of its slot.

    Parameters
    ----------
    log : DuelLog
    cuts : (G,) array of int
        Rounds before which beliefs are refreshed; the first is the first one that is judged.
    window : int, optional
        Rounds per window of shares.

    Raises
    ------
    OptionError
        If the law was logged, and a window is asked for.
    DataError
        If no window has two items.
    """
    begin = int(cuts[0])
    if log.selection_probability is not None:
        if window is not None:
            raise OptionError(
                "window= is for logs without probabilities; these have them.",
                kind="unused_option",
                column="window",
                value=window,
            )
        return Law(_runs(log.selection_probability, cuts))
    windows = windows_of(log, window, ALPHA, begin)
    if windows.most_offered < 2:
        raise DataError(
            "no two items were on offer throughout a window. Give a smaller window=; where it is "
            "known when they were on offer, a DuelLog takes that as offered.",
            kind="no_pair",
        )
    whole = windows_of(log, log.n_rounds, ALPHA, begin).where_covered_by(windows)
    return Law(windows, whole, log.propensity, window)


def _runs(table: Floats, cuts: Ints) -> Windows:
    """Return a logged law from the first of `cuts` on: a window for every run of equal rows.

    Runs end at the `cuts`, too.
    """
    begin = int(cuts[0])
    rows = table[begin:]
    same = (rows[1:] == rows[:-1]) | (np.isnan(rows[1:]) & np.isnan(rows[:-1]))
    starts = np.append(0, 1 + np.flatnonzero(~same.all(axis=1))) + begin
    start = np.union1d(starts, cuts).astype(np.int64)
    share = table[start]
    return Windows(start, np.append(start[1:], len(table)), share, share, share)


def window_size(n_rounds: int, n_items: int, window: int | None) -> int:
    """Return the rounds of a window: 20 windows, but at least ten rounds per item in each."""
    size = max(-(-n_rounds // 20), 10 * n_items) if window is None else window
    return int(min(size, n_rounds))


def window_starts(begin: int, end: int, size: int) -> Ints:
    """Return where windows of so many rounds start; a short rest joins the window before it."""
    start = np.arange(begin, end, size, dtype=np.int64)
    if len(start) > 1 and end - start[-1] < size / 2:
        start = start[:-1]
    return start


def windows_of(log: DuelLog, window: int | None, alpha: float, begin: int = 0) -> Windows:
    r"""Return shares of the slot in windows of rounds, with simultaneous limits.

    Parameters
    ----------
    log : DuelLog
    window : int or None
        Rounds per window; None: 20 windows, but at least ten rounds per item in each.
    alpha : float
        All limits of all windows hold together with probability at least 1 - alpha.
    begin : int
        First round that is looked at.

    Notes
    -----
    Clopper-Pearson limits at :math:`\alpha / (W k)`. They are exact where the rule is constant in a
    window; where its probabilities vary on a fixed schedule, the count is less dispersed than a
    binomial one (Hoeffding 1956, Ann. Math. Stat. 27, 713-721) and they are conservative for the
    window's mean. An item counts as on offer from the window after that of its first duel to the
    window before that of its last one, unless `offered` says more; items seen in the first (last)
    window were there from the start (to the end).
    """
    n, k = log.n_rounds, log.n_items
    if window is not None:
        window = check_count(window, "window", 1)
    start = window_starts(begin, n, window_size(n - begin, k, window))
    if log.offered is not None:
        changed = np.flatnonzero((log.offered[1:] != log.offered[:-1]).any(axis=1)) + 1
        start = np.union1d(start, changed[changed > begin])
    stop = np.append(start[1:], n)
    presence = _presence(log, start, stop)
    scale = 1.0 if log.slot == "first" else 0.5
    tail = alpha / (2 * max(int(presence.sum()), 1))
    count = np.stack([log.taken(slice(a, b)) for a, b in zip(start, stop, strict=True)])
    size = (stop - start).astype(np.float64)[:, None]
    lower, upper = share_limits(count, size, tail)
    tables = (
        np.where(presence, scale * values, np.nan)
        for values in (np.minimum(count, size) / size, lower, upper)
    )
    return Windows(start, stop, *tables)


def share_limits(count: NDArray[Any], size: ArrayLike, tail: float) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson limits of a probability, each missed with probability `tail`.

    Examples
    --------
    >>> [float(limit.round(4)) for limit in share_limits(np.array(0), 10, 0.025)]
    [0.0, 0.3085]
    """
    m = np.asarray(size, dtype=np.float64)
    n = np.minimum(np.asarray(count, dtype=np.float64), m)
    low = np.where(n > 0, betaincinv(np.where(n > 0, n, 1.0), m - n + 1, tail), 0.0)
    high = np.where(n < m, betaincinv(n + 1, np.where(n < m, m - n, 1.0), 1 - tail), 1.0)
    return low, high


def _presence(log: DuelLog, start: Ints, stop: Ints) -> NDArray[np.bool_]:
    if log.offered is not None:
        return log.offered[start]
    first, last = log.seen()
    own = np.searchsorted(start, first, side="right") - 1
    end = np.searchsorted(start, last, side="right") - 1
    w = np.arange(len(start))[:, None]
    after = np.where(own == 0, 0, own + 1)
    before = np.where(end == len(start) - 1, len(start) - 1, end - 1)
    return np.asarray((w >= after) & (w <= before) & (first >= 0))
