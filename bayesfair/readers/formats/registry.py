"""Which format a source has, by its first bytes or its kind, and who reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.duels.arena import open_json
from bayesfair.readers.files.delimited import is_packed, opened, unreadable
from bayesfair.readers.files.frames import Frame, open_frame
from bayesfair.readers.formats.bandit_feedback import feedback_table, is_feedback
from bayesfair.readers.formats.dsjson import (
    are_decisions,
    check_paths,
    decisions,
    is_dsjson,
    said_of,
)
from bayesfair.readers.formats.json_lines import JsonBlocks, open_blocks
from bayesfair.readers.formats.json_records import (
    not_records,
    plain_value,
    table_of_columns,
    table_of_records,
)
from bayesfair.readers.formats.tables import (
    looks_like_table,
    read_arrow,
    read_orc,
    read_sqlite,
)
from bayesfair.readers.formats.vw_text import costs, looks_like_vw

__all__ = ["FORMATS", "check_format", "in_memory", "looks_of", "record_part"]

FORMATS = {
    "text": "delimited text", "parquet": "Parquet", "json": "JSON", "dsjson": "JSON",
    "vw": "Vowpal Wabbit text", "arrow": "Arrow", "orc": "ORC", "sqlite": "SQLite",
}  # fmt: skip
"""Name of a format -> what its files look like."""


_LONG, _PACKED = 32_000_000, 4_000_000
"""Bytes of JSON, plain and compressed, above which lines and arrays are read block by block."""
_QUICK = 1_000_000  # above these, lines are: Arrow takes most of them, several times as fast


def check_format(name: str | None) -> None:
    """Refuse a format that nobody reads."""
    if name is not None and name not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise OptionError(
            f"format={name!r} is not known. Options: {known}.",
            kind="bad_option", column="format", value=name,
        )  # fmt: skip


def looks_of(path: Path, head: bytes) -> str:
    """Return what a file looks like by its bytes: a value of `FORMATS`.

    Parameters
    ----------
    path : Path
        The file, in UTF-8 if it is text.
    head : bytes
        Its first 16 bytes.
    """
    if head.startswith(b"PAR1"):
        return "Parquet"
    if table := looks_like_table(path, head):
        return table
    try:
        with opened(path) as stream:
            start = bytes(stream.read(1 << 16)).removeprefix(b"\xef\xbb\xbf")
    except unreadable():
        return "delimited text"  # what is wrong is said when it is read
    if start.lstrip().startswith((b"{", b"[{", b"[\n", b"[\r", b"[ ", b"[]")):
        return "JSON"
    vw = looks_like_vw(start.decode("utf-8", errors="replace"))
    return "Vowpal Wabbit text" if vw else "delimited text"


def record_part(
    path: Path, looks: str, asked: str | None, fields: Sequence[str], table: str | None
) -> Frame | JsonBlocks | None:
    """Read a file that is neither delimited text nor Parquet; None if it looks like these."""
    if looks == "JSON":
        return json_part(path, asked, fields)
    if looks == "Vowpal Wabbit text":
        rows, notices = costs(path)
        return _framed(rows, path.name, notices)
    if looks == "Arrow":
        return _framed(read_arrow(path), path.name, ())
    if looks == "ORC":
        return _framed(read_orc(path), path.name, ())
    return _framed(read_sqlite(path, table), path.name, ()) if looks == "SQLite" else None


def json_part(path: Path, asked: str | None, fields: Sequence[str]) -> Frame | JsonBlocks:
    """Read a file of JSON lines, an array of objects or an object of arrays.

    Parameters
    ----------
    path : Path
        The file.
    asked : str or None
        The format that was asked for.
    fields : sequence of str
        Names of columns that may lie deeper.
    """
    source = open_json(path)
    size = path.stat().st_size
    long = size > (_PACKED if is_packed(path) else _LONG)
    first = source.head() if size > min(_QUICK, _LONG) else []
    decided = asked == "dsjson" or (asked is None and are_decisions(first))
    several = len(first) > 1  # one object may be of columns
    if (long and (source.lines or several)) or (source.lines and several and not decided):
        if decided:
            found = open_blocks(source, lambda rows, at: decisions(rows, path.name, at, fields))
            check_paths(fields, found.header, first[0], path.name)
            return replace(found, notices=(said_of(found.n_rows, first[0]),))
        deeper = any("." in field and "{arm}" not in field for field in fields)

        def convert(rows: Sequence[Mapping[str, Any]], at: int) -> Any:
            return _plain_records(rows, path.name, fields, at, plain=asked == "json")

        return open_blocks(source, convert, plain=not deeper)
    records = [record for block in source.records() for record in block]
    if not records:
        raise DataError(f"{path.name} holds no records.", kind="empty", source=path.name)
    notices: tuple[Notice, ...] = ()
    if asked == "dsjson" or (asked is None and are_decisions(records)):
        table = decisions(records, path.name, 0, fields)
        check_paths(fields, table.column_names, records[0], path.name)
        notices = (said_of(len(records), records[0]),)
    elif len(records) == 1 and is_feedback(records[0]) and type(records[0]["action"]) is list:
        plain = {key: plain_value(v, path.name, key, 0) for key, v in records[0].items()}
        table, notices = feedback_table(plain, path.name)
    elif len(records) == 1 and all(isinstance(v, list) for v in records[0].values()):
        table = table_of_columns(records[0], path.name)  # one object of columns
    else:
        table = _plain_records(records, path.name, fields, plain=asked == "json")
    return _framed(table, path.name, notices)


def _plain_records(
    records: Sequence[Mapping[str, Any]], name: str, fields: Sequence[str], before: int = 0,
    *, plain: bool = False,
) -> Any:  # fmt: skip
    """Return records that are no decisions of Vowpal Wabbit as a table, unless asked as `plain`."""
    at = None if plain else next((i for i, r in enumerate(records) if is_dsjson(r)), None)
    if at is not None:
        raise DataError(
            f"row {before + at + 1} of {name} is a decision of Vowpal Wabbit (dsjson), the rows "
            "before are other records. One file holds one format.",
            kind="mixed_formats", row=before + at + 1, source=name,
        )  # fmt: skip
    return table_of_records(records, name, fields, before)


def in_memory(source: Any, fields: Sequence[str]) -> Frame | None:
    """Return bandit feedback, a list of dicts or a dict of lists as a frame; None for others.

    Raises
    ------
    DataError
        If it is a dict or list of something else.
    """
    if is_feedback(source):
        table, notices = feedback_table(source)
        return _framed(table, "bandit feedback", notices)
    if isinstance(source, Mapping):
        columns = {str(k): v for k, v in source.items()}
        values = columns.values()
        flat = all(hasattr(v, "__len__") and not isinstance(v, (str, Mapping)) for v in values)
        if not columns or not flat:
            raise not_records(source, "the dict")
        listed = {k: v.tolist() if hasattr(v, "tolist") else list(v) for k, v in columns.items()}
        return _framed(table_of_columns(listed, "dict of columns"), "dict of columns", ())
    if isinstance(source, (list, tuple)):
        if not source or not all(isinstance(record, Mapping) for record in source):
            raise not_records(source, "the list")
        return _framed(table_of_records(source, "list of records", fields), "list of records", ())
    return None


def _framed(table: Any, name: str, notices: tuple[Notice, ...]) -> Frame:
    frame = open_frame(table)
    assert frame is not None
    return replace(frame, name=name, notices=notices)
