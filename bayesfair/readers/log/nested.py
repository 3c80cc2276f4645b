"""Probabilities of all arms in one column: records, maps, lists, or their text."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base import numerals
from bayesfair.base.arrow_arrays import plain
from bayesfair.base.checks import listed
from bayesfair.base.json_text import BadJson, NoJson, once_each, strictly
from bayesfair.base.labels import by_label, clean_label, in_order
from bayesfair.errors import ArmError, DataError
from bayesfair.readers.values.stamps import words_of
from bayesfair.readers.values.values import numbers, simple
from bayesfair.typing import Where

__all__ = [
    "CHANCE_WORDS",
    "SLACK",
    "Entry",
    "chances_in",
    "entries",
    "keys_of",
    "meaning",
    "nested_matrix",
    "parsed",
]

CHANCE_WORDS = {
    "p", "pi", "prob", "probs", "proba", "probas", "probability", "probabilities", "propensity",
    "propensities", "pscore", "pscores", "policy", "weight", "weights", "selection",
}  # fmt: skip
"""Words in the names of columns and fields that hold probabilities."""

SLACK = 0.02
"""How far sums of what is meant as probabilities may lie from 1: the reading itself is strict."""

_QUOTE = r"""'([^']*)'|"([^"]*)\""""
_QUOTED = re.compile(rf"[\[(]\s*(?:{_QUOTE})(?:\s+(?:{_QUOTE}))+\s*[\])]")

_NUMPY = re.compile(r"\b(?:np|numpy)\.(?:float|int)\d+\(([^()]*)\)")  # as it shows its numbers
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_LABELS = {"arm", "action", "item", "id", "label", "name", "variant", "key"}

_PAIR = r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)'
_PAIRS = re.compile(rf"{_PAIR}(?:, ?{_PAIR})*", re.DOTALL)  # hstore of Postgres

Entry = dict[str, Any] | list[Any] | None


def meaning(text: str) -> Any:
    """Return what JSON, Python, NumPy or a database means by text in brackets; None if none does.

    A set, whose order says nothing, is one: Python writes a blank behind each comma, Postgres,
    whose lists stand in the same brackets, none.

    Raises
    ------
    BadJson
        If it names a key twice, or holds a number that only some programs read, or none can hold.

    Examples
    --------
    >>> meaning('{"a": 0.5, "b": 0.5}'), meaning("[0.25 0.75]"), meaning("['x', 'y']"), meaning("a")
    ({'a': 0.5, 'b': 0.5}, [0.25, 0.75], ['x', 'y'], None)
    >>> meaning("{0.25,0.75}"), meaning("{a=0.5, b=0.5}"), meaning("{'x', 'y'}") == {"x", "y"}
    ([0.25, 0.75], {'a': 0.5, 'b': 0.5}, True)
    >>> meaning('"a"=>"0.25", "b"=>NULL')
    {'a': 0.25, 'b': None}
    """
    text = text.strip()
    if _PAIRS.fullmatch(text):
        return _of_pairs(re.findall(_PAIR, text))
    if len(text) < 2 or (text[0], text[-1]) not in {("{", "}"), ("[", "]"), ("(", ")")}:
        return None
    try:
        return strictly(text, nan=True)
    except NoJson:
        return _of_other_programs(text)


def _of_pairs(pairs: Sequence[tuple[str, str]]) -> Any:
    """Return the record of an hstore, whose numbers are text; None if one is none."""
    found = [(re.sub(r"\\(.)", r"\1", key), numerals.number(v) if v else None) for key, v in pairs]
    known = sum(value is not None for _, value in found) == sum(bool(v) for _, v in pairs)
    return once_each(found) if known else None


def _of_other_programs(text: str) -> Any:
    """Return what NumPy, Python or a database means by text in brackets."""
    text = _NUMPY.sub(r"\1", text)
    inside = text[1:-1]  # separated by commas, or by blanks alone
    parts = [p.strip() for p in inside.split(",")] if "," in inside else inside.split()
    if text[0] == "{":
        pairs = [part.rpartition("=") for part in parts]  # a map of Spark, Trino or DuckDB
        values = [numerals.number(value) for _, _, value in pairs]
        if pairs and None not in values and all(key and sign for key, sign, _ in pairs):
            return once_each([(key, v) for (key, *_), v in zip(pairs, values, strict=True)])
        found = [numerals.number(part) for part in parts if part != "NULL"]
        if " " not in inside and None not in found:  # a list of Postgres
            return [None if part == "NULL" else numerals.number(part) for part in parts]
    elif parts:
        found = [numerals.number(part) for part in parts]
        if None not in found:
            return found
        if set(parts) <= {"True", "False"}:
            return [part == "True" for part in parts]
        if _QUOTED.fullmatch(text):  # NumPy separates text by blanks, which Python would join
            return [a or b for a, b in re.findall(_QUOTE, text)]
    # text that Python would join is nothing here
    return None if re.search(r"['\"]\s*['\"]", text) else _of_python(text)


def _of_python(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python, about how the text is written
            tree = ast.parse(text, mode="eval")
        return _python(tree.body, text.encode())
    except BadJson:
        raise
    except (_NoLiteral, SyntaxError, MemoryError, RecursionError, ValueError):
        return None  # ValueError: a null byte, a number of thousands of digits


class _NoLiteral(Exception):
    """Python text that is more than a value."""


def _python(node: ast.expr, text: bytes) -> Any:
    """Return the value that Python's text writes; numbers are those of every other format."""
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise _NoLiteral
        keys = [_key(_python(k, text)) for k in node.keys if k is not None]
        return once_each(list(zip(keys, (_python(v, text) for v in node.values), strict=True)))
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_python(v, text) for v in node.elts]
    if isinstance(node, ast.Set):
        return {_key(_python(v, text)) for v in node.elts}
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bool, type(None))):
        return node.value
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    if not isinstance(value, ast.Constant) or node.lineno != 1 or node.end_lineno != 1:
        raise _NoLiteral
    written = text[node.col_offset : node.end_col_offset].decode("utf-8", errors="replace")
    held = numerals.number(written)
    if held is None:
        reason = numerals.why_no_number(written)
        raise BadJson(f"{written[:40]!r} is not a number{reason}")
    whole = isinstance(value.value, int) and abs(held) < 2**53
    return int(held) if whole else held


def _key(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        raise _NoLiteral
    return value


def _entry(value: Any) -> Entry:
    """Return a record as labels and numbers, a list as numbers; None if it is neither.

    Raises
    ------
    BadJson
        If it names a label twice.
    """
    if isinstance(value, str):
        value = meaning(value)
    if isinstance(value, set):
        raise BadJson("a set has no order, so it does not say whose its numbers are")
    if isinstance(value, list) and value:
        if all(isinstance(v, dict) for v in value):
            value = _pairs(value) or value
        if all(_is_pair(v) for v in value):  # an Arrow map
            value = once_each(value)
    if isinstance(value, dict):
        try:
            return by_label(value, "arm", "a record of probabilities")
        except ArmError as error:
            raise BadJson(str(error).rstrip(".")) from None
    return value if isinstance(value, list) else None


def _pairs(records: Sequence[dict[str, Any]]) -> list[tuple[Any, Any]] | None:
    """Return label and number of each of some records, such as {"arm": "a", "p": 0.5}."""
    keys = set(records[0])
    chance = [key for key in keys if words_of(key) & CHANCE_WORDS]
    label = [key for key in keys.difference(chance) if words_of(key) & _LABELS or len(keys) == 2]
    if len(chance) != 1 or len(label) != 1 or any(set(record) != keys for record in records):
        return None
    return [(record[label[0]], record[chance[0]]) for record in records]


def chances_in(value: Any) -> bool:
    """Whether text, a list or a record holds numbers that sum to 1, however it is written."""
    if isinstance(value, str):
        found = [float(number) for number in _NUMBER.findall(value)]
    elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        return any(chances_in([v.get(key) for v in value]) for key in value[0])
    else:
        held = value.values() if isinstance(value, dict) else value
        held = held if isinstance(held, list) or isinstance(value, dict) else ()
        found = [float(v) for v in held if isinstance(v, (int, float)) and not isinstance(v, bool)]
    inside = len(found) > 1 and all(0 <= v <= 1 for v in found)
    return inside and abs(sum(found) - 1) <= SLACK and not set(found) <= {0.0, 1.0}


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _or_none(value: Any) -> Entry:
    """Return the same, None where it names a label twice: said with its row when it is read."""
    try:
        return _entry(value)
    except BadJson:
        return None


def _values(entry: Entry) -> list[Any]:
    return list(entry.values()) if isinstance(entry, dict) else list(entry or ())


def parsed(column: Any) -> list[Entry]:
    """Return the records and lists in a column; None where there is none.

    Raises
    ------
    BadJson
        If each row is refused, as the first of them is.
    """
    values = plain(column).to_pylist()
    found = [_or_none(value) for value in values]
    if values and all(entry is None for entry in found):
        _entry(next((v for v in values if v is not None), None))
    return found


def entries(column: Any) -> list[Entry] | None:
    """Return the records or lists of numbers in a column; None where there is none in a row.

    None if no strict majority of its values is one: it then holds something else.
    """
    column = plain(column)
    found: list[Entry] = []
    broken = 0
    for value in column.to_pylist():
        entry = _or_none(value)
        if entry is not None and not all(map(_is_number, _values(entry))):
            entry = None
        broken += entry is None and value is not None and value != ""
        found.append(entry)
    held = sum(entry is not None for entry in found)
    return found if held > broken or not broken else None


def _is_number(value: Any) -> bool:
    """Whether it is a number, missing, or the text of a number (of a field with a broken row)."""
    if isinstance(value, str):
        return numerals.number(value) is not None
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def keys_of(found: Sequence[Entry]) -> tuple[str, ...] | None:
    """Return the labels that records name, in their order; None for lists."""
    keys = {key for entry in found if isinstance(entry, dict) for key in entry}
    return tuple(in_order(keys)) if keys else None


def nested_matrix(
    column: Any,
    where: Where,
    arms: Sequence[str],
    labels: Sequence[Sequence[str] | None] | None = None,
    *,
    lists_in_order: bool = False,
) -> NDArray[np.float64]:
    """Return the numbers of a column of records or lists, ``(rows, arms)``; NaN = none.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Structs, maps, lists of numbers in the order of the arms, or text of these.
    where : callable
        Names the row at a position of the column, with the column.
    arms : sequence of str
        Labels.
    labels : sequence of sequences of str, optional
        Whose the numbers of the list in each row are, where they are as many.
    lists_in_order : bool
        Whether lists without labels are in the order of `arms`; else they are refused.

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
        _once_each_arm(column.type, where)
        for i, field in enumerate(column.type):
            j = place.get(clean_label(field.name))
            values = numbers(pc.struct_field(column, [i]), where)
            if j is not None:
                out[:, j] = values
            elif not np.isnan(values).all():
                at = int(np.flatnonzero(~np.isnan(values))[0])
                raise _unknown(where(at), field.name, arms)
        return out
    seen: dict[Any, list[float]] = {}
    for at, value in enumerate(simple(column, where).to_pylist()):
        if value is None or value == "":
            continue
        own = labels[at] if labels is not None else None
        key = (value, None if own is None else tuple(own)) if isinstance(value, str) else None
        row = seen.get(key) if key else None
        if row is None:
            row = _row(value, where, at, place, own, lists_in_order)
            if key:
                seen[key] = row
        out[at] = row
    return out


def _once_each_arm(kind: Any, where: Where) -> None:
    """Refuse records with two fields of one arm."""
    try:
        once_each([(clean_label(field.name), None) for field in kind])
    except BadJson as error:
        raise DataError(f"{where(0)}: {error}.", kind="duplicate_field") from None


def _row(
    value: Any,
    where: Where,
    at: int,
    place: dict[str, int],
    labels: Sequence[str] | None,
    lists_in_order: bool,
) -> list[float]:
    why = ""
    try:
        entry = _entry(value)
    except BadJson as error:
        entry, why = None, f" ({error})"
    if isinstance(entry, list) and labels is not None and len(labels) == len(entry):
        if len(set(labels)) < len(labels):
            raise DataError(
                f"{where(at)}: the labels beside it, {listed(labels)}, name an arm twice.",
                kind="duplicate_field",
            )
        entry = dict(zip(labels, entry, strict=True))
    if entry is None:
        raise DataError(
            f"{where(at)}: {str(value)[:80]!r} is no record or list of probabilities{why}. Write "
            "it as "
            'JSON, such as {"a": 0.25, "b": 0.75}, or as one column for each arm.',
            kind="bad_probabilities",
            value=str(value)[:80],
        )
    if isinstance(entry, list) and len(entry) != len(place):
        raise DataError(
            f"{where(at)}: {len(entry)} probabilities for {len(labels or place)} arms "
            f"{listed(labels or place)}. Give each arm its own, null where it is not on offer.",
            kind="bad_probabilities",
            value=str(value)[:80],
        )
    if isinstance(entry, list) and labels is None and not lists_in_order:
        raise DataError(
            f"{where(at)}: a list, which does not say whose its numbers are, where other rows have "
            'records or labels beside them. Write it as they are, such as {"a": 0.25, "b": 0.75}.',
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
    except (TypeError, ValueError, OverflowError):
        return False


def _unknown(place: str, label: str, arms: Sequence[str]) -> DataError:
    return DataError(
        f"{place}: {label!r} is not among the arms {listed(arms)} that the first rows name. Pass "
        "all of them with arms=...",
        kind="unknown_arm",
        value=label,
    )
