"""Rows of duels, counts and win matrices, checked and collapsed to unique cells at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import check_choice
from bayesfair.base.label_encoder import Encoded, LabelEncoder, encoded
from bayesfair.base.notices import Notice
from bayesfair.base.options import no_effect
from bayesfair.comparisons.counts import check_total, count_notices
from bayesfair.comparisons.outcomes import (
    OUTCOMES,
    Words,
    no_sides,
    resolve_first,
    resolve_outcomes,
)
from bayesfair.comparisons.sources import (
    Origin,
    absent_numbers,
    checked_weight,
    rows_with_missing,
    squares,
    squares_of_counts,
)
from bayesfair.errors import BayesfairWarning, DataError

__all__ = [
    "Cells",
    "collapse_counts",
    "collapse_duels",
    "drop_self",
    "unique_cells",
]

_TABLE = 1 << 23  # keys up to here are counted in a table, above by sorting


class Cells(NamedTuple):
    """Unique keys in ascending order, their total weight, first row, and each row's cell."""

    key: NDArray[np.int64]
    total: NDArray[np.float64]
    first_row: NDArray[np.int64]
    cell: NDArray[np.int32]


def unique_cells(
    key: NDArray[Any], weight: NDArray[np.float64] | None, size: int, *, want_cell: bool = False
) -> Cells:
    """Return the distinct keys in 0..size-1 with total weights and first rows.

    Parameters
    ----------
    key : (N,) array of int
    weight : (N,) array, optional
        Default 1 each.
    size : int
        Keys are below this; a table is used where that is cheaper than sorting.
    want_cell : bool
        Whether to return each row's cell (else an empty array).
    """
    empty = np.zeros(0, np.int32)
    if size <= max(_TABLE, 4 * len(key)):
        n = np.bincount(key, minlength=size)
        keys = np.flatnonzero(n)
        total = n[keys] if weight is None else np.bincount(key, weight, size)[keys]
        first = np.zeros(size, np.int64)
        first[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # of repeated keys the last one stays
        cell = empty
        if want_cell:
            position = np.zeros(size, np.int32)
            position[keys] = np.arange(len(keys), dtype=np.int32)
            cell = position[key]
        return Cells(keys, total.astype(np.float64), first[keys], cell)
    keys, index, inverse = np.unique(key, return_index=True, return_inverse=True)
    total = np.bincount(inverse, weight, len(keys)).astype(np.float64)
    return Cells(keys.astype(np.int64), total, index, inverse.astype(np.int32))


def _both_bad(outcome: NDArray[np.int8], how: str) -> tuple[NDArray[np.int8], list[Notice], int]:
    """Treat "both bad" as asked: a tie, an outcome of its own, or left out."""
    check_choice(how, "both_bad", ("tie", "separate", "drop"))
    bad = outcome == 3
    n = int(bad.sum())
    if not n:
        unused = [no_effect("both_bad", how, "no duel was called so")]
        return outcome, unused if how != "tie" else [], 0
    said = {
        "tie": "are read as ties",
        "drop": "were left out on request",
        "separate": "are kept apart and enter no fit",
    }[how]
    text = f"Comparisons that called both items bad {said} ({n})."
    note = Notice(text, kind="both_bad", column="both_bad", value=how, n=n)
    if how == "tie":
        return np.where(bad, np.int8(2), outcome), [note], 0
    if how == "drop":
        return np.where(bad, np.int8(-1), outcome), [note], n
    return outcome, [note], 0


def shared_rankings(
    ranking: Any, left: NDArray[np.int32], right: NDArray[np.int32], keep: NDArray[np.bool_]
) -> list[str]:
    """Warn of duels that are pairs of one ranking, and return the notice.

    Two rows with one ranking id that share an item are not independent. Rows that only share the
    id (two matches of one day) are.
    """
    column = _coded("ranking", ranking, "ranking", len(left))
    known = keep & (column.codes >= 0)
    code, a, b = column.codes[known].astype(np.int64), left[known], right[known]
    k = int(max(a.max(initial=0), b.max(initial=0))) + 1
    ends = np.concatenate([code * k + a, code * k + b])
    seen, times = np.unique(ends, return_counts=True)
    broken = np.unique(seen[times > 1] // k)
    if not broken.size:
        return []
    n = int(np.isin(code, broken).sum())
    note = Notice(
        f"{n} duels are pairs of {broken.size} rankings (one is "
        f"{column.labels[int(broken[0])]!r}). Pairs of one ranking are not independent: intervals "
        "come out too narrow. Give the rankings themselves (orderings=, or ranking=, item=, "
        "rank=) and fit plackett_luce.",
        kind="dependent_pairs",
        column="ranking",
        n=n,
    )
    warnings.warn(note, BayesfairWarning, stacklevel=5)
    return [note]


def drop_self(n: float, example: str) -> list[str]:
    """Warn that comparisons of an item with itself were dropped, and return the notice."""
    if not n:
        return []
    note = Notice(
        f"{n:.12g} comparisons of an item with itself (such as {example!r}) were dropped: they say "
        "nothing about worths.",
        kind="self_comparisons",
        value=example,
        n=n,
    )
    warnings.warn(note, BayesfairWarning, stacklevel=5)
    return [note]


def collapse_duels(
    left: Any,
    right: Any,
    winner: Any,
    *,
    words: Words,
    first: Any,
    weight: Any,
    items: Sequence[object] | None,
    missing: str,
    source: Origin,
    keep_rows: bool,
    ranking: Any = None,
    square: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """Return the fields of `Comparisons` for rows of duels; see `Comparisons.from_duels`."""
    book = LabelEncoder("item", items)
    a, b = book.encode(left, source.where), book.encode(right, source.where)
    n = len(a)
    if source.row is not None and len(source.row) != n:
        raise DataError(f"row has {len(source.row)} entries, left {n} rows; they must agree.")
    if len(b) != n:
        raise DataError(f"left has {n} rows, right {len(b)}; they must agree.")
    a, b = book.settled(a, b)
    names, notices = book.labels, list[str](book.notices())
    absent = {"left": a < 0, "right": b < 0}
    numbers, lacking = absent_numbers(n, {"weight": weight}, source)
    absent |= lacking
    won = None if winner is None else _coded("winner", winner, "outcome", n)
    if won is not None:
        absent |= {"winner": won.codes < 0}
    gone, found = rows_with_missing(missing, absent, source)
    notices += found
    outcome, n_skipped = np.zeros(n, np.int8), 0
    if won is not None:
        resolved = resolve_outcomes(won, a, b, names, asked=words, where=source.where)
        outcome = resolved.outcome
        notices += resolved.notices
        n_skipped += resolved.n_unknown
    if found:
        n_skipped += int(gone.sum())
        outcome = np.where(gone, np.int8(-1), outcome)
    if winner is None and isinstance(first, str):
        raise no_sides("first", first, "Give the column that names who was first")
    if isinstance(first, str) or first is None:
        side = (
            0
            if first is None
            else {"left": 1, "right": -1}[check_choice(first, "first", ("left", "right"))]
        )
        shown = np.full(n, side, np.int8)
    else:
        told = _coded("first", first, "first item", n)
        shown = resolve_first(told, a, b, names, source.where, sides=winner is not None)
    outcome, notes, dropped = _both_bad(outcome, words.both_bad)
    notices += notes
    values = checked_weight(numbers.get("weight"), n, source)
    same = (a == b) & (a >= 0)
    n_self = same.sum() if values is None else values[same].sum()
    notices += drop_self(float(n_self), names[a[np.argmax(same)]] if same.any() else "")
    keep = (outcome >= 0) & ~same
    if values is not None:
        keep &= values > 0
    if ranking is not None:
        notices += shared_rankings(ranking, a, b, keep)
    fields = _cells(
        left=a,
        right=b,
        outcome=outcome,
        first=shown,
        weight=values,
        square=squares(values) if square is None else square,
        keep=keep,
        items=names,
        source=source,
        keep_rows=keep_rows,
    )
    return fields | {
        "notices": tuple(notices),
        "n_skipped": n_skipped + dropped,
        "sides": winner is not None,
    }


def _cells(
    *,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    outcome: NDArray[np.int8],
    first: NDArray[np.int8],
    weight: NDArray[np.float64] | None,
    square: NDArray[np.float64] | None,
    keep: NDArray[np.bool_],
    items: tuple[str, ...],
    source: Origin,
    keep_rows: bool,
) -> dict[str, Any]:
    """Collapse rows to unique (left, right, outcome, shown first)."""
    k = max(len(items), 1)
    every = bool(keep.all())
    index = None if every else np.flatnonzero(keep)
    if index is not None:
        left, right, outcome, first = left[index], right[index], outcome[index], first[index]
        weight = None if weight is None else weight[index]
        square = None if square is None else square[index]
    size = k * k * 12
    kind = np.int32 if size < 2**31 else np.int64
    key: NDArray[Any] = left.astype(kind)
    # in place: a million rows are read thrice, not ten times
    np.multiply(key, k, out=key)
    np.add(key, right, out=key)
    np.multiply(key, 12, out=key)
    np.add(key, outcome * np.int8(3) + first + np.int8(1), out=key)
    cells = unique_cells(key, weight, size, want_cell=keep_rows)
    rest, inner = np.divmod(cells.key, 12)
    first_row = cells.first_row if index is None else index[cells.first_row]
    cell = None
    if keep_rows:
        cell = np.full(len(keep), -1, np.int32)
        cell[keep] = cells.cell
    return {
        "items": items,
        "kind": "duels",
        "left": (rest // k).astype(np.int32),
        "right": (rest % k).astype(np.int32),
        "outcome": (inner // 3).astype(np.int8),
        "first": (inner % 3 - 1).astype(np.int8),
        "count": cells.total,
        "square": None if square is None else unique_cells(key, square, size).total,
        "row": first_row if source.row is None else source.row[first_row],
        "rows_are_lines": source.has_lines,
        "cell": cell,
        "source": source.name,
    }


def collapse_counts(
    left: Any,
    right: Any,
    wins_left: Any,
    wins_right: Any,
    ties: Any,
    *,
    first: Any,
    weight: Any,
    missing: str,
    items: Sequence[object] | None,
    source: Origin,
    asked: bool = True,
) -> dict[str, Any]:
    """Return the fields of `Comparisons` for rows of counts; see `Comparisons.from_counts`.

    With `asked` it is looked at whether they are counts of wins and ties at all.
    """
    a = encoded(left, "item")
    n = len(a.codes)
    b = _coded("right", right, "item", n)
    given = {"wins_left": wins_left, "wins_right": wins_right, "ties": ties, "weight": weight}
    numbers, lacking = absent_numbers(n, given, source)
    absent = {"left": a.codes < 0, "right": b.codes < 0} | lacking
    gone, notices = rows_with_missing(missing, absent, source)
    checked = {name: checked_weight(v, n, source, name) for name, v in numbers.items()}
    times = checked.get("weight")
    raw = [
        np.zeros(n) if checked.get(name) is None else np.asarray(checked[name])
        for name in ("wins_left", "wins_right", "ties")
    ]
    counts = [values if times is None else values * times for values in raw]
    kept = ~gone
    names = [np.array([*c.labels, None], dtype=object)[c.codes][kept] for c in (a, b)]
    if asked:
        check_total(*(values[kept] for values in raw), source=source)
        notices = [*notices, *count_notices(names, [values[kept] for values in raw])]
    shown = first
    if first is not None and not isinstance(first, str):
        told = _coded("first", first, "first item", n)
        words_of = np.array([*told.labels, None], dtype=object)
        shown = np.tile(words_of[told.codes][kept], 3)
    taken = source.taken(kept)
    fields = collapse_duels(
        np.tile(names[0], 3),
        np.tile(names[1], 3),
        np.repeat(np.array(OUTCOMES[:3], dtype=object), int(kept.sum())),
        words=Words({word: word for word in OUTCOMES[:3]}, "side"),
        first=shown,
        weight=np.concatenate([values[kept] for values in counts]),
        square=squares_of_counts(raw, times, kept),
        items=items,
        missing="error",
        source=taken._replace(row=np.tile(np.asarray(taken.row), 3)),
        keep_rows=False,
    )
    return fields | {
        "notices": (*notices, *fields["notices"]),
        "n_skipped": fields["n_skipped"] + int(gone.sum()),
    }


def _coded(name: str, values: Any, what: str, n: int) -> Encoded:
    """Return a column of labels, one for each of the ``n`` rows of left."""
    column = encoded(values, what)
    if len(column.codes) != n:
        raise DataError(f"{name} has {len(column.codes)} rows, left {n}; they must agree.")
    return column
