"""Cut the text of one JSON array into arrays of some of its elements, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["array_pieces"]

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MARK = re.compile(
    # a record without lists and records in it, text, the start of text that ends later, the others
    rb'\{[^"{}\[\]]*+(?:' + _STRING + rb'[^"{}\[\]]*+)*+\}|' + _STRING + rb'|"|[\[\]{},]',
    re.DOTALL,
)


def array_pieces(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield JSON arrays that hold the elements of one together, and the lines that precede each.

    Cuts are made at commas between elements, wherever these are; what is no JSON is so in one of
    the pieces, but for a comma behind the last element: the last piece then holds none. What
    begins otherwise than an array is one piece.

    Parameters
    ----------
    blocks : iterable of bytes
        The text, cut anywhere.

    Examples
    --------
    >>> list(array_pieces([b'[{"a": 1}, {"a": "}', b', {"}, {"a"', b': 3, "b": 4}]']))
    [(b'[{"a": 1}]', 0), (b'[ {"a": "}, {"}]', 0), (b'[ {"a": 3, "b": 4}]', 0)]
    """
    data, at, depth, lines = b"", 0, 0, 0
    rest, new, size, left = iter(blocks), [], 0, 0
    for block in rest:
        new.append(block)
        size += len(block)
        if size < left:  # what could not be cut is looked at again when it has doubled
            continue
        if data.strip():
            if not data.lstrip().startswith(b"["):
                yield b"".join([data, *new, *rest]), 0
                return
            at, depth, cut = _marked(data, at, depth)
            if cut:
                yield data[:cut] + b"]", lines
                lines += data.count(b"\n", 0, cut)
                data, at = b"[" + data[cut + 1 :], at - cut
        data, new, size, left = b"".join([data, *new]), [], 0, len(data)
    yield b"".join([data, *new]), lines


def _marked(data: bytes, at: int, depth: int) -> tuple[int, int, int]:
    """Return how far the text is understood, the depth there, and the last comma between elements.

    The comma is 0 where there is none.
    """
    cut = 0
    for found in _MARK.finditer(data, at):
        mark = found.group()
        if mark == b",":
            cut = found.start() if depth == 1 else cut
        elif mark == b'"':
            return found.start(), depth, cut
        elif len(mark) == 1:
            depth += 1 if mark in b"[{" else -1
    return len(data), depth, cut
