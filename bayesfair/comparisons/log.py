"""Duels as a sequence of decisions: who was compared in each round, and how likely that was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.arguments import constructed, instance_of, takes
from bayesfair.base.checks import as_numbers, check_choice, first_where
from bayesfair.base.html import Shown
from bayesfair.comparisons.data import Comparisons
from bayesfair.comparisons.outcomes import OUTCOMES, no_sides
from bayesfair.comparisons.worths import known_worths
from bayesfair.errors import DataError, OptionError, ProbabilityError
from bayesfair.kernels.log.rows import fixed
from bayesfair.typing import Flags, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DuelLog", "one_law"]


_ROW_PER_DUEL = "a row per duel, a column per item"


@constructed
@dataclass(frozen=True, eq=False, repr=False)
class DuelLog(Shown):
    r"""Duels in the order in which they were decided, with what was logged of the rule.

    `read_duels` and `simulate_duels` return one; `from_comparisons` makes one of duels in memory.

    Parameters
    ----------
    comparisons : Comparisons
        The duels that have an outcome, for fitting.
    left, right : (T,) arrays of int
        Positions in `items`; equal = a duel of an item with itself, which has no outcome.
    cell : (T,) array of int
        Which of the unique comparisons a duel is, -1 = no outcome.
    pair_probability : (T, k, k) or (k, k) array, optional
        ``[t, i, j]``: probability that round t duels i (left) with j (right); sums to 1 per round.
        NaN = not on offer.
    selection_probability : (T, k) or (k,) array, optional
        :math:`\pi_t(i)` under `slot`; rows sum to 1; NaN = not on offer. It follows from
        `pair_probability` where that is known.
    propensity : (T,) array, optional
        Instead: only the probability with which the item on the left was put there.
    offered : (T, k) array of bool, optional
        Which items were on offer.
    slot : {"first", "mean"}
        ``"first"``: law of the left item; ``"mean"``: half the probability of taking part, all that
        duels of winner and loser (``comparisons.sides`` is False) can be judged by.
    order : str, optional
        Column that the rounds were sorted by; None = the order of the rows.

    Raises
    ------
    DataError, OptionError, ProbabilityError
        Naming the round and the remedy.

    Examples
    --------
    >>> duels = Comparisons.from_duels(["a", "b"], ["b", "a"], ["left", "tie"], keep_rows=True)
    >>> log = DuelLog.from_comparisons(duels, selection_probability=[0.5, 0.5])
    >>> log, log.winner
    (DuelLog(memory: 2 duels of 2 items, slot='first', the whole rule logged), array([ 0, -1]))
    """

    comparisons: Comparisons
    left: Ints
    right: Ints
    cell: Ints
    pair_probability: Floats | None = None
    selection_probability: Floats | None = None
    propensity: Floats | None = None
    offered: Flags | None = None
    slot: str = "first"
    order: str | None = None

    def __post_init__(self) -> None:
        """Check that the parts belong together, and freeze the arrays."""
        check_choice(self.slot, "slot", ("first", "mean"))
        if self.slot == "first" and not self.comparisons.sides:
            raise no_sides("slot", "first", 'Give slot="mean"')
        n, k = len(self.left), self.n_items
        values: dict[str, Any] = {}
        for name in ("left", "right", "cell"):
            values[name] = np.asarray(getattr(self, name), np.int64)
            _check_shape(values[name], (n,), name, "one per duel")
        for name in ("pair_probability", "selection_probability", "propensity", "offered"):
            given = getattr(self, name)
            values[name] = None if given is None else as_numbers(given, name)
        pairs, law, chosen, on = list(values.values())[3:]
        if on is not None:
            values["offered"] = on = _offered(on, (n, k))
        if pairs is not None:
            law = _slot_law(pairs, self.slot, n, self.items)
        if law is not None:
            law = np.broadcast_to(law, (n, k)) if law.shape == (k,) else law
            _check_shape(law, (n, k), "selection_probability", _ROW_PER_DUEL)
            values["selection_probability"] = _checked_law(law, on, self.items)
        if chosen is not None:
            values["propensity"] = self._checked_propensity(chosen, known=law is not None)
        for name, value in values.items():
            if value is not None:
                object.__setattr__(self, name, fixed(value))

    @classmethod
    @takes(duels=instance_of("Comparisons", called="the Comparisons of bayesfair.read_duels"))
    def from_comparisons(
        cls,
        duels: Comparisons,
        *,
        pair_probability: ArrayLike | None = None,
        selection_probability: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        offered: ArrayLike | None = None,
        slot: str | None = None,
        order: str | None = None,
    ) -> DuelLog:
        """Return the log of duels whose rows were kept; options as in the class.

        Without `slot` it is ``"first"``, of winners and losers ``"mean"``. Tables may have a row
        for every row of the duels, those without a comparison included.

        Raises
        ------
        OptionError
            If these are no duels, or their order is lost.
        """
        if duels.kind != "duels":
            raise OptionError(
                f"an audit of who is compared needs duels, these are {duels.kind}.",
                kind="wrong_kind",
            )
        if duels.cell is None:
            raise OptionError(
                "these duels were collapsed and their order is lost; an audit of who is compared "
                "needs one row per duel. Read them with bayesfair.read_duels, or pass "
                "keep_rows=True to Comparisons.from_duels; counts of wins have no order.",
                kind="no_order",
                column="keep_rows",
            )
        keep = duels.cell >= 0
        cell = np.asarray(duels.cell[keep], np.int64)
        if not np.array_equal(np.bincount(cell, minlength=len(duels.count)), duels.count):
            raise OptionError(
                "these duels carry weights, and an audit of who is compared judges decisions, each "
                "of which counts once: read them without weight=.",
                kind="unused_option",
                column="weight",
            )
        one_law(pair_probability, selection_probability)
        tables: dict[str, Any] = {
            "pair_probability": _kept("pair_probability", pair_probability, keep, 3),
            "selection_probability": _kept("selection_probability", selection_probability, keep, 2),
            "propensity": _kept("propensity", propensity, keep, 1),
            "offered": _kept("offered", offered, keep, 2),
        }
        left, right = (np.asarray(end[cell], np.int64) for end in (duels.left, duels.right))
        if slot is None:
            slot = "first" if duels.sides else "mean"
        return cls(duels, left, right, cell, **tables, slot=slot, order=order)

    # -- what it holds -------------------------------------------------------------------------

    @property
    def items(self) -> tuple[str, ...]:
        """Labels."""
        return self.comparisons.items

    @property
    def n_items(self) -> int:
        """Number of items, k."""
        return len(self.items)

    @property
    def n_rounds(self) -> int:
        """Number of duels, T."""
        return len(self.left)

    @property
    def n_skipped(self) -> int:
        """Rows of the source that are no duel of the log."""
        kept = self.comparisons.cell
        return 0 if kept is None else int((kept < 0).sum())

    @property
    def source(self) -> str:
        """What reports call the data."""
        return self.comparisons.source

    @property
    def winner(self) -> Ints:
        """Position of the item that won each duel, -1 = neither, ``(T,)``."""
        outcome = np.append(self.comparisons.outcome, 2)[self.cell]
        return np.where(outcome == 0, self.left, np.where(outcome == 1, self.right, -1))

    @property
    def n_without_outcome(self) -> int:
        """How many duels have no outcome."""
        return int((self.cell < 0).sum())

    @property
    def logged(self) -> str:
        """What was logged of the rule: ``full``, ``chosen`` (the left item), or ``windows``."""
        if self.selection_probability is not None:
            return "full"
        return "windows" if self.propensity is None else "chosen"

    @property
    def pair_propensity(self) -> Floats | None:
        """Probability of the ordered pair that was drawn, ``(T,)``; None = not known."""
        if self.pair_probability is None or not self.comparisons.sides:
            return None
        pairs = np.broadcast_to(self.pair_probability, (self.n_rounds, *(self.n_items,) * 2))
        return np.asarray(pairs[np.arange(self.n_rounds), self.left, self.right])

    @takes(part=instance_of("slice", called="a slice of rounds"))
    def taken(self, part: slice) -> Ints:
        """Return how often each item filled the slot in some rounds (``mean``: took part)."""
        found = np.bincount(self.left[part], minlength=self.n_items)
        if self.slot == "mean":
            found = found + np.bincount(self.right[part], minlength=self.n_items)
        return found

    def seen(self) -> tuple[Ints, Ints]:
        """Return the first and the last round in which each item took part, -1 = never."""
        first, last = np.full(self.n_items, self.n_rounds), np.full(self.n_items, -1)
        order = np.arange(self.n_rounds)
        for end in (self.left, self.right):
            np.minimum.at(first, end, order)
            np.maximum.at(last, end, order)
        return np.where(last < 0, -1, first), last

    @takes()
    def fairness_regret(self, worth: Any) -> Floats:
        r"""Return :math:`TV(P^*, \pi_t)` per round, ``(T,)``: P* is the worth share.

        Parameters
        ----------
        worth : (k,) array or mapping of label to worth
            True worths, positive, of any scale.

        Raises
        ------
        OptionError
            If the law of the slot was not logged.
        """
        if self.selection_probability is None:
            raise OptionError(
                "the law of the slot was not logged, so that a round has no regret of its own; "
                "audit_comparisons estimates the mean.",
                kind="not_logged",
            )
        on = ~np.isnan(self.selection_probability)
        worths = np.where(on, known_worths(worth, self.items), 0.0)
        share = worths / worths.sum(axis=1, keepdims=True)
        return np.asarray(np.fmax(share - self.selection_probability, 0.0).sum(axis=1))

    def _checked_propensity(self, values: Floats, *, known: bool) -> Floats:
        if known:
            raise OptionError(
                "the law of the slot is known; leave propensity= out.",
                kind="unused_option",
                column="propensity",
            )
        if not self.comparisons.sides:
            raise no_sides("propensity", "propensity", "Leave it out with propensity=False")
        if self.slot != "first":
            raise OptionError(
                "propensity= is the probability of the item on the left. It tells nothing of the "
                'other side, so that slot="mean" cannot be estimated from it; use slot="first".',
                kind="options_exclude",
                column="slot",
                value=self.slot,
            )
        if values.shape != (self.n_rounds,):
            raise DataError(
                f"propensity has shape {values.shape}, expected one value for each of "
                f"{self.n_rounds} duels.",
                kind="shape",
                column="propensity",
            )
        if bad := first_where(~((values > 0) & (values <= 1 + 1e-6))):
            raise ProbabilityError(
                f"round {bad.at}: the probability of {self.items[self.left[bad.at]]!r} on the "
                "left is "
                f"{values[bad.at]:g} ({bad.n} such rounds); expected a number in (0, 1], since it "
                "was chosen.",
                kind="probability",
                column="propensity",
                value=float(values[bad.at]),
            )
        return np.minimum(values, 1.0)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per duel: items, outcome, and what was logged of the rule.

        Columns ``left``, ``right``, ``winner`` (left, right, tie; None = no outcome), or ``winner``
        and ``loser`` where no more is known, and
        ``p_{item}`` (the law of the slot) or ``propensity``; index ``round``.
        """
        import pandas as pd

        names, cell = np.array(self.items, dtype=object), np.asarray(self.cell)
        outcome = np.append(self.comparisons.outcome, -1)[cell]
        swapped = np.append(self.comparisons.left, -1)[cell] != self.left
        swapped &= (cell >= 0) & (outcome < 2)
        words = np.array([*OUTCOMES, None], dtype=object)
        found = {"left": names[self.left], "right": names[self.right],
                 "winner": words[np.where(swapped, 1 - outcome, outcome)]}  # fmt: skip
        if not self.comparisons.sides:
            found = {"winner": names[self.left], "loser": names[self.right]}
        if self.selection_probability is not None:
            law = np.asarray(self.selection_probability).T
            found |= {f"p_{item}": p for item, p in zip(self.items, law, strict=True)}
        elif self.propensity is not None:
            found["propensity"] = np.asarray(self.propensity)
        return pd.DataFrame(found).rename_axis("round")

    def __repr__(self) -> str:
        logged = {
            "full": "the whole rule logged",
            "chosen": "only the left item's probability logged",
            "windows": "no probabilities logged",
        }[self.logged]
        n = self.n_without_outcome
        without = f", {n} without outcome" if n else ""
        return (
            f"DuelLog({self.source}: {self.n_rounds} duels of {self.n_items} items, "
            f"slot={self.slot!r}, {logged}{without})"
        )


def one_law(pairs: Any, selection: Any) -> None:
    """Raise if the law of the slot is given in two ways."""
    if pairs is not None and selection is not None:
        raise OptionError(
            "give either pair_probability= or selection_probability=, not both.",
            kind="options_exclude",
            column="pair_probability",
        )


def _kept(name: str, given: Any, keep: Flags, ndim: int) -> Any:
    """Leave out rows of a table that has one for every row, not one that holds for them all."""
    if given is None:
        return None
    table = as_numbers(given, name)
    return table[keep] if table.ndim == ndim and table.shape[:1] == keep.shape else table


def _check_shape(table: NDArray[Any], shape: tuple[int, ...], name: str, what: str) -> None:
    if table.shape != shape:
        raise DataError(
            f"{name} has shape {table.shape}, expected {shape}: {what}.", kind="shape", column=name
        )


def _offered(table: Floats, shape: tuple[int, int]) -> Flags:
    _check_shape(table, shape, "offered", _ROW_PER_DUEL)
    if not np.isin(table, (0, 1)).all():
        raise DataError(
            "offered= must hold True or False (1 or 0) only.", kind="offered", column="offered"
        )
    return table.astype(bool)


def _slot_law(pairs: Floats, slot: str, n: int, items: tuple[str, ...]) -> Floats:
    """Return the law of the slot from the probabilities of ordered pairs: ``(k,)`` or a table."""
    k = len(items)
    table = pairs[None] if pairs.shape == (k, k) else pairs
    if pairs.shape not in ((k, k), (n, k, k)):
        raise DataError(
            f"pair_probability has shape {pairs.shape}, expected {(n, k, k)} or {(k, k)}: entry "
            "[t, i, j] is the probability of i on the left and j on the right.",
            kind="shape",
            column="pair_probability",
        )
    bad = np.argwhere((table < 0) | (table > 1 + 1e-6))
    if bad.size:
        t, i, j = bad[0]
        raise ProbabilityError(
            f"round {t}: the probability of {items[i]!r} on the left and {items[j]!r} on the right "
            f"is {table[t, i, j]:g}, expected a number in [0, 1].",
            kind="probability",
            column="pair_probability",
            value=float(table[t, i, j]),
        )
    # NaN marks pairs not on offer; an item none of whose pairs is on offer is not either
    none = np.isnan(table).all(axis=2) & np.isnan(table).all(axis=1)
    first = np.nansum(table, axis=2)
    law = first if slot == "first" else (first + np.nansum(table, axis=1)) / 2
    law = np.where(none, np.nan, law)
    return law if pairs.ndim == 3 else law[0]


def _checked_law(law: Floats, offered: Flags | None, items: tuple[str, ...]) -> Floats:
    if offered is not None:
        law = np.where(offered, law, np.nan)
    bad = np.argwhere((law < 0) | (law > 1 + 1e-6))
    if bad.size:
        t, i = bad[0]
        raise ProbabilityError(
            f"round {t}: the probability of {items[i]!r} is {law[t, i]:g}, expected a number in "
            "[0, 1].",
            kind="probability",
            column="selection_probability",
            value=float(law[t, i]),
        )
    total = np.nansum(law, axis=1)
    if off := first_where(np.abs(total - 1) > 1e-6):
        raise ProbabilityError(
            f"round {off.at}: the probabilities of the slot sum to {total[off.at]:.6g}, expected 1 "
            f"({off.n} such rounds). Give pair_probability over ordered pairs (left, right), or "
            "the law of the slot.",
            kind="probability_sum",
            column="selection_probability",
            value=float(total[off.at]),
        )
    return np.asarray(law / total[:, None])
