"""JSON, read strictly: the one home of every file, attribute and field that holds JSON.

Python's own reader takes more than JSON (NaN, Infinity), drops one of two keys of the same name,
and lets text through that is none (half of a surrogate pair). Here each of these is refused, and so
is nesting that nothing could walk through: with one kind of error, which names the place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from bayesfair.base.numerals import number, why_no_number
from bayesfair.errors import DataError

__all__ = ["DEEPEST", "BadJson", "NoJson", "each_line", "from_json", "once_each", "strictly"]

DEEPEST = 100
"""Most levels of lists and records within each other."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class BadJson(ValueError):
    """Text that is no JSON, or more than one meaning of it; says why, not where.

    Attributes
    ----------
    line : int or None
        Line of the text, where it is known.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class NoJson(BadJson):
    """Text that is no JSON at all: it may still be something else."""


def once_each(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return keys and values as a record.

    Raises
    ------
    BadJson
        If a key stands twice: one of its values would be lost without a word.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadJson(f"the key {str(twice)[:60]!r} stands twice in one record; keep one of them")
    return found


def _constant(word: str) -> Any:
    raise BadJson(f"{word} is no JSON; write null for a missing number")


def _held(text: str) -> float:
    value = number(text)
    if value is None:
        raise BadJson(f"{text[:40]!r} is not a number{why_no_number(text)}")
    return value


@lru_cache(maxsize=16)
def _decoder(to_number: Callable[[str], Any], nan: bool) -> json.JSONDecoder:
    constant = (lambda word: math.nan if word == "NaN" else _constant(word)) if nan else _constant
    return json.JSONDecoder(
        object_pairs_hook=once_each, parse_float=to_number, parse_constant=constant
    )


def strictly(
    text: str | bytes, *, to_number: Callable[[str], Any] = _held, nan: bool = False
) -> Any:
    r"""Return what JSON text means.

    Parameters
    ----------
    text : str or bytes
        UTF-8 if it is bytes, without a byte-order mark.
    to_number : callable
        Takes a number with a point or an exponent as it is written.
    nan : bool
        Whether NaN may stand for a missing number, as Python writes it.

    Raises
    ------
    BadJson
        Saying why it is none.

    Examples
    --------
    >>> strictly('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> strictly('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    bayesfair.base.json_text.BadJson: the key 'a' stands twice in one record; keep one of them
    """
    halves = False  # of characters: in bytes that are UTF-8 there is none, unless it is escaped
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        else:
            halves = _SURROGATE.search(text) is not None
        found = _decoder(to_number, nan).decode(text)
    except UnicodeDecodeError as error:
        raise BadJson(
            f"byte 0x{error.object[error.start]:02x} is no UTF-8 text; save it as UTF-8",
            error.object[: error.start].count(b"\n") + 1,
        ) from None
    except json.JSONDecodeError as error:
        raise NoJson(f"{error.msg} at character {error.colno}", error.lineno) from None
    except RecursionError:
        raise BadJson(_TOO_DEEP) from None
    except BadJson:
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise BadJson(str(error).partition(";")[0]) from None
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(found)
    if halves or "\\u" in text:
        _check_text(found)
    return found


def each_line(text: str, to_number: Callable[[str], Any]) -> list[Any] | None:
    r"""Return what the lines of JSON lines mean, at once; empty ones are none.

    None where a line is no JSON as `strictly` reads it, or has to be looked at on its own.

    Examples
    --------
    >>> each_line('{"a": 1}\n\n{"a": 2}\n', float)
    [{'a': 1}, {'a': 2}]
    >>> each_line('{"a":\n1}\n', float) is None
    True
    """
    if "\\u" in text:  # may stand for half of a character
        return None
    scan = _decoder(to_number, nan=False).raw_decode
    found, at, n = [], 0, len(text)
    try:
        while at < n:
            end = text.find("\n", at)
            end = n if end < 0 else end
            if text.count("[", at, end) + text.count("{", at, end) > DEEPEST:
                return None
            line = text[at:end].strip(_SPACE)
            at = end + 1
            if line:
                value, used = scan(line)
                if used < len(line):
                    return None
                found.append(value)
    except (RecursionError, ValueError):
        return None
    return found


_SPACE = " \t\n\r"
_TOO_DEEP = f"lists and objects lie in each other more than {DEEPEST} deep"


def _inner(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        level = [v for outer in level for v in _inner(outer) if isinstance(v, (dict, list))]
        depth += 1
        if depth > DEEPEST:
            raise BadJson(_TOO_DEEP)


def _check_text(value: Any) -> None:
    """Refuse half of a surrogate pair: it is no character, and no file can hold it."""
    if isinstance(value, str) and (found := _SURROGATE.search(value)):
        raise BadJson(f"\\u{ord(found.group()):04x} alone is half of a character; correct the text")
    for key in value if isinstance(value, dict) else ():
        _check_text(key)
    for inner in _inner(value):
        _check_text(inner)


def from_json(text: Any, what: str, *, remedy: str, source: str | None = None) -> Any:
    """Return what JSON in a named place means.

    Parameters
    ----------
    text : str or bytes
        Anything else is refused.
    what : str
        Names the place, such as ``"the attribute 'audit' of a.nc"``.
    remedy : str
        What to do, as a sentence.
    source : str, optional
        Name of the file.

    Raises
    ------
    DataError
        Naming the place, the reason and the remedy.

    Examples
    --------
    >>> from_json("[1, 2]", "the attribute 'n'", remedy="Save it again.")
    [1, 2]
    """
    try:
        if not isinstance(text, (str, bytes)):
            raise BadJson(f"it is {type(text).__name__}")
        return strictly(text)
    except BadJson as error:
        raise DataError(
            f"{what} is no JSON ({error}). {remedy}", kind="bad_json", source=source
        ) from None
