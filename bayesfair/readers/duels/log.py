"""Read a log of duels: who was compared, in which order, and how likely that was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesfair.base.arguments import PLAIN, TEXT_OR_FALSE, each, takes
from bayesfair.base.checks import check_choice, listed
from bayesfair.base.label_encoder import LabelEncoder
from bayesfair.base.options import COMPARISON_OPTIONS, KINDS, given, refuse_without_effect
from bayesfair.comparisons import DuelLog, Origin
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.duels.arena import JsonLines
from bayesfair.readers.duels.comparison_rows import (
    HEAD,
    Opened,
    Rows,
    checked_columns,
    duels,
    kind_of,
    load,
    named_columns,
    open_table,
    recognised,
    roles_of,
    suffixes_of,
    watched_order,
)
from bayesfair.readers.duels.doubts import unread_counts, unused_columns
from bayesfair.readers.duels.preflib import SUFFIXES, refuse_other_data
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.files.paths import single_file
from bayesfair.readers.log.found_probabilities import refuse_unread
from bayesfair.readers.values.values import meant_numbers
from bayesfair.typing import Source

__all__ = ["read_duels"]

_STAMPS = ("timestamp", "tstamp")
_ITEM = "{item}"
_USUAL = "p_{item}"
_ONE_ROW = "Here each row is one decision, and counts have no order: give one row per duel"


@takes(
    **each(PLAIN, "left", "right", "winner", "loser", "first", "order"),
    **each(TEXT_OR_FALSE, "propensity", "probabilities", "weight"),
)
def read_duels(
    source: Source,
    *,
    format: str = "auto",
    left: str | None = None,
    right: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    first: str | None = None,
    order: str | bool | None = None,
    propensity: str | bool | None = None,
    probabilities: str | bool | None = None,
    weight: bool | None = None,
    items: Sequence[object] | None = None,
    outcomes: Mapping[object, str] | None = None,
    winner_is: str | None = None,
    both_bad: str = "tie",
    unknown: str = "error",
    missing: str = "error",
    delimiter: str | None = None,
) -> DuelLog:
    """Read duels in the order in which they were decided, with what was logged of the rule.

    Parameters
    ----------
    source : path or data frame
        One row per duel: CSV, Parquet, arena-style JSON or a data frame.
    format : {"auto", "table", "json"}
        ``"auto"`` goes by the file's suffix.
    left, right, winner, loser, first, items, outcomes, winner_is, both_bad, unknown, missing
        As in `read_comparisons`. Columns of winner and loser do not say who stood on the left: such
        a log is judged by who took part (``slot="mean"``), and a propensity of the left is refused.
    order : str or False, optional
        Column to sort rows by, stably. Default: ``timestamp`` or ``tstamp`` where there is one;
        else columns that look like times are watched, as in `read_comparisons`. False takes the
        rows as they stand.
    propensity : str or False, optional
        Column: with which probability the item on the left was put there. Default: ``propensity``
        where there is one, and no law of the slot. False: not used.
    probabilities : str or False, optional
        Name of the columns that hold the law of the slot, with ``{item}`` for the item; empty =
        not on offer. Default: ``"p_{item}"`` where there are such columns. False: not used.
    weight : False, optional
        A column of whole numbers that is called like counts (``n``, ``count``, ``freq``, ...) is
        refused: each row is one decision. False: not used.
    delimiter : str, optional
        Of text files; default: detected.

    Returns
    -------
    DuelLog
        For `audit_comparisons`.

    Raises
    ------
    DataError, ArmError, ProbabilityError
        Naming row, column, value and remedy.
    OptionError
        Where columns cannot be found or options contradict each other.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"left": ["x", "y"], "right": ["y", "x"], "winner": ["left", "tie"],
    ...                   "p_x": [0.5, 0.2], "p_y": [0.5, 0.8]})
    >>> log = read_duels(table)
    >>> log, log.selection_probability[1]
    (DuelLog(data frame: 2 duels of 2 items, slot='first', the whole rule logged),
     array([0.2, 0.8]))
    """
    asked = given(read_duels, locals())
    check_choice(format, "format", ("auto", "table", "json"))
    check_choice(missing, "missing", ("error", "drop"))
    refuse_other_data(source, format)
    if format == "auto" and set(suffixes_of(source)) & set(SUFFIXES):
        name = single_file(source, "PrefLib").name
        raise OptionError(
            f"{name} holds rankings; who is compared is a matter of duels.",
            kind="wrong_kind",
            column="source",
        )
    if isinstance(weight, str):
        raise OptionError(
            f"weight={weight!r} has no effect on a log of duels: each row is one decision, which "
            "counts once. read_comparisons reads weights.",
            kind="unused_option",
            column="weight",
            value=weight,
        )
    named = named_columns(
        {"left": left, "right": right, "winner": winner, "loser": loser,
         "order": str(order) if order else None}, {},
    )  # fmt: skip
    opened = open_table(source, format, delimiter, tuple(named.values()))
    if order is None:
        stamp = [name for name in _STAMPS if name in opened.header and name not in named.values()]
        named |= {"order": stamp[0]} if stamp else {}
    if isinstance(opened, JsonLines):
        refuse_without_effect(asked, (), {"delimiter": COMPARISON_OPTIONS["delimiter"]}, "JSON")
    used = recognised(opened.name, opened.header, named, rows_only=True)
    kind = kind_of(used)
    refuse_without_effect(asked, {kind, "text"}, COMPARISON_OPTIONS, KINDS[kind])
    used, side = checked_columns(opened, used, first)
    law = _LawColumns.of(opened, propensity, probabilities)
    if not law.columns and propensity is None and probabilities is None:
        _refuse_unread(opened, used)
    noted = unread_counts(opened, used | law.columns, weight, head=HEAD, remedy=_ONE_ROW)
    noted += unused_columns(opened.header, {*used.values(), *law.columns.values()})
    rows = load(opened, used | law.columns, used.get("order"))
    watched = watched_order(opened, used.values()) if order is None and "order" not in used else []
    words = {"outcomes": outcomes, "winner_is": winner_is, "both_bad": both_bad,
             "unknown": unknown} if kind == "duels" else {}  # fmt: skip
    made = duels(
        rows, used, side, keep_rows=True, items=items, missing=missing, **words,
        source=Origin(rows.source, rows.lines, roles_of(used)),
    )  # fmt: skip
    notices = tuple(dict.fromkeys((*opened.notices, *watched, *made.notices, *noted)))
    made = replace(made, notices=notices)
    return DuelLog.from_comparisons(made, **law.values(rows, made.items), order=used.get("order"))


def _refuse_unread(opened: Opened, used: Mapping[str, str]) -> None:
    """Refuse a log whose first rows hold probabilities under another name."""
    pair = [used[o] for o in ("left", "right", "winner", "loser") if o in used][:2]
    spare = [column for column in opened.header if column not in used.values()]
    head = opened.sample([*pair, *spare], HEAD) if spare else None
    if head is None or not head.num_rows:
        return
    try:
        book = LabelEncoder("item")
        for column in pair:
            book.encode(head.column(column), str)
    except DataError:
        return  # said when it is read, with the row
    columns = {column: head.column(column) for column in spare}
    numbers = {c: v for c, x in columns.items() if (v := meant_numbers(x)) is not None}
    refuse_unread(opened.name, columns, numbers, book.labels, item="item")


@dataclass(frozen=True)
class _LawColumns:
    """Columns that may hold what was logged of the rule, before the items are known.

    Attributes
    ----------
    source : str
    columns : dict of option to column
        Those to be read.
    pattern : str or None
        What the columns of the slot's law are called.
    asked : bool
        Whether all of these must be there.
    propensity : str or None
    header : tuple of str
        All columns of the source.
    """

    source: str
    columns: dict[str, str]
    pattern: str | None
    asked: bool
    propensity: str | None
    header: tuple[str, ...]

    @classmethod
    def of(cls, opened: Opened, propensity: Any, probabilities: Any) -> _LawColumns:
        """Find the columns that were named, or have the usual names."""
        header = opened.header
        asked = isinstance(probabilities, str) and bool(probabilities)
        pattern = probabilities if asked else _USUAL
        if propensity or (probabilities is not None and not asked):
            pattern = pattern if asked else None
        if pattern is not None and _ITEM not in pattern:
            raise OptionError(
                f"probabilities={pattern!r} names no column per item: write {_ITEM} where the item "
                f"stands, as in {_USUAL!r}.",
                kind="bad_value",
                column="probabilities",
                value=pattern,
            )
        named: dict[str, str] = {}
        if pattern is not None:
            before, _, after = pattern.partition(_ITEM)
            alike = [c for c in header if c.startswith(before) and c.endswith(after)]
            named = {f"probabilities[{i}]": column for i, column in enumerate(alike)}
        chosen = propensity if isinstance(propensity, str) and propensity else None
        if propensity is None and not asked and "propensity" in header:
            chosen = "propensity"
        if chosen is not None:
            if chosen not in header:
                raise missing_column(chosen, "propensity", opened.name, header)
            named["propensity"] = chosen
        return cls(opened.name, named, pattern, asked, chosen, tuple(header))

    def values(self, rows: Rows, items: Sequence[str]) -> dict[str, Any]:
        """Return the law of the slot, or the probabilities of the items on the left."""
        columns = [] if self.pattern is None else [self.pattern.replace(_ITEM, i) for i in items]
        lacking = [column for column in columns if column not in self.columns.values()]
        if self.asked or len(lacking) < len(columns):
            if lacking:
                raise DataError(
                    f"{self.source} has no column {listed(lacking)}: the law of the slot needs one "
                    f"per item. Its columns are {listed(self.header, 12)}. Add them, or name the "
                    "columns with probabilities=.",
                    kind="missing_column",
                    column=lacking[0],
                    source=self.source,
                )
            law = [np.asarray(rows.number(column)) for column in columns]
            both = {"propensity": self.propensity} if self.asked and self.propensity else {}
            return {name: rows.number(column) for name, column in both.items()} | {
                "selection_probability": np.stack(law, axis=1)
            }
        return {"propensity": rows.number(self.propensity)}
