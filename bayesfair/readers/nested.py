"""Probabilities of all arms in one column: records, maps, lists, or their text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.checks import listed
from bayesfair.errors import DataError
from bayesfair.labels import by_label, clean_label, in_order
from bayesfair.readers import numerals
from bayesfair.readers.bridge import plain
from bayesfair.readers.values import numbers, simple

__all__ = ["entries", "keys_of", "literal", "nested_matrix", "parsed"]

_QUOTE = r"""'([^']*)'|"([^"]*)\""""
_QUOTED = re.compile(rf"[\[(]\s*(?:{_QUOTE})(?:\s+(?:{_QUOTE}))+\s*[\])]")

Where = Callable[[int], str]
Entry = dict[str, Any] | list[Any] | None


class _Odd(ValueError):
    """A number that cannot be held."""


def _strict(text: str) -> float:
    value = numerals.number(text)
    if value is None:
        raise _Odd(text)
    return value


def literal(text: str) -> Any:
    """Return what JSON, Python or NumPy text in brackets stands for; None if it is none of these.

    Examples
    --------
    >>> literal('{"a": 0.5, "b": 0.5}'), literal("[0.25 0.75]"), literal("['x', 'y']"), literal("a")
    ({'a': 0.5, 'b': 0.5}, [0.25, 0.75], ['x', 'y'], None)
    """
    text = text.strip()
    if len(text) < 2 or (text[0], text[-1]) not in {("{", "}"), ("[", "]"), ("(", ")")}:
        return None
    try:
        return json.loads(text, parse_float=_strict)
    except _Odd:
        return None
    except (ValueError, RecursionError):
        return _of_other_programs(text)


def _of_other_programs(text: str) -> Any:
    """Return what NumPy or Python means by text in brackets."""
    parts = text[1:-1].replace(",", " ").split()
    if text[0] != "{" and parts:
        found = [numerals.number(part) for part in parts]
        if None not in found:
            return found
        if set(parts) <= {"True", "False"}:
            return [part == "True" for part in parts]
        if _QUOTED.fullmatch(text):  # NumPy separates text by blanks, which Python would join
            return [a or b for a, b in re.findall(_QUOTE, text)]
    try:
        # numbers that only Python reads, and text that it would join, are nothing here
        value = None if re.search(r"\d_\d|['\"]\s*['\"]", text) else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, (tuple, set)):
        return sorted(value, key=str) if isinstance(value, set) else list(value)
    return value


def _entry(value: Any) -> Entry:
    """Return a record as labels and numbers, a list as numbers; None if it is neither."""
    if isinstance(value, str):
        value = literal(value)
    if isinstance(value, dict):
        return by_label(value, "arm", "a record of probabilities")
    if isinstance(value, list):
        if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):  # an Arrow map
            return by_label(value, "arm", "a record of probabilities")
        return value
    return None


def _values(entry: Entry) -> list[Any]:
    return list(entry.values()) if isinstance(entry, dict) else list(entry or ())


def parsed(column: Any) -> list[Entry]:
    """Return the records and lists in a column; None where there is none."""
    return [_entry(value) for value in plain(column).to_pylist()]


def entries(column: Any) -> list[Entry] | None:
    """Return the records or lists of numbers in a column, None if it holds anything else."""
    column = plain(column)
    found: list[Entry] = []
    for value in column.to_pylist():
        entry = _entry(value)
        numeric = all(
            v is None or (isinstance(v, (int, float)) and not isinstance(v, bool))
            for v in _values(entry)
        )
        if (entry is None and value is not None) or not numeric:
            return None
        found.append(entry)
    return found


def keys_of(found: Sequence[Entry]) -> tuple[str, ...] | None:
    """Return the labels that records name, in their order; None for lists."""
    keys = {key for entry in found if isinstance(entry, dict) for key in entry}
    return tuple(in_order(keys)) if keys else None


def nested_matrix(column: Any, where: Where, arms: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers of a column of records or lists, ``(rows, arms)``; NaN = none.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Structs, maps, lists of numbers in the order of the arms, or text of these.
    where : callable
        Names the row at a position of the column, with the column.
    arms : sequence of str
        Labels.

    Raises
    ------
    DataError
        Naming the first row that is no such record, or names another arm.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    out = np.full((len(column), len(arms)), np.nan)
    column = plain(column)
    place = {label: i for i, label in enumerate(arms)}
    if pa.types.is_struct(column.type):
        for i, field in enumerate(column.type):
            j = place.get(clean_label(field.name))
            values = numbers(pc.struct_field(column, [i]), where)
            if j is not None:
                out[:, j] = values
            elif not np.isnan(values).all():
                at = int(np.flatnonzero(~np.isnan(values))[0])
                raise _unknown(where(at), field.name, arms)
        return out
    seen: dict[str, list[float]] = {}
    for at, value in enumerate(simple(column, where).to_pylist()):
        if value is None or value == "":
            continue
        text = value if isinstance(value, str) else ""
        if not text or text not in seen:
            row = _row(value, where, at, place)
            if not text:
                out[at] = row
                continue
            seen[text] = row
        out[at] = seen[text]
    return out


def _row(value: Any, where: Where, at: int, place: dict[str, int]) -> list[float]:
    entry = _entry(value)
    if entry is None:
        raise DataError(
            f"{where(at)}: {str(value)[:80]!r} is no record or list of probabilities. Write it as "
            'JSON, such as {"a": 0.25, "b": 0.75}, or as one column for each arm.',
            kind="bad_probabilities",
            value=str(value)[:80],
        )
    if isinstance(entry, list) and len(entry) != len(place):
        raise DataError(
            f"{where(at)}: {len(entry)} probabilities for {len(place)} arms {listed(place)}. Give "
            "each arm its own, null where it is not on offer.",
            kind="bad_probabilities",
            value=str(value)[:80],
        )
    row = [float("nan")] * len(place)
    pairs = entry.items() if isinstance(entry, dict) else zip(place, entry, strict=True)
    for label, number in pairs:
        if label not in place:
            raise _unknown(where(at), label, list(place))
        if number is not None and (isinstance(number, (bool, str)) or not _is_real(number)):
            raise DataError(
                f"{where(at)}: {number!r} of arm {label!r} is no probability.",
                kind="bad_number",
                value=str(number)[:80],
            )
        row[place[label]] = float("nan") if number is None else float(number)
    return row


def _is_real(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)) or np.isnan(float(value)))
    except (TypeError, ValueError):
        return False


def _unknown(place: str, label: str, arms: Sequence[str]) -> DataError:
    return DataError(
        f"{place}: {label!r} is not among the arms {listed(arms)} that the first rows name. Pass "
        "all of them with arms=...",
        kind="unknown_arm",
        value=label,
    )
