"""Delimited text files: detect the delimiter, read every column as text, name the row that fails.

Text is kept as text on purpose: a label "001", "NA" or "None" is what it says, and only the empty
field is missing. Numbers are converted later, column by column, where a message can name the row.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesfair.checks import listed
from bayesfair.errors import DataError, OptionError
from bayesfair.readers.headers import column_names
from bayesfair.readers.quotes import QuoteWatch, misquoted

__all__ = ["Delimited", "compression_of", "open_delimited", "opened"]

_DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_SAMPLE = 1 << 20  # bytes; a header of several thousand columns fits
_BLOCK = 1 << 23
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


def opened(path: Path) -> Any:
    """Return a readable stream of the decompressed bytes of ``path``."""
    import pyarrow as pa

    with path.open("rb") as file:
        compression = compression_of(file.read(8))
    if compression == "xz":  # the one that Arrow cannot read itself
        import lzma

        return lzma.open(path, "rb")
    return pa.input_stream(str(path), compression=compression)


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
    """

    path: Path
    name: str
    header: tuple[str, ...]
    delimiter: str
    n_rows: int | None = None  # not known before the file has been read

    def batches(
        self, columns: Sequence[str], labels: Sequence[str] = (), *, threads: bool = True
    ) -> Iterator[Any]:
        """Yield record batches of the columns as text (`labels` encoded), in constant memory."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        try:
            with opened(self.path) as stream:
                watch = QuoteWatch(stream, self.delimiter)
                yield from arrow_csv.open_csv(watch, **self._options(columns, labels, threads))
        except StopIteration:
            return
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            self._find_row(error, columns, labels, threads)
            raise self._explained(error) from error
        self._check_quotes(watch)

    def table(self, columns: Sequence[str], labels: Sequence[str] = ()) -> Any:
        """Return the columns as text, read on all cores."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        try:
            with opened(self.path) as stream:
                watch = QuoteWatch(stream, self.delimiter)
                table = arrow_csv.read_csv(watch, **self._options(columns, labels))
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            self._find_row(error, columns, labels, True)
            raise self._explained(error) from error
        self._check_quotes(watch)
        return table

    def _find_row(
        self, error: Exception, columns: Sequence[str], labels: Sequence[str], threads: bool
    ) -> None:
        """Read again on one thread, which knows the row of its fault; several threads do not."""
        if threads and "Row #" not in str(error):
            for _ in self.batches(columns, labels, threads=False):
                pass

    def _check_quotes(self, watch: QuoteWatch) -> None:
        """Refuse a quote that is never closed, and text behind a closing quote."""
        if not watch.suspect:
            return
        with opened(self.path) as stream:
            found = misquoted(stream, self.delimiter)
        if found is not None:
            raise self._bad_quote(f"row {found.row} of {self.name}", found.field, found.kind)

    @staticmethod
    def _bad_quote(place: str, line: str, kind: str) -> DataError:
        twice = 'a quote inside a quoted field is written twice, "".'
        if kind == "blank":
            return DataError(
                f"{place} has blanks before an opening double quote, which then is no quote: "
                f"{line[:80]!r}. Remove the blanks, or the quotes."
            )
        if kind == "open":
            return DataError(
                f"{place} opens a double quote that is never closed: {line[:80]!r}. Close or "
                f"remove it ({twice[:-1]})."
            )
        return DataError(
            f"{place} has text behind a closing double quote: {line[:80]!r}. Quote the whole "
            f"field; {twice}"
        )

    def line_of(self, row: int) -> int | None:
        """Return the line on which a row begins: empty lines are no rows, a row may have several.

        None if this cannot be found out. Slow, so only for messages.
        """
        count, line = 0, 1
        try:
            with opened(self.path) as stream:
                text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
                reader = csv.reader(text, delimiter=self.delimiter)
                for record in reader:
                    count += bool(record)
                    if count == row:
                        return line
                    line = reader.line_num + 1
        except (csv.Error, OSError, EOFError):
            pass
        return None

    def _options(
        self, columns: Sequence[str], labels: Sequence[str], threads: bool = True
    ) -> dict[str, Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return {
            "read_options": arrow_csv.ReadOptions(
                column_names=list(self.header),
                skip_rows_after_names=1,
                block_size=_BLOCK,
                use_threads=threads,
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True
            ),
            "convert_options": arrow_csv.ConvertOptions(
                include_columns=list(columns),
                column_types={
                    name: pa.dictionary(pa.int32(), pa.string()) if name in labels else pa.string()
                    for name in columns
                },
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                null_values=[""],
            ),
        }

    def _explained(self, error: Exception) -> DataError:
        text = " ".join(str(error).split())
        found = re.search(r"Row #(\d+)", text)
        place = f"row {found.group(1)} of {self.name}" if found else self.name
        fields = re.search(r"Expected (\d+) columns, got (\d+): ?(.*)", text)
        if fields:
            wanted, got, line = fields.groups()
            if line.count('"') % 2:
                return self._bad_quote(place, line, "open")
            return DataError(
                f"{place} has {got} fields, but the header has {wanted} columns "
                f"{listed(self.header, 6)}. The row reads {line[:120]!r}. Correct the row; a field "
                f"that holds {self.delimiter!r} must stand in double quotes."
            )
        if "UTF8" in text:
            if not found and (row := _first_undecodable(self.path)):
                place = f"row {row} of {self.name}"
            return DataError(f"{place} holds bytes that are not UTF-8; save the file as UTF-8.")
        return DataError(
            f"{place} cannot be read as delimited text ({text[:200]}). If it is compressed, it may "
            "be truncated: copy it again."
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
    if not text.strip():
        raise DataError(f"{name} is empty; expected a header line that names the columns.")
    if delimiter is None:
        delimiter = _detected(text, name, wanted)
    else:
        if isinstance(delimiter, str):
            delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
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
    header = _header(text, delimiter)
    if len(header) < 2:
        raise DataError(
            f"row 1 of {name} has one column only, {header[0][:200]!r}, with delimiter "
            f"{_DELIMITERS.get(delimiter, repr(delimiter))}. Pass the delimiter that separates its "
            "columns."
        )
    return Delimited(path, name, column_names(header, f"row 1 of {name}"), delimiter)


def _sample(path: Path, name: str) -> str:
    import pyarrow as pa

    try:
        with opened(path) as stream:
            data = bytes(stream.read(_SAMPLE))
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        raise DataError(f"{name} cannot be read ({error}); it may be truncated.") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name} is UTF-16 text; save it as UTF-8.")
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


def _first_undecodable(path: Path) -> int | None:
    """Return the row that holds the first bytes that are not UTF-8; empty lines are no rows."""
    row, rest = 0, b""
    with opened(path) as stream:
        while block := bytes(stream.read(_SAMPLE)):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                row += bool(line.strip(b"\r"))
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return row
    try:
        rest.decode("utf-8")
    except UnicodeDecodeError:
        return row + 1
    return None


def _header(text: str, delimiter: str) -> list[str]:
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [""])


def _detected(text: str, name: str, wanted: Sequence[str]) -> str:
    headers = {d: [field.strip() for field in _header(text, d)] for d in _DELIMITERS}
    able = [d for d, header in headers.items() if len(header) > 1]
    if len(able) > 1:
        able = [d for d in able if set(wanted) <= set(headers[d])] or able
    if len(able) > 1:
        able = [d for d in able if _consistent(text, d, len(headers[d]))] or able
    line = text.splitlines()[0][:200]
    if not line.strip():
        raise DataError(f"row 1 of {name} is empty; it must name the columns. Remove empty lines.")
    if re.fullmatch(r"\s*sep=.\s*", line, re.IGNORECASE):
        raise DataError(
            f"row 1 of {name} is {line!r}, a note for spreadsheets; row 1 must name the columns. "
            "Remove the line."
        )
    if line.lstrip().startswith(("{", "[{", "[[")):
        raise DataError(
            f"{name} looks like JSON ({line[:60]!r}); export the log as CSV or Parquet, one row "
            "per round."
        )
    if not able:
        raise DataError(
            f"row 1 of {name} has one column only, {line!r}: none of comma, semicolon, tab and bar "
            "separates it. Pass delimiter=... if it uses another."
        )
    if len(able) > 1:
        options = ", ".join(f"{_DELIMITERS[d]} ({len(headers[d])} columns)" for d in able)
        raise DataError(
            f"row 1 of {name}, {line!r}, can be split by {options}. Pass the right one as "
            "delimiter=..."
        )
    return able[0]


def _consistent(text: str, delimiter: str, width: int) -> bool:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = [row for row, _ in zip(reader, range(50), strict=False) if row]
    rows = rows[:-1] if len(rows) > 1 and len(text) >= _SAMPLE // 4 else rows
    return all(len(row) == width for row in rows)
