"""Tables that programs keep (Parquet, Arrow, ORC, SQLite): the same rows in each, and mutants."""

from __future__ import annotations

import decimal
import io
import math
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import mutants
import originals
import pyarrow as pa
import pyarrow.parquet as pq
import strict_reading as strict
from pyarrow import feather, orc

__all__ = ["TABLES", "mutated_table", "rows_of"]

_FAULTS = (pa.ArrowException, OSError, UnicodeDecodeError, sqlite3.Error, OverflowError)


def _columns() -> dict[str, list[Any]]:
    rows = strict.table(originals.FULL, ("arm", "reward"))
    found: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: [float(v) for v in values] if name.startswith(("p_", "reward")) else values
        for name, values in found.items()
    }


# -- writing ---------------------------------------------------------------------------------------


def _parquet(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def _arrow(columns: dict[str, Any]) -> bytes:
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    return bytes(sink.getvalue())


def _feather(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    feather.write_feather(pa.table(columns), sink, compression="lz4")
    return sink.getvalue()


def _orc(columns: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


def _sqlite(columns: dict[str, Any]) -> bytes:
    lists = [c.to_pylist() if isinstance(c, pa.Array) else c for c in columns.values()]
    quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
    with closing(sqlite3.connect(":memory:")) as file:
        file.execute(f"CREATE TABLE log ({', '.join(quoted)})")
        marks = ", ".join("?" * len(quoted))
        rows = list(zip(*lists, strict=True))
        try:
            file.executemany(f"INSERT INTO log VALUES ({marks})", rows)
        except sqlite3.ProgrammingError as error:  # lists and dates
            raise pa.ArrowInvalid(str(error)) from None
        file.commit()
        return file.serialize()


# -- reading ---------------------------------------------------------------------------------------


def _read_parquet(data: bytes, used: Callable[[str], bool]) -> tuple[list[str], Any]:
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        names = file.schema_arrow.names
        # damage in a column that is not read is none of its business
        read = file.read(columns=[name for name in names if used(name)])
        return names, dict(zip(read.column_names, _values(read), strict=True))


def _read_arrow(data: bytes, used: Callable[[str], bool]) -> tuple[list[str], Any]:
    with pa.ipc.open_file(pa.BufferReader(data)) as file:
        read = file.read_all()
    read.validate(full=True)
    return read.column_names, dict(zip(read.column_names, _values(read), strict=True))


def _read_orc(data: bytes, used: Callable[[str], bool]) -> tuple[list[str], Any]:
    read = orc.ORCFile(pa.BufferReader(data)).read()
    read.validate(full=True)
    return read.column_names, dict(zip(read.column_names, _values(read), strict=True))


def _values(table: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in table.columns]


def _read_sqlite(data: bytes, used: Callable[[str], bool]) -> tuple[list[str], Any]:
    with closing(sqlite3.connect(":memory:")) as file:
        file.deserialize(data)
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        strict.need(len(tables) == 1, "not one table")
        quoted = '"' + tables[0][0].replace('"', '""') + '"'
        cursor = file.execute(f"SELECT * FROM {quoted} ORDER BY rowid")
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
    return names, dict(zip(names, ([row[i] for row in rows] for i in range(len(names))),
                           strict=True))  # fmt: skip


def rows_of(read: Any, data: bytes, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the rows of a table as text, as delimited text would hold them."""

    def used(name: str) -> bool:
        return name.strip() in needed or name.strip().startswith("p_")

    try:
        raw, columns = read(data, used)
    except _FAULTS as error:
        raise strict.Refused(f"damaged: {error}") from None
    names = [name.strip() for name in raw]
    strict.need(len(set(names)) == len(names), "a column twice")
    strict.need(set(needed) <= set(names), "columns are missing")
    held = {name.strip(): values for name, values in columns.items() if used(name)}
    n = len(held[needed[0]])
    strict.need(n > 0, "no rows")
    return [{name: _as_text(values[i]) for name, values in held.items()} for i in range(n)]


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return strict.text_of(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        return None if math.isnan(value) else str(int(value)) if whole else repr(value)
    if isinstance(value, int):
        return str(value)
    raise strict.Refused(f"{type(value).__name__} is neither label nor number")


# -- mutants ---------------------------------------------------------------------------------------

_ODD: tuple[Any, ...] = (
    None, 0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), 1e308, 5e-324, 1 + 1e-9, 1.0000001,
)  # fmt: skip
_TEXT = (
    "",
    " ",
    "north",
    "Cafe\u0301",
    "1",
    "1.0",
    "x",
    "nan",
    "1_0",
    "\u0663",
    "true",
    None,
    "1e400",
)
_KINDS = (
    pa.float32(), pa.float16(), pa.int64(), pa.int8(), pa.uint64(), pa.bool_(), pa.string(),
    pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string()),
    pa.decimal128(12, 6), pa.null(), pa.date32(), pa.timestamp("us"), pa.list_(pa.float64()),
    pa.float64(),
)  # fmt: skip


def _mutated(write: Any, rng: random.Random, data: bytes, kind: str) -> bytes:
    """Return a mutant: its bytes, or the values and types of its columns, written anew."""
    if rng.random() < 0.4:
        return mutants.mutated(rng, data, kind)
    columns: dict[str, Any] = {name: list(values) for name, values in _columns().items()}
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(columns))
        if isinstance(columns[name], list):
            values = columns[name]
            odd = rng.choice(_TEXT if isinstance(values[0], str) else _ODD)
            values[rng.randrange(len(values))] = odd
        what = rng.randrange(5)
        if what == 0:
            del columns[name]
            if not columns:
                return bytes(write({"x": [1]}))
        elif what == 1 and isinstance(columns[name], list):
            columns[name] = [None if v is None else str(v) for v in columns[name]]
        elif what == 2 and isinstance(columns[name], list):
            try:
                columns[name] = pa.array(columns[name]).cast(rng.choice(_KINDS), safe=False)
            except (pa.ArrowException, OverflowError):
                pass
    try:
        return bytes(write(columns))
    except (pa.ArrowException, OverflowError, NotImplementedError):
        return data


def mutated_table(write: Any) -> Callable[[random.Random, bytes, str], bytes]:
    """Return what makes mutants of the tables that `write` writes."""
    return partial(_mutated, write)


TABLES = {
    "parquet": (_parquet, _read_parquet),
    "arrow": (_arrow, _read_arrow),
    "feather": (_feather, _read_arrow),
    "orc": (_orc, _read_orc),
    "sqlite": (_sqlite, _read_sqlite),
}
"""Name of a format, which files end in -> how it is written and strictly read."""

ORIGINALS = {name: write(_columns()) for name, (write, _) in TABLES.items()}
