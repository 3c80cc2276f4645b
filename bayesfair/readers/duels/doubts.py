"""What columns of comparisons may be beside what they are taken for: counts, the loser, unused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import first_where, listed
from bayesfair.base.label_encoder import encoded
from bayesfair.base.notices import Notice
from bayesfair.base.options import no_effect
from bayesfair.comparisons.outcomes import OUTCOME_WORDS
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.values.values import meant_numbers

__all__ = ["check_losers", "check_parts", "unread_counts", "unused_columns"]

_COUNTS = {
    "count", "counts", "n", "freq", "frequency", "weight", "weights", "times", "number", "num",
}  # fmt: skip
# a column that may serve two parts: who was first is the item of one side; ballots have an order
_SHARED = ({"first", "left"}, {"first", "right"}, {"order", "ranking"})


def unused_columns(header: Sequence[str], used: Collection[str]) -> list[Notice]:
    """Return the notice that names the columns that were not used."""
    spare = [column for column in header if column not in used]
    if not spare:
        return []
    verb = "column was" if len(spare) == 1 else "columns were"
    return [
        Notice(
            f"{len(spare)} {verb} not used: {listed(spare, 8)}.",
            kind="unused_columns",
            column=spare[0],
            n=len(spare),
        )
    ]


def unread_counts(
    opened: Any,
    used: Mapping[str, str],
    weight: str | bool | None,
    *,
    head: int,
    remedy: str = "",
) -> list[Notice]:
    """Refuse unused columns that look like counts of comparisons, unless told to leave them out.

    Parameters
    ----------
    opened : Opened
    used : mapping of option to column
    weight : str, False or None
        The column of weights; False = none, whatever there is.
    head : int
        Rows that are looked at.
    remedy : str
        What to do with counts where no option reads them.

    Raises
    ------
    DataError
        Naming the column and the options.
    """
    if isinstance(weight, str):
        return []
    alike = [c for c in opened.header if c.casefold() in _COUNTS and c not in used.values()]
    wins = [column for option, column in used.items() if option.startswith("wins[")]
    table = opened.sample([*alike, *wins], head) if alike else None
    read: dict[str, NDArray[np.float64] | None] = {}
    if table is not None and table.num_rows:  # what is wrong with them is said when they are read
        read = {c: meant_numbers(table.column(c)) for c in [*alike, *wins]}
    found = [c for c in read if c in alike and _counts(read[c]) and not _is_total(c, wins, read)]
    if weight is False:
        return [] if found else [no_effect("weight", False, "no unused column looks like counts")]
    if not found:
        return []
    column = found[0]
    asked = remedy or f"Pass weight={column!r} if a row stands for so many comparisons"
    raise DataError(
        f"{opened.name} has a column {column!r} of whole numbers that was not used: it may say how "
        f"many comparisons a row stands for. {asked}, or weight=False to read every row as one.",
        kind="counts_unread",
        column=column,
        source=opened.name,
    )


def _counts(values: NDArray[np.float64] | None) -> bool:
    """Whether values are whole numbers from 0 on, not all of them 1."""
    if values is None:
        return False
    known = values[~np.isnan(values)]
    return bool(((known >= 0) & (known == np.round(known))).all() and (known != 1).any())


def _is_total(
    column: str, wins: Sequence[str], read: Mapping[str, NDArray[np.float64] | None]
) -> bool:
    """Whether a column is the sum of the columns of wins."""
    parts = [read[name] for name in wins]
    if not parts or any(part is None for part in parts):
        return False
    total = np.sum([part for part in parts if part is not None], axis=0)
    return np.array_equal(total, np.asarray(read[column]), equal_nan=True)


def check_parts(used: Mapping[str, str]) -> None:
    """Refuse one column that was named for two parts.

    Raises
    ------
    OptionError
        Naming both options.
    """
    seen: dict[str, str] = {}
    for option, column in used.items():
        other = seen.setdefault(column, option)
        if other == option or {other, option} in _SHARED:
            continue
        raise OptionError(
            f"column {column!r} was taken for two parts, {other}= and {option}=. Name the right "
            "one for each.",
            kind="same_column",
            column=option,
            value=column,
        )


def check_losers(
    source: str,
    lines: NDArray[np.int64],
    columns: Sequence[Any],
    outcomes: Mapping[object, str] | None,
) -> None:
    """Refuse rows in which a column of losers contradicts the winner.

    Parameters
    ----------
    source : str
    lines : (N,) array of int
    columns : sequence of columns
        Left, right, winner, loser.
    outcomes : mapping, optional
        What words mean.

    Raises
    ------
    DataError
        Naming the first such row.
    """
    coded = [encoded(column, "item") for column in columns]
    left, right, winner, loser = (
        np.array([*c.labels, None], dtype=object)[c.codes] for c in coded
    )  # fmt: skip
    words = OUTCOME_WORDS if outcomes is None else {str(w): m for w, m in outcomes.items()}
    won, lost = (
        np.array([words.get(label, "") for label in c.labels] + [""], dtype=object)[c.codes]
        for c in coded[2:]
    )
    by_left, by_right = (winner == left) | (won == "left"), (winner == right) | (won == "right")
    of_left, of_right = (loser == left) | (lost == "left"), (loser == right) | (lost == "right")
    wrong = (by_left & ~of_right) | (by_right & ~of_left)
    if bad := first_where(wrong & (by_left != by_right) & (coded[3].codes >= 0)):
        i = bad.at
        raise DataError(
            f"row {int(lines[i])} of {source}: the winner is {winner[i]!r} and the loser "
            f"{loser[i]!r}, of {left[i]!r} and {right[i]!r} ({bad.n} such rows). Correct the one "
            "that is wrong, or leave the column 'loser' out of the table.",
            kind="contradiction",
            row=int(lines[i]),
            column="loser",
            value=loser[i],
            source=source,
        )
