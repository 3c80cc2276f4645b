"""Cut a stream of delimited text into blocks that hold whole records.

Every block can then be parsed on its own, from memory: nothing of the parser is left running when a
record is refused, and its number is that of the records before it plus its place in the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bayesfair.readers.files.quotes import LONGEST, QuoteWatch

__all__ = ["RecordTooLong", "whole_records"]


class RecordTooLong(Exception):
    """A record does not end within `LONGEST` bytes."""


def whole_records(stream: Any, watch: QuoteWatch, size: int) -> Iterator[bytes]:
    r"""Yield blocks of about `size` bytes, each ending where a record ends.

    Parameters
    ----------
    stream : readable stream of bytes
        What to read.
    watch : QuoteWatch
        Sees every byte in its order; afterwards `watch.suspect` is settled.
    size : int
        Bytes read at once.

    Raises
    ------
    RecordTooLong
        If a record is longer than `LONGEST` bytes.

    Examples
    --------
    >>> import io
    >>> text = io.BytesIO(b'a,b\n1,"x\ny"\n2,z')
    >>> list(whole_records(text, QuoteWatch(","), 9))
    [b'a,b\n', b'1,"x\ny"\n', b'2,z\n']
    """
    rest = b""
    while data := bytes(stream.read(size)):
        watch.look(data)
        block = rest + data
        cut = _last_end(block, watch)
        if not cut and len(block) > LONGEST:
            raise RecordTooLong
        rest = block[cut:]
        if cut:
            yield block[:cut]
    watch.finish()
    if rest.strip(b"\r\n"):
        yield rest if rest.endswith((b"\r", b"\n")) else rest + b"\n"


def _last_end(block: bytes, watch: QuoteWatch) -> int:
    """Return where the last whole record of a block ends, 0 if none does."""
    if watch.suspect:  # a quote may stand within a field: only the fields themselves can tell
        return _last_end_by_fields(block, watch.delimiter)
    # the last quote, if it is open, begins a field whose line breaks end nothing
    at = _last_break(block, 0, block.rfind(b'"') if watch.open else len(block))
    # a block begins with a record: before a place quotes are even in number where all of them and
    # those behind it are both even or both odd, and these are few
    while at >= 0 and (watch.open + block.count(b'"', at)) % 2:
        at = _last_break(block, 0, block.rfind(b'"', 0, at))
    return at + 1


def _last_break(block: bytes, start: int, end: int) -> int:
    return max(block.rfind(b"\n", start, end), block.rfind(b"\r", start, end))


def _last_end_by_fields(block: bytes, delimiter: str) -> int:
    """Return the same by walking over every quoted field: a quote that begins a field opens it."""
    before = rb"(?<=[\r\n" + re.escape(delimiter.encode()) + rb"])"
    quoted = re.compile(
        rb"(?:\A(?:\xef\xbb\xbf)?|" + before + rb')"[^"]*+(?:""[^"]*+)*+(?P<closed>"|\Z)'
    )
    found, start = 0, 0
    for field in quoted.finditer(block):
        found = max(found, _last_break(block, start, field.start()) + 1)
        start = field.end()
        if not field["closed"]:
            return found
    return max(found, _last_break(block, start, len(block)) + 1)
