"""Labels of users as they are shown: any text is safe, none breaks the layout."""

from __future__ import annotations

import unicodedata
from typing import Any

__all__ = ["LONGEST", "clean", "short"]

LONGEST = 80
"""Longer labels are cut in tables and sentences; the JSON in the file holds them whole."""

_KEPT = {"\n", "\t"}


def clean(value: Any) -> str:
    """Return text without what HTML cannot hold: control characters and lone surrogates.

    Examples
    --------
    >>> [hex(ord(c)) for c in clean("a" + chr(0))]
    ['0x61', '0xfffd']
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(c) in {"Cc", "Cs"} and c not in _KEPT
        else c
        for c in str(value)
    )


def short(label: Any, most: int = LONGEST) -> str:
    """Return a label cut in the middle if it is long: labels often differ at their end.

    Examples
    --------
    >>> short("abcdefghij" * 10, 12)
    'abcdefg…ghij'
    """
    text = clean(label)
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"
