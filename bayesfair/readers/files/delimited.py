"""Delimited text files: detect the delimiter, read every column as text, name the row that fails.

Text is kept as text on purpose: a label "001", "NA" or "None" is what it says, and only the empty
field is missing. Columns that hold numbers as they stand are converted while they are parsed, which
costs half; any other is converted later, where a message can name the row.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesfair.base.checks import listed
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.files.blocks import PIECE, BlockParser
from bayesfair.readers.files.delimiter import DELIMITERS, detected, header_of
from bayesfair.readers.files.foreign import other_format
from bayesfair.readers.files.headers import column_names
from bayesfair.readers.files.quotes import LONGEST, QuoteWatch, misquoted
from bayesfair.readers.files.read_ahead import ahead
from bayesfair.readers.files.records import RecordTooLong, whole_records
from bayesfair.readers.files.xz import XzStream

__all__ = ["Delimited", "compression_of", "is_packed", "open_delimited", "opened", "unreadable"]

_NOTE = re.compile(r'"?sep=(?P<mark>[^"\r\n])"?[;,\t|]*(?:\r\n|\n|\r)', re.IGNORECASE)
_SAMPLE = 1 << 20  # bytes; a header of several thousand columns fits
_BLOCK = 1 << 23  # for several threads
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}


def compression_of(head: bytes) -> str | None:
    """Return the compression that a file's first bytes announce."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def is_packed(path: Path) -> bool:
    """Whether a file is compressed."""
    with path.open("rb") as file:
        return compression_of(file.read(8)) is not None


def opened(path: Path) -> Any:
    """Return a readable stream of the decompressed bytes of ``path``."""
    import pyarrow as pa

    with path.open("rb") as file:
        compression = compression_of(file.read(8))
    if compression == "xz":  # the one that Arrow cannot read itself
        return io.BufferedReader(XzStream(path))
    return pa.input_stream(str(path), compression=compression)


def unreadable() -> tuple[type[Exception], ...]:
    """Return what reading, decompressing and parsing raise for a file that is not as it should."""
    import lzma

    import pyarrow as pa

    return (pa.ArrowInvalid, OSError, EOFError, lzma.LZMAError)


@dataclass(frozen=True)
class Delimited:
    """One delimited text file whose header has been read.

    Attributes
    ----------
    path : Path
        Where it lies.
    name : str
        What messages call it.
    header : tuple of str
        Column names, trimmed.
    delimiter : str
        One character.
    numbers : tuple of str
        Columns that come as numbers, as long as all of them are plain ones.
    """

    path: Path
    name: str
    header: tuple[str, ...]
    delimiter: str
    numbers: tuple[str, ...] = ()
    n_rows: int | None = None  # not known before the file has been read
    before: int = 0  # bytes of a note for spreadsheets (``sep=;``) in front of the header

    def holds_text(self, column: str) -> bool:
        """Whether a column is text: here every one is."""
        return column in self.header

    def batches(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Iterator[Any]:
        """Yield record batches of the columns as text (`labels` encoded), in constant memory."""
        for table in self._tables(columns, labels, self.numbers):
            yield from table.to_batches()

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns as text."""
        import pyarrow as pa

        found = list(self._tables(columns, labels, self.numbers))
        if any(table.schema != found[0].schema for table in found):
            found = list(self._tables(columns, labels))
        return pa.concat_tables(found) if found else self._parser(columns, labels).empty()

    def sample(self, columns: Sequence[str], n: int) -> Any:
        """Return the first rows as text, as many as are certain to be whole; None if not readable.

        What is wrong with them is left to the reading, which knows the row. There may be more than
        `n`.
        """
        import pyarrow as pa

        watch = QuoteWatch(self.delimiter)
        head = io.BytesIO(_head(self.path, self.name)[self.before :])
        try:
            block = next(whole_records(head, watch, _SAMPLE), b"")
            return self._parser(columns).table(block, first=True)
        except pa.ArrowInvalid:
            return None

    def _parser(
        self, columns: Sequence[str], labels: Sequence[str] = (), numbers: Sequence[str] = ()
    ) -> BlockParser:
        return BlockParser(self.header, self.delimiter, columns, labels, numbers)

    def _tables(
        self, columns: Sequence[str], labels: Sequence[str], numbers: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield the records block by block, each parsed from memory.

        A parser that reads ahead from a file would still be calling Python when a record is
        refused and the interpreter ends; and it would not know the number of that record.
        """
        watch, parser = QuoteWatch(self.delimiter), self._parser(columns, labels, numbers)
        size = _BLOCK if parser.threads else min(_BLOCK, PIECE)
        row = 0  # the last one before the block; the header is row 1
        try:
            with (
                self._opened() as stream,
                closing(ahead(whole_records(stream, watch, size))) as blocks,
            ):
                for block in blocks:
                    table = parser.table(block, first=row == 0)
                    row += table.num_rows + (row == 0)
                    yield table
        except unreadable() as error:
            raise self._explained(error, row) from error
        except RecordTooLong:
            self._check_quotes(suspect=watch.suspect or watch.open)
            raise DataError(
                f"{self.name}: a record behind row {row} is longer than {LONGEST >> 20} MB. "
                "Records end with a line break; check the file, or export it anew.",
                kind="record_too_long",
                source=self.name,
            ) from None
        self._check_quotes(suspect=watch.suspect)

    def _opened(self) -> Any:
        """Return the bytes from the header on."""
        stream = opened(self.path)
        stream.read(self.before)
        return stream

    def _check_quotes(self, *, suspect: bool) -> None:
        """Refuse a quote that is never closed, and text behind a closing quote."""
        if not suspect:
            return
        with self._opened() as stream:
            found = misquoted(stream, self.delimiter)
        if found is not None:
            raise self._bad_quote(found.row, found.field, found.kind)

    def _bad_quote(self, row: int | None, line: str, kind: str) -> DataError:
        place = self.name if row is None else f"row {row} of {self.name}"
        twice = 'a quote inside a quoted field is written twice, "".'
        if other := other_format(line):
            text = f"{place} is not delimited text as the rows before: {line[:80]!r}.{other}"
        elif kind == "blank":
            text = (
                f"{place} has blanks before an opening double quote, which then is no quote: "
                f"{line[:80]!r}. Remove the blanks, or the quotes."
            )
        elif kind == "open":
            text = (
                f"{place} opens a double quote that is never closed: {line[:80]!r}. Close or "
                f"remove it ({twice[:-1]})."
            )
        else:
            text = (
                f"{place} has text behind a closing double quote: {line[:80]!r}. Quote the whole "
                f"field; {twice}"
            )
        return DataError(text, kind="bad_quote", row=row, value=line[:80], source=self.name)

    def line_of(self, row: int) -> int | None:
        """Return the line on which a row begins: empty lines are no rows, a row may have several.

        None if this cannot be found out. Slow, so only for messages.
        """
        start = 2 if self.before else 1
        count, line = 0, start
        try:
            with self._opened() as stream:
                text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
                reader = csv.reader(text, delimiter=self.delimiter)
                for record in reader:
                    count += bool(record)
                    if count == row:
                        return line
                    line = reader.line_num + start
        except csv.Error:
            pass
        except unreadable():
            pass
        return None

    def _explained(self, error: Exception, before: int) -> DataError:
        """Word what is wrong in a block that `before` rows precede."""
        text = " ".join(str(error).split())
        found = re.search(r"Row #(\d+)", text)
        row = before + int(found.group(1)) if found else None
        place = self.name if row is None else f"row {row} of {self.name}"
        fields = re.search(r"Expected (\d+) columns, got (\d+): ?(.*)", text)
        if fields:
            wanted, got, line = fields.groups()
            if line.count('"') % 2:
                return self._bad_quote(row, line, "open")
            remedy = other_format(line) or (
                f" Correct the row; a field that holds {self.delimiter!r} must stand in double "
                "quotes."
            )
            return DataError(
                f"{place} has {got} fields, but the header has {wanted} columns "
                f"{listed(self.header, 6)}. The row reads {line[:120]!r}.{remedy}",
                kind="field_count",
                row=row,
                value=line[:120],
                source=self.name,
            )
        if "UTF8" in text:
            return DataError(
                f"{place} holds bytes that are not UTF-8; save the file as UTF-8.",
                kind="not_utf8",
                row=row,
                source=self.name,
            )
        return DataError(
            f"{place} cannot be read as delimited text ({text[:200]}). If it is compressed, it may "
            "be truncated: copy it again.",
            kind="unreadable",
            row=row,
            source=self.name,
        )


def open_delimited(
    path: Path, name: str, *, delimiter: str | None = None, wanted: Sequence[str] = ()
) -> Delimited:
    """Read the header of a delimited file and settle its delimiter.

    Parameters
    ----------
    path : Path
        The file; gzip, bz2, xz, zstd and lz4 are decompressed.
    name : str
        What messages call it.
    delimiter : str, optional
        One character or "tab"; None = found among comma, semicolon, tab and bar.
    wanted : sequence of str
        Column names that settle the matter where more than one delimiter would do.

    Raises
    ------
    DataError
        If the file is empty, no text, has one column only, or no delimiter is certain.
    """
    text = _sample(path, name)
    note = _NOTE.match(text)
    before = 0
    if note:
        marked = text.encode()[: len(note[0].encode())]
        before = len(marked) + (3 if _head(path, name).startswith(codecs.BOM_UTF8) else 0)
        text = text[note.end() :]
        delimiter = _as_noted(note["mark"], delimiter, name)
    if not text.strip():
        raise DataError(f"{name} is empty; expected a header line that names the columns.")
    if not text.splitlines()[0].strip():
        raise DataError(f"row 1 of {name} is empty; it must name the columns. Remove empty lines.")
    if delimiter is None:
        delimiter = detected(text, name, wanted)
    else:
        delimiter = _plain(delimiter)
        if (
            not isinstance(delimiter, str)
            or len(delimiter) != 1
            or not delimiter.isascii()
            or delimiter in '"\r\n\0'
        ):
            raise OptionError(
                f"delimiter={delimiter!r} must be one character (ASCII, no quote, no line "
                "break), for example ',', ';' or 'tab'."
            )
    header = header_of(text, delimiter)
    if len(header) < 2:
        raise DataError(
            f"row 1 of {name} has one column only, {header[0][:200]!r}, with delimiter "
            f"{DELIMITERS.get(delimiter, repr(delimiter))}. Name the one that separates its "
            "columns with delimiter=..."
        )
    names = column_names(header, f"row 1 of {name}")
    return Delimited(path, name, names, delimiter, before=before)


def _plain(delimiter: Any) -> Any:
    words = {"tab": "\t", "\\t": "\t"}
    return words.get(delimiter, delimiter) if isinstance(delimiter, str) else delimiter


def _as_noted(mark: str, delimiter: str | None, name: str) -> str:
    """Return the delimiter that the first line names; another one that was asked for is refused."""
    if delimiter is not None and _plain(delimiter) != mark:
        raise OptionError(
            f"delimiter={delimiter!r} contradicts the first line of {name}, 'sep={mark}'. Leave "
            "delimiter= out, or remove the line.",
            kind="bad_option",
            column="delimiter",
            value=delimiter,
            source=name,
        )
    return mark


def _head(path: Path, name: str) -> bytes:
    try:
        with opened(path) as stream:
            return bytes(stream.read(_SAMPLE))
    except unreadable() as error:
        raise DataError(f"{name} cannot be read ({error}); it may be truncated.") from error


def _sample(path: Path, name: str) -> str:
    data = _head(path, name)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name} is UTF-16 text; save it as UTF-8.")
    if any(data[i:4096:2].strip(b"\0") == b"" for i in (0, 1) if len(data) > 1):
        raise DataError(
            f"{name} looks like UTF-16 text without a mark; save it as UTF-8.", kind="not_utf8"
        )
    if b"\x00" in data:
        row = data[: data.index(b"\x00")].count(b"\n") + 1
        raise DataError(
            f"{name} is not text: row {row} holds a zero byte. Expected delimited text (CSV) or "
            "Parquet; export the log as one of these."
        )
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(data)
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise DataError(
            f"{name} is not UTF-8 text: row {row} holds byte 0x{data[error.start]:02x}. Save it as "
            "UTF-8, or export the log as Parquet."
        ) from None
