"""Columns of numbers and rewards: converted whole, refused by row, column and value.

Nothing is guessed: "False" is not a number that happens to be true, and "0,5" is a number only
where the decimal sign is said to be a comma.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import characters, codes, is_missing, pieces, plain, taken
from bayesfair.base.checks import first_where, listed, shown
from bayesfair.base.labels import text_of
from bayesfair.base.numerals import number, why_no_number
from bayesfair.errors import DataError, OptionError
from bayesfair.kernels.log.guards import text_prints
from bayesfair.kernels.log.rows import side_by_side
from bayesfair.typing import Where

__all__ = ["fingerprints", "matrix", "meant_numbers", "numbers", "rewards", "simple", "truths"]

# What programs write for "no number" (\\N: databases, when they export). Labels are never read so.
_ABSENT = {"", "na", "n/a", "nan", "null", "none", "\\n"}
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_SHORT = 4096  # rows from which on compiled code pays
# Meant as a number, and read as none: 1_0, 33 %, 1/3, digits of any script.
_NEARLY = re.compile(r"[-+~<>=]*\s*[\d.,_]*\d[\d.,_eE+-]*\s*(%|/\s*\d+)?")
_REAL = "reward values are 0/1, True/False, yes/no or numbers"


def simple(column: Any, where: Where) -> Any:
    """Return a column with its dictionary, view or binary encoding undone.

    Raises
    ------
    DataError
        Naming the first row whose bytes are no text.
    """
    import pyarrow as pa

    column = plain(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        column, kind = column.cast(pa.binary()), pa.binary()
    if not pa.types.is_binary(kind):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        for at, value in enumerate(column.to_pylist()):
            try:
                bytes(value or b"").decode("utf-8")
            except UnicodeDecodeError:
                raise DataError(
                    f"{where(at)}: {value!r} is not UTF-8 text. Write the column as text or "
                    "numbers in the source."
                ) from None
        raise


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def numbers(column: Any, where: Where, *, decimal: str = ".") -> NDArray[np.float64]:
    """Return a column as floats, NaN where it is missing.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Numbers or their text.
    where : callable
        Names the row at a position of the column, with the column.
    decimal : str
        Decimal sign of text.

    Raises
    ------
    DataError
        Naming the first value that is no number.
    """
    return _joined(_numbers(column, where, decimal))


def meant_numbers(column: Any, *, decimal: str = ".") -> NDArray[np.float64] | None:
    """Return a column that is meant as numbers, or as yes and no, whatever is wrong with some rows.

    For looking only: where the column is used, `numbers` refuses what is wrong by its row.

    Returns
    -------
    (n,) array or None
        NaN where a value is missing, or broken beyond reading. None where the column holds nothing,
        or no strict majority of its values is written as a number.
    """
    import pyarrow as pa

    try:
        column = simple(column, str)
    except DataError:  # bytes that are no text, in some rows
        texts = [v if v is None else bytes(v).decode(errors="replace") for v in column.to_pylist()]
        column = pa.chunked_array([pa.array(texts, pa.string())])
    try:
        found = rewards(column, str, decimal=decimal)
        return None if np.isnan(found).all() else found
    except DataError:
        if not _is_text(column.type):
            return None
    encoded = column.dictionary_encode().unify_dictionaries()
    index = np.concatenate([codes(chunk) for chunk in encoded.chunks])
    read = [_meant(str(text_of(v)), decimal) for v in encoded.chunk(0).dictionary.to_pylist()]
    times = np.bincount(index, minlength=len(read) + 1)[: len(read)]
    words = sum(n for n, (_, kind) in zip(times, read, strict=True) if kind == "word")
    held = sum(n for n, (_, kind) in zip(times, read, strict=True) if kind == "number")
    return np.array([*(value for value, _ in read), math.nan])[index] if held > words else None


def _meant(text: str, decimal: str) -> tuple[float, str]:
    """Return what a text means as a number, and whether it is meant as one."""
    text = text.strip()
    if text.casefold() in _ABSENT:
        return math.nan, "nothing"
    for sign in (decimal, "," if decimal == "." else "."):
        if (value := _number(text, sign)) is not None:
            return value, "number"
    if (value := _WORDS.get(text.casefold())) is not None:
        return value, "number"
    return math.nan, "number" if _NEARLY.fullmatch(text) else "word"


def _joined(found: list[NDArray[Any]]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(0), *found]) if len(found) != 1 else found[0].astype(float)


def _numbers(column: Any, where: Where, decimal: str) -> list[NDArray[Any]]:
    """Return a column of numbers, chunk by chunk."""
    import pyarrow as pa

    column = simple(column, where)
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return pieces(column)
    if pa.types.is_null(kind) or pa.types.is_decimal(kind):
        return pieces(column.cast(pa.float64()))
    if not _is_text(kind):
        raise DataError(f"{where(0)}: expected numbers, but the column holds {kind}.")
    if decimal == "." and (found := _plain_numbers(column, where, _not_a_number)) is not None:
        return found
    return _parsed(column, lambda text: _number(text, decimal), where, _not_a_number)


def _plain_numbers(
    column: Any, where: Where, explain: Callable[[str], str]
) -> list[NDArray[Any]] | None:
    """Return a column of text as numbers if each is one as it stands, else None.

    What Arrow makes infinite or 0 of too many digits is refused.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pieces(column.cast(pa.float64()))
    except pa.ArrowInvalid:  # blanks, words for "missing", or no number: look at each value
        return None
    odd = [~np.isfinite(values) for values in found]
    zero = [values == 0 for values in found]
    if any(map(np.any, zero)):
        long = [length > len("1e-30") for length in pieces(pc.binary_length(column))]
        odd = [o | (z & n) for o, z, n in zip(odd, zero, long, strict=True)]
    rows = np.flatnonzero(np.concatenate([np.zeros(0, dtype=np.bool_), *odd]))
    if rows.size:
        _parsed(
            taken(column, rows),
            lambda text: _number(text, "."),
            lambda at: where(int(rows[at])),
            explain,
        )
    return found


def _number(text: str, decimal: str) -> float | None:
    text = text.strip()
    if text.casefold() in _ABSENT:
        return math.nan
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    return number(text)


def _not_a_number(value: str) -> str:
    if _number(value, ",") is not None:
        return f'{value!r} is not a number. If the comma is the decimal sign, pass decimal=",".'
    if _number(value, ".") is not None:
        return f"{value!r} is not a number with decimal=','. Leave decimal= out, or correct it."
    return (
        f"{value!r} is not a number{why_no_number(value.strip())}. Correct it, or leave the field "
        "empty if it is missing."
    )


def _parsed(
    column: Any,
    parse: Callable[[str], float | None],
    where: Where,
    explain: Callable[[str], str],
) -> list[NDArray[Any]]:
    """Parse each different value once; refuse the first row whose value has no meaning."""
    encoded = column.dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return []
    texts = [text_of(v) for v in encoded.chunk(0).dictionary.to_pylist()]
    values = [math.nan if text is None else parse(text) for text in texts]
    indices = [codes(chunk) for chunk in encoded.chunks]
    wrong = [i for i, v in enumerate(values) if v is None]
    if wrong:
        joined = np.concatenate(indices)
        rows = np.flatnonzero(np.isin(joined, wrong))
        bad = [str(texts[i]) for i in wrong]
        count = f" ({rows.size} such rows: {listed(bad, 3)})" if rows.size > 1 else ""
        first = str(texts[int(joined[rows[0]])])
        raise DataError(
            f"{where(int(rows[0]))}: {explain(first)}{count}", kind="bad_number", value=first
        )
    lookup = np.array([*values, math.nan], dtype=np.float64)
    return [lookup[index] for index in indices]


def rewards(
    column: Any,
    where: Where,
    *,
    decimal: str = ".",
    mapping: Mapping[Any, float] | None = None,
    met: set[str] | None = None,
) -> NDArray[np.float64]:
    """Return rewards as floats, NaN where there is none.

    Booleans and the words true/false, yes/no (in any case) are 1/0, numbers are themselves; any
    other word needs a `mapping`. What of it occurs is added to `met`.

    Raises
    ------
    DataError
        Naming the first value that has no meaning.
    """
    import pyarrow as pa

    column = simple(column, where)
    kind = column.type
    if mapping is None:
        if pa.types.is_boolean(kind):
            return _joined(pieces(column))
        if not _is_text(kind):
            return numbers(column, where, decimal=decimal)
    meaning = _meanings(mapping)

    def parse(text: str) -> float | None:
        word = text.strip()
        value = None if word in meaning else _number(word, decimal)
        key = word if value is None else _key(value)
        if key in meaning:
            if met is not None:
                met.add(key)
            return meaning[key]
        return _WORDS.get(word.casefold()) if value is None else value

    def explain(value: str) -> str:
        if _number(value, "," if decimal == "." else ".") is not None:
            return _not_a_number(value)
        value = value.strip()
        if reason := why_no_number(value):
            return f"{value!r} is not a reward{reason}: {_REAL}. Correct it."
        if value.casefold() in {"t", "f"}:
            return (
                f"{value!r} is not a reward: {_REAL}. Some databases write true and false as t and "
                "f: say so with rewards={'t': 1, 'f': 0}."
            )
        return (
            f"{value!r} is not a reward: {_REAL}. Say what it is worth with "
            f"rewards={{{value!r}: ...}}, or correct it."
        )

    if mapping is None and decimal == ".":
        found = _plain_numbers(column, where, explain)
        if found is not None:
            return _joined(found)
    return _joined(_parsed(column, parse, where, explain))


def _key(value: float) -> str:
    return f"number {value!r}"


def _meanings(mapping: Mapping[Any, float] | None) -> dict[str, float]:
    meaning = {}
    for word, value in (mapping or {}).items():
        try:
            worth = float(value)
        except (TypeError, ValueError, OverflowError):
            raise OptionError(
                f"rewards: {word!r} maps to {shown(value)}, which is no number."
            ) from None
        text = str(word).strip()
        meaning[text] = worth
        value_of_word = _number(text, ".")
        if value_of_word is not None and not math.isnan(value_of_word):
            meaning[_key(value_of_word)] = worth
    return meaning


def truths(column: Any, where: Where) -> NDArray[np.bool_]:
    """Return a column of yes/no marks as booleans; missing is no.

    Raises
    ------
    DataError
        Naming the first value that is not 0/1, true/false or yes/no.
    """
    values = np.nan_to_num(rewards(column, where), nan=0.0)
    if odd := first_where((values != 0) & (values != 1)):
        raise DataError(
            f"{where(odd.at)}: {values[odd.at]:g} is neither yes nor no; "
            "use 1 or 0, true or false, yes or no."
        )
    return np.asarray(values == 1, dtype=np.bool_)


def fingerprints(column: Any, where: Where) -> NDArray[np.uint64]:
    """Return a fingerprint of each value's text; 0 where it is missing or empty."""
    import pyarrow as pa

    values = simple(column, where)
    if not _is_text(values.type):
        values = values.cast(pa.string())
    parts = []
    for chunk in values.chunks:
        held, begins = characters(chunk)
        prints = text_prints(held, begins.astype(np.int64))
        gone = is_missing(pa.chunked_array([chunk])) | (np.diff(begins) == 0)
        parts.append(np.where(gone, np.uint64(0), prints))
    return np.concatenate([np.empty(0, np.uint64), *parts])


def matrix(
    columns: Sequence[Any], where: Sequence[Where], *, decimal: str = "."
) -> NDArray[np.float64]:
    """Return columns side by side: ``(rows, columns)`` in C order, NaN where missing."""
    found = [_numbers(c, w, decimal) for c, w in zip(columns, where, strict=True)]
    if len({tuple(map(len, chunks)) for chunks in found}) != 1:
        found = [[_joined(chunks)] for chunks in found]
    n_rows, k = sum(map(len, found[0])), len(found)
    out = np.empty((n_rows, k))
    start = 0
    for piece in zip(*found, strict=True):
        rows = out[start : start + len(piece[0])]
        if len(rows) < _SHORT:
            for j, values in enumerate(piece):
                rows[:, j] = values
        else:
            side_by_side([values.astype(np.float64, copy=False) for values in piece], rows)
        start += len(rows)
    return out
