"""Watch the quotes of a delimited file while it is read.

Arrow closes a quote that is still open at the end of a file, and joins what stands behind a closing
quote to the field: both swallow rows or change labels without a word. Looking at the bytes around
each quote costs little and finds every file that may have such a mistake; only those are read again
slowly, by Python's own strict reader, which decides and knows the row.
"""

from __future__ import annotations

import codecs
import csv
import io
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Misquoted", "QuoteWatch", "misquoted"]

_QUOTE = ord('"')
_BLANK = (" ", "\t")
_LONGEST = 1 << 25  # characters of a field; more than Arrow, whose blocks are smaller, ever takes


class Misquoted(NamedTuple):
    """Where a quote is wrong."""

    row: int
    kind: str  # "open", "behind" (text behind a closing quote) or "blank" (before an opening one)
    field: str


class QuoteWatch(io.RawIOBase):
    r"""A stream that hands on the bytes of another and looks at the quotes among them.

    Parameters
    ----------
    stream : readable stream of bytes
        What to read.
    delimiter : str
        Of the fields.

    Examples
    --------
    >>> def suspect(data):
    ...     watch = QuoteWatch(io.BytesIO(data), ",")
    ...     while watch.read(3):
    ...         pass
    ...     return watch.suspect
    >>> suspect(b'a,"b ""c"", d"\n'), suspect(b'a,"b\n'), suspect(b'"a"b,c\n')
    (False, True, True)
    """

    def __init__(self, stream: Any, delimiter: str) -> None:
        super().__init__()
        self._stream = stream
        self._between = np.zeros(256, dtype=np.bool_)  # what may stand outside of a quoted field
        self._between[[ord(delimiter), ord("\n"), ord("\r"), _QUOTE]] = True
        self._last = ord("\n")  # the byte before the next block
        self._closed = False  # whether that closes a field, so that the next one must be looked at
        self._odd = False  # whether a quote is open
        self._started = False
        self.suspect = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes of the stream."""
        block: bytes = self._stream.read(size) if size >= 0 else self._stream.read()
        if not block:
            self.suspect |= self._odd
        elif not self.suspect:
            self._look(block)
        return block

    def _look(self, block: bytes) -> None:
        if not self._started:
            self._started = True
            block = block.removeprefix(codecs.BOM_UTF8)
            if not block:
                return
        if self._closed:
            self.suspect = not self._between[block[0]]
            self._closed = False
        if b'"' in block:  # most logs have none: finding that out is all they cost
            values = np.frombuffer(block, np.uint8)
            at = np.flatnonzero(values == _QUOTE)
            opening, closing = at[int(self._odd) :: 2], at[int(not self._odd) :: 2]
            before = values[opening - 1]
            if opening.size and opening[0] == 0:
                before[0] = self._last
            if closing.size and closing[-1] == values.size - 1:
                self._closed = True
                closing = closing[:-1]
            beside = (before, values[closing + 1])
            self.suspect |= not all(self._between[found].all() for found in beside)
            self._odd ^= at.size % 2 == 1
        self._last = block[-1]


def misquoted(stream: Any, delimiter: str) -> Misquoted | None:
    """Return the first field whose quotes are wrong, None if all are right. Slow.

    Rows are counted as everywhere: the header is row 1, empty lines are none.
    """
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
    row = 0
    keep: list[str] = []
    limit = csv.field_size_limit(_LONGEST)  # Python's own, 131072, is below what Arrow takes

    def lines() -> Any:
        for line in text:
            keep.append(line)
            yield line

    try:
        for record in csv.reader(lines(), delimiter=delimiter, strict=True):
            row += bool(record)
            lost = [f for f in record if f[:1] in _BLANK and f.lstrip().startswith('"')]
            if lost:
                raw = "".join(keep)
                # a field that was quoted may well begin with a blank and a quote
                if not all('"' + f.replace('"', '""') + '"' in raw for f in lost):
                    return Misquoted(row, "blank", raw[:120].rstrip("\r\n"))
            keep.clear()
    except csv.Error as error:
        kind = "behind" if "expected after" in str(error) else "open"
        return Misquoted(row + 1, kind, "".join(keep)[:120].rstrip("\r\n"))
    finally:
        csv.field_size_limit(limit)
    return None
