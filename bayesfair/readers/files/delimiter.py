"""Which delimiter a text file has: the one that splits its header into what is asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from bayesfair.errors import DataError

__all__ = ["DELIMITERS", "detected", "header_of"]

DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_LONG = 1 << 18  # characters from which the last row of the text may be cut


def header_of(text: str, delimiter: str) -> list[str]:
    """Return the fields of the first row, as a delimiter splits it."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []) or [""]
    except csv.Error:  # a name of more than 131 072 characters, which no column has
        return [text]


def detected(text: str, name: str, wanted: Sequence[str]) -> str:
    """Return the one delimiter that the header can have.

    Parameters
    ----------
    text : str
        The first part of a file.
    name : str
        What messages call it.
    wanted : sequence of str
        Columns that are asked for: a delimiter that yields them is preferred.

    Raises
    ------
    DataError
        If none or more than one splits the header.
    """
    headers = {d: [field.strip() for field in header_of(text, d)] for d in DELIMITERS}
    able = [d for d, header in headers.items() if len(header) > 1]
    if len(able) > 1:
        able = [d for d in able if set(wanted) <= set(headers[d])] or able
    if len(able) > 1:
        able = [d for d in able if _consistent(text, d, len(headers[d]))] or able
    line = text.splitlines()[0][:200]
    if line.lstrip().startswith(("{", "[{", "[[")):
        raise DataError(
            f"{name} looks like JSON ({line[:60]!r}), not like delimited text. Say format='json' "
            "if it is, or export the log as CSV or Parquet, one row per round."
        )
    if not able:
        raise DataError(
            f"row 1 of {name} has one column only, {line!r}: none of comma, semicolon, tab and bar "
            "separates it. Pass delimiter=... if it uses another."
        )
    if len(able) > 1:
        options = ", ".join(f"{DELIMITERS[d]} ({len(headers[d])} columns)" for d in able)
        raise DataError(
            f"row 1 of {name}, {line!r}, can be split by {options}. Pass the right one as "
            "delimiter=..."
        )
    return able[0]


def _consistent(text: str, delimiter: str, width: int) -> bool:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = [row for row, _ in zip(reader, range(50), strict=False) if row]
    rows = rows[:-1] if len(rows) > 1 and len(text) >= _LONG else rows
    return all(len(row) == width for row in rows)
