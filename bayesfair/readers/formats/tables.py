"""Tables that other programs keep: Arrow and Feather, ORC, SQLite; each becomes an Arrow table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from bayesfair.base.checks import did_you_mean, listed
from bayesfair.errors import DataError
from bayesfair.readers.formats.json_records import table_of_columns

__all__ = ["looks_like_table", "read_arrow", "read_orc", "read_sqlite"]


def looks_like_table(path: Path, head: bytes) -> str | None:
    """Return which of these a file is, by its first and last bytes; None for others."""
    if head.startswith(b"SQLite format 3\0"):
        return "SQLite"
    if head.startswith((b"ARROW1\0\0", b"\xff\xff\xff\xff")):  # a file, or a stream
        return "Arrow"
    if head.startswith(b"ORC"):  # letters that a header of text may begin with
        with path.open("rb") as file:
            file.seek(-min(path.stat().st_size, 8), 2)
            return "ORC" if b"ORC" in file.read() else None
    return None


def read_arrow(path: Path) -> Any:
    """Return an Arrow file, which Feather's second version is, or a stream that was kept.

    Raises
    ------
    DataError
        If it is damaged.
    """
    import pyarrow as pa
    from pyarrow import feather

    try:
        with path.open("rb") as file:
            if file.read(4) == b"\xff\xff\xff\xff":
                return _whole(pa.ipc.open_stream(pa.memory_map(str(path))).read_all())
        return _whole(feather.read_table(path, memory_map=True))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(path, "Arrow", error) from error


def read_orc(path: Path) -> Any:
    """Return an ORC file.

    Raises
    ------
    DataError
        If it is damaged, or this build of pyarrow reads no ORC.
    """
    import pyarrow as pa

    try:
        from pyarrow import orc
    except ImportError as error:
        raise DataError(
            f"{path.name} is ORC, which this build of pyarrow does not read ({error}). Write it as "
            "Parquet.", kind="unreadable", source=path.name,
        ) from error  # fmt: skip
    try:
        return _whole(orc.ORCFile(path).read())
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(path, "ORC", error) from error


def _whole(table: Any) -> Any:
    """Return a table whose offsets lie within its buffers and whose text is text.

    Readers of these formats believe the file: places outside would end the process.
    """
    table.validate(full=True)
    return table


def read_sqlite(path: Path, asked: str | None) -> Any:
    """Return a table or view of a SQLite file, in the order of its rows.

    Parameters
    ----------
    path : Path
        The file, which is opened for reading alone.
    asked : str or None
        The table; None = the only one.

    Raises
    ------
    DataError
        If there is no such table, there are several to choose from, or the file is damaged.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
            (state,) = file.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok" or _is_cut(path):  # a cut page would be read as rows of nothing
                raise sqlite3.DatabaseError(
                    "its last page is cut"
                    if state == "ok"
                    else state.removeprefix("*** in database main ***").strip()
                )
            found = dict(file.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
            ).fetchall())  # fmt: skip
            name = _table(path, list(found), asked)
            quoted = '"' + name.replace('"', '""') + '"'
            rows = _rows(file, quoted, ordered=found[name] == "table")
            names = [column[0] for column in rows.description]
            values = rows.fetchall()
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise _damaged(path, "SQLite", error) from error
    columns = zip(*values, strict=True) if values else ([] for _ in names)
    pairs = list(zip(names, map(list, columns), strict=True))
    if len(dict(pairs)) < len(pairs):
        raise DataError(
            f"table {name!r} of {path.name} names a column more than once: {listed(names, 12)}.",
            kind="duplicate_field", source=path.name,
        )  # fmt: skip
    return table_of_columns(dict(pairs), path.name)


def _is_cut(path: Path) -> bool:
    """Whether a file does not end where one of its pages does."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
    return path.stat().st_size % (size if size > 1 else 1 << 16) > 0


def _rows(file: sqlite3.Connection, quoted: str, *, ordered: bool) -> sqlite3.Cursor:
    if ordered:
        try:
            return file.execute(f"SELECT * FROM {quoted} ORDER BY _rowid_")
        except sqlite3.OperationalError:
            pass  # a table without numbers of its rows
    return file.execute(f"SELECT * FROM {quoted}")


def _table(path: Path, names: list[str], asked: str | None) -> str:
    if asked is None and len(names) == 1:
        return names[0]
    if asked is not None and asked in names:
        return asked
    if not names:
        why = f"{path.name} is a SQLite file without a table."
    elif asked is None:
        why = f"{path.name} holds {len(names)} tables: {listed(names, 12)}. Name one with table=..."
    else:
        near = did_you_mean(asked, names)
        why = f"{path.name} has no table {asked!r}. Its tables are {listed(names, 12)}.{near}"
    raise DataError(why, kind="no_table", column="table", value=asked, source=path.name)


def _damaged(path: Path, what: str, error: Exception) -> DataError:
    return DataError(
        f"{path.name} starts as {what}, but cannot be read ({' '.join(str(error).split())[:200]}). "
        "Copy it again or write it anew.", kind="unreadable", source=path.name,
    )  # fmt: skip
