"""What orders the rounds: numbers, time stamps with or without zone, or their text.

One column has one kind. Times with and without a zone cannot be compared, so a column that mixes
them is refused; with zones, times are compared as instants (UTC).
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import characters, is_missing, taken, whole
from bayesfair.base.numerals import number, why_no_number
from bayesfair.errors import DataError
from bayesfair.readers.values.values import simple
from bayesfair.typing import Where

__all__ = ["KINDS", "NUMBER", "duration", "mixed", "of_one_kind", "order_values"]

NUMBER, NAIVE, AWARE = "number", "time without zone", "time with zone"
KINDS = (NUMBER, NAIVE, AWARE)
_EXACT = 2.0**53  # whole numbers up to here are exact in double precision
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d+)?)?)?(?P<zone>Z|[+-]\d\d(:?\d\d)?)?)?"
)
# Zones as some databases write them: "10:00 UTC", "10:00 +02"
_TIDY = ((r"\s*(UTC|GMT)$", "Z"), (r"\s+(Z|[+-]\d\d(:?\d\d)?)$", r"\1"))

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_SECONDS)})")


def duration(text: str) -> float | None:
    """Return the seconds of a duration with its unit; None if it is none.

    Examples
    --------
    >>> duration("1h"), duration("1.5 min"), duration("7"), duration("site")
    (3600.0, 90.0, None, None)
    """
    found = _DURATION.fullmatch(text.strip())
    return float(found[1]) * _SECONDS[found[2]] if found else None


def order_values(column: Any, where: Where, *, decimal: str = ".") -> tuple[NDArray[Any], str]:
    """Return comparable values and their kind.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Numbers, dates, time stamps, or text that is one of these (ISO 8601 for times).
    where : callable
        Names the row at a position of the column, with the column.
    decimal : str
        Decimal sign of text.

    Returns
    -------
    values : (rows,) array
        Numbers, or datetime64 (in UTC where zones are given).
    kind : str
        One of `KINDS`.

    Raises
    ------
    DataError
        Naming the first row that is missing, unreadable, or of another kind than the rows before.
    """
    import pyarrow as pa

    column = simple(column, where)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _from_text(column, where, decimal)
    if column.null_count:
        raise _missing(where, int(np.flatnonzero(is_missing(column))[0]))
    if pa.types.is_timestamp(kind):
        return whole(column), AWARE if kind.tz else NAIVE
    if pa.types.is_date(kind):
        return whole(column.cast(pa.timestamp("ms"))), NAIVE
    if pa.types.is_decimal(kind):
        column = _from_decimal(column)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(
            f"{where(0)}: expected numbers or time stamps to order by, but the column holds {kind}."
        )
    values = whole(column)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise _missing(where, int(np.flatnonzero(~np.isfinite(values))[0]))
    return values, NUMBER


def of_one_kind(column: Any) -> NDArray[np.bool_]:
    """Return which rows of a column of text are of the kind that most are of: numbers, or times.

    For looking only: `order_values` refuses the others by their row.
    """
    import pyarrow as pa

    none = np.zeros(len(column), dtype=np.bool_)
    try:
        column = simple(column, str)
    except DataError:
        return none
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return none
    texts = [_tidied(text or "") for text in column.to_pylist()]
    kinds = [_kind_of(text, ".") if text else None for text in texts]
    kinds = [k if k in (None, NUMBER) or _exists(t) else None
             for k, t in zip(kinds, texts, strict=True)]  # fmt: skip
    most = max(KINDS, key=kinds.count)
    return np.array([kind == most for kind in kinds], dtype=np.bool_)


def _tidied(text: str) -> str:
    text = text.strip()
    for pattern, replacement in _TIDY:
        text = re.sub(pattern, replacement, text)
    return text


def _exists(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _missing(where: Where, at: int) -> DataError:
    return DataError(
        f"{where(at)}: the order is missing. Every round needs its place; fill it in, remove the "
        "row, or take the rows as they stand (order=False)."
    )


def _from_text(column: Any, where: Where, decimal: str) -> tuple[NDArray[Any], str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise _missing(where, int(np.flatnonzero(is_missing(column))[0]))
    text = column if decimal == "." else pc.replace_substring(column, decimal, ".")
    attempts = [(column, kind, NUMBER) for kind in (pa.int64(), pa.uint64())]
    attempts.append((text, pa.float64(), NUMBER))
    attempts += [
        (column, pa.timestamp(unit, zone), AWARE if zone else NAIVE)
        for unit in ("us", "ns")
        for zone in (None, "UTC")
    ]
    for values, target, kind in attempts:
        try:
            found = whole(values.cast(target))
        except pa.ArrowInvalid:
            continue
        if kind == NUMBER and not _as_written(text, found):
            continue
        if target == pa.float64():
            _check_digits(text, found, where)
        return found, kind
    tidy = pc.utf8_trim_whitespace(column)
    for pattern, replacement in _TIDY:
        tidy = pc.replace_substring_regex(tidy, pattern, replacement)
    if not tidy.equals(column):
        return _from_text(tidy, where, decimal)
    raise _unreadable(tidy, where, decimal)


def _as_written(text: Any, found: NDArray[Any]) -> bool:
    """Whether Arrow's numbers are what the text says: it reads 0x1F too, and 1e-400 as 0."""
    if found.dtype.kind != "f":
        return not any((characters(chunk)[0] | 32 == ord("x")).any() for chunk in text.chunks)
    if not np.isfinite(found).all():
        return False
    zero = taken(text, np.flatnonzero(found == 0))
    return all(number(written) is not None for written in zero.unique().to_pylist())


def _from_decimal(column: Any) -> Any:
    """Return decimals as integers where they are whole, so that long ones keep all digits."""
    import pyarrow as pa

    for target in (pa.int64(), pa.uint64()):
        try:
            return column.cast(target)
        except pa.ArrowInvalid:
            continue
    return column.cast(pa.float64())


def _check_digits(text: Any, found: NDArray[np.float64], where: Where) -> None:
    """Refuse different numbers that are one in double precision, such as long clock readings."""
    large = np.flatnonzero(np.abs(found) > _EXACT)
    if not large.size:
        return
    seen: dict[float, str] = {}
    for at in large.tolist():
        written = text[at].as_py().strip()
        other = seen.setdefault(float(found[at]), written)
        if other != written:
            raise DataError(
                f"{where(at)}: {written!r} and {other!r} have too many digits to be told apart as "
                "numbers. Write them as whole numbers below 2^64, or as times."
            )


def _kind_of(text: str, decimal: str) -> str | None:
    match = _ISO.fullmatch(text)
    if match:
        return AWARE if match.group("zone") else NAIVE
    value = number(text.replace(decimal, "."))
    return None if value is None or not math.isfinite(value) else NUMBER


def _is_time(column: Any) -> bool:
    import pyarrow as pa

    for target in (pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")):
        try:
            column.cast(target)
        except pa.ArrowInvalid:
            continue
        return True
    return False


def _first_unreadable(column: Any) -> int:
    """Return the first row that is no time, by halving: what stands before it is all times."""
    low, high = 0, len(column)  # the first one lies in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_time(column.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def _unreadable(column: Any, where: Where, decimal: str) -> DataError:
    first = None
    texts: list[str] = column.to_pylist()
    for at, text in enumerate(texts):
        kind = _kind_of(text, decimal)
        if not text or text.casefold() in {"nan", "na", "null", "none", "nat", "\\n"}:
            return _missing(where, at)
        if kind is None:
            return DataError(
                f"{where(at)}: {text!r} is neither a number{why_no_number(text)} nor an ISO time. "
                "Write times as 2024-01-05 10:00:00 (add +01:00 or Z for a zone).",
                kind="not_a_time",
                value=text,
            )
        first = first or (at, text, kind)
        if kind != first[2]:
            return mixed(
                here=where(at),
                value=text,
                kind=kind,
                there=where(first[0]),
                first=first[1],
                first_kind=first[2],
            )
    at = _first_unreadable(column)
    return DataError(
        f"{where(at)}: {texts[at]!r} is no time that exists; check its day and hour. Write times "
        "as 2024-01-05 10:00:00."
    )


def mixed(
    *, here: str, value: Any, kind: str, there: str, first: Any, first_kind: str
) -> DataError:
    """Return the error for a column that holds two kinds of order."""
    return DataError(
        f"{here}: {value!s:.40} is a {kind}, but {first!s:.40} ({there}) is a {first_kind}; the "
        "two cannot be ordered. Write all rows in one way, times all with a zone or all without."
    )
