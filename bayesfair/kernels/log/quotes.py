"""Quotes among the bytes of delimited text: whether each stands at the border of a field."""

from __future__ import annotations

import numpy as np

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.rows import fixed
from bayesfair.typing import Flags

__all__ = ["QUOTE", "look_at_quotes"]

QUOTE = ord('"')
_EACH = np.uint64(0x0101010101010101)


@compiled()
def _look(block, words, between, last, is_open, quote, each):  # type: ignore[no-untyped-def]
    n, wrong, closed = block.shape[0], False, False
    pattern, high = each * np.uint64(quote), each << np.uint64(7)
    start = 0
    while start < n:
        stop = min(start + 8, n)
        if stop == start + 8:
            x = words[start >> 3] ^ pattern
            if ((x - each) & ~x & high) == 0:  # none of the eight bytes is a quote
                start = stop
                continue
        for i in range(start, stop):
            if block[i] != quote:
                continue
            if not is_open:
                before = block[i - 1] if i > 0 else last
                wrong |= not between[before]
            elif i + 1 < n:
                wrong |= not between[block[i + 1]]
            else:
                closed = True
            is_open = not is_open
        start = stop
    return wrong, is_open, closed


def look_at_quotes(
    block: bytes, between: Flags, last: int, is_open: bool
) -> tuple[bool, bool, bool]:
    """Return whether a quote is wrong, whether one is open at the end, and whether the end closes.

    Parameters
    ----------
    block : bytes
    between : (256,) array of bool
        What may stand before a quote that opens a field, and behind one that closes it.
    last : int
        The byte before the block.
    is_open : bool
        Whether a quote is open there.

    Examples
    --------
    >>> commas = np.isin(np.arange(256), [*b',"'])
    >>> look_at_quotes(b'a,"b",c', commas, 0, False), look_at_quotes(b'a"b",c', commas, 0, False)
    ((False, False, False), (True, False, False))
    """
    values = np.frombuffer(block, np.uint8)
    words = values[: len(values) // 8 * 8].view(np.uint64)
    wrong, opens, closed = _look(
        fixed(values), fixed(words), fixed(between), np.uint8(last), is_open, np.uint8(QUOTE), _EACH
    )
    return bool(wrong), bool(opens), bool(closed)
