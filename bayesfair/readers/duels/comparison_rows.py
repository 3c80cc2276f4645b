"""Rows of comparisons as columns, and which constructor they belong to."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import listed
from bayesfair.base.notices import Notice
from bayesfair.base.options import COMPARISON_OPTIONS, refuse_without_effect
from bayesfair.comparisons import Comparisons
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.duels.arena import open_json
from bayesfair.readers.duels.doubts import check_losers, check_parts
from bayesfair.readers.files.headers import missing_column
from bayesfair.readers.files.paths import single_file
from bayesfair.readers.files.tables import open_source
from bayesfair.readers.values.stamps import Trend, check_trends, looks_like_time, seconds
from bayesfair.readers.values.times import order_values
from bayesfair.readers.values.values import numbers

__all__ = [
    "HEAD",
    "Opened",
    "Rows",
    "are_pairs",
    "check_wins",
    "checked_columns",
    "choices",
    "counts",
    "duels",
    "kind_of",
    "load",
    "named_columns",
    "open_table",
    "pairs_of_rankings",
    "rankings",
    "recognised",
    "roles_of",
    "suffixes_of",
    "watched_order",
]

_TIES = {"tie", "ties", "tied", "draw", "draws", "drawn"}
_JSON = {".jsonl", ".ndjson", ".json"}

# Column names recognised without being told, first match wins.
_DUELS = (
    ("left", "right", "winner"),
    ("model_a", "model_b", "winner"),
    ("winner", "loser", None),
)
# of pairs: which ranking they were cut from
_CUT_FROM = ("ranking", "ranking_id", "ballot", "ballot_id")
_RANKED = (("ranking", "item", "rank"), ("race", "driver", "rank"))
# options that say what kind of data the columns hold
_TELLING = {
    "left", "right", "winner", "loser", "wins", "ranking", "item", "rank", "orderings", "ranks",
    "chosen", "offered",
}  # fmt: skip


class Opened(Protocol):
    """A source whose header has been read."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def header(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def first_row(self) -> int: ...  # noqa: D102
    @property
    def notices(self) -> tuple[str, ...]: ...  # noqa: D102
    def tables(self, columns: Sequence[str]) -> Iterator[Any]: ...  # noqa: D102
    def sample(self, columns: Sequence[str], n: int) -> Any: ...  # noqa: D102


def suffixes_of(source: Any) -> list[str]:
    """Return the endings of a file's name in lower case; none of what is no path."""
    text = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    return [s.lower() for s in Path(text).suffixes] if isinstance(text, str) else []


def open_table(
    source: Any, format: str, delimiter: str | None, wanted: Sequence[str] = ()
) -> Opened:
    """Open a path or a data frame without reading its rows: JSON, or a table.

    Parameters
    ----------
    source : path or data frame
    format : {"auto", "table", "json"}
    delimiter : str or None
    wanted : sequence of str
        Columns that settle an ambiguous delimiter.
    """
    if format == "json" or (format == "auto" and _JSON & set(suffixes_of(source))):
        return open_json(single_file(source, "JSON"))
    return open_source(source, delimiter=delimiter, wanted=wanted)


def named_columns(
    single: Mapping[str, str | None], several: Mapping[str, Sequence[str] | None]
) -> dict[str, str]:
    """Return {option: column} of the columns that were named."""
    used = {option: column for option, column in single.items() if column is not None}
    for option, columns in several.items():
        used |= {f"{option}[{i}]": column for i, column in enumerate(columns or ())}
    return used


@dataclass(frozen=True)
class Rows:
    """Columns of a source as Arrow arrays, with the lines they came from."""

    source: str
    columns: dict[str, Any]
    row: NDArray[np.int64]
    order: NDArray[np.int64] | None
    header: tuple[str, ...] = ()

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


HEAD = 1000  # rows that tell what a column holds


def kind_of(used: Mapping[str, str]) -> str:
    """Return what kind of comparisons the columns hold, see `bayesfair.base.options.KINDS`."""
    if "orderings[0]" in used:
        return "orderings"
    if "ranks[0]" in used:
        return "ranks"
    if {"ranking", "item", "rank"} & set(used) and not are_pairs(used):
        return "ranked_rows"
    if {"chosen", "offered"} & set(used):
        return "choices"
    if "wins[0]" in used:
        return "counts"
    return "winner_loser" if "loser" in used and "left" not in used else "duels"


def recognised(
    source: str, header: Sequence[str], used: Mapping[str, str], *, rows_only: bool = False
) -> dict[str, str]:
    """Find by their usual names the columns that were not named.

    Parameters
    ----------
    source : str
        What messages call the data.
    header : sequence of str
    used : mapping of option to column
        Columns that were named.
    rows_only : bool
        Only duels with one row each will do.

    Raises
    ------
    OptionError
        If nothing was named and no usual set of columns is there.
    """
    told = {name.partition("[")[0] for name in used} & _TELLING
    if told <= {"winner", "wins"}:
        for a, b, c in _DUELS:
            pair = {"winner": a, "loser": b} if c is None else {"left": a, "right": b}
            if not {a, b} <= set(header) or (c and not told and c not in header):
                continue
            if c is None and told and used.get("winner") != a:
                continue
            return {**pair, **({"winner": c} if c and not told else {}), **used}
    if told <= {"ranking", "item", "rank"} and not rows_only:
        for names in _RANKED:
            if set(names) <= set(header):
                return {**dict(zip(("ranking", "item", "rank"), names, strict=True)), **used}
    if told:
        return dict(used)
    others = (
        ""
        if rows_only
        else "; wins=(.., ..) for counts; ranking=, item=, rank= or orderings=[..] for rankings; "
        "chosen=, offered= for choices"
    )
    raise OptionError(
        f"{source} has columns {listed(header, 12)}, among which no usual set was found (such as "
        f"left, right, winner). Name them: left=, right=, winner= for duels{others}.",
        kind="unknown_columns",
        source=source,
    )


def checked_columns(
    opened: Opened, used: Mapping[str, str], first: str | None
) -> tuple[dict[str, str], str | None]:
    """Return the columns to be read, who was shown first among them; or the side it always is.

    Raises
    ------
    OptionError
        If the source lacks one of them, or one was named for two parts.
    """
    header, found = opened.header, dict(used)
    side = first if first in ("left", "right") and first not in header else None
    if first is not None and side is None:
        found["first"] = first
    for option, column in found.items():
        if column not in header:
            raise missing_column(column, option, opened.name, header)
    check_parts(found)
    if kind_of(used) == "duels" and "loser" in set(header) - set(found.values()):
        found["lost"] = "loser"  # held against the winner
    return found | pairs_of_rankings(found, header), side


def roles_of(used: Mapping[str, str]) -> dict[str, str]:
    """Return the columns by the parameters of the constructors of `Comparisons`."""
    roles = dict(used)
    if "loser" in used and "left" not in used:
        roles |= {"left": used.get("winner", "winner"), "right": used["loser"]}
    others = {"wins[0]": "wins_left", "wins[1]": "wins_right", "wins[2]": "ties"}
    return {others.get(option, option): column for option, column in roles.items()}


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
        found = ", ".join(f"{option}=" for option in used)
        raise OptionError(
            f"{', '.join(f'{option}=' for option in lacking)} must be given too (given: {found}).",
            kind="option_lacks",
            column=lacking[0],
        )


def load(source: Opened, used: Mapping[str, str], order: str | None = None) -> Rows:
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
    return Rows(source.name, arrays, row, stable, tuple(source.header))


def watched_order(source: Opened, used: Collection[str]) -> list[Notice]:
    """Return what has to be said of the order of duels that no column orders.

    Raises
    ------
    DataError
        If a column that looks like a time, and is not used, runs backwards.
    """
    import pyarrow as pa

    spare = [column for column in source.header if column not in used]
    head = source.sample(spare, HEAD) if spare else None
    if head is None:
        return []
    looks = {c: looks_like_time(c, head.column(c)) for c in spare}
    watched = {column: look for column, look in looks.items() if look}
    if not watched:
        return []
    table = pa.concat_tables(source.tables(list(watched)), promote_options="permissive")
    trends = [
        Trend().after(seconds(table.column(c), look.writing)[0]) for c, look in watched.items()
    ]
    return check_trends(trends, watched, source.name)


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


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    return not pa.types.is_nested(column.type)


def choices(rows: Rows, used: Mapping[str, str], separator: str, **options: Any) -> Comparisons:
    """Return choices; the offered items are a list, or text joined by `separator`."""
    _require(used, ("chosen", "offered"))
    offered = rows.text(used["offered"])
    kinds = {"offered_text"} if _is_text(offered) else set()
    asked = {} if separator == "|" else {"separator": separator}
    refuse_without_effect(asked, kinds, COMPARISON_OPTIONS, f"column {used['offered']!r} of lists")
    sets = [
        [part.strip() for part in entry.split(separator)] if isinstance(entry, str) else entry or ()
        for entry in offered.to_pylist()
    ]
    return Comparisons.from_choices(rows.text(used["chosen"]), sets, **options)


def check_wins(wins: Sequence[str]) -> None:
    """Refuse columns of counts that are not two or three different ones."""
    if len(set(wins)) != len(wins) or len(wins) not in (2, 3):
        raise OptionError(
            f"wins={tuple(wins)!r} must name two columns, wins of left and wins of right, or "
            "three, ties last, all different. If one column counts how often the one item beat "
            "the other, say winner=, loser= and weight= instead.",
            kind="bad_value",
            column="wins",
            value=tuple(wins),
        )
    ties = [bool(_TIES & set(re.findall("[a-z]+", name.casefold()))) for name in map(str, wins)]
    if any(ties[:2]) and not all(ties):
        tied = wins[ties.index(True)]
        raise OptionError(
            f"wins={tuple(wins)!r} has {tied!r} among the wins, and ties come last: wins of left, "
            "wins of right, ties. If these are wins, rename the column.",
            kind="ties_not_last",
            column="wins",
            value=tied,
        )


def counts(
    rows: Rows,
    used: Mapping[str, str],
    side: str | None,
    *,
    wins: Sequence[str],
    **options: Any,
) -> Comparisons:
    """Return duels given as counts of wins and ties."""
    _require(used, ("left", "right"))
    won_left, won_right, *ties = (np.asarray(rows.number(column)) for column in wins)
    return Comparisons.from_counts(
        rows.text(used["left"]),
        rows.text(used["right"]),
        won_left,
        won_right,
        *ties,
        first=side or rows.text(used.get("first")),
        **options,
    )


def duels(
    rows: Rows,
    used: Mapping[str, str],
    side: str | None,
    *,
    keep_rows: bool,
    **options: Any,
) -> Comparisons:
    """Return one duel per row; (winner, loser) columns need no outcome."""
    pair = ("winner", "loser") if kind_of(used) == "winner_loser" else ("left", "right")
    _require(used, pair)
    if pair[0] == "left" and "winner" not in used:
        counts = "" if keep_rows else ", or wins=(.., ..), the columns of counts"
        there = " There is a column 'winner': winner='winner'." if "winner" in rows.header else ""
        raise OptionError(
            f"duels need winner=, the column of outcomes{counts}.{there}",
            kind="option_lacks",
            column="winner",
        )
    if "lost" in used:
        parts = [rows.text(used[part]) for part in ("left", "right", "winner", "lost")]
        check_losers(rows.source, rows.lines, parts, options.get("outcomes"))
    return Comparisons.from_duels(
        rows.text(used[pair[0]]),
        rows.text(used[pair[1]]),
        rows.text(used["winner"]) if pair[0] == "left" else None,
        first=side or rows.text(used.get("first")),
        ranking=rows.text(used.get("ranking")),
        keep_rows=keep_rows,
        **options,
    )
