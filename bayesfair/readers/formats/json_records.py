"""JSON lines, an array of objects, lists of dicts and dicts of lists as a table of columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from bayesfair.base.checks import listed
from bayesfair.base.labels import text_of
from bayesfair.base.numerals import number, why_no_number
from bayesfair.errors import DataError

__all__ = ["plain_value", "table_of_columns", "table_of_records"]


def table_of_records(
    records: Sequence[Mapping[str, Any]], name: str, fields: Sequence[str] = (), before: int = 0
) -> Any:
    """Return records as an Arrow table; a key that some of them lack is missing there.

    Parameters
    ----------
    records : sequence of mappings
        Of any depth: lists and records within them become columns of lists and records.
    name : str
        What messages call the source.
    fields : sequence of str
        Names that may lie deeper: ``action.id`` is the key `id` of the record `action`.
    before : int
        Rows that stand before these.

    Raises
    ------
    DataError
        If a record is no mapping, or a number cannot be held; with its row, counted from 1.
    """
    keys: dict[str, None] = {}
    for at, record in enumerate(records, start=before):
        if not isinstance(record, Mapping):
            raise DataError(
                f"row {at + 1} of {name} is {type(record).__name__}, not a record of columns.",
                kind="bad_record",
                row=at + 1,
                source=name,
            )
        keys.update(dict.fromkeys(map(str, record)))
    columns: dict[str, list[Any]] = {key: [r.get(key) for r in records] for key in keys}
    for field in fields:
        deeper = "." in field and "{arm}" not in field and field not in columns
        if deeper and field.split(".")[0] in columns:
            columns[field] = [_inside(record, field.split(".")) for record in records]
    return table_of_columns(columns, name, before)


def table_of_columns(columns: Mapping[str, Sequence[Any]], name: str, before: int = 0) -> Any:
    """Return columns as an Arrow table; values of several kinds become their text.

    `before`: rows that stand before these.

    Raises
    ------
    DataError
        If columns differ in length, or a number cannot be held.
    """
    import pyarrow as pa

    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{key!r} {n}" for key, n in list(lengths.items())[:6])
        raise DataError(f"the columns of {name} differ in length: {said}.", kind="length")
    return pa.table(
        {key: _array(list(values) if _is_plain(values) else [
            plain_value(v, name, key, at) for at, v in enumerate(values, start=before)])
         for key, values in columns.items()}
    )  # fmt: skip


def _inside(record: Any, path: Sequence[str]) -> Any:
    for key in path:
        record = record.get(key) if isinstance(record, Mapping) else None
    return record


_PLAIN = frozenset({str, bool, int, float, type(None)})


def _is_plain(values: Sequence[Any]) -> bool:
    return _PLAIN.issuperset(map(type, values))


def plain_value(value: Any, name: str, key: str, at: int) -> Any:
    """Return a value with the numbers of JSON text as floats; what no float holds is refused."""
    if type(value) in _PLAIN or (type(value) is list and _is_plain(value)):
        return value
    if isinstance(value, Mapping):
        return {str(k): v if type(v) in _PLAIN else plain_value(v, name, key, at)
                for k, v in value.items()}  # fmt: skip
    if isinstance(value, (list, tuple)):
        return [plain_value(v, name, key, at) for v in value]
    if isinstance(value, str):  # a number as the file writes it
        held = number(value)
        if held is None:
            raise DataError(
                f"row {at + 1} of {name}, key {key!r}: {value[:40]!r} is not a number"
                f"{why_no_number(value)}. Correct it, or write it as text.",
                kind="bad_number", row=at + 1, column=key, value=value[:40], source=name,
            )  # fmt: skip
        return held
    return value


def _array(values: list[Any]) -> Any:
    import pyarrow as pa

    kinds = {type(v) for v in values if v is not None}
    if not (kinds & {dict, list} and len(kinds) > 1):
        try:
            return pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
    return pa.array([None if v is None else text_of(v) for v in values], pa.string())


def not_records(value: Any, name: str) -> DataError:
    """Return the error for a dict or list that is neither records nor columns."""
    is_dict = isinstance(value, Mapping)
    inside = listed(value if is_dict else sorted({type(each).__name__ for each in value}), 6)
    paths = not is_dict and any(isinstance(each, (str, os.PathLike)) for each in value)
    remedy = " Several files are read by their folder, or by a glob such as 'logs/*.csv'." * paths
    return DataError(
        f"{name} holds {inside or 'nothing'}: neither a list of records nor a dict of columns of "
        f"equal length.{remedy}",
        kind="bad_record",
        source=name,
    )
