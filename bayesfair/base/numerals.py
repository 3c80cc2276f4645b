"""What counts as a number in a file: the digits 0 to 9, and what double precision can hold.

Python and other programs read more than that (`1_000`, digits of other scripts) or change the value
without a word (`1e400` to infinity, `1e-400` to 0). One rule for every format: that is refused.
"""

from __future__ import annotations

import math
import re

__all__ = ["number", "why_no_number"]

_DIGITS = re.compile(r"[+-]?(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NO_VALUE = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE)


def number(text: str) -> float | None:
    """Return the number that a text writes, None if it is none or cannot be held.

    Infinity and "nan" are themselves: whether they may stand here is for the reader to say.

    Examples
    --------
    >>> number("12"), number("-.5e3"), number("1_000"), number("1e400"), number("1e-400")
    (12.0, -500.0, None, None, None)
    """
    found = _DIGITS.fullmatch(text)
    if not found:
        return float(text) if _NO_VALUE.fullmatch(text) else None
    value = float(text)
    lost = math.isinf(value) or (value == 0 and found["digits"].strip("0.") != "")
    return None if lost else value


def why_no_number(text: str) -> str:
    """Return why a text is no number, for messages: "", or words that follow "is not a number".

    Examples
    --------
    >>> why_no_number("1_000")
    ' (digits stand alone, without _)'
    >>> why_no_number("1e400"), why_no_number("x")
    (' (too large for double precision)', '')
    """
    found = _DIGITS.fullmatch(text)
    if found:
        size = "large" if math.isinf(float(text)) else "close to 0"
        return f" (too {size} for double precision)" if number(text) is None else ""
    if "_" in text and number(text.replace("_", "")) is not None:
        return " (digits stand alone, without _)"
    if any(c.isdigit() and not c.isascii() for c in text):
        return " (write it with the digits 0 to 9)"
    return ""
