"""Columns that look like times although no option names them, and which way they run.

Rows are taken in the order in which they stand. A log that is written newest first would then be
audited backwards: every belief would rest on the rewards to come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import is_missing, plain, taken
from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError
from bayesfair.readers.values.times import NAIVE, NUMBER, of_one_kind, order_values
from bayesfair.readers.values.values import simple
from bayesfair.readers.values.written_dates import UNREAD, date_seconds, writing_of

__all__ = ["Look", "Trend", "check_trends", "looks_like_time", "seconds"]

_WORDS = {
    "time", "timestamp", "datetime", "date", "ts", "tstamp", "epoch", "unixtime", "created",
    "clock", "when", "round", "step", "iteration", "iter", "trial", "turn", "seq", "sequence", "t",
    "index",
}  # fmt: skip
# Seconds, milliseconds, microseconds and nanoseconds since 1970, of the years 2001 to 2096.
_EPOCHS = [(unit * 1e9, unit * 4e9) for unit in (1.0, 1e3, 1e6, 1e9)]
_MOSTLY = 20  # one way at least so many times as often as the other


def words_of(name: str) -> set[str]:
    """Return the words of a column name, in small letters: `createdAt` and `created_at` alike."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return {word.casefold() for word in re.split(r"[\W_]+", apart) if word}


@dataclass(frozen=True)
class Look:
    """What a column that no option names looks like.

    Attributes
    ----------
    kind : str
        "time" or "counter" (numbers that may count rounds or seconds).
    writing : str
        How its times are written where this is not ISO 8601; "" = as numbers or by the standard.
    example : str
        Its first value, where it is written otherwise.
    """

    kind: str
    writing: str = ""
    example: str = ""

    def remedy(self, column: str) -> str:
        """Return how to sort by it."""
        if self.writing:
            return (
                f"Write {column!r} in ISO 8601 (2026-03-31) and pass order={column!r} to sort by it"
            )
        return f"Pass order={column!r} to sort by it"


def seconds(column: Any, writing: str = "") -> tuple[NDArray[np.float64], str | None]:
    """Return a column as numbers that can be compared, NaN where it is missing, and its kind.

    Times become seconds. The kind is None, and all values NaN, where no strict majority of the
    values are numbers, or times of one kind. `writing`: how times are written otherwise than by ISO
    8601.
    """
    column = plain(column)
    here = ~is_missing(column)
    found = np.full(len(column), np.nan)
    if not here.any() or writing == UNREAD:
        return found, None
    if writing:
        dates = date_seconds(taken(simple(column, str), np.flatnonzero(here)), writing)
        if dates is None:
            return found, None
        found[here] = dates
        return found, NAIVE
    try:
        values, kind = order_values(taken(column, np.flatnonzero(here)), str)
    except DataError:
        good = of_one_kind(column)
        if 2 * np.count_nonzero(good) <= np.count_nonzero(here):
            return found, None
        here = good
        try:
            values, kind = order_values(taken(column, np.flatnonzero(good)), str)
        except DataError:
            return found, None
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]").astype(np.int64) / 1e6
    found[here] = values
    return found, kind


def looks_like_time(name: str, sample: Any) -> Look | None:
    """Return what a column looks like; None = neither a time nor a count of rounds.

    Parameters
    ----------
    name : str
        Of the column.
    sample : pyarrow.ChunkedArray
        Its first rows.
    """
    values, kind = seconds(sample)
    named = bool(words_of(name) & _WORDS)
    if kind is None:
        return _otherwise(sample, named=named)
    if kind != NUMBER:
        return Look("time")
    known = values[~np.isnan(values)]
    epoch = any(low <= known.min() and known.max() <= high for low, high in _EPOCHS)
    if epoch and named:
        return Look("time")
    return Look("counter") if epoch or named else None


def _otherwise(sample: Any, *, named: bool) -> Look | None:
    """Return the look of a column that holds neither numbers nor times by ISO 8601."""
    import pyarrow as pa

    try:
        sample = simple(sample, str)
    except DataError:  # bytes that are no text
        return None
    kind = sample.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_time(kind)):
        return None
    texts = [str(value) for value in sample.to_pylist() if value not in (None, "")]
    writing = writing_of(texts, named=named)
    return Look("time", writing, texts[0]) if writing else None


@dataclass(frozen=True)
class Trend:
    """Which way a column runs; grows over the parts of a log.

    Attributes
    ----------
    up, down, ties : int
        Rows that lie above, below, beside the row before, rows without a value apart.
    last : float
        The last value; NaN = none yet.
    n : int
        Rows, those without a value too.
    """

    up: int = 0
    down: int = 0
    ties: int = 0
    last: float = float("nan")
    n: int = 0

    def after(self, values: NDArray[np.float64]) -> Trend:
        """Return the trend after further rows."""
        known = values[~np.isnan(values)]
        joined = known if np.isnan(self.last) else np.append(self.last, known)
        up = int(np.count_nonzero(joined[1:] > joined[:-1]))
        down = int(np.count_nonzero(joined[1:] < joined[:-1]))
        return Trend(
            self.up + up,
            self.down + down,
            self.ties + max(len(joined) - 1, 0) - up - down,
            float(joined[-1]) if len(joined) else self.last,
            self.n + len(values),
        )

    @property
    def complete(self) -> bool:
        """Whether nearly every row has a value, as every round has its time."""
        return self.up + self.down + self.ties + 1 >= min(0.9 * self.n, self.n - 1)

    @property
    def falls(self) -> bool:
        """Whether it runs from top to bottom, single rows apart."""
        return self.complete and self.down > 1 and self.down >= _MOSTLY * self.up

    @property
    def rises(self) -> bool:
        """Whether it runs upwards, single rows apart."""
        return self.complete and self.up > 0 and self.up >= _MOSTLY * self.down


def check_trends(trends: Sequence[Trend], columns: Mapping[str, Look], source: str) -> list[Notice]:
    """Return what has to be said of the order of a log that no column orders.

    Parameters
    ----------
    trends : sequence of Trend
        Of the columns, in their order.
    columns : mapping of str to Look
        What each looks like.
    source : str
        What messages call the log.

    Raises
    ------
    DataError
        If such a column falls from top to bottom, and none rises.
    """
    found = dict(zip(columns, trends, strict=True))
    rising = [c for c, trend in found.items() if trend.rises]
    falling = [c for c, trend in found.items() if trend.falls]
    if falling and not rising:
        column = falling[0]
        raise DataError(
            f"the order of {source} runs backwards: {column!r} falls from its first row to "
            "its last, and no option says how the rounds are ordered. Beliefs before a round must "
            f"rest on earlier rounds only. {columns[column].remedy(column)}, or order=False if the "
            "rows are in the order of the decisions as they stand.",
            kind="order",
            column=column,
            source=source,
        )
    exact = [c for c in rising if not found[c].down]
    if any(found[c].ties <= found[c].up for c in exact):
        return []
    if exact:
        column = exact[0]
        ties = found[column].ties
        return [
            Notice(
                f"rows were taken as they stand. {column!r} looks like a time and agrees, but "
                f"{counted(ties, 'row')} of {found[column].n} share it with the row before: the "
                "order of rounds within one time is not known.",
                kind="order",
                column=column,
                n=ties,
            )
        ]
    unsorted = [c for c, trend in found.items() if columns[c].kind == "time" and trend.down]
    if not unsorted:
        return _unread(columns)
    column = unsorted[0]
    more = f" (so do {listed(unsorted[1:], 3)})" if unsorted[1:] else ""
    return [
        Notice(
            f"rows were taken as they stand, so the order of the rounds is not certain: {column!r} "
            f"looks like a time{more}, was not used, and {counted(found[column].down, 'row')} of "
            f"{found[column].n} lie before the row above. {columns[column].remedy(column)}, or "
            "order=False if the order of the rows is that of the decisions.",
            kind="order",
            column=column,
            n=found[column].down,
        )
    ]


def _unread(columns: Mapping[str, Look]) -> list[Notice]:
    """Return the notice of the first column whose times cannot be read."""
    column = next((c for c, look in columns.items() if look.writing == UNREAD), None)
    if column is None:
        return []
    look = columns[column]
    return [
        Notice(
            f"rows were taken as they stand: column {column!r} looks like a time in a format that "
            f"is not read ({look.example:.40}): whether rows stand in its order is not known. "
            f"{look.remedy(column)}, or order=False if the order of the rows is that of the "
            "decisions.",
            kind="order_unknown",
            column=column,
            value=look.example,
        )
    ]
