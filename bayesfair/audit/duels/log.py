"""Duels as a sequence of decisions: who was compared in each round, and how likely that was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.checks import as_numbers, check_choice
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError, ProbabilityError

__all__ = ["DuelRounds", "duel_rounds", "seen_from_to"]

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
    pairs : (T, k, k) or (k, k) array or None
        Probabilities of ordered pairs; None = not logged.
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
    pairs: FloatArray | None
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
    given = {
        "pair_probability": pair_probability,
        "selection_probability": selection_probability,
        "offered": offered,
    }
    numbers = {
        name: None if value is None else as_numbers(value, name) for name, value in given.items()
    }
    pairs, selection, on_offer = numbers.values()
    notices: tuple[str, ...] = ()
    skipped = 0
    if hasattr(duels, "pair_probability") and hasattr(duels, "to_comparisons"):
        comparisons = duels.to_comparisons()
        left, right = np.asarray(duels.left, np.int64), np.asarray(duels.right, np.int64)
        cell = np.full(left.size, -1, np.int64)
        cell[~np.isnan(duels.outcome)] = comparisons.cell
        if pairs is None and selection is None:
            pairs = np.asarray(duels.pair_probability)
    elif isinstance(duels, Comparisons):
        comparisons, notices = duels, duels.notices
        left, right, cell, skipped, tables = _from_comparisons(duels, (pairs, selection, on_offer))
        pairs, selection, on_offer = tables
    else:
        raise OptionError(
            f"audit_comparisons needs Comparisons or a DuelLog, got {type(duels).__name__}. "
            "Read duels with bayesfair.read_comparisons(..., keep_rows=True)."
        )
    items = comparisons.items
    if not left.size:
        raise DataError("the log holds no duel.")
    if pairs is not None and selection is not None:
        raise OptionError(
            "give either pair_probability= or selection_probability=, not both.",
            kind="options_exclude",
            column="pair_probability",
        )
    if pairs is not None:
        selection = _slot_law(pairs, slot, left.size, items)
    elif selection is not None and selection.shape == (len(items),):
        selection = np.broadcast_to(selection, (left.size, len(items)))
    for name, table in (("selection_probability", selection), ("offered", on_offer)):
        if table is not None and table.shape != (left.size, len(items)):
            raise DataError(
                f"{name} has shape {table.shape}, expected {(left.size, len(items))}: a row per "
                "duel, a column per item.",
                kind="shape",
                column=name,
            )
    if on_offer is not None and not np.isin(on_offer, (0, 1)).all():
        raise DataError(
            "offered= must hold True or False (1 or 0) only.", kind="offered", column="offered"
        )
    known = None if on_offer is None else on_offer.astype(bool)
    if selection is not None:
        selection = _checked(selection, known, items)
    return DuelRounds(
        items, left, right, cell, selection, pairs, known, slot, comparisons,
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
            "these duels were collapsed and their order is lost; an audit of who is compared needs "
            "one row per duel. Read them with keep_rows=True (and order= a time column if the file "
            "is not in order); counts of wins have no order.",
            kind="no_order",
            column="keep_rows",
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
    pairs, selection, offered = given
    tables = (_rows(pairs, keep, 3), _rows(selection, keep, 2), _rows(offered, keep, 2))
    return left, right, cell, int((~keep).sum()), tables


def _rows(given: Any, keep: NDArray[np.bool_], per_round: int) -> Any:
    """Leave out rows of a table that has one for every round, not one that holds for them all."""
    if given is None:
        return None
    table = np.asarray(given)
    by_round = table.ndim == per_round and table.shape[:1] == keep.shape
    return table[keep] if by_round else table


def _slot_law(pairs: FloatArray, slot: str, n_rounds: int, items: tuple[str, ...]) -> FloatArray:
    k = len(items)
    if pairs.shape == (k, k):
        pairs = np.broadcast_to(pairs, (n_rounds, k, k))
    if pairs.shape != (n_rounds, k, k):
        raise DataError(
            f"pair_probability has shape {pairs.shape}, expected {(n_rounds, k, k)} or {(k, k)}: "
            "entry [t, i, j] is the probability of i on the left and j on the right."
        )
    bad = np.argwhere((pairs < 0) | (pairs > 1 + 1e-6))
    if bad.size:
        t, i, j = bad[0]
        raise ProbabilityError(
            f"round {t}: the probability of {items[i]!r} on the left and {items[j]!r} on the right "
            f"is {pairs[t, i, j]:g}, expected a number in [0, 1].",
            kind="probability",
            column="pair_probability",
            value=float(pairs[t, i, j]),
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


def seen_from_to(rounds: DuelRounds) -> tuple[IntArray, IntArray]:
    """Return the first and the last round in which each item took part, -1 = never."""
    k, n = rounds.n_items, rounds.n_rounds
    first, last = np.full(k, n, np.int64), np.full(k, -1, np.int64)
    order = np.arange(n)
    for end in (rounds.left, rounds.right):
        np.minimum.at(first, end, order)
        np.maximum.at(last, end, order)
    return np.where(last < 0, -1, first), last
