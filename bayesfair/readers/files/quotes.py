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

from bayesfair.kernels.log.quotes import QUOTE, look_at_quotes

__all__ = ["LONGEST", "Misquoted", "QuoteWatch", "misquoted"]

_BLANK = (" ", "\t")
LONGEST = 1 << 25
"""Longest field or record, in characters or bytes."""


class Misquoted(NamedTuple):
    """Where a quote is wrong."""

    row: int
    kind: str  # "open", "behind" (text behind a closing quote) or "blank" (before an opening one)
    field: str


class QuoteWatch:
    r"""Look at the quotes among bytes that are handed over block by block.

    Parameters
    ----------
    delimiter : str
        Of the fields.

    Attributes
    ----------
    suspect : bool
        Some quote may be wrong; from then on nothing more is looked at.
    open : bool
        A quote is open where the last block ends. Means nothing once `suspect`.

    Examples
    --------
    >>> def suspect(data):
    ...     watch = QuoteWatch(",")
    ...     for start in range(0, len(data), 3):
    ...         watch.look(data[start : start + 3])
    ...     watch.finish()
    ...     return watch.suspect
    >>> suspect(b'a,"b ""c"", d"\n'), suspect(b'a,"b\n'), suspect(b'"a"b,c\n')
    (False, True, True)
    """

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self._between = np.zeros(256, dtype=np.bool_)  # what may stand outside of a quoted field
        self._between[[ord(delimiter), ord("\n"), ord("\r"), QUOTE]] = True
        self._last = ord("\n")  # the byte before the next block
        self._closed = False  # whether that closes a field, so that the next one must be looked at
        self.open = False
        self._started = False
        self.suspect = False

    def look(self, block: bytes) -> None:
        """Take the next bytes."""
        if block and not self.suspect:
            self._look(block)

    def finish(self) -> None:
        """Say that there are no more: a quote that is still open is wrong."""
        self.suspect |= self.open

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
            wrong, self.open, self._closed = look_at_quotes(
                block, self._between, self._last, self.open
            )
            self.suspect |= wrong
        self._last = block[-1]


def misquoted(stream: Any, delimiter: str) -> Misquoted | None:
    """Return the first field whose quotes are wrong, None if all are right. Slow.

    Rows are counted as everywhere: the header is row 1, empty lines are none.
    """
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
    row = 0
    keep: list[str] = []
    limit = csv.field_size_limit(LONGEST)  # Python's own, 131072, is below what is taken here

    def lines() -> Any:
        while line := text.readline(LONGEST + 1):  # a longer one is refused by its length
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
