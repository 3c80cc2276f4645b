"""Rows of comparisons as columns, and which constructor they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.checks import listed
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.times import order_values
from bayesfair.readers.values import numbers

__all__ = [
    "Rows",
    "are_pairs",
    "choices",
    "counts",
    "duels",
    "load",
    "pairs_of_rankings",
    "rankings",
    "recognised",
]

# Column names recognised without being told, first match wins.
_DUELS = (
    ("left", "right", "winner"),
    ("model_a", "model_b", "winner"),
    ("winner", "loser", None),
)
# of pairs: which ranking they were cut from
_CUT_FROM = ("ranking", "ranking_id", "ballot", "ballot_id")
_RANKED = (("ranking", "item", "rank"), ("race", "driver", "rank"))


@dataclass(frozen=True)
class Rows:
    """Columns of a source as Arrow arrays, with the lines they came from."""

    source: str
    columns: dict[str, Any]
    row: NDArray[np.int64]
    order: NDArray[np.int64] | None

    def text(self, name: str | None) -> Any:
        """Return a column as it is, in the order asked for; None for no column."""
        if name is None:
            return None
        column = self.columns[name]
        return column if self.order is None else column.take(self.order)

    def number(self, name: str | None) -> NDArray[np.float64] | None:
        """Return a column as floats; NaN where missing."""
        if name is None:
            return None
        lines = self.row
        values = numbers(self.columns[name], lambda i: self._where(lines, i, name))
        return values if self.order is None else values[self.order]

    def _where(self, lines: NDArray[np.int64], i: int, name: str) -> str:
        return f"row {int(lines[i])} of {self.source}, column {name!r}"

    @property
    def lines(self) -> NDArray[np.int64]:
        """Lines of the source, in the order asked for."""
        return self.row if self.order is None else self.row[self.order]


def recognised(source: str, header: Sequence[str]) -> dict[str, str]:
    """Find the columns of duels or of rankings in long form by their usual names."""
    for a, b, c in _DUELS:
        if a in header and b in header and (c is None or c in header):
            if c is None:
                return {"winner": a, "loser": b}
            return {"left": a, "right": b, "winner": c}
    for a, b, c in _RANKED:
        if {a, b, c} <= set(header):
            return {"ranking": a, "item": b, "rank": c}
    raise OptionError(
        f"{source} has columns {listed(header, 12)}, none of which are the usual ones. Name them: "
        "left=, right=, winner= for duels; wins=(.., ..) for counts; ranking=, item=, rank= or "
        "orderings=[..] for rankings; chosen=, offered= for choices."
    )


def are_pairs(used: Mapping[str, str]) -> bool:
    """Whether the columns hold duels, so that a ranking column tells what they were cut from."""
    return bool({"left", "loser"} & set(used)) and not {"item", "rank", "ranks[0]"} & set(used)


def pairs_of_rankings(used: Mapping[str, str], header: Sequence[str]) -> dict[str, str]:
    """Find the column that tells which ranking duels were cut from, by its usual names."""
    if not are_pairs(used) or "ranking" in used or "wins[0]" in used:
        return {}
    found = [c for c in _CUT_FROM if c in header and c not in used.values()]
    return {"ranking": found[0]} if found else {}


def _require(used: Mapping[str, str], options: Sequence[str]) -> None:
    lacking = [option for option in options if option not in used]
    if lacking:
        given = listed(used)
        raise OptionError(f"{listed(lacking)} must be given too (given: {given}).")


def load(source: Any, used: Mapping[str, str], order: str | None) -> Rows:
    """Read the used columns of an opened source whole.

    Raises
    ------
    DataError
        If there are no rows, or `order` holds something that cannot be ordered.
    """
    import pyarrow as pa

    columns = list(dict.fromkeys(used.values()))
    table = pa.concat_tables(source.tables(columns), promote_options="permissive")
    if not table.num_rows:
        raise DataError(f"{source.name} has a header but no rows.")
    row = source.first_row + np.arange(table.num_rows, dtype=np.int64)
    arrays = {column: table.column(column) for column in columns}
    stable = None
    if order is not None:

        def where(i: int) -> str:
            return f"row {int(row[i])} of {source.name}, column {order!r}"

        values, _ = order_values(arrays[order], where)
        stable = np.argsort(values, kind="stable")
    return Rows(source.name, arrays, row, stable)


def rankings(
    rows: Rows,
    used: Mapping[str, str],
    orderings: Sequence[str] | None,
    ranks: Sequence[str] | None,
    **options: Any,
) -> Comparisons:
    """Return rankings in wide form (places or items as columns) or in long form."""
    if orderings:
        columns = [rows.text(column).to_pylist() for column in orderings]
        return Comparisons.from_rankings(list(zip(*columns, strict=True)), **options)
    if ranks:
        table = np.stack([np.asarray(rows.number(column)) for column in ranks], axis=1)
        return Comparisons.from_rankings(ranks=table, **options | {"items": list(ranks)})
    _require(used, ("ranking", "item", "rank"))
    return Comparisons.from_ranked_rows(
        rows.text(used["ranking"]),
        rows.text(used["item"]),
        np.asarray(rows.number(used["rank"])),
        **options,
    )


def choices(rows: Rows, used: Mapping[str, str], separator: str, **options: Any) -> Comparisons:
    """Return choices; the offered items are a list, or text joined by `separator`."""
    _require(used, ("chosen", "offered"))
    sets = [
        entry.split(separator) if isinstance(entry, str) else entry or ()
        for entry in rows.text(used["offered"]).to_pylist()
    ]
    return Comparisons.from_choices(rows.text(used["chosen"]), sets, **options)


def counts(
    rows: Rows,
    used: Mapping[str, str],
    side: str | None,
    *,
    wins: tuple[str, str],
    tied: str | None,
    **options: Any,
) -> Comparisons:
    """Return duels given as counts of wins and ties."""
    _require(used, ("left", "right"))
    if "ranking" in used:
        raise OptionError(
            "wins= holds counts of many duels; a row of counts has no ranking=. Leave it out, or "
            "give one row per duel."
        )
    if wins[0] == wins[1] or tied in wins:
        raise OptionError(
            f"wins=({wins[0]!r}, {wins[1]!r}) and tied={tied!r} must be different columns. If one "
            "column counts how often the one item beat the other, say winner=, loser= and "
            "weight= instead."
        )
    won_left, won_right = (np.asarray(rows.number(column)) for column in wins)
    return Comparisons.from_counts(
        rows.text(used["left"]),
        rows.text(used["right"]),
        won_left,
        won_right,
        rows.number(tied),
        first=side or rows.text(used.get("first")),
        **options,
    )


def duels(rows: Rows, used: Mapping[str, str], side: str | None, **options: Any) -> Comparisons:
    """Return one duel per row; (winner, loser) columns need no outcome."""
    pair = ("winner", "loser") if "loser" in used else ("left", "right")
    _require(used, pair)
    if pair[0] == "left" and "winner" not in used:
        raise OptionError(
            "duels need winner= (a column), or wins=(left's, right's) columns of counts."
        )
    return Comparisons.from_duels(
        rows.text(used[pair[0]]),
        rows.text(used[pair[1]]),
        rows.text(used["winner"]) if pair[0] == "left" else None,
        first=side or rows.text(used.get("first")),
        ranking=rows.text(used.get("ranking")),
        **options,
    )
