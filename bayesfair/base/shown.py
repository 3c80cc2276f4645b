"""Labels, tables and prose as a reader sees them: safe on a terminal, short, no look-alikes."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "LONGEST", "MOST_ROWS", "cells", "fitted", "in_cells", "number", "shortened", "table",
    "visible", "wrapped",
]  # fmt: skip

LONGEST = 40
"""Longer labels are cut in tables; the JSON and ``title=`` in the page hold them whole."""

MOST_ROWS = 50
"""Rows of a table on a terminal; the JSON holds all."""

_CUT = "\N{HORIZONTAL ELLIPSIS}"
_WIDTH = 96
_DUST = 1e-12  # rounding of double precision, nothing that was measured


def visible(text: object, kept: str = "") -> str:
    r"""Return text in which characters that act on a terminal stand as escapes.

    Parameters
    ----------
    text : object
        Its ``str`` is shown.
    kept : str
        Characters that stay as they are, such as line breaks of a whole report.

    Examples
    --------
    >>> visible("a\nb"), visible("\x1b[31m")
    ('a\\nb', '\\x1b[31m')
    """
    whole = str(text)
    if whole.isprintable():
        return whole
    return "".join(
        c if c.isprintable() or c in kept or _joins(whole, i) else ascii(c)[1:-1]
        for i, c in enumerate(whole)
    )


def _joins(text: str, i: int) -> bool:
    """Whether a joiner stands between signs of a script, or of one emoji, that needs it."""
    beside = text[i - 1 : i] + text[i + 1 : i + 2]
    return text[i] in "\u200c\u200d" and len(beside) == 2 and not beside.isascii()


def number(value: Any, digits: int = 4) -> str:
    """Return a number for reading; ``-`` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, (int, str)):
        return str(value)
    if abs(value) < _DUST:
        return f"{0:.{digits}f}"
    if value != 0 and abs(value) < 10.0**-digits:
        return f"{value:.2g}"
    return f"{value:.{digits}f}"


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes: two for a wide letter, none for an accent.

    Examples
    --------
    >>> cells("abc"), cells("\u6771\u4eac")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shortened(labels: Iterable[object], most: int = LONGEST) -> list[str]:
    """Return labels for one table: safe, at most about ``most`` wide, different if they are.

    A long label is cut in the middle, since labels often differ at their end. Where the cut would
    make two labels look the same, the place where they differ is shown; where that is not
    enough, how much was cut; then a number; at last they stand whole.

    Parameters
    ----------
    labels : iterable of str
        All labels of the table; equal ones stay equal.
    most : int
        Cells of a label that is cut in the middle; a wide letter takes two.

    Examples
    --------
    >>> shortened(["dose of ten milligrams", "dose of six milligrams"], 12)
    ['dose of…ten…rams', 'dose of…six…rams']
    >>> shortened(["a" * 30, "a" * 31], 12)
    ['aaaaaaa…19…aaaa', 'aaaaaaa…20…aaaa']
    """
    whole = [visible(label) for label in labels]
    cut = {label: _middle(label, most) for label in whole}
    for alike in _look_alikes(cut):
        at = _first_difference(alike)
        cut |= {label: _around(label, at, most) for label in alike}
    for number in (lambda i, label: len(label) - most + 1, lambda i, label: f"#{i + 1}"):
        for alike in _look_alikes(cut):
            for i, label in enumerate(alike):
                if cells(label) > most:
                    cut[label] = _middle(label, most, f"{number(i, label)}{_CUT}")
    while found := _look_alikes(cut):
        cut |= {label: label for alike in found for label in alike}
    return [cut[label] for label in whole]


def _first_difference(labels: Sequence[str]) -> int:
    """Return the position from which on different labels are not all the same."""
    low, high = min(labels), max(labels)  # all others lie between them
    same = (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b)
    return next(same, min(len(low), len(high)))


def _look_alikes(cut: dict[str, str]) -> list[Sequence[str]]:
    """Return the sets of labels that are shown alike."""
    shown: dict[str, list[str]] = {}
    for label, short in cut.items():
        shown.setdefault(short, []).append(label)
    return [found for found in shown.values() if len(found) > 1]


def _first(text: Iterable[str], room: int) -> str:
    """Return as many signs as fit into some cells."""
    taken = ""
    for sign in text:
        room -= cells(sign)
        if room < 0:
            break
        taken += sign
    return taken


def _middle(label: str, most: int, within: str = "") -> str:
    """Return a label cut in its middle, where something may stand instead."""
    if cells(label) <= most:
        return label
    tail = most // 3
    return f"{_first(label, most - tail - 1)}{_CUT}{within}{_first(label[::-1], tail)[::-1]}"


def _around(label: str, at: int, most: int) -> str:
    """Return a long label by its begin, what stands from `at` on, and its end."""
    if cells(label) <= most:
        return label
    part = _first(label[at:], max(3, most // 4))
    end = len(label) - len(_first(label[::-1], most // 3))
    if at + len(part) >= end:  # it differs in what its end shows, or in its length alone
        return _middle(label, most)
    return _middle(label, most, f"{part}{_CUT}")


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    n: int | None = None,
    most: int = MOST_ROWS,
    rest: str = "",
) -> list[str]:
    """Return an aligned table; the first column is left-aligned, the others right-aligned.

    Parameters
    ----------
    header, rows : sequences of str
        Labels among them are `shortened` by the caller, all of the table together.
    n : int, optional
        Number of rows there are, if those given are the first of them.
    most : int
        Rows that are shown; the others are counted in one line.
    rest : str
        What else is said of those that are not shown.

    Examples
    --------
    >>> table(["arm", "n"], [["\u6771\u4eac", "2"], ["b", "10"]])
    ['  arm    n', '  ----  --', '  \u6771\u4eac   2', '  b     10']
    """
    shown = [list(row) for row in rows[:most]]
    lines = [list(header), *shown]
    widths = [max(cells(line[c]) for line in lines) for c in range(len(header))]

    def line(row: Sequence[str]) -> str:
        pads = [" " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)]
        first, *others = zip(row, pads, strict=True)
        parts = [first[0] + first[1], *(pad + cell for cell, pad in others)]
        return "  " + "  ".join(parts).rstrip()

    found = [line(header), "  " + "  ".join("-" * w for w in widths), *map(line, shown)]
    more = (len(rows) if n is None else n) - len(shown)
    if more > 0:
        found.append(f"  ... {more} more{f', {rest}' if rest else ''}; --json has all")
    return found


def _columns() -> int:
    """Return how many columns the terminal has; many where there is none."""
    return max(40, shutil.get_terminal_size((10_000, 24)).columns)


def fitted(lines: Sequence[str]) -> list[str]:
    """Return lines of prose, those wrapped that a terminal would break."""
    width = _columns()
    found: list[str] = []
    for line in lines:
        beside = line.startswith("  ") and line[37:39] == "  "  # a title, and what is said of it
        indent = " " * (39 if beside else len(line) - len(line.lstrip()))
        found += [line] if cells(line) <= width else in_cells(
            line, width, subsequent_indent=indent, drop_whitespace=True, replace_whitespace=False,
        )  # fmt: skip
    return found


def wrapped(text: str, bullet: str = "  * ", most: int = _WIDTH) -> list[str]:
    """Return a paragraph behind a bullet, no wider than the terminal."""
    return in_cells(
        text, min(most, _columns()), initial_indent=bullet, subsequent_indent=" " * len(bullet)
    )


def in_cells(text: str, width: int, **options: Any) -> list[str]:
    """Return a paragraph in lines of at most so many cells, broken between words.

    Examples
    --------
    >>> in_cells("\u6771\u4eac \u5927\u962a", 6)
    ['\u6771\u4eac', '\u5927\u962a']
    """
    # a wide letter counts as two while lines are made; no text that is shown holds \\0
    wide = "".join(c + "\0" if cells(c) == 2 else c for c in text)
    found = textwrap.wrap(wide, width, break_long_words=False, break_on_hyphens=False, **options)
    return [line.replace("\0", "") for line in found]
