"""Values that the shell gives as one text: labels, numbers, what words are worth or mean."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from bayesfair.base.numerals import number
from bayesfair.errors import OptionError

__all__ = [
    "csv_labels",
    "csv_numbers",
    "labels_or_by_group",
    "settings",
    "word_meanings",
    "word_values",
]


def csv_labels(text: str, option: str) -> list[str]:
    """Return labels or names of columns from one line of CSV: one may hold a comma in quotes.

    Raises
    ------
    OptionError
        Naming the option, where a label is empty.
    """
    found = [label.strip() for label in _csv_line(text)]
    if not found or not all(found):
        raise _wrong(text, option, 'be labels separated by commas, as in a,b,"c, d"')
    return found


def labels_or_by_group(text: str, option: str) -> list[str] | str:
    """Return labels, or the word that asks for the labels of each group."""
    return text if text == "by_group" else csv_labels(text, option)


def csv_numbers(text: str, option: str) -> tuple[float, ...]:
    """Return numbers separated by commas."""
    found = [number(part.strip()) for part in text.split(",")]
    if None in found:
        raise _wrong(text, option, "be numbers separated by commas")
    return tuple(value for value in found if value is not None)


def word_values(text: str, option: str) -> dict[str, float]:
    """Return what words are worth, from ``yes=1,no=0``."""
    found = {}
    for word, value, part in _pairs(text, option, "yes=1,no=0"):
        worth = number(value)
        if worth is None:
            raise _wrong(text, option, f"look like yes=1,no=0; {part!r} does not", part)
        found[word] = worth
    return found


def word_meanings(text: str, option: str) -> dict[object, str]:
    """Return what outcome words mean, from ``1=left,0=right,.5=tie``."""
    return {word: value for word, value, _ in _pairs(text, option, "1=left,0=right,.5=tie")}


def settings(text: str, option: str) -> dict[str, Any]:
    """Return settings by name, from ``target_accept=.95,chains=2``: numbers, yes or no, words."""
    found: dict[str, Any] = {}
    for name, value, _ in _pairs(text, option, "target_accept=.95,chains=2"):
        worth = number(value)
        plain = {"true": True, "false": False}.get(value.lower(), value)
        found[name] = plain if worth is None else int(worth) if worth.is_integer() else worth
    return found


def _pairs(text: str, option: str, example: str) -> Iterator[tuple[str, str, str]]:
    """Yield each word, what it stands for, and both as they were written."""
    for part in _csv_line(text):
        word, equal, value = part.rpartition("=")
        if not equal or not word.strip() or not value.strip():
            raise _wrong(text, option, f"look like {example}; {part!r} does not", part)
        yield word.strip(), value.strip(), part


def _csv_line(text: str) -> list[str]:
    return next(csv.reader([text], skipinitialspace=True), [])


def _wrong(text: str, option: str, must: str, part: str | None = None) -> OptionError:
    return OptionError(
        f"{option} {text!r} must {must}.",
        kind="bad_value",
        column=option.lstrip("-").replace("-", "_"),
        value=text if part is None else part,
    )
