"""Headers: trimmed column names, each once; what to say of a column that is not there."""

from __future__ import annotations

from collections.abc import Sequence

from bayesfair.base.checks import did_you_mean, listed
from bayesfair.errors import DataError

__all__ = ["column_names", "missing_column"]


def column_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return trimmed column names; a column without a name is called by its place.

    Raises
    ------
    DataError
        If two columns have the same name.

    Examples
    --------
    >>> column_names(["", " arm", "reward "], "row 1 of log.csv")
    ('(column 1)', 'arm', 'reward')
    """
    header = [str(name).strip() or f"(column {i})" for i, name in enumerate(names, start=1)]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        places = [str(i) for i, name in enumerate(header, start=1) if name == twice]
        raise DataError(
            f"{where} names column {twice!r} more than once (columns {' and '.join(places)}). "
            "Rename or remove one; which is meant cannot be guessed."
        )
    return tuple(header)


def missing_column(column: str, option: str, source: str, header: Sequence[str]) -> DataError:
    """Return the error for a column that the source does not have."""
    return DataError(
        f"{source} has no column {column!r} (option {option}). Its columns are "
        f"{listed(header, 12)}.{did_you_mean(column, header)} Name the right one with {option}=..."
    )
