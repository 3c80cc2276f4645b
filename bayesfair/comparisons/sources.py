"""Where comparisons came from, and their numbers: weights and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import as_numbers, check_choice, counted, first_where
from bayesfair.base.notices import Notice
from bayesfair.base.options import no_effect
from bayesfair.errors import DataError

__all__ = [
    "Origin",
    "absent_numbers",
    "checked_weight",
    "lines_of",
    "origin_of",
    "rows_with_missing",
    "squares",
    "squares_of_counts",
]

_EXACT = 2.0**53  # beyond this not every whole number is one of double precision


def lines_of(row: Any) -> NDArray[np.int64] | None:
    """Return lines of a source as whole numbers; None where they are not known.

    Raises
    ------
    DataError
        If they are no sequence of whole numbers.
    """
    if row is None:
        return None
    lines = as_numbers(row, "row")
    if lines.ndim != 1 or not np.isfinite(lines).all():
        raise DataError(
            f"row must hold one line of the source for each row, got shape {lines.shape}.",
            kind="bad_number",
            column="row",
        )
    return lines.astype(np.int64)


class Origin(NamedTuple):
    """Where rows came from, so that messages can name them.

    Parameters
    ----------
    name : str
        What messages and reports call the data.
    row : (N,) array of int, optional
        Lines of a file.
    columns : mapping, optional
        What messages call the columns, by parameter of the constructor.
    lines : bool
        Whether `row` holds lines of a file, not positions.
    """

    name: str
    row: NDArray[np.int64] | None = None
    columns: Mapping[str, str] = MappingProxyType({})
    lines: bool = True

    def called(self, parameter: str) -> str:
        """Name what was passed as a parameter: by its column, where it came from one."""
        found = self.columns.get(parameter)
        return parameter if found is None else f"column {found!r}"

    def taken(self, kept: NDArray[Any]) -> Origin:
        """Return the source of the rows that were kept."""
        row = np.arange(len(kept)) if self.row is None else self.row
        return self._replace(row=row[kept], lines=self.has_lines)

    @property
    def has_lines(self) -> bool:
        """Whether rows can be named by their lines."""
        return self.row is not None and self.lines

    def where(self, i: int) -> str:
        """Name a row: ``row 19 of log.csv``, or its 0-based position where lines are unknown."""
        at = i if self.row is None else int(self.row[i])
        return (
            f"row {at} of {self.name}"
            if self.has_lines
            else f"comparison {at} of {self.name} (0-based)"
        )

    def line(self, i: int) -> int | None:
        """Return the line of a row; None where lines are unknown."""
        return int(self.row[i]) if self.row is not None and self.lines else None


def origin_of(source: str | Origin) -> Origin:
    """Return where rows came from, its lines checked."""
    if isinstance(source, Origin):
        return source._replace(row=lines_of(source.row))
    return Origin(source)


def squares(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return squared weights; None where weights are whole numbers: then they count comparisons."""
    if weight is None or np.array_equal(weight, np.round(weight)):
        return None
    return weight**2


def squares_of_counts(
    counts: Sequence[NDArray[np.float64]],
    times: NDArray[np.float64] | None,
    kept: NDArray[np.bool_],
) -> NDArray[np.float64] | None:
    """Return the sums of squared weights behind counts, joined; None where all are whole numbers.

    A count of 7.5 is seven comparisons and one of weight .5. That two fractions of a row may
    belong to one comparison (a win worth 2/3 and a loss worth 1/3) is not known: errors that rest
    on this are then too large rather than too small.

    Parameters
    ----------
    counts : sequence of (N,) arrays
    times : (N,) array, optional
        Weights of the rows: whole numbers repeat a row, others weigh it.
    kept : (N,) array of bool
        Rows to return.
    """
    count = np.stack([values[kept] for values in counts])
    weight = np.ones(count.shape[1]) if times is None else times[kept]
    if squares(count) is None and squares(weight) is None:
        return None
    whole = np.floor(count)
    once = whole + (count - whole) ** 2
    return (once * (weight if squares(weight) is None else weight**2)).ravel()


def checked_weight(
    weight: Any, n: int, source: Origin, name: str = "weight"
) -> NDArray[np.float64] | None:
    """Return weights as floats; negative, missing or infinite ones are refused with their rows."""
    if weight is None:
        return None
    try:
        values = np.array(weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{source.called(name)} of {source.name} is not numeric: {error}.", column=name
        ) from None
    if values.shape != (n,):
        raise DataError(
            f"{name} has shape {values.shape}, expected one value for each of {n} rows.",
            column=name,
        )
    bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if bad.size:
        named = ", ".join(f"{values[i]:g} in {source.where(int(i))}" for i in bad[:3])
        more = f" and {bad.size - 3} more" if bad.size > 3 else ""
        raise DataError(
            f"{source.called(name)} must be finite and >= 0, got {named}{more}. Use 0 to leave a "
            "row out.",
            kind="bad_number",
            row=source.line(int(bad[0])),
            column=source.columns.get(name, name),
            value=float(values[bad[0]]),
            source=source.name,
        )
    if values.sum() > _EXACT:
        i = int(np.argmax(values))
        raise DataError(
            f"{source.called(name)} sums to {values.sum():.12g}, more than can be counted exactly "
            f"(2^53); the largest is {values[i]:g} in {source.where(i)}. Give smaller ones.",
            kind="bad_number",
            row=source.line(i),
            column=source.columns.get(name, name),
            value=float(values[i]),
            source=source.name,
        )
    return values


def rows_with_missing(
    missing: str, absent: Mapping[str, NDArray[np.bool_]], source: Origin
) -> tuple[NDArray[np.bool_], list[Notice]]:
    """Return which rows lack something, with the notice; refuse them unless dropping was asked for.

    Parameters
    ----------
    missing : {"error", "drop"}
    absent : mapping of parameter to (n,) array of bool
        Where each of the columns has no value.
    source : Origin

    Raises
    ------
    DataError
        Naming the first row and its column.
    """
    check_choice(missing, "missing", ("error", "drop"))
    bad = np.logical_or.reduce(list(absent.values()))
    first = first_where(bad)
    if first is None:
        unused = [no_effect("missing", missing, "no value is missing")]
        return bad, unused if missing == "drop" else []
    if missing == "error":
        i = first.at
        name = next(name for name, gone in absent.items() if gone[i])
        raise DataError(
            f"{source.where(i)}, {source.called(name)}: missing ({counted(first.n, 'such row')}). "
            'Complete it, or leave such rows out with missing="drop".',
            kind="missing_value",
            row=None if source.row is None else int(source.row[i]),
            column=source.columns.get(name, name),
            source=source.name,
        )
    text = f"{counted(first.n, 'row')} with something missing left out on request."
    return bad, [Notice(text, kind="missing_dropped", n=first.n)]


def absent_numbers(
    n: int, columns: Mapping[str, Any], source: Origin
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.bool_]]]:
    """Return columns of numbers with 0 where they are missing, and where they are."""
    filled, absent = {}, {}
    for name, given in columns.items():
        if given is None:
            continue
        try:
            values = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.asarray(checked_weight(given, n, source, name))  # it says what is wrong
        absent[name] = np.isnan(values) if values.shape == (n,) else np.zeros(n, dtype=np.bool_)
        filled[name] = np.where(absent[name], 0.0, values) if values.shape == (n,) else values
    return filled, absent
