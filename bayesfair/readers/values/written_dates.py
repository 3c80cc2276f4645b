"""Times that are written otherwise than ISO 8601 has it: 03.03.2026, 12/30/2025, 10:03, Mar 2026.

They order nothing, as many can be read in two ways. Where the way is certain, it is told whether
they run backwards; elsewhere that they are times is all that is known of them.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import is_missing, taken

__all__ = ["DAY_FIRST", "MONTH_FIRST", "UNREAD", "YEAR_FIRST", "date_seconds", "writing_of"]

DAY_FIRST, MONTH_FIRST, YEAR_FIRST = "day first", "month first", "year first"
UNREAD = "unread"

_CLOCK = r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?\s*([AaPp]\.?[Mm]\.?)?"
_ZONE = r"\s*(Z|UTC|GMT|[A-Z]{3,4}|[+-]\d\d(:?\d\d)?)?"
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|m[aä]r|mai|okt|dez)[a-zä]*"
_DAY = "((mon|tue|wed|thu|fri|sat|sun)[a-z]*[,. ]+)?"
_FORMS = [
    r"\d{4}([./-])\d{1,2}(\1\d{1,2})?",  # 2026/3/3, 2026-03
    r"\d{1,2}([./-])\d{1,2}\1\d{4}",  # 03.03.2026, 3/3/2026
    r"\d{1,2}[./-]\d{4}",  # 03/2026
    r"\d{4}-?W\d\d(-?\d)?",  # 2026-W12
    r"\d{4}[- ]?Q[1-4]|Q[1-4][- /]?\d{4}",
    rf"(?i:{_DAY}(\d{{1,2}}(st|nd|rd|th|\.)?[-. /]*)?{_MONTH}([-., /]*\d{{1,2}}(st|nd|rd|th)?)?)"
    r"([-., /]+\d{2,4})?",  # Mar 2026, 3 March 2026, Tue Mar 3
]
_SHORT = r"\d{1,2}([./-])\d{1,2}\1\d\d"  # 03.03.26: a version as well, unless the name says more
_GAP = r"([T,]\s*|\s+)"
_AFTER = rf"({_GAP}{_CLOCK}{_ZONE})?({_GAP}\d{{4}})?"
_PLAIN = [re.compile(form + _AFTER) for form in _FORMS] + [re.compile(_CLOCK + _ZONE)]
_NAMED = re.compile(_SHORT + _AFTER)
_PARTS = (
    r"^\s*(?P<a>\d{1,4})(?P<sep>[./-])(?P<b>\d{1,2})(?P<again>[./-])(?P<c>\d{1,4})"
    r"(?:(?:[T,]\s*|\s+)(?P<h>\d{1,2}):(?P<m>\d\d)(?::(?P<s>\d\d(?:\.\d+)?))?)?\s*$"
)


def writing_of(texts: list[str], *, named: bool) -> str:
    """Return how the times of a column are written: "" = it holds none, `UNREAD` = not certain.

    Parameters
    ----------
    texts : list of str
        Its first values, the missing ones apart.
    named : bool
        Whether the name of the column says that it holds times.

    Examples
    --------
    >>> writing_of(["03.03.2026", "02.03.2026"], named=False)
    'day first'
    >>> writing_of(["3/3/2026", "2/3/2026"], named=True), writing_of(["a", "b"], named=True)
    ('unread', '')
    """
    different = list(dict.fromkeys(text.strip() for text in texts))
    if len(different) < 2:  # orders nothing
        return ""
    forms = [*_PLAIN, _NAMED] if named else _PLAIN
    found = sum(any(form.fullmatch(text[:80]) for form in forms) for text in different)
    if found < 0.9 * len(different) and (found < len(different) - 1 or found < 3):
        return ""
    import pyarrow as pa

    column = pa.chunked_array([pa.array(different, pa.string())])
    odd = {
        way: int(np.isnan(read).sum())
        for way in (YEAR_FIRST, DAY_FIRST, MONTH_FIRST)
        if (read := date_seconds(column, way)) is not None
    }
    few = max(len(different) // 10, min(len(different) - 2, 1))  # broken ones
    ways = [way for way, n in odd.items() if not n] or [w for w, n in odd.items() if n <= few]
    return ways[0] if len(ways) == 1 else UNREAD


def date_seconds(column: Any, way: str) -> NDArray[np.float64] | None:
    """Return the seconds since 1970 of dates written one way, NaN where one is written otherwise.

    None where the column is no text, or none of it is written so. Dates with dots are of one way
    only: the day stands first, or the year.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Text without missing values.
    way : str
        `DAY_FIRST`, `MONTH_FIRST` or `YEAR_FIRST`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    parts = pc.extract_regex(column, _PARTS)
    here = ~is_missing(parts)
    parts = taken(parts, np.flatnonzero(here))
    if not len(parts):
        return None
    field = {
        name: pc.struct_field(parts, name).to_numpy(zero_copy_only=False).astype(str)
        for name in ("a", "sep", "b", "again", "c", "h", "m", "s")
    }
    names = {YEAR_FIRST: "abc", DAY_FIRST: "cba", MONTH_FIRST: "cab"}[way]
    digits = np.char.str_len(field[names[0]])
    year, month, day = (field[name].astype(np.int64) for name in names)
    year = np.where(digits == 2, np.where(year < 69, 2000, 1900) + year, year)
    sure = (field["sep"] == field["again"]) & np.isin(digits, (4,) if way == YEAR_FIRST else (2, 4))
    sure &= (year >= 1900) & (year < 2100) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    if way == MONTH_FIRST:
        sure &= field["sep"] != "."
    if not sure.any():
        return None
    year, month, day = (np.where(sure, values, 1) for values in (year, month, day))
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + day - 1
    h, m, s = (np.where(field[n] == "", "0", field[n]).astype(float) for n in "hms")
    seconds = days * 86_400.0 + 3600 * h + 60 * m + s
    found = np.full(len(here), np.nan)
    found[here] = np.where(sure, seconds, np.nan)
    return found
