"""Duels as a sequence of decisions: who was compared in each round, and how likely that was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from bayesfair.checks import as_numbers, check_choice, check_in_range
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError, ProbabilityError

__all__ = ["DuelRounds", "Windows", "duel_rounds", "windows_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DuelRounds:
    """Rounds of duels in the order in which they were decided.

    Attributes
    ----------
    items : tuple of str
    left, right : (T,) arrays of int
    cell : (T,) array of int
        Which of the unique comparisons the duel is, -1 = no outcome.
    selection : (T, k) array or None
        Law of the slot in each round, NaN = not on offer; None = not logged.
    offered : (T, k) array of bool or None
        None = not said.
    slot : {"first", "mean"}
    comparisons : Comparisons
        For fitting.
    source : str
    n_skipped : int
    notices : tuple of str
    """

    items: tuple[str, ...]
    left: IntArray
    right: IntArray
    cell: IntArray
    selection: FloatArray | None
    offered: NDArray[np.bool_] | None
    slot: str
    comparisons: Comparisons
    source: str
    n_skipped: int
    notices: tuple[str, ...]

    @property
    def n_rounds(self) -> int:
        """Number of duels, T."""
        return self.left.size

    @property
    def n_items(self) -> int:
        """Number of items, k."""
        return len(self.items)

    def taken(self, part: slice | NDArray[Any]) -> IntArray:
        """Return how often each item filled the slot in some rounds (``mean``: took part)."""
        found = np.bincount(self.left[part], minlength=self.n_items)
        if self.slot == "mean":
            found = found + np.bincount(self.right[part], minlength=self.n_items)
        return found


@dataclass(frozen=True, eq=False)
class Windows:
    """Shares of the slot in windows of rounds, with exact simultaneous limits.

    Attributes
    ----------
    start, stop : (W,) arrays of int
        Rounds of each window.
    share, lower, upper : (W, k) arrays
        NaN where an item was not on offer throughout the window.
    """

    start: IntArray
    stop: IntArray
    share: FloatArray
    lower: FloatArray
    upper: FloatArray

    def where_covered_by(self, finer: Windows) -> Windows:
        """Return a copy that keeps only items on offer in all finer windows inside each window."""
        covered = np.ones(self.share.shape, bool)
        for w in range(len(self.start)):
            inside = (finer.start < self.stop[w]) & (finer.stop > self.start[w])
            covered[w] = ~np.isnan(finer.share[inside]).any(axis=0)
        tables = (np.where(covered, t, np.nan) for t in (self.share, self.lower, self.upper))
        return Windows(self.start, self.stop, *tables)


def duel_rounds(
    duels: Any,
    *,
    slot: str,
    pair_probability: ArrayLike | None,
    selection_probability: ArrayLike | None,
    offered: ArrayLike | None,
) -> DuelRounds:
    """Return the rounds of a log of duels, its probabilities checked.

    Raises
    ------
    OptionError, DataError, ProbabilityError
        Naming the round and the remedy.
    """
    check_choice(slot, "slot", ("first", "mean"))
    notices: tuple[str, ...] = ()
    skipped = 0
    if hasattr(duels, "pair_probability") and hasattr(duels, "to_comparisons"):
        comparisons = duels.to_comparisons()
        left, right = np.asarray(duels.left, np.int64), np.asarray(duels.right, np.int64)
        cell = np.full(left.size, -1, np.int64)
        cell[~np.isnan(duels.outcome)] = comparisons.cell
        if pair_probability is None and selection_probability is None:
            pair_probability = duels.pair_probability
    elif isinstance(duels, Comparisons):
        comparisons, notices = duels, duels.notices
        tables = (pair_probability, selection_probability, offered)
        left, right, cell, skipped, tables = _from_comparisons(duels, tables)
        pair_probability, selection_probability, offered = tables
    else:
        raise OptionError(
            f"audit_comparisons needs Comparisons or a DuelLog, got {type(duels).__name__}. "
            "Read duels with bayesfair.read_comparisons(..., keep_rows=True)."
        )
    items = comparisons.items
    if not left.size:
        raise DataError("the log holds no duel.")
    if pair_probability is not None and selection_probability is not None:
        raise OptionError("give either pair_probability= or selection_probability=, not both.")
    selection = None
    if pair_probability is not None:
        selection = _slot_law(
            as_numbers(pair_probability, "pair_probability"), slot, left.size, len(items)
        )
    elif selection_probability is not None:
        selection = as_numbers(selection_probability, "selection_probability")
        if selection.shape == (len(items),):
            selection = np.broadcast_to(selection, (left.size, len(items)))
    on_offer = None if offered is None else np.asarray(offered, dtype=bool)
    for name, table in (("selection_probability", selection), ("offered", on_offer)):
        if table is not None and table.shape != (left.size, len(items)):
            raise DataError(
                f"{name} has shape {table.shape}, expected {(left.size, len(items))}: a row per "
                "duel, a column per item."
            )
    if selection is not None:
        selection = _checked(selection, on_offer, items)
    return DuelRounds(
        items, left, right, cell, selection, on_offer, slot, comparisons,
        str(duels.source), skipped, notices,
    )  # fmt: skip


def _from_comparisons(
    duels: Comparisons, given: tuple[Any, Any, Any]
) -> tuple[IntArray, IntArray, IntArray, int, tuple[Any, Any, Any]]:
    """Return left, right, cell, rows left out, and the tables without these rows."""
    if duels.kind != "duels":
        raise OptionError(f"an audit of who is compared needs duels, these are {duels.kind}.")
    if duels.cell is None:
        raise OptionError(
            "these duels were collapsed and their order is lost. Read them with "
            "keep_rows=True (and order= a time column if the file is not in order)."
        )
    keep = duels.cell >= 0
    cell = np.asarray(duels.cell[keep], np.int64)
    if not np.array_equal(np.bincount(cell, minlength=len(duels.count)), duels.count):
        raise OptionError(
            "these duels carry weights, and an audit of who is compared judges decisions, each of "
            "which counts once: read them without weight=.",
            kind="unused_option",
            column="weight",
        )
    left, right = (np.asarray(end[cell], np.int64) for end in (duels.left, duels.right))
    kept = tuple(None if table is None else _rows(table, keep) for table in given)
    return left, right, cell, int((~keep).sum()), (kept[0], kept[1], kept[2])


def _rows(given: ArrayLike, keep: NDArray[np.bool_]) -> Any:
    table = np.asarray(given)
    return table[keep] if table.shape[:1] == keep.shape else table


def _slot_law(pairs: FloatArray, slot: str, n_rounds: int, k: int) -> FloatArray:
    if pairs.shape == (k, k):
        pairs = np.broadcast_to(pairs, (n_rounds, k, k))
    if pairs.shape != (n_rounds, k, k):
        raise DataError(
            f"pair_probability has shape {pairs.shape}, expected {(n_rounds, k, k)} or {(k, k)}: "
            "entry [t, i, j] is the probability of i on the left and j on the right."
        )
    # NaN marks pairs not on offer; an item none of whose pairs is on offer is not either
    none = np.isnan(pairs).all(axis=2) & np.isnan(pairs).all(axis=1)
    first = np.nansum(pairs, axis=2)
    law = first if slot == "first" else (first + np.nansum(pairs, axis=1)) / 2
    return np.where(none, np.nan, law)


def _checked(
    selection: FloatArray, offered: NDArray[np.bool_] | None, items: tuple[str, ...]
) -> FloatArray:
    if offered is not None:
        selection = np.where(offered, selection, np.nan)
    bad = np.argwhere((selection < 0) | (selection > 1 + 1e-6))
    if bad.size:
        t, i = bad[0]
        raise ProbabilityError(
            f"round {t}: the probability of {items[i]!r} is {selection[t, i]:g}, expected a number "
            "in [0, 1]."
        )
    total = np.nansum(selection, axis=1)
    off = np.flatnonzero(np.abs(total - 1) > 1e-6)
    if off.size:
        t = int(off[0])
        raise ProbabilityError(
            f"round {t}: the probabilities of the slot sum to {total[t]:.6g}, expected 1 "
            f"({off.size} such rounds). Give pair_probability over ordered pairs (left, right), or "
            "the law of the slot."
        )
    return np.asarray(selection / total[:, None])


def windows_of(rounds: DuelRounds, window: int | None, alpha: float) -> Windows:
    r"""Return shares of the slot in windows of rounds, with simultaneous limits.

    Parameters
    ----------
    rounds : DuelRounds
    window : int or None
        Rounds per window; None: 20 windows, but at least ten rounds per item in each.
    alpha : float
        All limits of all windows hold together with probability at least 1 - alpha.

    Notes
    -----
    Clopper-Pearson limits at :math:`\alpha / (W k)`. They are exact where the rule is constant in a
    window; where its probabilities vary on a fixed schedule, the count is less dispersed than a
    binomial one (Hoeffding 1956, Ann. Math. Stat. 27, 713-721) and they are conservative for the
    window's mean. An item counts as on offer from the window after that of its first duel to the
    window before that of its last one, unless `offered` says more; items seen in the first (last)
    window were there from the start (to the end).
    """
    n, k = rounds.n_rounds, rounds.n_items
    size = max(-(-n // 20), 10 * k) if window is None else window
    size = int(check_in_range(size, "window", 1, np.inf, high_open=True))
    start = np.arange(0, n, min(size, n), dtype=np.int64)
    if len(start) > 1 and n - start[-1] < size / 2:
        start = start[:-1]  # a short rest joins the window before it
    if rounds.offered is not None:
        changed = np.flatnonzero((rounds.offered[1:] != rounds.offered[:-1]).any(axis=1)) + 1
        start = np.union1d(start, changed)
    stop = np.append(start[1:], n)
    shape = (len(start), k)
    share, lower, upper = (np.full(shape, np.nan) for _ in range(3))
    presence = _presence(rounds, start, stop)
    scale = 1.0 if rounds.slot == "first" else 0.5
    tail = alpha / (2 * max(int(presence.sum()), 1))
    for w, (a, b) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
        count, m = rounds.taken(slice(a, b)).astype(np.float64), float(b - a)
        count = np.minimum(count, m)
        low = np.where(count > 0, betaincinv(np.maximum(count, 1), m - count + 1, tail), 0.0)
        high = np.where(count < m, betaincinv(count + 1, np.maximum(m - count, 1), 1 - tail), 1.0)
        for table, value in ((share, count / m), (lower, low), (upper, high)):
            table[w] = np.where(presence[w], scale * value, np.nan)
    return Windows(start, stop, share, lower, upper)


def _presence(rounds: DuelRounds, start: IntArray, stop: IntArray) -> NDArray[np.bool_]:
    if rounds.offered is not None:
        return rounds.offered[start]
    first, last = seen_from_to(rounds)
    own = np.searchsorted(start, first, side="right") - 1
    end = np.searchsorted(start, last, side="right") - 1
    w = np.arange(len(start))[:, None]
    after = np.where(own == 0, 0, own + 1)
    before = np.where(end == len(start) - 1, len(start) - 1, end - 1)
    return np.asarray((w >= after) & (w <= before) & (first >= 0))


def seen_from_to(rounds: DuelRounds) -> tuple[IntArray, IntArray]:
    """Return the first and the last round in which each item took part, -1 = never."""
    k, n = rounds.n_items, rounds.n_rounds
    first, last = np.full(k, n, np.int64), np.full(k, -1, np.int64)
    order = np.arange(n)
    for end in (rounds.left, rounds.right):
        np.minimum.at(first, end, order)
        np.maximum.at(last, end, order)
    return np.where(last < 0, -1, first), last
