"""Which format a source has, by its first bytes or its kind, and who reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.duels.arena import open_json
from bayesfair.readers.files.delimited import opened, unreadable
from bayesfair.readers.files.frames import Frame, open_frame
from bayesfair.readers.formats.bandit_feedback import feedback_table, is_feedback
from bayesfair.readers.formats.dsjson import decisions, is_dsjson
from bayesfair.readers.formats.json_records import not_records, table_of_columns, table_of_records

__all__ = ["FORMATS", "check_format", "in_memory", "json_part", "looks_like_json"]

FORMATS = {
    "text": "delimited text", "parquet": "Parquet", "json": "JSON", "dsjson": "JSON",
}  # fmt: skip
"""Name of a format -> what its files look like."""


def check_format(name: str | None) -> None:
    """Refuse a format that nobody reads."""
    if name is not None and name not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise OptionError(
            f"format={name!r} is not known. Options: {known}.",
            kind="bad_option", column="format", value=name,
        )  # fmt: skip


def looks_like_json(path: Path) -> bool:
    """Whether a file, decompressed, begins as JSON does."""
    try:
        with opened(path) as stream:
            head = bytes(stream.read(4096)).removeprefix(b"\xef\xbb\xbf").lstrip()
    except unreadable():
        return False
    return head.startswith((b"{", b"[{", b"[\n", b"[\r", b"[ ", b"[]"))


def json_part(path: Path, asked: str | None, fields: Sequence[str]) -> Frame:
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
    records = [record for block in source.records() for record in block]
    if not records:
        raise DataError(f"{path.name} holds no records.", kind="empty", source=path.name)
    notices: tuple[Notice, ...] = ()
    if asked == "dsjson" or (asked is None and is_dsjson(records[0])):
        table, notices = decisions(records, path.name)
    elif len(records) == 1 and all(isinstance(v, list) for v in records[0].values()):
        table = table_of_columns(records[0], path.name)  # one object of columns
    else:
        table = table_of_records(records, path.name, fields)
    return _framed(table, path.name, notices)


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
