"""From columns to arrays: the same conversion for a whole table and for every chunk of a scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import is_missing
from bayesfair.base.checks import counted, first_where
from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.base.labels import clean_label
from bayesfair.base.notices import Notice
from bayesfair.base.options import no_effect
from bayesfair.errors import DataError
from bayesfair.history.context import ContextLabels
from bayesfair.readers.formats.dsjson import KEPT
from bayesfair.readers.log.columns import rule_as_context
from bayesfair.readers.log.nested import nested_matrix
from bayesfair.readers.log.offers import Offers
from bayesfair.readers.log.reading import Reading
from bayesfair.readers.values.stamps import seconds
from bayesfair.readers.values.times import NUMBER, mixed, order_values
from bayesfair.readers.values.values import (
    fingerprints,
    matrix,
    meant_numbers,
    numbers,
    rewards,
    truths,
)
from bayesfair.typing import Where

__all__ = ["Converter", "Rounds", "concatenated"]


@dataclass(frozen=True, eq=False)
class Rounds:
    """Columns of rounds as arrays, not yet checked against each other.

    Attributes
    ----------
    arm : (n,) array of int32
        Number of the label; -1 = missing.
    reward : (n,) array
        NaN = missing.
    row : (n,) array of int64
        Row of the source.
    pi, offered, covered : (n, k) arrays or None
    propensity, order, group, known_at, known_until, keep_prob : (n,) arrays or None
    unique, user : (n,) arrays of uint64 or None
        Fingerprints of the keys, and of whom each decision was for; 0 = missing.
    spare : (n,) array or None
        A propensity that is not used, only compared.
    context : (n, d) array of int32 or None
        Numbers of the labels of each column of the context.
    watched : (n, columns) array or None
        Columns that look like the order of the rounds, in seconds or as counted; NaN = missing.
    """

    arm: NDArray[np.int32]
    reward: NDArray[np.float64]
    row: NDArray[np.int64]
    pi: NDArray[np.float64] | None = None
    propensity: NDArray[np.float64] | None = None
    order: NDArray[Any] | None = None
    group: NDArray[np.int32] | None = None
    offered: NDArray[np.bool_] | None = None
    known_at: NDArray[Any] | None = None
    known_until: NDArray[np.float64] | None = None
    spare: NDArray[np.float64] | None = None
    unique: NDArray[np.uint64] | None = None
    user: NDArray[np.uint64] | None = None
    context: NDArray[np.int32] | None = None
    keep_prob: NDArray[np.float64] | None = None
    watched: NDArray[np.float64] | None = None
    covered: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def lack(self) -> bool:
        """Whether a reward or an arm is missing."""
        return bool((np.isnan(self.reward) | (self.arm < 0)).any())

    def take(self, index: Any) -> Rounds:
        """Return the rounds at these positions."""
        present: dict[str, Any] = {
            f.name: v[index] for f in fields(self) if (v := getattr(self, f.name)) is not None
        }
        return replace(self, **present)


def concatenated(parts: Sequence[Rounds]) -> Rounds:
    """Return the parts as one, in their order."""
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, list[Any]] = {
        f.name: [getattr(p, f.name) for p in parts] for f in fields(Rounds)
    }
    joined: dict[str, Any] = {
        name: None if values[0] is None else np.concatenate(values)
        for name, values in columns.items()
    }
    return Rounds(**joined)


class Converter:
    """Convert tables of one log, one after the other.

    Parameters
    ----------
    reading : Reading
        How it is read.
    arms : sequence of str or None
        The arms, if they are known before a row is read.
    """

    def __init__(self, reading: Reading, arms: Sequence[str] | None) -> None:
        self.reading = reading
        self.layout = reading.layout
        self.source = reading.source.name
        self.decimal = reading.decimal
        self.book = LabelEncoder("arm", arms, self._remedy)
        self.offers = Offers(self.book, reading.offered_delimiter)
        self.groups = LabelEncoder("group")
        self.contexts = tuple(LabelEncoder("context") for _ in reading.layout.context)
        self.order_kind: str | None = None
        self.known_kind: str | None = None
        self._first_order: dict[str, Any] = {}
        self._met: set[str] = set()
        self._levels: dict[
            str, tuple[int, int]
        ] = {}  # rows with the level of missing ones, and those

    def _remedy(self, label: str) -> str:
        layout = self.layout
        if layout.probabilities:
            column = layout.pattern.replace("{arm}", label)
            if column in layout.withheld.values():
                return str(rule_as_context(column))
            return (
                f"The source has no column {column!r} with its probability: add it, or correct the "
                "label. If the columns hold something else, name the right pattern with "
                "probabilities=... or pass probabilities=False."
            )
        return "Add it to arms=..., or leave arms out to use the labels seen."

    def where(self, column: str, row0: int) -> Where:
        """Return what names a position of a column that starts at row `row0`."""
        return lambda at: f"row {row0 + at} of {self.source}, column {column!r}"

    def convert(self, table: Any, row0: int) -> Rounds:
        """Return the rounds of a table whose first record is row `row0`.

        Raises
        ------
        DataError
            Naming the first row, column and value that cannot be used.
        """
        layout, decimal = self.layout, self.decimal

        def column(name: str) -> tuple[Any, Where]:
            found = table.column(name)
            return found, self.where(name, row0)

        def optional(name: str | None) -> NDArray[np.float64] | None:
            return None if name is None else numbers(*column(name), decimal=decimal)

        arm = self.book.encode(*column(layout.arm))
        pi = None
        if layout.nested is not None:
            beside = layout.nested_labels
            labels = None if beside is None else self.offers.lists(table.column(beside))
            pi = nested_matrix(*column(layout.nested), tuple(layout.probabilities), labels,
                               lists_in_order=layout.lists_in_order)  # fmt: skip
        elif layout.probabilities:
            pairs = [column(name) for name in layout.probabilities.values()]
            pi = matrix([c for c, _ in pairs], [w for _, w in pairs], decimal=decimal)
        order, kind = None, None
        if layout.order is not None and table.num_rows:
            order, kind = order_values(*column(layout.order), decimal=decimal)
            self._one_kind(kind, self.where(layout.order, row0)(0), order[0])
        known_at: NDArray[Any] | None = None
        if layout.known_at is not None:
            known_at = self._known_at(*column(layout.known_at))
        spare = None
        if layout.spare is not None:
            spare = meant_numbers(table.column(layout.spare), decimal=decimal)
            if spare is None:  # not used: whatever it holds must not stop the reading
                spare = np.full(table.num_rows, np.nan)
        group = None
        if layout.by is not None:
            group = self.group_of(*column(layout.by))
        reward = rewards(
            *column(layout.reward), decimal=decimal, mapping=self.reading.rewards, met=self._met
        )
        row = np.arange(row0, row0 + table.num_rows, dtype=np.int64)
        for held in (pi, reward, row):  # nobody else holds them: History takes them without a copy
            if held is not None:
                held.flags.writeable = False
        return Rounds(
            arm=arm,
            reward=reward,
            row=row,
            pi=None if layout.partly else pi,
            covered=pi if layout.partly else None,
            propensity=optional(layout.propensity),
            order=order,
            group=group,
            offered=self._offered(column),
            known_at=known_at,
            known_until=optional(layout.known_until),
            spare=spare,
            unique=None if layout.unique is None else fingerprints(*column(layout.unique)),
            user=None if layout.user is None else fingerprints(*column(layout.user)),
            context=self._context(column),
            keep_prob=self._kept(optional(layout.keep_prob)),
            watched=self._watched(table),
        )

    def _context(self, column: Callable[[str], tuple[Any, Where]]) -> NDArray[np.int32] | None:
        """Return the number of each row's label in every column of the context."""
        found = []
        for name, encoder in zip(self.layout.context, self.contexts, strict=True):
            values, where = column(name)
            codes = encoder.encode(values, where)
            gone = np.flatnonzero(codes < 0)
            level = clean_label(self.reading.missing_context or "")
            own = np.count_nonzero(codes == encoder.codes[level]) if level in encoder.codes else 0
            before = self._levels.get(name, (0, 0))
            self._levels[name] = before[0] + int(own), before[1] + gone.size
            if gone.size and self.reading.missing_context is not None:
                codes[gone] = encoder.code(self.reading.missing_context)
            elif gone.size:
                raise DataError(
                    f"{where(int(gone[0]))}: the context is missing "
                    f"({counted(gone.size, 'such row')}). Fill it in, leave the rows out, or name "
                    "a level for them: missing_context='unknown'.",
                    kind="missing_label",
                    column=name,
                )
            found.append(codes)
        return np.column_stack(found) if found else None

    @property
    def context_labels(self) -> tuple[ContextLabels, ...]:
        """Labels of each column of the context, as far as they were met."""
        level = self.reading.missing_context
        return tuple(ContextLabels.of(encoder, level) for encoder in self.contexts)

    def _kept(self, chance: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Return the chances to be kept; 1 where dsjson says nothing of it."""
        if chance is None or self.layout.keep_prob != KEPT:
            return chance
        return np.where(np.isnan(chance), 1.0, chance)

    def notices(self) -> list[Notice]:
        """Return what all rows read so far had in common: merged labels, words that none held."""
        encoders = (self.book, self.groups, *self.contexts)
        found = [note for encoder in encoders for note in encoder.notices()]
        apart = ("context", "labels_alike")  # these are one number, or refused
        found = [note for note in found if (note.column, note.kind) != apart]
        found += [Notice(
            f"missing_context={self.reading.missing_context!r} is a value of column {name!r} "
            f"already, in {counted(own, 'row')}: {counted(lack, 'row')} without a context "
            f"{'counts' if lack == 1 else 'count'} as the same. If these are others, name a level "
            "that is none of its values.",
            kind="level_taken", column=name, value=self.reading.missing_context, n=own,
        ) for name, (own, lack) in self._levels.items() if own and lack]  # fmt: skip
        if self.reading.rewards and not self._met:
            why = f"none of these values occurs in column {self.layout.reward!r}"
            found.append(no_effect("rewards", self.reading.rewards, why))
        return found

    def _watched(self, table: Any) -> NDArray[np.float64] | None:
        """Return the columns that look like the order of the rounds, whatever they hold."""
        if not self.layout.watched:
            return None
        looks = self.layout.watched.items()
        return np.column_stack([seconds(table.column(c), x.writing)[0] for c, x in looks])

    def group_of(self, values: Any, where: Where) -> NDArray[np.int32]:
        """Return the number of each row's group.

        Raises
        ------
        DataError
            Naming the first row without one.
        """
        group = self.groups.encode(values, where)
        if gone := first_where(group < 0):
            raise DataError(
                f"{where(gone.at)}: the group is empty "
                f"({counted(gone.n, 'such row')}). Fill it in or remove the row.",
                kind="missing_label",
                column=self.layout.by,
            )
        return group

    def _one_kind(self, kind: str, here: str, value: Any) -> None:
        """Refuse a source whose later parts are ordered by another kind of value."""
        if self.order_kind is None:
            self.order_kind = kind
            self._first_order = {"there": here, "first": value, "first_kind": kind}
        elif kind != self.order_kind:
            raise mixed(here=here, value=value, kind=kind, **self._first_order)

    def _known_at(self, values: Any, where: Where) -> NDArray[Any]:
        """Return round numbers, or times where the order is one; NaN, NaT = never known."""
        if self.order_kind in (None, NUMBER):
            self.known_kind = NUMBER
            return numbers(values, where, decimal=self.decimal)
        import pyarrow.compute as pc

        here = ~is_missing(values)
        rows = np.flatnonzero(here)
        if not rows.size:
            never = np.nan if self.known_kind == NUMBER else np.datetime64("NaT", "us")
            return np.full(len(here), never)
        seen = pc.drop_null(values)
        found, kind = order_values(seen, lambda at: where(int(rows[at])), decimal=self.decimal)
        if self.known_kind not in (None, kind):
            raise DataError(
                f"{where(int(rows[0]))}: holds a {kind}, the rows before a {self.known_kind}. "
                "Write all rows in one way."
            )
        self.known_kind = kind
        if kind == NUMBER:
            out: NDArray[Any] = np.full(len(here), np.nan)
        elif kind != self.order_kind:
            raise mixed(here=where(int(rows[0])), value=found[0], kind=kind, **self._first_order)
        else:
            out = np.full(len(here), np.datetime64("NaT", "us"), dtype=found.dtype)
        out[here] = found
        return out

    # -- arms on offer ---------------------------------------------------------------------------

    def _offered(self, column: Callable[[str], tuple[Any, Where]]) -> NDArray[np.bool_] | None:
        layout = self.layout
        if layout.offered:
            marks = [truths(*column(name)) for name in layout.offered.values()]
            return np.ascontiguousarray(np.array(marks, dtype=bool).T)
        if layout.offered_list is None:
            return None
        return self.offers.read(*column(layout.offered_list))
