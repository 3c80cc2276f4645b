"""Labels and names of files as a reader sees them: safe on a terminal, short, no look-alikes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["LONGEST", "shortened", "visible"]

LONGEST = 40
"""Longer labels are cut in tables; the JSON and ``title=`` in the page hold them whole."""

_CUT = "\N{HORIZONTAL ELLIPSIS}"


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


def shortened(labels: Iterable[object], most: int = LONGEST) -> list[str]:
    """Return labels for one table: safe, at most about ``most`` characters, different if they are.

    A long label is cut in the middle, since labels often differ at their end. Where the cut would
    make two labels look the same, the place where they differ is shown; where that is not
    enough, they stand whole.

    Parameters
    ----------
    labels : iterable of str
        All labels of the table; equal ones stay equal.
    most : int
        Characters of a label that is cut in the middle.

    Examples
    --------
    >>> shortened(["dose of ten milligrams", "dose of six milligrams"], 12)
    ['dose of…ten…rams', 'dose of…six…rams']
    """
    whole = [visible(label) for label in labels]
    cut = {label: _middle(label, most) for label in whole}
    for alike in _look_alikes(cut):
        at = _first_difference(alike)
        for label in alike:
            cut[label] = _around(label, at, most)
    for alike in _look_alikes(cut):
        cut |= {label: label for label in alike}
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


def _middle(label: str, most: int) -> str:
    if len(label) <= most:
        return label
    tail = most // 3
    return f"{label[: most - tail - 1]}{_CUT}{label[len(label) - tail :]}"


def _around(label: str, at: int, most: int) -> str:
    """Return a long label by its begin, what stands from `at` on, and its end."""
    head, tail = most - most // 3 - 1, most // 3
    stop = max(at + max(3, most // 4), head)
    if len(label) <= most or at < head or stop + 1 >= len(label) - tail:
        return label
    return f"{label[:head]}{_CUT}{label[at:stop]}{_CUT}{label[len(label) - tail :]}"
