"""Open a source of rows, be it delimited text, Parquet or a data frame.

Every source gives the same: a header, record batches in constant memory, and whole tables. Rows are
numbered as a reader of the source would: from 1, the header of a text file being row 1.
"""

from __future__ import annotations

import bisect
import codecs
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice, unique
from bayesfair.base.options import LOG_OPTIONS, refuse_without_effect
from bayesfair.errors import BayesfairError, DataError, OptionError
from bayesfair.readers.files.dask_frames import dask_parts
from bayesfair.readers.files.delimited import Delimited, compression_of, open_delimited
from bayesfair.readers.files.fields import WithFields, with_fields
from bayesfair.readers.files.foreign import foreign
from bayesfair.readers.files.frames import open_frame
from bayesfair.readers.files.parquet import ParquetPart, open_parquet
from bayesfair.readers.files.paths import files_of, kind_of
from bayesfair.readers.files.standard_input import as_utf8, kept
from bayesfair.readers.formats.registry import (
    FORMATS,
    check_format,
    in_memory,
    looks_of,
    record_part,
)
from bayesfair.typing import Where

__all__ = ["Part", "Source", "no_rows", "open_source"]


class Part(Protocol):
    """One file or frame whose columns can be read, in whole or batch by batch."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def header(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def n_rows(self) -> int | None: ...  # noqa: D102
    def holds_text(self, column: str) -> bool: ...  # noqa: D102
    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]: ...  # noqa: D102
    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any: ...  # noqa: D102
    def sample(self, columns: Sequence[str], n: int) -> Any: ...  # noqa: D102


@dataclass(frozen=True)
class Source:
    """A named sequence of parts with the same columns.

    Attributes
    ----------
    name : str
        What errors and reports call it.
    header : tuple of str
        Column names of all parts together, trimmed, those of the first part first.
    first_row : int
        Number of the first record: 2 after the header of a text file, else 1.
    parts : tuple of Part
        Files in the order of their names, or one frame.
    notices : tuple of str
        What a reader of a report has to know about the source.
    """

    name: str
    header: tuple[str, ...]
    first_row: int
    parts: tuple[Part, ...]
    notices: tuple[str, ...] = ()
    _starts: list[int] = field(default_factory=list, compare=False, repr=False)

    @property
    def n_rows(self) -> int | None:
        """Number of records if the source knows it without being read."""
        counts = [part.n_rows for part in self.parts]
        return None if None in counts else sum(n for n in counts if n is not None)

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield Arrow record batches of the columns, part by part.

        Columns named in `labels` may come dictionary-encoded, as files store them.
        """
        row = self.first_row
        for i, part in enumerate(self.parts):
            self._check(part, columns)
            self._begins(i, row)
            for batch in part.batches(columns, labels):
                row += batch.num_rows
                yield batch

    def tables(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield one Arrow table of the columns per part."""
        row = self.first_row
        for i, part in enumerate(self.parts):
            self._check(part, columns)
            self._begins(i, row)
            table = part.table(columns, labels)
            row += table.num_rows
            yield table

    def whole(self) -> tuple[Any, Callable[[str], tuple[Any, Where]]]:
        """Return all of it as one Arrow table, and what gives a column and where its rows stand."""
        import pyarrow as pa

        table = pa.concat_tables(self.tables(list(self.header)), promote_options="permissive")

        def column(name: str) -> tuple[Any, Where]:
            return table.column(
                name
            ), lambda at: f"row {self.first_row + at} of {self.name}, column {name!r}"

        return table, column

    def with_numbers(self, columns: Sequence[str]) -> Source:
        """Return the source, whose text is converted to numbers in these columns where it can be.

        Where it cannot, from some row on, columns go on as text.
        """
        parts = tuple(
            replace(part, numbers=tuple(columns)) if isinstance(part, Delimited) else part
            for part in self.parts
        )
        return replace(self, parts=parts)

    def free(self, pattern: str, labels: Sequence[str]) -> str:
        """Return the pattern, with underscores ahead of it where a column has its name already."""
        while any(pattern.replace("{arm}", label) in self.header for label in labels):
            pattern = f"_{pattern}"
        return pattern

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return at most `n` of the first rows, None if they cannot be had without faults.

        They are those of the first part that has most of the columns. A column that it lacks, or
        that cannot be read by itself, is empty.
        """
        import pyarrow as pa

        part = max(self.parts, key=lambda part: len(set(columns) & set(part.header)))
        here = [c for c in columns if c in part.header]
        found = part.sample(here, n)
        if found is None:
            each = {c: part.sample([c], n) for c in here}
            whole = [table for table in each.values() if table is not None]
            if not whole:
                return None
            rows = min(len(table) for table in whole)
            found = pa.table({
                c: pa.nulls(rows) if table is None else table.column(c).slice(0, rows)
                for c, table in each.items()
            })  # fmt: skip
        for column in columns:
            if column not in here:
                found = found.append_column(column, pa.nulls(found.num_rows))
        return found.select(list(columns)).slice(0, n)

    def holds_text(self, columns: Sequence[str]) -> bool:
        """Whether one of the columns is text, or may be, before a row is read.

        A name that is no column is that of a field within one, which holds numbers.
        """
        return any(
            part.holds_text(column)
            for part in self.parts
            for column in columns
            if column in part.header
        )

    def split(self, columns: Sequence[str]) -> list[tuple[Source, int]]:
        """Return a source for each partition, and the rows of its own file that precede it."""
        found = []
        for part in self.parts:
            self._check(part, columns)
            ranges: Any = [(part, 0)]
            if isinstance(part, (ParquetPart, WithFields)):
                ranges = part.ranges()
            found += [
                (Source(part.name, self.header, self.first_row, (own,)), before)
                for own, before in ranges
            ]
        return found

    def _begins(self, i: int, row: int) -> None:
        """Remember the row at which a part begins; every pass over the source finds the same."""
        if len(self._starts) == i:
            self._starts.append(row)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Let errors that name a row name its file and line as well, where these are not the same.

        Only the parts that were begun can be meant, so this costs nothing while all is well.
        """
        try:
            yield
        except BayesfairError as error:
            if error.args:
                pattern = rf"\brow (\d+) of {re.escape(self.name)}(?![\w.])"
                error.args = (re.sub(pattern, self._located, str(error.args[0])), *error.args[1:])
            raise

    def _located(self, found: re.Match[str]) -> str:
        row = int(found.group(1))
        i = bisect.bisect_right(self._starts, row) - 1
        if i < 0:
            return found.group(0)
        part, own = self.parts[i], row - self._starts[i] + self.first_row
        part = getattr(part, "part", part)  # beside a joined column
        notes = [f"row {own} of {part.name}"] if len(self.parts) > 1 else []
        line = part.line_of(own) if isinstance(part, Delimited) else None
        notes += [f"line {line}"] if line not in (None, own) else []
        return f"{found.group(0)} [{', '.join(notes)}]" if notes else found.group(0)

    def _check(self, part: Part, columns: Sequence[str]) -> None:
        lost = [c for c in columns if c not in part.header]
        if lost:
            other = next(p.name for p in self.parts if lost[0] in p.header)
            raise DataError(
                f"{part.name} has no column {lost[0]!r}, which {other} has. All files of one log "
                f"need the same columns (leave the probability of an arm that was not on offer "
                f"empty); it has {listed(part.header)}."
            )


def no_rows(source: Source, left_out: int = 0) -> DataError:
    """Return the error for a source without rounds."""
    only = " but the header" if source.first_row == 2 else ""
    if left_out:
        only = f" left: all {left_out} were left out (missing='drop')"
    return DataError(f"{source.name} has no rows{only}; there is nothing to audit.")


def open_source(
    source: Any,
    *,
    delimiter: str | None = None,
    wanted: Sequence[str] = (),
    fields: Sequence[str] = (),
    format: str | None = None,
    table: str | None = None,
) -> Source:
    """Open a path, folder, glob or data frame without reading its rows.

    Parameters
    ----------
    source : path, data frame, list or dict
        Delimited text (also compressed), JSON, Vowpal Wabbit's text, Parquet, Arrow, ORC, SQLite
        (a file, a folder, a glob), ``-`` for standard input, an eager or lazy frame of pandas,
        Polars, Arrow, Dask or DuckDB, records.
    delimiter : str, optional
        Of text files; None = detected.
    wanted : sequence of str
        Column names that settle an ambiguous delimiter.
    fields : sequence of str
        Names that may lie deeper in records.
    format : str, optional
        One of `FORMATS`; None = detected.
    table : str, optional
        Of a SQLite file; None = the only one.

    Raises
    ------
    DataError
        If there is no such file, or it is empty, truncated, or of another kind.
    OptionError
        If `source` is neither a path nor a data frame.
    """
    check_format(format)
    if hasattr(source, "read") and not isinstance(source, (str, os.PathLike)):
        source = kept(type(source).__name__, source)
    if (partitions := dask_parts(source)) is not None:
        _refuse("data frame", format=format, delimiter=delimiter, table=table)
        return Source("data frame", partitions[0].header, 1, partitions)
    if not isinstance(source, (str, os.PathLike)):
        frame = open_frame(source) or in_memory(source, fields)
        if frame is None:
            raise OptionError(
                f"source must be a path, a data frame (pandas, Polars, Arrow, DuckDB) or records, "
                f"got {type(source).__name__}."
            )
        if format is not None:
            raise OptionError(
                f"format={format!r} has no effect on {frame.name}: it is that of a file. Leave "
                "format= out.",
                kind="unused_option",
                column="format",
            )
        _refuse(frame.name, delimiter=delimiter, table=table)
        own = with_fields(frame, fields)
        return Source(frame.name, own.header, 1, (own,), frame.notices)
    text = os.fspath(source)
    files, base = files_of(text)
    try:
        opened = (_part(file, base, delimiter, wanted, fields, format, table) for file in files)
        parts = tuple(with_fields(part, fields) for part in opened)
    except DataError as error:
        if base is not None:  # nobody named this file
            error.args = (
                f"{error} It lies in the folder {text!r}, which is read as one log of "
                f"{counted(len(files), 'file')}: name the file, or a glob.",
                *error.args[1:],
            )
        raise
    if not any(isinstance(part, Delimited) for part in parts):
        _refuse(parts[0].name, delimiter=delimiter)
    name = files[0].name if text == "-" else Path(text).name or text
    first_row = 2 if isinstance(parts[0], Delimited) else 1
    notices: tuple[str, ...] = _together([Notice.of(n) for p in parts for n in _said(p)])
    if len(parts) > 1:
        notices = (
            *notices,
            Notice(
                f"{len(parts)} files were read as one log, in the order of their names: "
                f"{listed([p.name for p in (parts[0], parts[-1])])} are the first and the last; "
                "rows are counted through all of them.",
                kind="several_files",
                n=len(parts),
            ),
        )
    header = dict.fromkeys(column for part in parts for column in part.header)
    return Source(name, tuple(header), first_row, parts, notices)


def _said(part: Part) -> tuple[str, ...]:
    return getattr(part, "notices", ())


def _together(said: Sequence[Notice]) -> tuple[Notice, ...]:
    """Return each sentence once, with the counts of all files that it was said of."""
    n: dict[str, float] = {}
    for note in said:
        n[str(note)] = n.get(str(note), 0) + (note.n or 0)
    return tuple(Notice.of({**note.to_dict(), "n": n[str(note)] or None}) for note in unique(said))


def _refuse(what: str, **options: Any) -> None:
    asked = {name: value for name, value in options.items() if value is not None}
    refuse_without_effect(asked, (), LOG_OPTIONS, what)


def _part(
    path: Path,
    base: Path | None,
    delimiter: str | None,
    wanted: Sequence[str],
    fields: Sequence[str],
    format: str | None,
    table: str | None,
) -> Part:
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        remedy = "Change its permissions, or copy it to where it may be read."
        raise DataError(f"{path.name} cannot be opened: {error.strerror}. {remedy}") from error
    if not head:
        raise DataError(f"{path.name} is empty (0 bytes); expected a header and at least one row.")
    if what := foreign(head):
        raise DataError(
            f"{path.name} is {what}, which is not read; export the log as CSV, JSON lines or "
            "Parquet.",
            kind="unknown_format",
            value=what,
            source=path.name,
        )
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        path = as_utf8(path)
    looks = looks_of(path, head)
    if format == "vw" and looks == FORMATS["text"]:  # words that are not told apart
        looks = FORMATS["vw"]
    if format is not None and FORMATS[format] != looks:
        raise DataError(
            f"{path.name} looks like {looks}, not like {FORMATS[format]} (format={format!r}). "
            "Leave format= out, or name what it is.",
            kind="wrong_format",
            column="format",
            source=path.name,
        )
    if looks != FORMATS["sqlite"]:
        _refuse(path.name, table=table)
    if looks == "Parquet":
        return open_parquet(path, base)
    if (found := record_part(path, looks, format, fields, table)) is not None:
        return found
    if kind_of(path) == "Parquet" and compression_of(head) is None:
        raise DataError(
            f"{path.name} is called Parquet but does not start as one; check what wrote it, or "
            "rename it if it is text."
        )
    return open_delimited(path, path.name, delimiter=delimiter, wanted=wanted)
